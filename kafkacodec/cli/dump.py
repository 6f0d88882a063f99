"""``kafkacodec dump``: records, as a table for people or as JSON lines for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.inputs import Reading, place, reading_options
from kafkacodec.cli.output import Column, json_line, json_value, print_table, text, timestamp

if TYPE_CHECKING:
    from kafkacodec import Record
    from kafkacodec.log import SegmentRange

# Few enough rows that the first ones show at once.
_CHUNK_ROWS = 1024


@click.command()
@reading_options
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=0), help="At most this many records.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
def dump(reading: Reading, limit: int | None, as_json: bool) -> None:
    """Print records.

    The table shows keys and values as text where they are printable, else in hex, cut to the width of a terminal. In
    JSON they are strings where they are UTF-8, else {"base64": "..."}; timestamps are milliseconds.
    """
    pieces = reading.ranges()
    records = islice(_records(pieces, reading), limit)
    if as_json:
        for piece, record in records:
            click.echo(json_line(_fields(piece, record)))
    else:
        _print(records, several=len({(piece.topic, piece.partition) for piece in pieces}) > 1)


def _records(pieces: list[SegmentRange], reading: Reading) -> Iterator[tuple[SegmentRange, Record]]:
    for piece in pieces:
        for chunk in reading.read(piece, lambda count: None, max_rows=_CHUNK_ROWS):
            for record in chunk.records():
                yield piece, record


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
