"""``kafkacodec convert``: records into a file of another format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

import kafkacodec
from kafkacodec.cli.inputs import Reading, reading_options
from kafkacodec.cli.output import Advance, counted, progress, size

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec import RecordColumns
    from kafkacodec.cli.writers import Writer
    from kafkacodec.log import SegmentRange

FORMATS = {
    "parquet": [".parquet", ".pq"],
    "arrow": [".arrow", ".feather", ".ipc"],
    "csv": [".csv"],
    "jsonl": [".jsonl", ".ndjson"],
}


@click.command()
@reading_options
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file to write.")
@click.option("--format", "kind", type=click.Choice(list(FORMATS)), help="By default from the output's suffix.")
@click.option("--compression", help="Of Parquet (zstd by default) or Arrow (none, lz4, zstd).")
@click.option("--batch-columns", is_flag=True, help="Add the columns of the batches: producer, sequence, codec, ...")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
def convert(
    reading: Reading, output: str, kind: str | None, compression: str | None, batch_columns: bool, force: bool
) -> None:
    """Write records to one file of Parquet, Arrow IPC, CSV or JSON lines.

    Columns topic and partition come first. The file appears under its name when it is whole. CSV and JSON lines have
    text where bytes are UTF-8; in CSV other bytes are hex behind 0x and headers are JSON, in JSON lines they are
    {"base64": "..."}.
    """
    from kafkacodec.cli.writers import WRITERS

    suffix = os.path.splitext(output)[1].lower()
    kind = kind or next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)
    if kind is None:
        raise click.UsageError(f"the format cannot be told from the name {output}: add --format")
    if compression is not None and kind not in ("parquet", "arrow"):
        raise click.UsageError(f"--compression does not apply to {kind}")
    pieces = reading.ranges()
    _check_output(output, pieces, force)
    total = sum(piece.size_in_bytes for piece in pieces)
    partial = f"{output}.partial"
    try:
        with progress("converting", total) as advance:
            batches = chain.from_iterable(_batches(piece, reading, batch_columns, advance) for piece in pieces)
            rows = _write(chain([_nothing(batch_columns)], batches), WRITERS[kind], partial, compression)
        os.replace(partial, output)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    click.echo(f"{output}: {counted(rows, 'record')} from {counted(len(pieces), 'segment')} ({size(total)})", err=True)


def _write(batches: Iterator[pa.RecordBatch], writer: type[Writer], path: str, compression: str | None) -> int:
    """Returns the number of rows. The first batch tells the schema."""
    first = next(batches)
    rows = 0
    with writer(path, first.schema, compression) as file:
        for batch in batches:
            file.write(batch)
            rows += batch.num_rows
    return rows


def _check_output(output: str, pieces: list[SegmentRange], force: bool) -> None:
    if not os.path.exists(output):
        return
    if any(os.path.samefile(output, piece.path) for piece in pieces):
        raise click.UsageError(f"{output} is an input; inputs are never written to")
    if not force:
        raise click.UsageError(f"{output} exists; --force replaces it")


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
