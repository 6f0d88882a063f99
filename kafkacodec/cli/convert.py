"""``kafkacodec convert``: write records to a file of another format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import note
from kafkacodec.cli.destination import Destination, destination_options
from kafkacodec.cli.inputs import Reading, reading_options
from kafkacodec.cli.output import Advance, counted, progress, size
from kafkacodec.log import SegmentRange
from kafkacodec.log.kafka07 import is_kafka07

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec import RecordColumns


@click.command()
@reading_options
@destination_options(required=True)
@click.option("--batch-columns", is_flag=True, help="Add columns of the batches: producer, sequence, codec, ...")
def convert(reading: Reading, output: Destination, batch_columns: bool) -> None:
    """Write records to one file of Parquet, Arrow IPC, CSV or JSON lines.

    The columns topic and partition come first. In CSV and JSON lines, bytes that are UTF-8 are text; other bytes are
    hex after 0x in CSV and {"base64": "..."} in JSON lines. In CSV, headers are JSON. The file appears when it is
    complete. For logs of Kafka 0.6 and 0.7, --batch-columns adds only magic and codec.
    """
    partitions = reading.partitions()
    segments = [segment.path for partition in partitions for segment in partition.segments]
    output.check(segments)
    pieces = reading.ranges(partitions)
    total = sum(piece.size_in_bytes for piece in pieces)
    schema = _schema(segments, batch_columns)
    with progress("converting", total) as advance:
        batches = chain.from_iterable(_batches(piece, reading, batch_columns, advance, schema) for piece in pieces)
        rows = output.write(schema, batches)
    summary = f"{counted(rows, 'record')} from {counted(len(pieces), 'segment')} ({size(total)})"
    note(f"{output.path}: {summary}")


def _batches(
    piece: SegmentRange, reading: Reading, batch_columns: bool, advance: Advance, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for chunk in reading.read(piece, advance, batch_columns=batch_columns):
        yield _placed(chunk, piece, schema)


def _schema(segments: list[str], batch_columns: bool) -> pa.Schema:
    """Topic, partition and the union of the segments' columns: segments of Kafka 0.6 and 0.7 have fewer."""
    import pyarrow as pa

    kinds = {is_kafka07(path): path for path in segments}
    empty = [SegmentRange(kinds[old], None, None, 0, 0).nothing(batch_columns=batch_columns) for old in sorted(kinds)]
    place = pa.schema([("topic", pa.string()), ("partition", pa.int32())])
    return pa.unify_schemas([place, *(pa.record_batch(chunk).schema for chunk in empty)])


def _placed(chunk: RecordColumns, piece: SegmentRange, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the schema: topic and partition from the file's path, nulls for columns that the chunk lacks."""
    import pyarrow as pa

    batch = pa.record_batch(chunk)
    rows = batch.num_rows
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    found["topic"] = pa.repeat(pa.scalar(piece.topic, pa.string()), rows)
    found["partition"] = pa.repeat(pa.scalar(piece.partition, pa.int32()), rows)
    columns = [found.pop(field.name) if field.name in found else pa.nulls(rows, field.type) for field in schema]
    return pa.record_batch(columns, schema=schema)
