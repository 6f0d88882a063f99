"""A topic of a log directory: its partitions as one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from typing import Unpack

from kafkacodec.log.checking.report import Report
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.log.reading.ranges import SegmentRange
from kafkacodec.log.reading.readable import Readable
from kafkacodec.log.segments.kinds import SegmentKind
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.plan import PLACE_COLUMNS, RECORD_COLUMNS
from kafkacodec.shown import html_table
from kafkacodec.signatures import shows_options, suggests_options


class Topic(Readable):
    """The partitions of a topic in one log directory, in the order of their numbers; `LogDirectory.topic` makes it.

    Iterating over it gives the records of one partition after the other, each a `kafkacodec.Record`.

    Args:
        name: the topic's name.
        partitions: its partitions.
        path: the log directory.

    Attributes:
        name (str): the topic's name.
        partitions (list[Partition]): its partitions in this directory, by number.
        path (str): the log directory.
    """

    def __init__(self, name: str, partitions: Sequence[Partition], path: str | os.PathLike[str]) -> None:
        self.name = name
        self.partitions = list(partitions)
        self.path = os.fspath(path)

    def __repr__(self) -> str:
        return f"<Topic: {self.name}, {len(self.partitions)} partitions in {self.path}>"

    def _repr_html_(self) -> str:
        rows = ([str(p.partition), str(len(p.segments)), f"{p.size_in_bytes:,}"] for p in self.partitions)
        return html_table(f"Topic {self.name} in {self.path}", ["partition", "segments", "bytes"], rows)

    @property
    def size_in_bytes(self) -> int:
        """The current size of all segments, in bytes."""
        return sum(partition.size_in_bytes for partition in self.partitions)

    def partition(self, number: int) -> Partition:
        """One partition.

        Raises:
            FileNotFoundError: the directory does not have this partition.
        """
        for candidate in self.partitions:
            if candidate.partition == number:
                return candidate
        known = ", ".join(str(p.partition) for p in self.partitions)
        text = f"no partition {number} of topic {self.name!r} in this directory; it has {known}"
        raise FileNotFoundError(errno.ENOENT, text, os.path.join(self.path, f"{self.name}-{number}"))

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
        report = Report(self.path)
        for partition in self.partitions:
            report.include(partition.verify(threads=threads))
        return report

    def _pieces(self, options: ReadOptions) -> list[SegmentRange]:
        return [piece for partition in self.partitions for piece in partition._pieces(options)]

    @property
    def _kind(self) -> SegmentKind:
        return self.partitions[0]._kind

    def _nothing(self, options: ReadOptions) -> RecordColumns:
        return super()._nothing(_with_place(options))


def _with_place(options: ReadOptions) -> ReadOptions:
    """The options with the default columns of a topic."""
    if options.get("columns") is not None:
        return options
    return {**options, "columns": (*PLACE_COLUMNS, *RECORD_COLUMNS)}
