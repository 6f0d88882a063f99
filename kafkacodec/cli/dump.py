"""``kafkacodec dump``: print records as a table or as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import say_json
from kafkacodec.cli.inputs import Reading, place, reading_options
from kafkacodec.cli.output import Column, full_option, json_value, print_table, text, timestamp

if TYPE_CHECKING:
    from kafkacodec import Record
    from kafkacodec.log import SegmentRange

# Small, so that the first rows appear at once.
_CHUNK_ROWS = 1024


@click.command()
@reading_options
@full_option
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=0), help="Print at most N records.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@click.option(
    "--log-format",
    type=click.Choice(["kafka", "kafka07"]),
    help="Fail if a segment has another format. kafka07: Kafka 0.6 and 0.7 (*.kafka).",
)
def dump(reading: Reading, limit: int | None, as_json: bool, log_format: str | None) -> None:
    """Print records.

    The table shows keys and values as text if they are printable, else as hex, and is cut to the terminal's width. In
    JSON they are strings if they are UTF-8, else {"base64": "..."}; timestamps are milliseconds since 1970.
    """
    pieces = reading.ranges()
    if log_format is not None:
        _require_kind(pieces, log_format)
    records = islice(((piece, record) for piece in pieces for record in _records(piece, reading)), limit)
    if as_json:
        for piece, record in records:
            say_json(_fields(piece, record))
    else:
        _print(records, several=len({(piece.topic, piece.partition) for piece in pieces}) > 1)


def _records(piece: SegmentRange, reading: Reading) -> Iterator[Record]:
    for chunk in reading.read(piece, lambda count: None, max_rows=_CHUNK_ROWS):
        yield from chunk.records()


def _require_kind(pieces: list[SegmentRange], name: str) -> None:
    for piece in pieces:
        if piece.kind.name != name:
            raise click.ClickException(
                f"{piece.path}: not a segment of format {name}; the suffix of the file decides: .kafka for kafka07"
            )


def _fields(piece: SegmentRange, record: Record) -> dict[str, object]:
    return {
        "topic": piece.topic,
        "partition": piece.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type,
        "key": json_value(record.key),
        "value": json_value(record.value),
        "headers": [{"key": key, "value": json_value(value)} for key, value in record.headers],
    }


def _print(records: Iterator[tuple[SegmentRange, Record]], *, several: bool) -> None:
    columns = [
        Column("offset", right=True),
        Column("timestamp (UTC)"),
        Column("key", stretch=True),
        Column("value", stretch=True),
        Column("headers", stretch=True),
    ]
    if several:
        columns.insert(0, Column("partition", stretch=True))

    def rows() -> Iterator[list[str]]:
        for piece, record in records:
            headers = " ".join(f"{key}={text(value)}" for key, value in record.headers)
            row = [str(record.offset), timestamp(record.timestamp), text(record.key), text(record.value), headers]
            yield [place(piece.topic, piece.partition, piece.path), *row] if several else row

    print_table(columns, rows())
