"""``kafkacodec encode``: write segments from other files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias, Unpack, cast

import click

import kafkacodec
from kafkacodec.cli.console import is_terminal, note, out_stream, standard_output
from kafkacodec.cli.files.input_rows import DECODERS, MAX_INT32, batches
from kafkacodec.cli.files.sources import READ_FORMATS, Source
from kafkacodec.cli.files.standard_input import STANDARD
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.output import counted
from kafkacodec.log import LogWriter
from kafkacodec.log.formats.layout import check_topic
from kafkacodec.log.writing.kafka07_writer import CODECS07, Kafka07Writer
from kafkacodec.records.compression import CODECS
from kafkacodec.records.encode import BatchOptions, EncodePlan

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.dialects.kafka07.message_set import Codec


_Writer: TypeAlias = "LogWriter | _Kafka07"


def _chosen_codec(context: click.Context, _: click.Parameter, given: str | None) -> str:
    """The option, or its default, which depends on another one that is read before."""
    return given or ("none" if context.params.get("kafka07") else "zstd")


@click.command()
@click.argument(
    "inputs",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE...",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(file_okay=False, allow_dash=True),
    help="Log directory to write to, or - for one segment on standard output.",
)
@click.option("--topic", help="The topic; a partition's directory is TOPIC-N.")
@click.option("--partition", type=Number(0, MAX_INT32), help="The partition to write; 0 by default.")
@click.option(
    "--partitions",
    type=Number(1, MAX_INT32),
    help="Spread records over this many partitions by key, as Kafka does.",
)
@click.option("--format", "kind", type=click.Choice(READ_FORMATS), help="Default: by the files' suffixes.")
@click.option("--codec", type=click.Choice(CODECS), show_default="zstd; none with --kafka07", callback=_chosen_codec)
@click.option("--level", type=int, help="Compression level of the codec.")
@click.option("--batch-bytes", type=int, default=65536, show_default=True, help="Bytes of a batch before compression.")
@click.option(
    "--segment-bytes", type=Number(1, MAX_INT32), default=1 << 30, show_default=True, help="Bytes of a segment."
)
@click.option(
    "--kafka07",
    is_flag=True,
    is_eager=True,
    help="Write segments of Kafka 0.7 (*.kafka): values only, and codecs up to snappy.",
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
    topic: str | None,
    partition: int | None,
    partitions: int | None,
    kind: str | None,
    kafka07: bool,
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
    """Write records from Parquet, Arrow IPC, CSV, JSON or lines as segments that a broker opens.

    Reads the columns key, value, timestamp and headers, as `kafkacodec convert` writes them. A column named by an
    option must exist. Text is stored as UTF-8; in JSON, {"base64": "..."} holds bytes, and times are milliseconds or
    ISO 8601. In any format, keys and values may be hex or base64. With --format lines, each line is a value. FILE may
    be - for standard input; text formats may be compressed with gzip or zstd. With --partitions, records without a key
    go to the partitions in turn. After an error or an interrupt, new partitions are removed. With -o -, one segment
    goes to standard output.
    """
    if partition is not None and partitions is not None:
        raise click.UsageError("--partition and --partitions exclude each other")
    if keep_offsets and partitions is not None:
        raise click.UsageError("--keep-offsets and --partitions exclude each other")
    if kafka07:
        _check_kafka07(encoding, output, append=append, keeps=keep_offsets)
    if output == STANDARD:
        _check_standard_output(topic, partition, partitions, append)
    elif topic is None:
        raise click.UsageError("Missing option '--topic'.")
    try:
        check_topic(topic or "none")
        EncodePlan.of(encoding)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    sources = [Source(path, kind) for path in inputs]
    asked = {"key": key_column, "value": value_column, "timestamp": timestamp_column, "headers": None}
    if keep_offsets:
        asked["offset"] = "offset"
    numbers = list(range(partitions)) if partitions is not None else [partition or 0]
    with closing(batches(sources, asked, {"key": key_encoding, "value": value_encoding})) as found:
        # Check inputs and columns before a directory is made.
        first = list(islice(found, 1))
        for batch in first:
            with batch.named():
                kafkacodec.encode(batch.rows.slice(0, 1), **encoding)

        def made(number: int) -> _Writer:
            if kafka07:
                return _Kafka07(output, topic or "", number, segment_bytes, encoding)
            return LogWriter(output, topic or "", number, append=append, segment_bytes=segment_bytes)

        with _opened(topic, numbers, made) as writers:
            spread = _Spread(len(writers))
            written = 0
            for batch in chain(first, found):
                for writer, (part, places) in zip(writers, spread(batch.rows), strict=True):
                    with batch.named(places):
                        written += writer.write(part, **encoding)
    if topic is None:
        note(f"standard output: {counted(written, 'record')}")
    else:
        note(f"{output}: {counted(written, 'record')} in {counted(len(numbers), 'partition')} of {topic}")


class _Kafka07(Kafka07Writer):
    """With the options of batches given once."""

    def __init__(self, output: str, topic: str, number: int, segment_bytes: int, encoding: BatchOptions) -> None:
        codec, size = cast("Codec", encoding["codec"]), encoding["batch_bytes"]
        try:
            super().__init__(output, topic, number, segment_bytes=segment_bytes, batch_bytes=size, codec=codec)
        except FileExistsError as error:
            raise click.ClickException(f"{error.filename}: the partition exists") from None

    def write(self, records: pa.RecordBatch, **_: Unpack[BatchOptions]) -> int:
        """Write values; returns their number."""
        return super().write(records)


def _opened(
    topic: str | None, numbers: list[int], made: Callable[[int], _Writer]
) -> AbstractContextManager[Sequence[_Writer | _StandardOutput]]:
    return nullcontext([_StandardOutput()]) if topic is None else _writers(numbers, made)


def _check_kafka07(encoding: BatchOptions, output: str, *, append: bool, keeps: bool) -> None:
    if encoding["codec"] not in CODECS07:
        raise click.UsageError(f"--kafka07: Kafka 0.7 has no {encoding['codec']}, but {', '.join(CODECS07)}")
    if append or keeps or encoding.get("level") is not None or output == STANDARD:
        raise click.UsageError(
            "--kafka07 creates new partitions; --append, --keep-offsets, --level and -o - do not apply"
        )


def _check_standard_output(topic: str | None, partition: int | None, partitions: int | None, append: bool) -> None:
    if topic is not None or partition is not None or partitions is not None or append:
        raise click.UsageError("--topic, --partition, --partitions and --append need a log directory, not -o -")
    if is_terminal(sys.stdout):
        raise click.UsageError("a segment is not text: redirect standard output to a file or a pipe")
    out_stream()


class _StandardOutput:
    """Writes one segment, from offset 0 on."""

    def __init__(self) -> None:
        self._next_offset = 0

    def write(self, records: pa.RecordBatch, **options: Unpack[BatchOptions]) -> int:
        """Write records; returns their number."""
        for batch in kafkacodec.iter_encoded(records, base_offset=self._next_offset, **options):
            with standard_output:
                sys.stdout.buffer.write(batch.data)
            self._next_offset = batch.last_offset + 1
        count: int = records.num_rows
        return count


@contextmanager
def _writers(numbers: list[int], made: Callable[[int], _Writer]) -> Iterator[list[_Writer]]:
    """Writers that commit together at the end, and withdraw what they wrote after an error or an interrupt."""
    writers: list[_Writer] = []
    starts: list[int] = []
    try:
        for number in numbers:
            writers.append(made(number))
            starts.append(writers[-1].next_offset)
        yield writers
        for writer in writers:
            writer.commit()
    except BaseException as error:
        for writer in reversed(writers):
            writer.withdraw()
        for writer, start in zip(writers, starts, strict=False):
            if writer.next_offset > start and os.path.isdir(writer.path):
                note(f"kafkacodec: warning: {writer.path}: keeps the records appended at offset {start} and later")
        if isinstance(error, FileExistsError):
            raise click.ClickException(f"{error.filename}: the partition has records; --append adds to it") from None
        raise


class _Spread:
    """Distributes rows over partitions: by key, and those without a key in turn."""

    def __init__(self, count: int) -> None:
        self._count, self._next = count, 0

    def __call__(self, batch: pa.RecordBatch) -> list[tuple[pa.RecordBatch, Sequence[int] | None]]:
        """The rows of each partition, in their order, and their numbers in the batch; None: it has all."""
        import numpy as np
        import pyarrow as pa

        if self._count == 1:
            return [(batch, None)]
        keys = batch.column("key") if "key" in batch.schema.names else pa.nulls(batch.num_rows, pa.binary())
        places = kafkacodec.partition(keys, self._count, null_keys="round_robin", first_partition=self._next)
        self._next = (self._next + keys.null_count) % self._count
        found = [np.flatnonzero(places == number) for number in range(self._count)]
        return [(batch.take(pa.array(rows)), cast("Sequence[int]", rows)) for rows in found]
