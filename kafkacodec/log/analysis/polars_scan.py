"""Logs as lazy frames of polars, which say which columns, rows and places they need."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from kafkacodec.lazy import import_extra
from kafkacodec.log.analysis.predicates import bounds_of, places_of
from kafkacodec.log.partitions.directory import discover
from kafkacodec.log.partitions.each_once import Replicas, each_once
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.selection import Selection
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.records.plan import DEFAULT_MAX_ROWS, PLACE_COLUMNS, RECORD_COLUMNS
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    import polars as pl

__all__ = ["scan_polars"]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@shows_options(ReadOptions, Partition.read)
def scan_polars(paths: Paths, *, replicas: Replicas = "error", **options: Unpack[ReadOptions]) -> pl.LazyFrame:
    """Return the records of logs as a ``polars.LazyFrame``, which reads only what a query needs.

    It builds only the columns that a query uses. Conditions on ``topic`` and ``partition`` choose partitions.
    Conditions that compare ``offset`` with numbers, or require a ``timestamp`` at or after a time, choose where reading
    starts and ends; it does not open segments outside. (A condition that a timestamp is before a time does not, since
    records need not be in the order of their timestamps.) ``head`` of all rows stops reading. Other conditions apply
    chunk by chunk.

    Args:
        paths: log directories, partition directories and segment files, as for `discover`. They are listed at once,
            and read at each ``collect``.
        replicas: for partitions in several directories, as copies of several brokers' have: ``"error"`` refuses them,
            ``"merge"`` reads them as one log, ``"all"`` reads the records of each.
        The other options: as in `Partition.read`. ``columns`` are those the frame has, by default ``topic``,
            ``partition`` and those of `kafkacodec.decode`; ``batch_columns=True`` adds those of batches.

    Returns:
        polars.LazyFrame: times are ``Datetime("ms", "UTC")``, headers lists of structs.

    Raises:
        ImportError: polars or pyarrow is not installed.
        FileNotFoundError: a path does not exist, or has no records.
        ValueError: `paths` is empty; or several directories have a partition, and `replicas` does not say what to do.
        As `Partition.read`, in ``collect``.
    """
    polars = import_extra("polars")
    partitions = each_once(discover(paths), replicas)
    if not partitions:
        raise ValueError("paths is empty")
    selection = Selection(partitions, os.path.commonpath([os.path.abspath(partition.path) for partition in partitions]))
    schema = polars.from_arrow(selection.reader(**options).schema.empty_table()).schema
    scan = _Scan(polars, partitions, options)
    return polars.io.plugins.register_io_source(scan.frames, schema=schema, validate_schema=True)


class _Scan:
    """The source that polars reads from: see ``polars.io.plugins.register_io_source``."""

    def __init__(self, polars: Any, partitions: Sequence[Partition], options: ReadOptions) -> None:
        self._polars = polars
        self._partitions = partitions
        self._options = options

    def frames(
        self, with_columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        """Yield frames of some columns, with the rows of the first `n_rows` for which the predicate is true."""
        left = n_rows
        # Rows are counted before the predicate chooses among them, so then all have to be read.
        for partition, span in self._chosen(predicate if n_rows is None else None):
            if left == 0:
                return
            for batch in partition.reader(**self._how(with_columns, left, span)):
                frame = self._polars.from_arrow(batch)
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                if predicate is not None:
                    frame = frame.filter(predicate)
                yield frame if with_columns is None else frame.select(with_columns)
                if left == 0:
                    break

    def _chosen(self, predicate: Any) -> Iterator[tuple[Partition, ReadOptions]]:
        """Return the partitions that can satisfy a predicate, and the part of each to read."""
        bounds = bounds_of(predicate)
        asked = self._options
        places = places_of(predicate, [(p.topic, p.partition) for p in self._partitions], self._polars)
        for partition, chosen in zip(self._partitions, places, strict=True):
            first = asked.get("start_offset")
            first = partition.log_start_offset if first is None else first
            end = _least(asked.get("end_offset"), bounds.end_offset)
            start = max(first, bounds.start_offset or 0)
            span: ReadOptions = {"start_offset": start, "end_offset": end}
            if bounds.start_timestamp is not None and asked.get("start_timestamp") is None:
                span["start_timestamp"] = bounds.start_timestamp
            if chosen and (end is None or start < end):
                yield partition, span

    def _how(self, with_columns: list[str] | None, rows: int | None, span: ReadOptions) -> ReadOptions:
        """Return the options for reading a span, with only the required columns."""
        how: ReadOptions = {**self._options, **span}
        if with_columns is not None:
            how["columns"] = with_columns or ["offset"]  # a chunk has a column at least, to count its rows
        elif how.get("columns") is None:
            how["columns"] = (*PLACE_COLUMNS, *RECORD_COLUMNS)
        if rows is not None:
            how["max_rows"] = max(1, min(rows, how.get("max_rows", DEFAULT_MAX_ROWS)))
        return how


def _least(one: int | None, other: int | None) -> int | None:
    known = [end for end in (one, other) if end is not None]
    return min(known, default=None)
