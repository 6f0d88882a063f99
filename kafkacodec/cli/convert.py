"""``kafkacodec convert``: records into a file of another format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

import kafkacodec
from kafkacodec.cli.inputs import Reading, Source, reading_options, require_batches, warn
from kafkacodec.cli.output import Advance, counted, progress, size

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.cli.writers import Writer

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
    sources = reading.sources()
    _check_output(output, sources, force)
    total = sum(source.size for source in sources)
    partial = f"{output}.partial"
    try:
        with progress("converting", total) as advance:
            batches = chain.from_iterable(_batches(source, reading, batch_columns, advance) for source in sources)
            rows = _write(batches, WRITERS[kind], partial, compression)
        os.replace(partial, output)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    click.echo(f"{output}: {counted(rows, 'record')} from {counted(len(sources), 'segment')} ({size(total)})", err=True)


def _write(batches: Iterator[pa.RecordBatch], writer: type[Writer], path: str, compression: str | None) -> int:
    """Returns the number of rows. There is always a first batch, if only to tell the schema."""
    first = next(batches)
    rows = 0
    with writer(path, first.schema, compression) as file:
        for batch in chain([first], batches):
            file.write(batch)
            rows += batch.num_rows
    return rows


def _check_output(output: str, sources: list[Source], force: bool) -> None:
    if not os.path.exists(output):
        return
    if any(os.path.samefile(output, source.path) for source in sources):
        raise click.UsageError(f"{output} is an input; inputs are never written to")
    if not force:
        raise click.UsageError(f"{output} exists; --force replaces it")


def _batches(source: Source, reading: Reading, batch_columns: bool, advance: Advance) -> Iterator[pa.RecordBatch]:
    """The segment's chunks with the two columns that its place gives."""
    import pyarrow as pa

    options = reading.options()
    options["batch_columns"] = batch_columns
    done = 0
    with source.data() as data:
        for chunk in kafkacodec.iter_columns(data, **options):
            batch = pa.record_batch(chunk)
            topic = pa.repeat(pa.scalar(source.topic, pa.string()), batch.num_rows)
            partition = pa.repeat(pa.scalar(source.partition, pa.int32()), batch.num_rows)
            names = ["topic", "partition", *batch.schema.names]
            yield pa.record_batch([topic, partition, *batch.columns], names=names)
            advance(chunk.consumed - done)
            done = chunk.consumed
            warn(source, chunk.problems)
        if not chunk.problems:
            require_batches(source, data, chunk.consumed)
    advance(source.size - done)
