"""Options of the reader: allowed values, their meaning, and contradictions.

Options that Spark's own Kafka source has too have the same name and meaning. Unlike in Spark, an unknown option is an
error, since a misspelt one would silently change the result.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args
from urllib.parse import unquote, urlsplit

from kafkacodec.log.continuity import Gaps
from kafkacodec.patterns import PatternError, whole_matcher
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.foreign import is_foreign, warn_foreign
from kafkacodec.spark.schema import COLUMNS

__all__ = [
    "EARLIEST",
    "LATEST",
    "Bound",
    "ReadOptions",
    "Selection",
    "one_of",
    "parse_columns",
    "parse_json",
    "parse_read_options",
    "positive",
    "refuse_unknown",
    "take",
    "whole_number",
]

EARLIEST, LATEST = -2, -1

MEBIBYTE = 1 << 20
MAX_PARTITION_BYTES = 128 * MEBIBYTE

TopicPartition = tuple[str, int]

Replicas = Literal["error", "merge", "all"]
"""What to do with several replicas of a partition."""

T = TypeVar("T")
D = TypeVar("D")

_READ_OPTIONS = (
    "path",
    "paths",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "includeHeaders",
    "columns",
    "mode",
    "gaps",
    "isolationLevel",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxPartitionBytes",
    "endAt",
    "failOnDataLoss",
    "replicas",
)
_STREAM_OPTIONS = (*_READ_OPTIONS, "maxOffsetsPerTrigger")

_NO_TABLES = (
    "Spark passes no options when a table of a Python data source is read; "
    "use CREATE TEMPORARY VIEW name USING kafkalog OPTIONS (path '...')"
)


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


@dataclass(frozen=True)
class ReadOptions:
    """The reader's options, checked."""

    paths: tuple[str, ...]
    selection: Selection
    start: Bound
    end: Bound
    columns: tuple[str, ...] | None
    headers: bool
    permissive: bool
    gaps: Gaps
    read_committed: bool
    latest_when_no_later_record: bool
    min_partitions: int | None
    max_records: int | None
    max_partition_bytes: int
    to_high_watermark: bool
    fail_on_data_loss: bool
    replicas: Replicas = "error"
    max_offsets_per_trigger: int | None = None


