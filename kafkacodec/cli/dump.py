"""``kafkacodec dump``: print records as a table or as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import say_json
from kafkacodec.cli.inputs import Reading, place, reading_options
from kafkacodec.cli.output import Column, json_value, print_table, text, timestamp
from kafkacodec.log import SegmentRange
from kafkacodec.log.ends import RangeEnds
from kafkacodec.log.files import MappedFile
from kafkacodec.records.columns import Problem

if TYPE_CHECKING:
    from kafkacodec import Record

# Small, so that the first rows appear at once.
_CHUNK_ROWS = 1024


@click.command()
@reading_options
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=0), help="Print at most N records.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@click.option(
    "--log-format",
    type=click.Choice(["kafka", "kafka07"]),
    default="kafka",
    show_default=True,
    help="Format of the logs; kafka07: Kafka 0.6 and 0.7 (*.kafka).",
)
def dump(reading: Reading, limit: int | None, as_json: bool, log_format: str) -> None:
    """Print records.

    The table shows keys and values as text if they are printable, else as hex, and is cut to the terminal's width. In
    JSON they are strings if they are UTF-8, else {"base64": "..."}; timestamps are milliseconds since 1970.
    """
    pieces, read = _FORMATS[log_format](reading)
    records = islice(((piece, record) for piece in pieces for record in read(piece, reading)), limit)
    if as_json:
        for piece, record in records:
            say_json(_fields(piece, record))
    else:
        _print(records, several=len({(piece.topic, piece.partition) for piece in pieces}) > 1)


def _records(piece: SegmentRange, reading: Reading) -> Iterator[Record]:
    for chunk in reading.read(piece, lambda count: None, max_rows=_CHUNK_ROWS):
        yield from chunk.records()


def _records07(piece: SegmentRange, reading: Reading) -> Iterator[Record]:
    """As `_records`. Offsets are byte positions counted from `first_offset`, which is in the file's name."""
    from kafkacodec.dialects import kafka07

    with MappedFile(piece.path) as file:
        ends = RangeEnds(file, piece, reading.start_offset, reading.end_offset)
        for chunk in kafka07.iter_columns(
            file.data,
            max_rows=_CHUNK_ROWS,
            initial_offset=piece.first_offset,
            verify_crc=reading.verify_crc,
            on_error=reading.on_error,
        ):
            file.check_size()
            ends.follow(chunk)
            yield from (record for record in chunk.records() if reading.has(record.offset))
            reading.warn(piece, chunk.problems)
            if chunk.problems and reading.on_error == "stop":
                return
        error = ends.misplaced_end() if not piece.kind.has_batches and reading.gaps == "error" else None
        if error is not None and reading.on_error == "raise":
            raise error
        if error is not None:
            reading.warn(piece, [Problem(error.position or 0, None, 0, error)])


def _pieces07(reading: Reading) -> list[SegmentRange]:
    if reading.isolation_level == "read_committed" or reading.start_time is not None or reading.end_time is not None:
        raise click.UsageError("logs of Kafka 0.6 and 0.7 have neither timestamps nor transactions")
    return [
        partition.surroundings(s).place(
            SegmentRange(s.path, partition.topic, partition.partition, 0, s.size_in_bytes, s.base_offset or 0)
        )
        for partition in reading.partitions()
        for s in partition.segments
    ]


_Read = Callable[["SegmentRange", Reading], Iterator["Record"]]
# --log-format -> the ranges to read, and the function that reads one.
_FORMATS: dict[str, Callable[[Reading], tuple[list[SegmentRange], _Read]]] = {
    "kafka": lambda reading: (reading.ranges(), _records),
    "kafka07": lambda reading: (_pieces07(reading), _records07),
}


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
