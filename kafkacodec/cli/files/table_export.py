"""``kafkacodec convert`` to directories and tables, with Spark or without, by `kafkacodec.spark.export`."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import click

from kafkacodec.cli.console import note
from kafkacodec.cli.files.destination import FORMATS, Destination
from kafkacodec.cli.files.standard_input import STANDARD
from kafkacodec.cli.options.gathering import Command, gathered
from kafkacodec.cli.options.given import refuse_given
from kafkacodec.cli.options.inputs import OnceReading
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.options.values import ValueOptions
from kafkacodec.cli.output import counted, size
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from kafkacodec.spark import ExportReport

TABLES = ("parquet", "iceberg", "delta")
"""What exports write: directories of files, not one file."""

# The command's argument -> why an export does without it.
_NOT_IN_EXPORTS = {
    "numbers": "--partition: an export keeps its place in all partitions of a topic; choose by --topic",
    "start_offset": "--start-offset: an export starts where the last one ended; choose by --start-time",
    "end_offset": "--end-offset: an export ends where the logs end; choose by --end-time",
    "verify_crc": "--no-crc: an export always verifies checksums",
    "include_control": "--control: an export has no control records",
    "batch_columns": "--batch-columns: an export has the columns of records only",
    "force": "--force: an export adds to what is there, and replaces nothing",
    "csv_safe": "--csv-safe applies to CSV",
}
# The argument of `kafkacodec.spark.export`, or the option of its source -> the command's option.
_OPTION_NAMES = {
    "target": "-o",
    "partition_by": "--partition-by",
    "compression": "--compression",
    "file_bytes": "--file-size",
    "catalog": "--catalog",
    "format": "--format",
    "startingTimestamp": "--start-time",
    "endingTimestamp": "--end-time",
    "subscribe": "--topic",
    "replicas": "--replicas",
    "isolationLevel": "--isolation-level",
}

_NOT_WITH_SPARK = {"threads": "--threads: Spark decides how many tasks run; use --master 'local[N]'"}
_WITH_SPARK_ONLY = {"master": "--master needs --spark"}
_NOT_IN_ONE_PROCESS = _WITH_SPARK_ONLY | {"threads": "--threads: an export without Spark has one thread; use --spark"}
_IN_EXPORTS_ONLY = _WITH_SPARK_ONLY | {
    "catalog": "--catalog needs --spark or --partition-by",
    "file_size": "--file-size needs --spark or --partition-by",
}


class TableDestination(Destination):
    """A file, or a directory or table that an export writes."""

    formats: ClassVar[tuple[str, ...]] = (*FORMATS, *(name for name in TABLES if name not in FORMATS))

    def check_file(self) -> None:
        """Refuse a format that is not one of files.

        Raises:
            click.UsageError: with the reason.
        """
        if self.kind is not None and self.kind not in FORMATS:
            raise click.UsageError(f"--format {self.kind} needs --spark or --partition-by")

    def table_format(self, flag: str) -> str:
        """What the export that this option asks for is to write.

        Raises:
            click.UsageError: it does not write that.
        """
        kind = self.kind or "parquet"
        if kind not in TABLES:
            raise click.UsageError(f"{flag} writes {', '.join(TABLES)}, not {kind}")
        if self.path == STANDARD:
            raise click.UsageError(f"{flag} writes a directory or a table, not standard output")
        return kind


@dataclass(frozen=True)
class ExportOptions:
    """The options of an export that a conversion lacks. ``--spark`` or ``--partition-by`` asks for one."""

    spark: bool
    master: str | None
    partition_by: str | None
    catalog: str | None
    file_size: int | None

    def __bool__(self) -> bool:
        return self.spark or self.partition_by is not None

    def __post_init__(self) -> None:
        refused = _IN_EXPORTS_ONLY
        if self:
            refused = _NOT_IN_EXPORTS | (_NOT_WITH_SPARK if self.spark else _NOT_IN_ONE_PROCESS)
        refuse_given(refused)


def export(reading: OnceReading, output: TableDestination, typed: ValueOptions, options: ExportOptions) -> None:
    """Export what is new since the last time, and print a summary.

    Raises:
        click.UsageError: an option does not apply to exports, or a package is missing.
        KafkaCodecError, OSError: as `kafkacodec.spark.export`; and Spark's own errors, in a sentence.
    """
    kind, target = output.table_format("--spark" if options.spark else "--partition-by"), output.path
    assert target is not None
    arguments: dict[str, Any] = {"format": kind, "catalog": options.catalog}
    if output.compression is not None:
        arguments["compression"] = output.compression
    if options.file_size is not None:
        arguments["file_bytes"] = options.file_size << 20
    if options.partition_by is not None:
        arguments["partition_by"] = tuple(filter(None, (part.strip() for part in options.partition_by.split(","))))
    with _usage_errors():
        if options.spark:
            from kafkacodec.spark import require_pyspark

            require_pyspark()
        from kafkacodec.spark.exporting.job import export as run
        from kafkacodec.spark.exporting.options import FileOptions, partitioning
        from kafkacodec.spark.schema import column_names

        FileOptions(compression=output.compression or FileOptions.compression)
        partitioning(arguments.get("partition_by", ()), column_names(headers=True))
        arguments |= {f"{part}s": options for part, options in typed.column_options().items()}
    source = source_options(reading)
    unasked = _choose_topics(reading, source)
    if not options.spark:
        with _option_errors(), _without_log():
            report = run(None, source, target, **arguments)
        _summarize(report)
        note_unasked(unasked)
        return
    from kafkacodec.spark.sessions.own_session import in_own_session

    with _option_errors():
        report = in_own_session(
            lambda spark: run(spark, source, target, **arguments),
            {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()},
            master=options.master,
            app_name="kafkacodec convert",
        )
    _summarize(report)
    note_unasked(unasked)


def _choose_topics(reading: OnceReading, source: dict[str, str]) -> list[str]:
    """Choose topics by name, so that globs need no package for patterns; returns the internal ones that are left out.

    All are read if no topic is chosen, and none left out.
    """
    partitions, unasked = reading.without_internal()
    names = {partition.topic for partition in partitions}
    if None in names:
        return []
    if reading.topics or unasked:
        source["subscribe"] = ",".join(sorted(filter(None, names)))
    return unasked


def note_unasked(topics: list[str]) -> None:
    """Say which internal topics were left out."""
    if topics:
        note(f"without {', '.join(topics)}: --topic '*' takes internal topics too")


def source_options(reading: OnceReading) -> dict[str, str]:
    """The options of the format `kafkalog` that read the same records.

    Raises:
        click.UsageError: an option does not apply to exports.
    """

    if reading.replicas == "all":
        raise click.UsageError("--replicas all: an export reads each partition once; use merge")
    if reading.on_error == "stop":
        raise click.UsageError("--on-error stop: an export fails at damage, or skips it")
    found = {
        "paths": json.dumps(reading.paths),
        "includeHeaders": "true",
        "gaps": reading.gaps,
        "replicas": reading.replicas,
        "isolationLevel": reading.isolation_level,
        "mode": "PERMISSIVE" if reading.on_error == "skip" else "FAILFAST",
        "failOnDataLoss": "false" if reading.on_error == "skip" else "true",
    }
    if reading.start_time is not None:
        found["startingTimestamp"] = str(reading.start_time)
        found["startingOffsetsByTimestampStrategy"] = "latest"
    if reading.end_time is not None:
        found["endingTimestamp"] = str(reading.end_time)
    return found


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Show errors of the caller as such: missing packages and wrong options have an exit code of their own."""
    try:
        yield
    except KafkaCodecError as error:
        raise click.UsageError(_spelled(str(error))) from None


