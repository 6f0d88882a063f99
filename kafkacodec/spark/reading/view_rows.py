"""The tasks of `views`: the rows of each view."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from kafkacodec.arguments import IsolationLevel
from kafkacodec.errors import CorruptIndex, DecodeError, LimitExceeded
from kafkacodec.log import LogDirectory, Partition, Transactions
from kafkacodec.log.checking.report import Report
from kafkacodec.log.opening import open_file
from kafkacodec.log.segments.walk import Damage, walk_over_damage
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.log.state.group_lag import lag as read_lag
from kafkacodec.log.state.groups import read_committed_offsets, read_consumer_groups
from kafkacodec.log.state.tables import (
    METADATA as METADATA_TABLES,
    groups_table,
    lag_table,
    metadata_table,
    offsets_table,
)
from kafkacodec.spark.headers import HEADER, spark_column
from kafkacodec.spark.reading.options import ReadOptions
from kafkacodec.spark.reading.tasks import ROWS
from kafkacodec.spark.times import beyond_spark, far_text

__all__ = [
    "METADATA",
    "PROBLEM",
    "TRANSACTION",
    "as_batches",
    "batches",
    "groups",
    "lag",
    "offsets",
    "problems",
    "transactions",
]

logger = logging.getLogger("kafkacodec.spark")

_PLACE = ("group", "topic", "partition", "file", "position", "base_offset", "offset", "member_id")
"""Columns that say which row it is."""

PROBLEM = {
    "level": pa.string(),
    "kind": pa.string(),
    "file": pa.string(),
    "position": pa.int64(),
    "size_in_bytes": pa.int64(),
    "first_offset": pa.int64(),
    "end_offset": pa.int64(),
    "text": pa.string(),
}
"""The columns of `problems` after topic and partition: those of `kafkacodec.log.Finding`."""

TRANSACTION = {
    "directory": pa.string(),
    "producer_id": pa.int64(),
    "state": pa.string(),
    "first_offset": pa.int64(),
    "last_offset": pa.int64(),
}
"""The columns of `transactions` after topic and partition."""

Task = tuple[Any, ...]


def as_batches(table: pa.Table, schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The columns of a schema, in its types, in batches of at most `ROWS` rows.

    Raises:
        LimitExceeded: Spark cannot hold a timestamp. With ``mode=PERMISSIVE`` it is null, and logged.
    """
    _refuse(_far_times(table, schema), options)
    columns = [spark_column(table[field.name], field.type) for field in schema]
    whole = pa.RecordBatch.from_arrays(columns, schema=schema)
    for start in range(0, whole.num_rows, ROWS):
        yield whole.slice(start, ROWS)


def _far_times(table: pa.Table, schema: pa.Schema) -> Iterator[DecodeError]:
    """The first timestamp of each column that Spark cannot hold."""
    for name in (field.name for field in schema if pa.types.is_timestamp(table.schema.field(field.name).type)):
        column = pa.concat_arrays(table[name].chunks or [pa.array([], table[name].type)])
        for row in beyond_spark(column)[:1].tolist():
            known = [f"{what} {table[what][row].as_py()}" for what in _PLACE if what in table.column_names]
            yield LimitExceeded(far_text(f"{', '.join(known)}: {name}", column, row))


def batches(task: Task, options: ReadOptions, names: Sequence[str]) -> Iterator[pa.Table]:
    """The headers of all batches in segments. Checksums are computed only if they are asked for."""
    wanted = [name for name in names if name in HEADER] or ["position"]
    for topic, number, path in task:
        with open_file(path) as file:
            for part in walk_over_damage(file, verify_crc="crc_ok" in wanted):
                if isinstance(part, Damage):
                    _refuse([part.error], options)
                    continue
                constant = {"topic": topic, "partition": number, "file": path}
                columns = {name: pa.array([value] * len(part)) for name, value in constant.items()}
                found = pa.record_batch(part)
                yield pa.table(columns | {name: found.column(name) for name in wanted})


