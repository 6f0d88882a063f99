"""``kafkacodec dump``: records, as a table for people or as JSON lines for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import click

import kafkacodec
from kafkacodec.cli.inputs import Reading, Source, reading_options, require_batches, warn
from kafkacodec.cli.output import Column, json_line, json_value, print_table, text, timestamp

Found = tuple[Source, "kafkacodec.Record"]


@click.command()
@reading_options
@click.option("-n", "--limit", type=click.IntRange(min=0), help="At most this many records.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
def dump(reading: Reading, limit: int | None, as_json: bool) -> None:
    """Print records.

    The table shows keys and values as text where they are printable, else in hex, cut to the width of a terminal. In
    JSON they are strings where they are UTF-8, else {"base64": "..."}; timestamps are milliseconds.
    """
    sources = reading.sources()
    records = islice(((source, record) for source in sources for record in _records(source, reading)), limit)
    if as_json:
        for source, record in records:
            click.echo(json_line(_fields(source, record)))
    else:
        _print(records, several=len({(source.topic, source.partition) for source in sources}) > 1)


def _records(source: Source, reading: Reading) -> Iterator[kafkacodec.Record]:
    with source.data() as data:
        for chunk in kafkacodec.iter_columns(data, max_rows=1024, **reading.options()):
            yield from chunk.records()
            warn(source, chunk.problems)
        if not chunk.problems:
            require_batches(source, data, chunk.consumed)


def _fields(source: Source, record: kafkacodec.Record) -> dict[str, object]:
    return {
        "topic": source.topic,
        "partition": source.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type,
        "key": json_value(record.key),
        "value": json_value(record.value),
        "headers": [{"key": key, "value": json_value(value)} for key, value in record.headers],
    }


def _print(records: Iterator[Found], *, several: bool) -> None:
    columns = [
        Column("offset", right=True),
        Column("timestamp"),
        Column("key", stretch=True),
        Column("value", stretch=True),
        Column("headers", stretch=True),
    ]
    if several:
        columns.insert(0, Column("partition"))

    def rows() -> Iterator[list[str]]:
        for source, record in records:
            headers = " ".join(f"{key}={text(value)}" for key, value in record.headers)
            row = [str(record.offset), timestamp(record.timestamp), text(record.key), text(record.value), headers]
            yield [f"{source.topic}-{source.partition}", *row] if several else row

    print_table(columns, rows())