@contextmanager
def _option_errors() -> Iterator[None]:
    """Show errors about options as errors of usage, with the command's names of them."""
    from kafkacodec.spark.errors import LostOffsets, OptionError

    try:
        yield
    except LostOffsets as error:
        reason = f"{error.what}; with --on-error skip reading continues {error.go_on}"
        raise click.ClickException(reason) from None
    except OptionError as error:
        raise click.UsageError(_spelled(str(error))) from None


@contextmanager
def _without_log() -> Iterator[None]:
    """Leave warnings about what was skipped to the report, which has all of them."""
    log = logging.getLogger("kafkacodec.spark")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _spelled(reason: str) -> str:
    """An error of an export with the command's name of the option that it begins with."""
    name, colon, rest = reason.partition(": ")
    return f"{_OPTION_NAMES.get(name, name)}{colon}{rest}"


def _summarize(report: ExportReport) -> None:
    for problem in report.problems:
        place = f"{problem.path}: " if problem.path else ""
        skipped = "" if not problem.size_in_bytes else f"{problem.size_in_bytes:,} bytes skipped: "
        reason = problem.message
        note(f"kafkacodec: warning: {place}{skipped}{reason}")
    if report.run is None:
        note(f"{report.target}: nothing new")
        return
    files = f"in {counted(len(report.files), 'file')} ({size(report.size_in_bytes)})"
    partitions = f"of {counted(len(report.spans), 'partition')}"
    note(f"{report.target}: {counted(report.rows, 'record')} {partitions} {files}")


_OPTIONS = (
    click.option("--spark", is_flag=True, help="Let Spark write a directory of Parquet, or an Iceberg or Delta table."),
    click.option("--master", metavar="URL", help="Spark's master. Default: local[*]."),
    click.option(
        "--partition-by",
        metavar="COLUMNS",
        help="Write a directory with directories of topic, partition, date, or some of them. With --spark: all three.",
    ),
    click.option(
        "--file-size",
        metavar="MIB",
        type=Number(1, 1 << 20),
        help="End a file of a directory or table at this size. Default: 256.",
    ),
    click.option("--catalog", metavar="NAME", help="For Iceberg: the catalog in pyiceberg's configuration."),
)


def export_options(command: Command) -> Command:
    """Adds the options to a command, which gets them as `ExportOptions` in the argument ``exporting``."""
    return gathered(command, "exporting", ExportOptions, _OPTIONS)
