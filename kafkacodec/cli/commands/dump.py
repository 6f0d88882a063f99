"""``kafkacodec dump``: print records, all or those that are searched for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import ending
from kafkacodec.cli.options.given import given_options, refuse_given
from kafkacodec.cli.options.inputs import OnceReading, once_reading_options
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.options.printing import Printing, print_options
from kafkacodec.cli.options.search import Wanted, search_options
from kafkacodec.cli.options.values import ValueOptions, value_options
from kafkacodec.cli.output import full_option
from kafkacodec.datatypes import replace

if TYPE_CHECKING:
    from kafkacodec.cli.rows.record_rows import Page
    from kafkacodec.cli.rows.side_files import SideFile
    from kafkacodec.log import Partition


# What applies to files without records, and what cannot apply to some of the files.
_OF_ALL_FILES = frozenset({"paths", "tiered_key", "limit", "as_json", "full"})
_OF_RECORDS_ONLY = frozenset({"follow", "tail", "columns", "template", "kcat_json"})


@click.command()
@once_reading_options
@search_options
@full_option
@click.option("-n", "--limit", metavar="N", type=Number(min=0), help="Print at most N records.")
@click.option("--tail", metavar="N", type=Number(min=0), help="Only the last N records of each partition.")
@click.option("--follow", is_flag=True, help="Print new records as they are written, until Ctrl-C.")
@print_options(batch_columns=True)
@click.option(
    "--log-format",
    type=click.Choice(["kafka", "kafka07"]),
    help="Fail if a segment has another format. kafka07: Kafka 0.6 and 0.7 (*.kafka).",
)
@value_options
def dump(
    reading: OnceReading,
    wanted: Wanted,
    limit: int | None,
    tail: int | None,
    follow: bool,
    printing: Printing,
    log_format: str | None,
    typed: ValueOptions,
) -> None:
    """Print records.

    The table shows keys and values as text if they are printable, else as hex, and is cut to the terminal's width; a
    text that looks like hex or null is quoted. In JSON they are strings if they are UTF-8, else {"base64": "..."};
    timestamps are milliseconds since 1970. Records of internal topics, such as __consumer_offsets, and control records
    are shown by the names of their fields.

    With --values and --keys, Avro, Protobuf and JSON are printed as JSON; --schemas says where their schemas are.

    A PATH may also be a file beside segments: an index, time index or transaction index, a producers' snapshot, a
    checkpoint, partition.metadata or meta.properties. Its rows are printed, as kafka-dump-log prints them.
    """
    from kafkacodec.cli.rows.record_rows import Counted, limited
    from kafkacodec.cli.rows.record_source import Source

    if follow and reading.replicas == "merge":
        raise click.UsageError("--follow does not support --replicas merge")
    if follow and (reading.end_offset is not None or reading.end_time is not None):
        raise click.UsageError("--follow does not end; --end-offset and --end-time do not apply")
    reading, sides = _apart(reading)
    if sides:
        _print_sides(reading, sides, printing, limit)
        if not reading.paths:
            return
    partitions = reading.partitions()
    if log_format is not None:
        _require_kind(partitions, log_format)
    several = len(partitions) > 1 or (follow and bool(reading.log_directories()))
    printer = printing.printer(several=several, headers=printing.raw or _has_headers(partitions))
    source = Source(reading, wanted.search(), _needs_batch(reading, printing, typed), typed.typed_records())
    if follow:
        ending.by_interrupt = limit is None
        found: Iterator[Page | None] = source.followed(partitions, tail)
    elif tail is not None:
        found = (page for partition in partitions for page in source.last(partition, tail))
    else:
        found = source.all(partitions)
    shown = Counted(limited(found, limit))
    printer(shown)
    shown.tell()


def _apart(reading: OnceReading) -> tuple[OnceReading, list[SideFile]]:
    """What to read without the files that hold no records, and those."""
    from kafkacodec.cli.rows.side_files import side_file

    found = {path: side_file(path) for path in reading.paths}
    segments = tuple(path for path, side in found.items() if side is None)
    return replace(reading, paths=segments), [side for side in found.values() if side is not None]


def _print_sides(reading: OnceReading, sides: list[SideFile], printing: Printing, limit: int | None) -> None:
    from kafkacodec.cli.rows.side_files import print_side_files

    refused = _OF_RECORDS_ONLY if reading.paths else given_options().keys() - _OF_ALL_FILES
    refuse_given(refused, f"to {sides[0].path}, which has no records")
    titles = len(sides) > 1 or bool(reading.paths)
    print_side_files(sides, as_json=printing.as_json, limit=limit, titles=titles)


def _require_kind(partitions: list[Partition], name: str) -> None:
    from kafkacodec.log.segments.kinds import kind_of

    for path in (segment.path for partition in partitions for segment in partition.segments):
        if kind_of(path).name != name:
            raise click.ClickException(
                f"{path}: not a segment of format {name}; the suffix decides, .kafka for kafka07, or else the content"
            )


def _has_headers(partitions: list[Partition]) -> bool:
    """Whether records may have headers; those of internal topics have none."""
    from kafkacodec.messages.stored import INTERNAL_TOPICS

    return any(partition.topic not in INTERNAL_TOPICS for partition in partitions)


def _needs_batch(reading: OnceReading, printing: Printing, typed: ValueOptions) -> bool:
    """Whether fields of the batch are shown, or needed to show a control record or not to decode it."""
    from kafkacodec.cli.rows.record_rows import FIELDS

    told = reading.include_control and bool(not printing.raw or typed.values or typed.keys)
    return told or any(name not in FIELDS for name in printing.columns or ())
