"""The report of an export's run: the files and offsets written, and what could not be read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.shown import cell_text, counted, html_table, repr_of
from kafkacodec.spark.reading.checkpoint import Offsets

__all__ = ["ExportProblem", "ExportReport", "ExportedFile"]


@dataclass(frozen=True)
class ExportedFile:
    """A Parquet file.

    Attributes:
        path (str): below the directory of the run.
        topic (str): the topic of its records.
        partition (int): their partition.
        day (int | None): with `partition_by` of date, the day of their timestamps, in days since 1970; None without
            a timestamp.
        rows (int): how many records it has.
        size_in_bytes (int): its size in bytes.
        first_offset (int): the smallest offset.
        last_offset (int): the largest offset.
        min_timestamp (int | None): the smallest timestamp in microseconds since 1970; None if there is none, or the
            column is not exported.
        max_timestamp (int | None): likewise, the largest.
        null_timestamps (int): records without a timestamp, if the column is exported.
    """

    path: str
    topic: str
    partition: int
    day: int | None
    rows: int
    size_in_bytes: int
    first_offset: int
    last_offset: int
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    null_timestamps: int = 0


class ExportProblem(NamedTuple):
    """Something that was left out.

    Attributes:
        topic (str): the topic.
        partition (int): the partition.
        path (str): the segment; empty if offsets are missing of the log.
        position (int | None): the byte where it starts.
        size_in_bytes (int | None): its size.
        message (str): what is wrong.
    """

    topic: str
    partition: int
    path: str
    position: int | None
    size_in_bytes: int | None
    message: str


_PARTITIONS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("files", pa.int64()),
        ("rows", pa.int64()),
        ("size_in_bytes", pa.int64()),
        ("start_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("problems", pa.int64()),
    ]
)


@dataclass(frozen=True, repr=False)
class ExportReport:
    """One run of an export.

    Attributes:
        target (str): the directory or table.
        format (str): ``parquet``, ``iceberg`` or ``delta``.
        run (str | None): the directory of the run's files; None if there was nothing new, or only
            damage that was met before, and nothing was committed.
        spans (dict[tuple[str, int], tuple[int, int]]): the offsets that were read of each topic and partition: the
            first one, and the one to stop before.
        offsets (dict[str, dict[str, object]]): where the next run starts, by topic and partition, and each topic's
            ``topicId``.
        files (tuple[ExportedFile, ...]): the files.
        problems (tuple[ExportProblem, ...]): what was left out: damage with ``mode=PERMISSIVE``, lost offsets with
            ``failOnDataLoss=false``.
    """

    target: str
    format: str
    run: str | None
    spans: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    files: tuple[ExportedFile, ...] = ()
    problems: tuple[ExportProblem, ...] = ()

    @property
    def rows(self) -> int:
        """Number of records written."""
        return sum(file.rows for file in self.files)

    @property
    def size_in_bytes(self) -> int:
        """The size of the files in bytes."""
        return sum(file.size_in_bytes for file in self.files)

    def __repr__(self) -> str:
        problems = counted(len(self.problems), "problem") if self.problems else None
        if self.run is None:
            return repr_of(self, f"{self.target}: nothing new", problems)
        records = f"{counted(self.rows, 'record')} of {counted(len(self.spans), 'partition')}"
        files = f"{counted(len(self.files), 'file')} ({self.size_in_bytes:,} bytes)"
        return repr_of(self, f"{self.target}: {records} in {files}", problems)

    def _repr_html_(self) -> str:
        rows = [[cell_text(value) for value in row.values()] for row in self.partitions().to_pylist()]
        return html_table(repr(self)[1:-1], _PARTITIONS.names, rows, _PARTITIONS.names[1:])

    def partitions(self) -> pa.Table:
        """A row for each partition: files, rows, bytes, the offsets that were read, and the number of problems."""
        totals: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for file in self.files:
            total = totals[file.topic, file.partition]
            for column, number in enumerate((1, file.rows, file.size_in_bytes)):
                total[column] += number
        for problem in self.problems:
            totals[problem.topic, problem.partition][3] += 1
        rows = []
        for key in sorted(totals.keys() | self.spans.keys()):
            *numbers, problems = totals[key]
            rows.append((*key, *numbers, *self.spans.get(key, (None, None)), problems))
        return pa.table([pa.array(c, f.type) for c, f in zip(_columns(rows), _PARTITIONS, strict=True)], _PARTITIONS)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "target": self.target,
            "format": self.format,
            "run": self.run,
            "rows": self.rows,
            "size_in_bytes": self.size_in_bytes,
            "partitions": self.partitions().to_pylist(),
            "offsets": self.offsets,
            "files": [asdict(file) for file in self.files],
            "problems": [problem._asdict() for problem in self.problems],
        }


def _columns(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in _PARTITIONS]
