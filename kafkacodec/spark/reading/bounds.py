"""Selection of topics, partitions and offsets: the options that all sources have, as in Spark's own Kafka source."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkacodec.datatypes import dataclass, field
from kafkacodec.moments import are_seconds, milliseconds
from kafkacodec.patterns import PatternError, whole_matcher
from kafkacodec.shown import timestamp
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.option_values import comma_names, parse_json, take

__all__ = [
    "EARLIEST",
    "LATEST",
    "NONE_LATER",
    "NOT_SELECTED",
    "Bound",
    "Selection",
    "TopicPartition",
    "parse_end",
    "parse_selection",
    "parse_start",
]

logger = logging.getLogger("kafkacodec.spark")

EARLIEST, LATEST = -2, -1

NOT_SELECTED = "is in the checkpoint, but {option} does not name it: a query with other topics needs another checkpoint"
"""What is wrong with a position of a stream whose options were changed."""

NONE_LATER = "startingOffsetsByTimestampStrategy=latest starts such partitions at their end"
"""What to do without a record of a time or later."""

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class Selection:
    """The topics and partitions to read. At most one field is set; if none is, everything is read."""

    topics: frozenset[str] | None = None
    pattern: str | None = None
    partitions: frozenset[TopicPartition] | None = None

    @property
    def option(self) -> str | None:
        """The option that makes this selection."""
        if self.topics is not None:
            return "subscribe"
        if self.pattern is not None:
            return "subscribePattern"
        return "assign" if self.partitions is not None else None

    def lacks(self, key: TopicPartition) -> str | None:
        """The option that names topics or partitions, and not this one; None if there is none."""
        if self.topics is not None:
            return None if key[0] in self.topics else self.option
        return None if self.partitions is None or key in self.partitions else self.option

    def wants(self, topic: str | None, partition: int | None) -> bool:
        """Whether a partition is selected. One whose topic is unknown is selected only if everything is."""
        if self.option is None:
            return True
        if topic is None or partition is None:
            return False
        if self.topics is not None:
            return topic in self.topics
        if self.pattern is not None:
            return whole_matcher(self.pattern)(topic)
        return self.partitions is not None and (topic, partition) in self.partitions


@dataclass(frozen=True)
class Bound:
    """Where reading starts or ends: for all partitions (`default`) or by partition.

    A value is an offset, `EARLIEST` or `LATEST`; with `by_timestamp`, a timestamp in milliseconds since 1970.
    """

    option: str
    default: int | None = None
    values: Mapping[TopicPartition, int] = field(default_factory=dict)
    by_timestamp: bool = False

    def offset(self, key: TopicPartition) -> int | None:
        """The offset that is given for a partition; None if there is none."""
        value = None if self.by_timestamp else self.values.get(key, self.default)
        return value if value is not None and value >= 0 else None

    def shown(self, value: int) -> str:
        """A value in an error."""
        return f"{timestamp(value)} UTC ({value} ms)" if self.by_timestamp and value >= 0 else str(value)

    def given(self, key: TopicPartition, found: int) -> str:
        """The value for a partition in an error: a time as given, or the offset that was found."""
        value = self.values.get(key, self.default)
        return self.shown(value) if self.by_timestamp and value is not None else str(found)


def parse_selection(given: Mapping[str, str]) -> Selection:
    """What `subscribe`, `subscribePattern` or `assign` select. Raises OptionError."""
    present = [name for name in ("subscribe", "subscribePattern", "assign") if name in given]
    if len(present) > 1:
        raise OptionError(f"{present[1]}: contradicts {present[0]}; set one of them, or none to read everything")
    return Selection(
        topics=take(given, "subscribe", _topics, None),
        pattern=take(given, "subscribePattern", _pattern, None),
        partitions=take(given, "assign", _assigned, None),
    )


def _topics(name: str, value: str) -> frozenset[str]:
    topics = frozenset(filter(None, comma_names(name, value)))
    if not topics:
        raise OptionError(f"{name}: no topic given")
    return topics


def _pattern(name: str, value: str) -> str:
    try:
        whole_matcher(value)
    except PatternError as error:
        raise OptionError(f"{name}: {error}") from None
    return value


def _assigned(name: str, value: str) -> frozenset[TopicPartition]:
    shape = f'{name}: expected JSON such as {{"topic": [0, 1]}}'
    mapping = parse_json(name, value)
    if not isinstance(mapping, dict) or not mapping:
        raise OptionError(shape)
    pairs = set()
    for topic, partitions in mapping.items():
        if not isinstance(partitions, list) or not partitions:
            raise OptionError(shape)
        for partition in partitions:
            if type(partition) is not int or partition < 0:
                raise OptionError(f"{shape}; {partition!r} is not a partition")
            pairs.add((topic, partition))
    return frozenset(pairs)


def parse_start(given: Mapping[str, str], streaming: bool, default: int = EARLIEST) -> Bound:
    """Where reading starts. Raises OptionError."""
    bound = _bound(given, ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"))
    if bound is None:
        return Bound("startingOffsets", default)
    if not streaming:
        _refuse_edge(bound, LATEST, "latest")
    return bound


def parse_end(given: Mapping[str, str], streaming: bool) -> Bound:
    """Where a batch ends. Raises OptionError."""
    names = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
    for name in names:
        if streaming and name in given:
            raise OptionError(f"{name}: a stream has no end")
    bound = _bound(given, names)
    if bound is None:
        return Bound("endingOffsets", LATEST)
    _refuse_edge(bound, EARLIEST, "earliest")
    return bound


def _refuse_edge(bound: Bound, edge: int, word: str) -> None:
    if bound.by_timestamp:
        return
    if bound.default == edge:
        raise OptionError(f"{bound.option}: {word!r} would read nothing")
    for (topic, partition), value in bound.values.items():
        if value == edge:
            raise OptionError(f"{bound.option}: {edge} ({word}) for {topic}-{partition} would read nothing")


def _bound(given: Mapping[str, str], names: tuple[str, str, str]) -> Bound | None:
    """One end of the range, from one of three options: a timestamp, timestamps by partition, offsets."""
    present = [name for name in names if name in given]
    if not present:
        return None
    if len(present) > 1:
        raise OptionError(f"{present[1]}: contradicts {present[0]}; set one of them")
    name, value = present[0], given[present[0]]
    if name == names[0]:
        return Bound(name, _timestamp(name, value), by_timestamp=True)
    if name == names[1]:
        return Bound(name, values=_by_partition(name, value, lowest=0), by_timestamp=True)
    word = value.strip().lower()
    if word in ("earliest", "latest"):
        return Bound(name, EARLIEST if word == "earliest" else LATEST)
    return Bound(name, values=_by_partition(name, value, lowest=EARLIEST))


def _timestamp(name: str, value: str) -> int:
    try:
        found = milliseconds(value.strip(), name)
    except ValueError as error:
        raise OptionError(str(error)) from None
    _warn_of_seconds(name, value.strip())
    if found < 0:
        raise OptionError(f"{name}: {value!r} is a time before 1970")
    return found


def _warn_of_seconds(name: str, text: str) -> None:
    if are_seconds(text):
        logger.warning("%s: %s is in 1970, in milliseconds; for seconds, add 000", name, text)


def _by_partition(name: str, value: str, *, lowest: int) -> dict[TopicPartition, int]:
    words = "earliest, latest or " if lowest == EARLIEST else ""
    shape = f'{name}: expected {words}JSON such as {{"topic": {{"0": 23, "1": 42}}}}'
    mapping = parse_json(name, value, shape)
    if not isinstance(mapping, dict) or not mapping:
        raise OptionError(shape)
    values: dict[TopicPartition, int] = {}
    for topic, partitions in mapping.items():
        if not isinstance(partitions, dict):
            raise OptionError(shape)
        for partition, number in partitions.items():
            if not partition.isdecimal():
                raise OptionError(f"{shape}; {partition!r} is not a partition")
            if lowest != EARLIEST and isinstance(number, str):
                number = _timestamp(name, number)
            if type(number) is not int or number < lowest or number >= 1 << 63:
                raise OptionError(f"{shape}; {number!r} for {topic}-{partition} is out of range")
            if lowest != EARLIEST:
                _warn_of_seconds(name, str(number))
            values[topic, int(partition)] = number
    return values
