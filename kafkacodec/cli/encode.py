"""``kafkacodec encode``: write segments from other files."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack, closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Unpack

import click

import kafkacodec
from kafkacodec.cli.console import note
from kafkacodec.cli.destination import FORMATS
from kafkacodec.cli.output import counted, progress
from kafkacodec.log import LogWriter
from kafkacodec.log.writer import check_topic
from kafkacodec.records.compression import CODECS
from kafkacodec.records.encode import BatchOptions, EncodePlan

if TYPE_CHECKING:
    import pyarrow as pa


MAX_INT32 = 2**31 - 1
# Values of --key-encoding and --value-encoding other than text.
DECODERS = ("hex", "base64")


@click.command()
@click.argument("inputs", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False), metavar="FILE...")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="Log directory to write to.")
@click.option("--topic", required=True, help="The topic; a partition's directory is TOPIC-N.")
@click.option("--partition", type=click.IntRange(0, MAX_INT32), help="The partition to write; 0 by default.")
@click.option(
    "--partitions",
    type=click.IntRange(1, MAX_INT32),
    help="Spread records over this many partitions by key, as Kafka does.",
)
@click.option("--format", "kind", type=click.Choice(list(FORMATS)), help="Default: by the files' suffixes.")
@click.option("--codec", type=click.Choice(CODECS), default="zstd", show_default=True)
@click.option("--level", type=int, help="Compression level of the codec.")
@click.option("--batch-bytes", type=int, default=65536, show_default=True, help="Bytes of a batch before compression.")
@click.option(
    "--segment-bytes", type=click.IntRange(1, MAX_INT32), default=1 << 30, show_default=True, help="Bytes of a segment."
)
@click.option("--append", is_flag=True, help="Append to partitions that have records.")
@click.option("--keep-offsets", is_flag=True, help="Use the offsets in the column offset instead of new ones.")
@click.option("--key-column", help="Column of the keys; key by default.")
@click.option("--value-column", help="Column of the values; value by default.")
@click.option("--timestamp-column", help="Column of timestamps or milliseconds; timestamp by default.")
@click.option(
    "--key-encoding", type=click.Choice(["text", *DECODERS]), default="text", help="Encoding of keys; text by default."
)
@click.option(
    "--value-encoding",
    type=click.Choice(["text", *DECODERS]),
    default="text",
    help="Encoding of values; text by default.",
)
def encode(
    inputs: tuple[str, ...],
    output: str,
    topic: str,
    partition: int | None,
    partitions: int | None,
    kind: str | None,
    append: bool,
    segment_bytes: int,
    keep_offsets: bool,
    key_column: str | None,
    value_column: str | None,
    timestamp_column: str | None,
    key_encoding: str,
    value_encoding: str,
    **encoding: Unpack[BatchOptions],
) -> None:
    """Write records from Parquet, Arrow IPC, CSV or JSON lines as segments that a broker opens.

    Reads the columns key, value, timestamp and headers, as `kafkacodec convert` writes them. A column named by an
    option must exist. Text is stored as UTF-8; in JSON lines, {"base64": "..."} holds bytes. In any format, keys and
    values may be hex or base64. With --partitions, records without a key go to the partitions in turn. Segments appear
    when they are complete.
    """
    if partition is not None and partitions is not None:
        raise click.UsageError("--partition and --partitions exclude each other")
    if keep_offsets and partitions is not None:
        raise click.UsageError("--keep-offsets and --partitions exclude each other")
    try:
        check_topic(topic)
        EncodePlan.of(encoding)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    kinds = [kind or _kind(path) for path in inputs]
    asked = {"key": key_column, "value": value_column, "timestamp": timestamp_column, "headers": None}
    if keep_offsets:
        asked["offset"] = "offset"
    required = frozenset(column for column, name in asked.items() if name is not None)
    names = {column: name or column for column, name in asked.items()}
    encodings = {"key": key_encoding, "value": value_encoding}
    numbers = list(range(partitions)) if partitions is not None else [partition or 0]
    written = 0
    with ExitStack() as stack:
        batches = stack.enter_context(closing(_batches(inputs, kinds, names, required, encodings)))
        # Check inputs and columns before a directory is made.
        first = list(islice(batches, 1))
        for batch in first:
            kafkacodec.encode(batch.slice(0, 1), **encoding)
        try:
            writers = [
                stack.enter_context(LogWriter(output, topic, number, append=append, segment_bytes=segment_bytes))
                for number in numbers
            ]
        except FileExistsError as error:
            raise click.ClickException(f"{error.filename}: the partition has records; --append adds to it") from None
        for batch in chain(first, batches):
            for writer, part in zip(writers, _spread(batch, len(writers)), strict=True):
                written += writer.write(part, **encoding)
    note(f"{output}: {counted(written, 'record')} in {counted(len(numbers), 'partition')} of {topic}")


def _kind(path: str) -> str:
    suffix = os.path.splitext(path)[1].lower()
    for name, suffixes in FORMATS.items():
        if suffix in suffixes:
            return name
    raise click.UsageError(f"{path}: the suffix names no known format; add --format")


def _batches(
    inputs: tuple[str, ...],
    kinds: list[str],
    names: dict[str, str],
    required: frozenset[str],
    encodings: dict[str, str],
) -> Generator[pa.RecordBatch, None, None]:
    import pyarrow as pa

    from kafkacodec.cli.readers import READERS, Names, decoded

    with progress("encoding", sum(map(os.path.getsize, inputs))) as advance:
        for path, kind in zip(inputs, kinds, strict=True):
            try:
                for batch in READERS[kind](path, Names(names, required)):
                    yield decoded(batch, encodings)
            except (pa.ArrowException, ValueError) as error:
                raise click.ClickException(f"{path}: {error}") from None
            advance(os.path.getsize(path))


def _spread(batch: pa.RecordBatch, count: int) -> list[pa.RecordBatch]:
    """The rows of each partition, in their order."""
    import numpy as np
    import pyarrow as pa

    if count == 1:
        return [batch]
    keys = batch.column("key") if "key" in batch.schema.names else pa.nulls(batch.num_rows, pa.binary())
    places = kafkacodec.partition(keys, count, null_keys="round_robin")
    return [batch.take(pa.array(np.flatnonzero(places == number))) for number in range(count)]