def parse_read_options(options: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """Check the options of ``spark.read`` or ``spark.readStream``.

    Raises:
        OptionError: an option is unknown, malformed or contradicts another one.
    """
    given = refuse_unknown(options, _STREAM_OPTIONS if streaming else _READ_OPTIONS)
    warn_foreign(options)
    columns, headers = parse_columns(given)
    start, end = _start(given, streaming), _end(given, streaming)
    strategy = take(given, "startingOffsetsByTimestampStrategy", one_of("error", "latest"), None)
    if strategy is not None and not start.by_timestamp:
        raise OptionError(
            "startingOffsetsByTimestampStrategy: requires startingTimestamp or startingOffsetsByTimestamp"
        )
    permissive = take(given, "mode", one_of("FAILFAST", "PERMISSIVE"), "FAILFAST") == "PERMISSIVE"
    fail_on_data_loss = take(given, "failOnDataLoss", _boolean, None)
    gaps = take(given, "gaps", one_of("error", "accept"), "accept" if fail_on_data_loss is False else "error")
    end_at = take(given, "endAt", one_of("highWatermark", "logEnd"), "highWatermark" if streaming else "logEnd")
    return ReadOptions(
        paths=_paths(given),
        selection=_selection(given),
        start=start,
        end=end,
        columns=columns,
        headers=headers,
        permissive=permissive,
        gaps="accept" if gaps == "accept" else "error",
        read_committed=take(given, "isolationLevel", one_of("read_uncommitted", "read_committed"), None)
        == "read_committed",
        latest_when_no_later_record=strategy == "latest",
        min_partitions=take(given, "minPartitions", positive, None),
        max_records=take(given, "maxRecordsPerPartition", positive, None),
        max_partition_bytes=take(given, "maxPartitionBytes", positive, MAX_PARTITION_BYTES),
        to_high_watermark=end_at == "highWatermark",
        # A permissive batch reads what there is; a stream would never know of what it has left out.
        fail_on_data_loss=(streaming or not permissive) if fail_on_data_loss is None else fail_on_data_loss,
        replicas=take(given, "replicas", one_of(*get_args(Replicas)), "error"),  # type: ignore[arg-type]
        max_offsets_per_trigger=take(given, "maxOffsetsPerTrigger", positive, None),
    )


def parse_columns(options: Mapping[str, str]) -> tuple[tuple[str, ...] | None, bool]:
    """The value of `columns`, and whether to read headers, of a batch or a stream.

    Raises:
        OptionError: an option is unknown to both, `columns` or `includeHeaders` is malformed, or they contradict; or
            these are the properties of a table in a catalog.
    """
    if {"owner", "provider"} <= options.keys():
        raise OptionError(f"CREATE TABLE: {_NO_TABLES}")
    given = refuse_unknown(options, _STREAM_OPTIONS)
    columns = _columns(given)
    headers = take(given, "includeHeaders", _boolean, None)
    if columns is not None and headers is not None and headers != ("headers" in columns):
        listed = "lists" if "headers" in columns else "does not list"
        raise OptionError(f"includeHeaders: {str(headers).lower()} contradicts columns, which {listed} headers")
    return columns, bool(headers) or (columns is not None and "headers" in columns)


def refuse_unknown(options: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """The options by their exact names, without foreign ones; option names are not case-sensitive.

    Raises:
        OptionError: an option is not one of `known`.
    """
    names = {name.lower(): name for name in known}
    given = {}
    for option, value in options.items():
        if is_foreign(option):
            continue
        name = names.get(option.lower())
        if name is None:
            close = difflib.get_close_matches(option.lower(), names, n=1)
            hint = f"did you mean {names[close[0]]}?" if close else f"options are {', '.join(names.values())}"
            raise OptionError(f"{option}: unknown option; {hint}")
        given[name] = value
    return given


def take(given: Mapping[str, str], name: str, parse: Callable[[str, str], T], default: D) -> T | D:
    """An option's parsed value, or the default if it is not given."""
    return parse(name, given[name]) if name in given else default


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    """From `path`, separated by commas, or `paths`, which Spark sets for a list given to ``load``."""
    if "path" in given and "paths" in given:
        raise OptionError("path: given twice, as an option and to load()")
    if "paths" in given:
        listed = parse_json("paths", given["paths"])
        if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
            raise OptionError("paths: expected a JSON list of strings")
        paths = tuple(listed)
    else:
        paths = tuple(part.strip() for part in given.get("path", "").split(",") if part.strip())
    if not paths:
        hint = f" (for a table of a catalog: {_NO_TABLES})" if not given else ""
        raise OptionError(f"path: missing; give a directory, a glob or segment files{hint}")
    return paths


def local_path(path: str, option: str = "path") -> str:
    """The local path of a plain or ``file:`` path. Tasks open local files only.

    Raises:
        OptionError: the path has another scheme.
    """
    scheme = urlsplit(path).scheme
    if scheme == "file":
        return unquote(urlsplit(path).path)
    if "://" in path:
        raise OptionError(f"{option}: {path} is not a local path; mount the {scheme}: file system")
    return path


def _selection(given: Mapping[str, str]) -> Selection:
    present = [name for name in ("subscribe", "subscribePattern", "assign") if name in given]
    if len(present) > 1:
        raise OptionError(f"{present[1]}: contradicts {present[0]}; give one of them, or none to read everything")
    return Selection(
        topics=take(given, "subscribe", _topics, None),
        pattern=take(given, "subscribePattern", _pattern, None),
        partitions=take(given, "assign", _assigned, None),
    )


def _topics(name: str, value: str) -> frozenset[str]:
    topics = frozenset(part.strip() for part in value.split(",") if part.strip())
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


def _start(given: Mapping[str, str], streaming: bool) -> Bound:
    bound = _bound(given, ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"))
    if bound is None:
        return Bound("startingOffsets", EARLIEST)
    if not streaming:
        _refuse_edge(bound, LATEST, "latest")
    return bound


def _end(given: Mapping[str, str], streaming: bool) -> Bound:
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
        raise OptionError(f"{present[1]}: contradicts {present[0]}; give one of them")
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
        timestamp = int(value)
    except ValueError:
        timestamp = -1
    if timestamp < 0:
        raise OptionError(f"{name}: {value!r} is not a time in milliseconds since 1970")
    return timestamp


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
            if type(number) is not int or number < lowest or number >= 1 << 63:
                raise OptionError(f"{shape}; {number!r} for {topic}-{partition} is out of range")
            values[topic, int(partition)] = number
    return values


def _columns(given: Mapping[str, str]) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    names = {name.lower(): name for name in COLUMNS}
    columns = []
    for part in given["columns"].split(","):
        name = names.get(part.strip().lower())
        if name is None:
            raise OptionError(f"columns: unknown column {part.strip()!r}; columns are {', '.join(COLUMNS)}")
        if name in columns:
            raise OptionError(f"columns: {name} is listed twice")
        columns.append(name)
    return tuple(columns)


def parse_json(name: str, value: str, shape: str | None = None) -> object:
    """An option's value, parsed as JSON."""
    try:
        return json.loads(value)
    except RecursionError:
        raise OptionError(f"{shape or name}: the JSON {value[:80]!r} is nested too deeply") from None
    except ValueError as error:
        raise OptionError(f"{shape or name}: {value[:80]!r} is not JSON: {error}") from None


def positive(name: str, value: str) -> int:
    """An option's value as a positive integer."""
    try:
        number = int(value)
    except ValueError:
        number = 0
    if number <= 0:
        raise OptionError(f"{name}: {value!r} is not a positive integer")
    return number


def whole_number(name: str, value: str) -> int:
    """An option's value as an integer."""
    try:
        return int(value)
    except ValueError:
        raise OptionError(f"{name}: {value!r} is not an integer") from None


def _boolean(name: str, value: str) -> bool:
    word = value.strip().lower()
    if word not in ("true", "false"):
        raise OptionError(f"{name}: expected true or false, not {value!r}")
    return word == "true"


def one_of(*words: str) -> Callable[[str, str], str]:
    """A parser for one of these words, in upper or lower case."""

    def parse(name: str, value: str) -> str:
        for word in words:
            if value.strip().lower() == word.lower():
                return word
        raise OptionError(f"{name}: expected {', '.join(words[:-1])} or {words[-1]}, not {value!r}")

    return parse
