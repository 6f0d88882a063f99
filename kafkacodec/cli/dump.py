"""``kafkacodec dump``: print records, all or those that are searched for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.inputs import Reading, reading_options
from kafkacodec.cli.output import full_option
from kafkacodec.cli.search_options import Wanted, search_options

if TYPE_CHECKING:
    from kafkacodec.cli.record_output import Printer
    from kafkacodec.cli.record_rows import Row
    from kafkacodec.log import Partition

_RECORD = ("offset", "timestamp", "key", "value")


def _columns(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    from kafkacodec.cli.record_rows import COLUMNS

    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    wrong = [name for name in names if name not in COLUMNS]
    if wrong:
        raise click.BadParameter(f"unknown column {wrong[0]!r}; columns are {', '.join(COLUMNS)}", context, option)
    return names


@click.command()
@reading_options
@search_options
@full_option
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=0), help="Print at most N records.")
@click.option("--tail", metavar="N", type=click.IntRange(min=0), help="Only the last N records of each partition.")
@click.option("--follow", is_flag=True, help="Go on with new records as they are written, until Ctrl-C.")
@click.option(
    "--columns",
    metavar="NAME,...",
    callback=_columns,
    help="Print these: topic, partition, offset, timestamp, key, value, headers, or columns of the batch.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@click.option(
    "-f",
    "--format",
    "template",
    metavar="FORMAT",
    help=r"Print by a format string, such as '%t %p %o %k %s\n'. The searching page of the docs lists the fields.",
)
@click.option("--raw", is_flag=True, help="Show bytes of internal topics and control records, not their fields.")
@click.option(
    "--log-format",
    type=click.Choice(["kafka", "kafka07"]),
    help="Fail if a segment has another format. kafka07: Kafka 0.6 and 0.7 (*.kafka).",
)
def dump(
    reading: Reading,
    wanted: Wanted,
    limit: int | None,
    tail: int | None,
    follow: bool,
    columns: tuple[str, ...] | None,
    as_json: bool,
    template: str | None,
    raw: bool,
    log_format: str | None,
) -> None:
    """Print records.

    The table shows keys and values as text if they are printable, else as hex, and is cut to the terminal's width. In
    JSON they are strings if they are UTF-8, else {"base64": "..."}; timestamps are milliseconds since 1970. Records of
    internal topics, such as __consumer_offsets, and control records are shown by the names of their fields.
    """
    from kafkacodec.cli.record_source import Source

    if follow and (reading.end_offset is not None or reading.end_time is not None):
        raise click.UsageError("--follow reads on: --end-offset and --end-time do not apply")
    partitions = reading.partitions()
    if log_format is not None:
        _require_kind(partitions, log_format)
    several = len(partitions) > 1 or (follow and bool(reading.log_directories()))
    printer = _printer(partitions, several, columns, as_json, template, raw)
    source = Source(reading, wanted.search(), _batch_fields(reading, columns, raw))
    if follow:
        rows: Iterator[Row | None] = source.followed(partitions, tail)
    elif tail is not None:
        rows = (row for partition in partitions for row in source.last(partition, tail))
    else:
        rows = source.all(partitions)
    printer(_limited(rows, limit))


def _require_kind(partitions: list[Partition], name: str) -> None:
    from kafkacodec.log.kinds import kind_of

    for path in (segment.path for partition in partitions for segment in partition.segments):
        if kind_of(path).name != name:
            raise click.ClickException(
                f"{path}: not a segment of format {name}; the suffix decides, .kafka for kafka07, or else the content"
            )


def _table(partitions: list[Partition], several: bool, raw: bool) -> tuple[str, ...]:
    """The columns of a table. Records of internal topics have no headers."""
    from kafkacodec.messages.stored import INTERNAL_TOPICS

    plain = raw or any(partition.topic not in INTERNAL_TOPICS for partition in partitions)
    return ("place",) * several + _RECORD + ("headers",) * plain


def _printer(
    partitions: list[Partition],
    several: bool,
    columns: tuple[str, ...] | None,
    as_json: bool,
    template: str | None,
    raw: bool,
) -> Printer:
    from kafkacodec.cli.record_format import compiled
    from kafkacodec.cli.record_output import print_formatted, print_json, print_rows

    if template is not None:
        if as_json or columns is not None:
            raise click.UsageError("--format prints by its string: --json and --columns do not apply")
        try:
            compiled(os.fsencode(template))
        except ValueError as error:
            raise click.UsageError(f"--format: {error}") from None
        return partial(print_formatted, template=os.fsencode(template))
    if as_json:
        return partial(print_json, columns=columns, raw=raw)
    return partial(print_rows, columns=columns or _table(partitions, several, raw), raw=raw)


def _batch_fields(reading: Reading, columns: tuple[str, ...] | None, raw: bool) -> tuple[str, ...]:
    """The fields of the batch that are shown, or needed to show a control record."""
    from kafkacodec.cli.record_rows import FIELDS
    from kafkacodec.cli.stored_records import BATCH_FIELDS

    named = BATCH_FIELDS if reading.include_control and not raw else ()
    return tuple({name: None for name in (*named, *(columns or ())) if name not in FIELDS})


def _limited(rows: Iterator[Row | None], limit: int | None) -> Iterator[Row | None]:
    """At most so many records; what is None does not count."""
    if limit is None:
        yield from rows
        return
    found = 0
    while found < limit:
        row = next(rows, ...)
        if row is ...:
            return
        found += row is not None
        yield row
