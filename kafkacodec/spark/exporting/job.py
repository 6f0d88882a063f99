"""`kafkacodec.spark.export`: plan on the driver, write in the tasks, make all of it visible at once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkacodec.datatypes import replace
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.opening import is_url
from kafkacodec.log.storage.access import S3Access
from kafkacodec.signatures import suggests_options
from kafkacodec.spark.environment.requirements import require_pyspark
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.destination import Destination, Table
from kafkacodec.spark.exporting.options import (
    DATE,
    ExportFormat,
    FileOptions,
    check_format,
    columns_of,
    partitioning,
    source_options,
)
from kafkacodec.spark.exporting.parquet import ParquetDirectory
from kafkacodec.spark.exporting.planning import Plan, plan
from kafkacodec.spark.exporting.report import ExportReport
from kafkacodec.spark.exporting.run_files import tidy
from kafkacodec.spark.exporting.task import RESULT, ExportTask, Written
from kafkacodec.spark.exporting.typed import TypedColumns, typed_columns
from kafkacodec.spark.object_access import hadoop_access
from kafkacodec.spark.reading.checkpoint import dump
from kafkacodec.spark.reading.options import ReadOptions
from kafkacodec.spark.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["export"]

_PACKAGES = {"iceberg": "pyiceberg", "delta": "deltalake"}


@suggests_options
def export(
    spark: SparkSession | None,
    source: str | os.PathLike[str] | Mapping[str, Any],
    target: str | os.PathLike[str],
    *,
    format: ExportFormat = "parquet",
    partition_by: str | Sequence[str] = ("topic", "partition", DATE),
    compression: str = "zstd",
    compression_level: int | None = None,
    file_bytes: int = 256 << 20,
    row_group_rows: int = 131_072,
    catalog: Any = None,
    values: Mapping[str, Any] | None = None,
    keys: Mapping[str, Any] | None = None,
) -> ExportReport:
    """Export records to Parquet files, which Spark's tasks write themselves, or to an Iceberg or Delta table.

    Each run adds the records since the last run, whose end offsets are stored in the target. A run's records become
    visible all at once when it is complete. If it fails or is killed before, none of them are visible, and the next run
    exports them.

    Args:
        spark: a session; None does the same work in this process, one file after the other, and needs no pyspark.
        source: a path, or options of the format ``kafkalog``. Their start applies to partitions without a run so far.
        target: a directory, for Delta also a URL of an object store; for Iceberg, the name of a table, such as
            ``"kafka.records"``. Driver and executors have to see it under the same path. It is created if it does not
            exist.
        format: ``"parquet"``, ``"iceberg"`` (needs pyiceberg) or ``"delta"`` (needs deltalake).
        partition_by: some of ``topic``, ``partition`` and ``date``, the day of the timestamp in UTC; may be empty.
        compression: ``zstd``, ``snappy``, ``gzip``, ``lz4`` or ``none``.
        compression_level: for zstd and gzip.
        file_bytes: a file with this many bytes is closed. A task writes at least a file for each partition and day.
        row_group_rows: rows of a row group; large records make it shorter.
        catalog: for Iceberg, the catalog: a `pyiceberg.catalog.Catalog`, its properties, or its name in pyiceberg's
            configuration.
        values: decode the values: arguments of `kafkacodec.spark.decode_values`, such as
            ``{"schemas": "schemas", "ids": [7, 8]}``. The column ``value`` is then typed, and ``value_schema_id`` and
            ``value_error`` follow at the end. Needs the extra ``values``.
        keys: the same for keys.

    Raises:
        OptionError: an option is unknown, wrong or does not match the target or the files; or with ``failOnDataLoss``,
            offsets after the last run cannot be read any more.
        DecodeError: without Spark, records are damaged, with ``mode=FAILFAST``.
        KafkaCodecError: another run was committed in the meantime, or a package is missing.
        OSError: a file cannot be read or written.
        pyspark.errors.PySparkException: a task fails, for example at damage with ``mode=FAILFAST``.
    """
    check_format(format)
    if isinstance(spark, str | os.PathLike | Mapping):
        raise OptionError(
            "spark: expected a Spark session or None, not a path; the order is export(spark, source, target)"
        )
    if spark is not None:
        require_pyspark()
    reading = source_options(source)
    if spark is not None and any(is_url(path) for path in (*reading.paths, os.fspath(target))):
        reading = replace(reading, access=reading.access.over(hadoop_access(spark)))
    columns = columns_of(reading)
    typed = typed_columns(columns, {"value": values, "key": keys})
    plain = arrow_schema(columns)
    schema = plain if typed is None else typed.schema(plain)
    table = Table(schema, partitioning(partition_by, columns), reading.read_committed)
    files = FileOptions(compression, compression_level, file_bytes, row_group_rows)
    if catalog is not None and format != "iceberg":
        raise OptionError(f"catalog: applies to format iceberg, not {format}")
    destination = _open(format, target, table, catalog, reading.access)
    planned = plan(reading, destination.positions)
    run = destination.new_run() if planned.tasks else None
    offsets = dump(planned.positions if planned.tasks else destination.positions)
    report = ExportReport(os.fspath(target), format, run, planned.spans, offsets, problems=tuple(planned.losses))
    if run is None:
        tidy(destination.root)
        return report
    return _write(spark, reading, typed, files, destination, planned, report)


def _open(
    format: ExportFormat, target: str | os.PathLike[str], table: Table, catalog: Any, access: S3Access
) -> Destination:
    """The destination as it is now."""
    if format == "parquet":
        return ParquetDirectory(target, table)
    package = _PACKAGES[format]
    if find_spec(package) is None:
        raise KafkaCodecError(f"format={format} needs {package}; run: pip install 'kafkacodec[{format}]'")
    if format == "delta":
        from kafkacodec.spark.exporting.delta import DeltaDirectory

        return DeltaDirectory(target, table, access)
    from kafkacodec.spark.exporting.iceberg import IcebergDirectory

    return IcebergDirectory(target, table, catalog, access)


def _write(
    spark: SparkSession | None,
    reading: ReadOptions,
    typed: TypedColumns | None,
    files: FileOptions,
    destination: Destination,
    planned: Plan,
    report: ExportReport,
) -> ExportReport:
    """Run the tasks, then commit what they have written."""
    columns = columns_of(reading)
    output = destination.run_files(report.run or "")
    # In one process, files end at their size only, not where those of another task begin.
    pieces = planned.tasks if spark is not None else [tuple(chain.from_iterable(planned.tasks))]
    task = ExportTask(
        {number: pickle.dumps(ranges) for number, ranges in enumerate(pieces)},
        reading,
        _read(columns, destination.stored),
        typed,
        destination.stored,
        DATE in destination.table.partition_by,
        files,
        output,
    )
    try:
        report = _written(spark, task, report)
        if not report.files and dump(planned.positions) == dump(destination.positions):
            return replace(report, run=None)  # only damage, which the last run has met too
        destination.commit(output, report, planned.positions)
    finally:
        output.close()
    return report


def _read(columns: Sequence[str], stored: pa.Schema) -> tuple[str, ...]:
    """The columns that tasks read: of topic and partition only what the files have, as paths name them."""
    found = [name for name in columns if name in stored.names]
    return tuple(found if "offset" in found else [*found, "offset"])


def _written(spark: SparkSession | None, task: ExportTask, report: ExportReport) -> ExportReport:
    """Run the tasks. Returns the report with what they have done; if that fails, nothing is left of it."""
    try:
        done = _run(spark, task)
        problems = report.problems + tuple(problem for written in done for problem in written.problems)
        files = task.output.arrange(file for written in done for file in written.files)
    except BaseException:
        task.output.discard()
        raise
    return replace(report, files=tuple(files), problems=problems)


def _run(spark: SparkSession | None, task: ExportTask) -> list[Written]:
    """The results of all tasks, in their order."""
    if spark is None:
        return [task.write(number) for number in task.pieces]
    count = len(task.pieces)
    rows = spark.range(0, count, 1, count).mapInArrow(task.run, RESULT).collect()
    found = {row["task"]: Written.load(row["written"]) for row in rows}
    if found.keys() != task.pieces.keys() or len(rows) != count:
        raise KafkaCodecError(f"Spark returned the results of {len(found)} tasks of {count}; nothing was exported")
    return [found[number] for number in sorted(found)]
