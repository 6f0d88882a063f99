"""Partitions of one or several topics, read as one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Unpack

from kafkacodec.arguments import num_threads
from kafkacodec.log.checking.report import Report
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.log.reading.ranges import SegmentRange
from kafkacodec.log.reading.readable import Readable
from kafkacodec.log.segments.kinds import SegmentKind
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.plan import PLACE_COLUMNS, RECORD_COLUMNS
from kafkacodec.shown import counted, html_table, repr_of
from kafkacodec.signatures import shows_options, suggests_options


class Selection(Readable):
    """Partitions in their order, read as one; `LogDirectory.select` makes it.

    Iterating over it gives the records of one partition after the other, each a `kafkacodec.Record`.

    Args:
        partitions: the partitions, at least one.
        path: where they are, for messages.

    Attributes:
        partitions (list[Partition]): the partitions.
        path (str): where they are.

    Raises:
        ValueError: there are no partitions.
    """

    def __init__(self, partitions: Sequence[Partition], path: str | os.PathLike[str]) -> None:
        self.partitions = list(partitions)
        self.path = os.fspath(path)
        if not self.partitions:
            raise ValueError("a selection has at least one partition")

    def __repr__(self) -> str:
        return repr_of(self, self._about())

    def _repr_html_(self) -> str:
        rows = ([str(p.topic), str(p.partition), str(len(p.segments)), f"{p.size_in_bytes:,}"] for p in self.partitions)
        names = ["topic", "partition", "segments", "bytes"]
        return html_table(f"Selection: {self._about()}", names, rows, numbers=names[1:])

    def _about(self) -> str:
        topics = len({partition.topic for partition in self.partitions})
        return f"{counted(len(self.partitions), 'partition')} of {counted(topics, 'topic')} in {self.path}"

    @property
    def size_in_bytes(self) -> int:
        """The current size of all segments, in bytes."""
        return sum(partition.size_in_bytes for partition in self.partitions)

    @shows_options(ReadOptions, Partition.read)
    def read(self, **options: Unpack[ReadOptions]) -> Iterator[RecordColumns]:
        """The records of all partitions, one after the other, in chunks of bounded size.

        Args:
            columns: by default ``topic``, ``partition`` and those of `kafkacodec.decode`.
            start_offset, end_offset: apply to every partition.
            on_error: ``"stop"`` stops reading a partition, and continues with the next one.
            The other options: as in `Partition.read`.

        Raises:
            As `Partition.read`.
        """
        shown = _with_place(options)
        for partition in self.partitions:
            yield from partition.read(**shown)

    @suggests_options
    def verify(self, *, threads: int | None = 1) -> Report:
        """Inspect every partition, as `Partition.verify` does.

        Args:
            threads: as in `Segment.verify`.

        Raises:
            OSError: a directory or a segment cannot be read.
        """
        return verify_each(self.partitions, self.path, num_threads(threads))

    def _pieces(self, options: ReadOptions) -> list[SegmentRange]:
        return [piece for partition in self.partitions for piece in partition._pieces(options)]

    @property
    def _kind(self) -> SegmentKind:
        return self.partitions[0]._kind

    def _nothing(self, options: ReadOptions) -> RecordColumns:
        return super()._nothing(_with_place(options))


def verify_each(partitions: Iterable[Partition], path: str, threads: int) -> Report:
    """One report of partitions, about a directory."""
    report = Report(path)
    for partition in partitions:
        report.include(partition.verify(threads=threads))
    return report


def _with_place(options: ReadOptions) -> ReadOptions:
    """The options with the default columns of a topic."""
    if options.get("columns") is not None:
        return options
    return {**options, "columns": (*PLACE_COLUMNS, *RECORD_COLUMNS)}
