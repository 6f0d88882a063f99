"""The format `kafkalog` as a stream: growing segments, read from where the last micro-batch ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kafkacodec.log import Partition
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.options import EARLIEST, Bound, ReadOptions, Selection, TopicPartition
from kafkacodec.spark.planning import partitions_of, plan, readable_end, span
from kafkacodec.spark.reading import read_ranges

__all__ = ["SegmentStreamReader"]

# As in the checkpoints of Spark's Kafka source: topic -> partition (as text) -> the next offset to read.
Offsets = dict[str, dict[str, int]]


class SegmentStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, by offsets. Tasks read as in a batch job."""

    def __init__(self, options: ReadOptions, names: tuple[str, ...]) -> None:
        self.options = options
        self.names = names
        self._stop_at: Offsets | None = None

    def initialOffset(self) -> Offsets:
        """Where a new query starts."""
        found = _by_name(partitions_of(self.options))
        return _nested({key: max(span(p, self.options)[0], p.start_offset()) for key, p in found.items()})

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit set by `maxOffsetsPerTrigger`."""
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at the current end of each partition."""
        self._stop_at = self._ends()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Where the next micro-batch ends: at each partition's end, or before it if there is a limit."""
        ends = _flat(self._ends() if self._stop_at is None else self._stop_at)
        starts = _flat(start)
        starts = {key: starts.get(key, 0) for key in ends}
        available = {key: max(0, end - starts[key]) for key, end in ends.items()}
        if isinstance(limit, ReadMaxRows):
            available = _shares(available, limit.max_rows)
        return _nested({**_flat(start), **{key: starts[key] + count for key, count in available.items()}})

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """The tasks of a micro-batch.

        Raises:
            OptionError: with `failOnDataLoss`, if segments to be read were deleted or truncated. The tasks detect
                offsets missing between segments.
        """
        ends, starts = _flat(end), _flat(start)
        starts = {key: starts.get(key, 0) for key, stop in ends.items() if stop > starts.get(key, 0)}
        present = self._partitions()
        for key, first in starts.items():
            lost = key not in present or (first and first < present[key].start_offset())
            if lost and self.options.fail_on_data_loss:
                raise OptionError(f"failOnDataLoss: offset {first} of {key[0]}-{key[1]} no longer exists")
            if self.options.fail_on_data_loss and ends[key] > present[key].end_offset():
                raise OptionError(
                    f"failOnDataLoss: the end offset of {key[0]}-{key[1]} was {ends[key]} and is now "
                    f"{present[key].end_offset()}"
                )
        starts = {key: first for key, first in starts.items() if key in present}
        if not starts:
            return [InputPartition(())]
        batch = replace(
            self.options,
            selection=Selection(partitions=frozenset(starts)),
            start=Bound("startingOffsets", values=starts),
            end=Bound("endingOffsets", values={key: ends[key] for key in starts}),
        )
        return [InputPartition(ranges) for ranges in plan(batch) or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task's ranges as Arrow batches."""
        options = self.options
        return read_ranges(partition.value, self.names, permissive=options.permissive, gaps=options.gaps)

    def _partitions(self) -> dict[TopicPartition, Partition]:
        # The starting offsets are for the first micro-batch. Partitions that appear later are read from the beginning.
        return _by_name(partitions_of(replace(self.options, start=Bound("startingOffsets", EARLIEST))))

    def _ends(self) -> Offsets:
        return _nested({key: readable_end(p, self.options) for key, p in self._partitions().items()})


def _by_name(partitions: Iterable[Partition]) -> dict[TopicPartition, Partition]:
    return {(p.topic, p.partition): p for p in partitions if p.topic is not None and p.partition is not None}


def _shares(available: dict[TopicPartition, int], most: int) -> dict[TopicPartition, int]:
    """At most `most` offsets in total, shared among the partitions in proportion to what each has."""
    total, left = sum(available.values()), most
    if total <= most:
        return available
    shares = {}
    for key, count in sorted(available.items()):
        shares[key] = min(count, max(1, count * most // total), left)
        left -= shares[key]
    return shares


def _flat(offsets: Offsets) -> dict[TopicPartition, int]:
    return {(topic, int(number)): offset for topic, numbers in offsets.items() for number, offset in numbers.items()}


def _nested(offsets: dict[TopicPartition, int]) -> Offsets:
    nested: Offsets = {}
    for (topic, number), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(number)] = offset
    return nested
