"""From offsets to tasks: which range of offsets of which partition each Spark task reads."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from kafkacodec.datatypes import NamedTuple
from kafkacodec.spark.errors import LostOffsets, OptionError
from kafkacodec.spark.live.offsets import Ids, Offsets, TopicOffsets
from kafkacodec.spark.live.read_options import BrokerReadOptions
from kafkacodec.spark.reading.bounds import NOT_SELECTED, TopicPartition
from kafkacodec.spark.reading.planning import Pruning

__all__ = ["Json", "OffsetRange", "Reached", "Task", "as_json", "from_json", "gone", "lost", "plan_batch", "tasks_of"]

logger = logging.getLogger("kafkacodec.spark")

# topic -> partition (as text) -> an offset, or an object with the fields of `Reached`.
Json = dict[str, dict[str, "int | dict[str, int]"]]


class OffsetRange(NamedTuple):
    """Offsets of a partition: from `start` until before `end`, in the topic that has this id; None before Kafka 2.8."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: uuid.UUID | None = None


Task = tuple[OffsetRange, ...]
"""What one Spark task reads: a range, or short ones of several partitions."""

_MANY: Final = 64
"""So many ranges have a task each; if there are more, neighbours share tasks."""

_WORTH, _FULL = 10_000, 50_000
"""How many offsets a shared task has at least, and at most: to start it takes Spark as long as to read the first."""


class Reached(NamedTuple):
    """Where a stream is, by partition.

    Attributes:
        offsets: the next offset.
        starts: where reading started, of partitions that are new to the query, or in a topic that was made again.
        earlier: the offset that was reached in the topic that had the name before.
    """

    offsets: Offsets
    starts: Offsets
    earlier: Offsets

    def at(self, key: TopicPartition) -> tuple[int | None, int | None, int | None]:
        """All of a partition."""
        return self.offsets.get(key), self.starts.get(key), self.earlier.get(key)


def plan_batch(options: BrokerReadOptions, pruning: Pruning) -> list[Task]:
    """What the tasks of a batch read, in the order of partitions and offsets.

    Raises:
        OptionError: an option does not match the topics of the cluster; or offsets are not there and
            `failOnDataLoss` is true.
        BrokerUnavailable: the brokers do not answer.
    """
    offsets = TopicOffsets(options)
    keys = offsets.partitions()
    starts, ends = offsets.resolved(options.start, keys), offsets.resolved(options.end, keys)
    for key in keys:
        if starts[key] > ends[key]:
            given = options.start.given(key, starts[key]), options.end.given(key, ends[key])
            raise OptionError(
                f"{options.start.option}: {given[0]} for {key[0]}-{key[1]} is after {options.end.option}, {given[1]}"
            )
    # Where an offset is the cluster's own there is nothing to compare with it.
    first = offsets.earliest(keys) if options.start.values and not options.start.by_timestamp else starts
    last = offsets.latest(keys) if options.end.values and not options.end.by_timestamp else ends
    spans = {key: _inside(key, (starts[key], ends[key]), (first[key], last[key]), options) for key in keys}
    return tasks_of(_pruned(spans, pruning, offsets), options, keys)


def _inside(
    key: TopicPartition, wanted: tuple[int, int], there: tuple[int, int], options: BrokerReadOptions
) -> tuple[int, int]:
    """The part of a range that exists."""
    (start, end), (first, last) = wanted, there
    if start < min(first, end):
        lost(options, key, f"offsets {start} to {min(first, end) - 1} were deleted before they were read")
    if end > last:
        lost(options, key, f"offsets {max(start, last)} to {end - 1} are after the end of the partition, {last}")
    return max(start, first), min(end, last)


def lost(options: BrokerReadOptions, key: TopicPartition, what: str, go_on: str = "without them") -> None:
    """Raise or log that offsets cannot be read. `go_on` is where reading continues if that is accepted."""
    text = f"{key[0]}-{key[1]}: {what}"
    if options.fail_on_data_loss:
        raise LostOffsets(text, go_on)
    logger.warning("%s; reading continues %s", text, go_on)


