"""``kafkacodec encode``: write segments from other files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias, Unpack, cast

import click

import kafkacodec
from kafkacodec.cli.console import is_terminal, note, out_stream, standard_output
from kafkacodec.cli.files.input_rows import DECODERS, MAX_INT32, batches
from kafkacodec.cli.files.sources import READ_FORMATS, Source
from kafkacodec.cli.files.standard_input import STANDARD
from kafkacodec.cli.options.given import given_options, refuse_given
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


_Writer: TypeAlias = "LogWriter | _Kafka07 | _StandardOutput"


def _chosen_codec(context: click.Context, _: click.Parameter, given: str | None) -> str:
    """The option, or its default, which depends on another one that is read before."""
    return given or ("none" if context.params.get("kafka07") else "zstd")


_OF_DIRECTORIES = frozenset({"topic", "partition", "partitions", "keep_partitions", "append", "segment_bytes"})
_NOT_IN_KAFKA07 = frozenset({"key_column", "key_encoding", "timestamp_column"})


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
@click.option("--keep-partitions", is_flag=True, help="Write each record to the partition in the column partition.")
@click.option("--key-column", help="Column of the keys; key by default; - for none.")
@click.option("--value-column", help="Column of the values; value by default; - for none: all values are null.")
@click.option("--timestamp-column", help="Column of timestamps or milliseconds; timestamp by default; - for none.")
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
    keep_partitions: bool,
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
    go to the partitions in turn; rows whose column partition has several numbers need --partition, --partitions or
    --keep-partitions. After an error or an interrupt, new partitions are removed. With -o -, one segment goes to
    standard output.
    """
    chosen = [n for n, o in given_options().items() if n in ("partition", "partitions", "keep_partitions")]
    if len(chosen) > 1:
        raise click.UsageError("--partition, --partitions and --keep-partitions exclude each other")
    if keep_offsets and partitions is not None:
        raise click.UsageError("--keep-offsets and --partitions exclude each other")
    if kafka07:
        _check_kafka07(encoding, output)
    if output == STANDARD:
        refuse_given(_OF_DIRECTORIES, "to -o -, which is one segment")
        _check_standard_output()
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
    if keep_partitions:
        asked["partition"] = "partition"
    if not any(asked[name] for name in ("key", "value", "timestamp")):  # the columns may be those of convert
        asked["topic"] = None
        if topic is not None and not chosen:
            asked["partition"] = None
    from kafkacodec.cli.files.splitting import ByColumn, ByKey, ToOne, Topics

    topics = Topics()
    split = ByColumn() if keep_partitions else ToOne(partition) if partitions is None else ByKey(partitions)
    with closing(batches(sources, asked, {"key": key_encoding, "value": value_encoding})) as found:
        # Check inputs and columns before a directory is made.
        first = list(islice(found, 1))
        for batch in first:
            with batch.named():
                kafkacodec.encode(batch.rows.slice(0, 1), **encoding)

        def made(number: int) -> _Writer:
            if topic is None:
                return _StandardOutput()
            if kafka07:
                return _Kafka07(output, topic, number, segment_bytes, encoding)
            return LogWriter(output, topic, number, append=append, segment_bytes=segment_bytes)

        written = 0
        with _together(_Writers(split.numbers, made)) as writer_of:
            for batch in chain(first, found):
                with batch.named():
                    parts = list(split(topics.look(batch.rows)))
                for number, rows, places in parts:
                    with batch.named(places):
                        written += writer_of(number).write(rows, **encoding)
    topics.warn()
    if topic is None:
        note(f"standard output: {counted(written, 'record')}")
    else:
        note(f"{output}: {counted(written, 'record')} in {counted(writer_of.count, 'partition')} of {topic}")


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


def _check_kafka07(encoding: BatchOptions, output: str) -> None:
    if encoding["codec"] not in CODECS07:
        raise click.UsageError(f"--kafka07: Kafka 0.7 has no {encoding['codec']}, but {', '.join(CODECS07)}")
    if output == STANDARD:
        raise click.UsageError("--kafka07 creates new partitions; -o - does not apply")
    refuse_given(("append", "keep_offsets", "level"), "to --kafka07, which creates new partitions")
    refuse_given(_NOT_IN_KAFKA07, "to --kafka07, which has values only")


def _check_standard_output() -> None:
    if is_terminal(sys.stdout):
        raise click.UsageError("a segment is not text: redirect standard output to a file or a pipe")
    out_stream()


class _StandardOutput:
    """Writes one segment, from offset 0 on; what is written stays."""

    path = ""

    def __init__(self) -> None:
        self.next_offset = 0

    def write(self, records: pa.RecordBatch, **options: Unpack[BatchOptions]) -> int:
        """Write records; returns their number."""
        for batch in kafkacodec.iter_encoded(records, base_offset=self.next_offset, **options):
            with standard_output:
                sys.stdout.buffer.write(batch.data)
            self.next_offset = batch.last_offset + 1
        count: int = records.num_rows
        return count

    def commit(self) -> None:
        """Nothing is left to do."""

    def withdraw(self) -> None:
        """What was written cannot be taken back."""


class _Writers:
    """The writers of partitions, each made when it is asked for first."""

    def __init__(self, numbers: list[int], made: Callable[[int], _Writer]) -> None:
        self._numbers, self._made = numbers, made
        self._found: dict[int, tuple[_Writer, int]] = {}

    def __call__(self, number: int) -> _Writer:
        """The writer of a partition."""
        if number not in self._found:
            writer = self._made(number)
            self._found[number] = writer, writer.next_offset
        return self._found[number][0]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._found)

    def begin(self) -> None:
        """Make those of the partitions that are known."""
        for number in self._numbers:
            self(number)

    def commit(self) -> None:
        """Complete all partitions."""
        for writer, _ in self._found.values():
            writer.commit()

    def withdraw(self) -> None:
        """Take back what was written, and warn of what stays."""
        for writer, _ in reversed(self._found.values()):
            writer.withdraw()
        for writer, start in self._found.values():
            if writer.next_offset > start and os.path.isdir(writer.path):
                note(f"kafkacodec: warning: {writer.path}: keeps the records appended at offset {start} and later")


@contextmanager
def _together(writers: _Writers) -> Iterator[_Writers]:
    """Writers that commit together at the end, and withdraw what they wrote after an error or an interrupt."""
    try:
        writers.begin()
        yield writers
        writers.commit()
    except BaseException as error:
        writers.withdraw()
        if isinstance(error, FileExistsError):
            raise click.ClickException(f"{error.filename}: the partition has records; --append adds to it") from None
        raise
