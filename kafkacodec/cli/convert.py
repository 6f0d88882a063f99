"""``kafkacodec convert``: records into a file of another format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

import kafkacodec
from kafkacodec.cli.destination import Destination, destination_options
from kafkacodec.cli.inputs import Reading, reading_options
from kafkacodec.cli.output import Advance, counted, progress, size

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec import RecordColumns
    from kafkacodec.log import SegmentRange


@click.command()
@reading_options
@destination_options(required=True)
@click.option("--batch-columns", is_flag=True, help="Add the columns of the batches: producer, sequence, codec, ...")
def convert(reading: Reading, output: Destination, batch_columns: bool) -> None:
    """Write records to one file of Parquet, Arrow IPC, CSV or JSON lines.

    Columns topic and partition come first. The file appears under its name when it is whole. CSV and JSON lines have
    text where bytes are UTF-8; in CSV other bytes are hex behind 0x and headers are JSON, in JSON lines they are
    {"base64": "..."}.
    """
    pieces = reading.ranges()
    output.check(piece.path for piece in pieces)
    total = sum(piece.size_in_bytes for piece in pieces)
    with progress("converting", total) as advance:
        batches = chain.from_iterable(_batches(piece, reading, batch_columns, advance) for piece in pieces)
        rows = output.write(_nothing(batch_columns).schema, batches)
    summary = f"{counted(rows, 'record')} from {counted(len(pieces), 'segment')} ({size(total)})"
    click.echo(f"{output.path}: {summary}", err=True)


def _batches(piece: SegmentRange, reading: Reading, batch_columns: bool, advance: Advance) -> Iterator[pa.RecordBatch]:
    for chunk in reading.read(piece, advance, batch_columns=batch_columns):
        yield _placed(chunk, piece.topic, piece.partition)


def _nothing(batch_columns: bool) -> pa.RecordBatch:
    return _placed(kafkacodec.decode(b"", batch_columns=batch_columns), None, None)


def _placed(chunk: RecordColumns, topic: str | None, partition: int | None) -> pa.RecordBatch:
    """The columns behind two more that the place of the file gives."""
    import pyarrow as pa

    batch = pa.record_batch(chunk)
    topics = pa.repeat(pa.scalar(topic, pa.string()), batch.num_rows)
    partitions = pa.repeat(pa.scalar(partition, pa.int32()), batch.num_rows)
    return pa.record_batch([topics, partitions, *batch.columns], names=["topic", "partition", *batch.schema.names])