def gone(options: BrokerReadOptions, key: TopicPartition) -> None:
    """Raise or log that a partition of the checkpoint is not there, or no longer selected."""
    option = options.selection.lacks(key)
    lost(options, key, "the partition was deleted" if option is None else NOT_SELECTED.format(option=option))


def _pruned(
    spans: Mapping[TopicPartition, tuple[int, int]], pruning: Pruning, offsets: TopicOffsets
) -> dict[TopicPartition, tuple[int, int]]:
    """The parts of the ranges that the filters do not exclude."""
    kept = {
        key: (max(start, pruning.start_offset), min(end, pruning.end_offset))
        for key, (start, end) in spans.items()
        if (pruning.topics is None or key[0] in pruning.topics)
        and (pruning.partitions is None or key[1] in pruning.partitions)
    }
    # To a broker, times before 1970 mean something else than a time.
    if pruning.start_timestamp is None or pruning.start_timestamp < 0 or not kept:
        return kept
    # All records before the first one of that time or later are older.
    found = offsets.at(dict.fromkeys(kept, pruning.start_timestamp))
    firsts = {key: kept[key][1] if offset is None else offset for key, offset in found.items()}
    return {key: (max(start, firsts[key]), end) for key, (start, end) in kept.items()}


def tasks_of(spans: Mapping[TopicPartition, tuple[int, int]], options: BrokerReadOptions, ids: Ids) -> list[Task]:
    """A task for each partition that has offsets to read, or several as `maxRecordsPerPartition` and `minPartitions`
    ask for; fewer for many short ranges.
    """
    ranges = [OffsetRange(*key, start, end, ids.get(key)) for key, (start, end) in sorted(spans.items()) if start < end]
    if options.max_records is not None:
        most = options.max_records
        ranges = [part for r in ranges for part in _cut(r, -(-(r.end - r.start) // most))]
    wanted = options.min_partitions
    if wanted is not None and len(ranges) < wanted:
        total = sum(r.end - r.start for r in ranges)
        ranges = [part for r in ranges for part in _cut(r, max(1, round((r.end - r.start) / total * wanted)))]
    return list(_gathered(ranges, options))


def _gathered(ranges: Sequence[OffsetRange], options: BrokerReadOptions) -> Iterator[Task]:
    """Tasks of neighbours, no larger than `maxRecordsPerPartition`, and as many as `minPartitions`."""
    least, most = options.min_partitions or 0, 0
    if len(ranges) > max(_MANY, least):
        total = sum(r.end - r.start for r in ranges)
        most = min(max(_WORTH, total // _MANY), _FULL, options.max_records or _FULL, total // max(1, least))
    task: list[OffsetRange] = []
    held = 0
    for one in ranges:
        size = one.end - one.start
        if task and held + size > most:
            yield tuple(task)
            task, held = [], 0
        task.append(one)
        held += size
    if task:
        yield tuple(task)


def _cut(whole: OffsetRange, parts: int) -> Iterable[OffsetRange]:
    """So many ranges of the same length, but for one offset."""
    size = whole.end - whole.start
    edges = [whole.start + size * n // parts for n in range(parts + 1)]
    return [whole._replace(start=a, end=b) for a, b in pairwise(edges) if a < b]


def as_json(offsets: Offsets, starts: Offsets | None = None, earlier: Offsets | None = None) -> Json:
    """Offsets as Spark's own source writes them to checkpoints, where `starts` has none.

    The others are as in `Reached`.
    """
    found: Json = {}
    for key, offset in sorted(offsets.items()):
        more = {"from": (starts or {}).get(key), "earlier": (earlier or {}).get(key)}
        given = {name: value for name, value in more.items() if value is not None}
        found.setdefault(key[0], {})[str(key[1])] = {"offset": offset, **given} if given else offset
    return found


def from_json(offsets: Json) -> Reached:
    """The inverse of `as_json`."""
    found = Reached({}, {}, {})
    for topic, by in offsets.items():
        for number, value in by.items():
            given = {"offset": value} if isinstance(value, int) else value
            for name, part in zip(("offset", "from", "earlier"), found, strict=True):
                if name in given:
                    part[topic, int(number)] = given[name]
    return found