def transactions(task: Task, options: ReadOptions, _names: Sequence[str]) -> Iterator[pa.Table]:
    """The transactions of partitions, by their markers."""
    for partition in task:
        found = partition.transactions()
        # Differences between index and log do not hide a transaction.
        _refuse([problem for problem in found.problems if not isinstance(problem, CorruptIndex)], options)
        place = {"topic": partition.topic, "partition": partition.partition, "directory": partition.path}
        yield pa.Table.from_pylist([place | row for row in _transactions(found)], _schema(TRANSACTION))


def _transactions(found: Transactions) -> Iterator[dict[str, Any]]:
    aborted = set(found.aborted["last_offset"].tolist())
    for producer, first, last in found.finished.tolist():
        state = "aborted" if last in aborted else "committed"
        yield {"producer_id": producer, "state": state, "first_offset": first, "last_offset": last}
    for producer, first in sorted(found.open.items()):
        yield {"producer_id": producer, "state": "open", "first_offset": first}


def problems(task: Task, _options: ReadOptions, _names: Sequence[str]) -> Iterator[pa.Table]:
    """What `Partition.verify` finds, or `LogDirectory.verify_checkpoints` for a directory and its partitions."""
    for part in task:
        place: dict[str, Any] = {}
        if isinstance(part, Partition):
            report = part.verify()
            place = {"topic": part.topic, "partition": part.partition}
        else:
            directory, partitions = part
            report = LogDirectory(directory).verify_checkpoints(partitions)
        yield pa.Table.from_pylist([place | row for row in _findings(report)], _schema(PROBLEM))


def _findings(report: Report) -> Iterator[dict[str, Any]]:
    """The findings, and a row for those of each kind that the report does not list."""
    for finding in report.findings:
        row = vars(finding).copy()
        row["file"] = row.pop("path")
        yield row
    unlisted = report.counts - Counter((finding.level, finding.kind) for finding in report.findings)
    for (level, kind), count in unlisted.items():
        yield {"level": level, "kind": kind, "file": report.path, "text": f"{count} more that are not listed"}


def _schema(columns: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema({"topic": pa.string(), "partition": pa.int32(), **columns})


Problems = list[DecodeError] | None


def _whole(
    make: Callable[..., pa.Table], task: Task, options: ReadOptions, _names: Sequence[str]
) -> Iterator[pa.Table]:
    """A table made at once, from what the task names."""
    skipped: Problems = [] if options.permissive else None
    yield make(*task, options, skipped)
    _refuse(skipped or (), options)


def _lag(paths: Sequence[str], options: ReadOptions, skipped: Problems) -> pa.Table:
    level: IsolationLevel = "read_committed" if options.read_committed else "read_uncommitted"
    return lag_table(read_lag(paths, isolation_level=level, problems=skipped))


def _offsets(paths: Sequence[str], _options: ReadOptions, skipped: Problems) -> pa.Table:
    return offsets_table(read_committed_offsets(paths, problems=skipped))


def _groups(paths: Sequence[str], _options: ReadOptions, skipped: Problems) -> pa.Table:
    return groups_table(read_consumer_groups(paths, problems=skipped))


def _metadata(name: str, path: str, _options: ReadOptions, skipped: Problems) -> pa.Table:
    return metadata_table(read_cluster_metadata(path, problems=skipped), name)


offsets, groups, lag = (partial(_whole, make) for make in (_offsets, _groups, _lag))

METADATA = {name: partial(_whole, partial(_metadata, name)) for name in METADATA_TABLES}
"""The rows of each table of cluster metadata, from a task with the path of the metadata log."""


def _refuse(damage: Iterable[DecodeError], options: ReadOptions) -> None:
    """Raise the first of these errors; with ``mode=PERMISSIVE`` log them all."""
    for error in damage:
        if not options.permissive:
            raise error
        logger.warning("skipped: %s", error)
