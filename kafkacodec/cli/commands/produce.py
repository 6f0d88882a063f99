"""``kafkacodec produce``: send records to a topic."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from kafkacodec.cli.completion import complete_topic
from kafkacodec.cli.console import in_one_piece, note
from kafkacodec.cli.files.input_rows import DECODERS, MAX_INT32, batches
from kafkacodec.cli.files.sources import READ_FORMATS, Source, is_typed
from kafkacodec.cli.files.standard_input import STANDARD
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.options.servers import Servers, legal_topic, made, server_options
from kafkacodec.cli.output import counted, progress
from kafkacodec.cli.rows.encoded_lines import EncodingOptions, encoding_options
from kafkacodec.cli.rows.kafka07_brokers import kafka07_servers, send_lines
from kafkacodec.errors import DeadlineExceeded, EncodeError
from kafkacodec.records.compression import CODECS

if TYPE_CHECKING:
    from kafkacodec.arrow._columns import Table
    from kafkacodec.cli.files.input_rows import InputBatch
    from kafkacodec.cli.rows.produced_lines import Lines
    from kafkacodec.client import Delivery, Producer, TableDelivery

_LINES = "lines"
_LOOK_RECORDS, _LOOK_SECONDS = 256, 0.1  # after so many records or so long, deliveries are looked at
_SOON_SECONDS = 0.5  # a wait that ends so soon is not told
_ROW = re.compile(r"records\[(\d+)\]")
_ENCODINGS = click.Choice(["text", *DECODERS])


@click.command()
@click.argument("words", nargs=-1, metavar="TOPIC [FILE...]", shell_complete=complete_topic)
@server_options()
@click.option(
    "-t", "--topic", metavar="TOPIC", shell_complete=complete_topic, help="The topic; then all arguments are FILEs."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(READ_FORMATS),
    help="Default: by the files' suffixes; lines on standard input.",
)
@click.option("-p", "--partition", type=Number(0, MAX_INT32), help="The partition; by key by default.")
@click.option("-z", "--codec", type=click.Choice(CODECS), help="Compression; none by default.")
@click.option("-k", "--key", help="Lines: the key of all records.")
@click.option("-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, help="Lines: a header; repeatable.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Lines: the key ends before this; such as ':' or '\\t'.")
@click.option("-D", "--delimiter", metavar="TEXT", help="Lines: records end with this instead of a line feed.")
@click.option("-Z", "--empty-as-null", is_flag=True, help="Lines: an empty key or value is null.")
@encoding_options
@click.option("--key-column", help="Column of the keys; key by default; - for none.")
@click.option("--value-column", help="Column of the values; value by default; - for none: all values are null.")
@click.option("--timestamp-column", help="Column of timestamps or milliseconds; timestamp by default; - for none.")
@click.option("--key-encoding", type=_ENCODINGS, default="text", help="Encoding of keys; text by default.")
@click.option("--value-encoding", type=_ENCODINGS, default="text", help="Encoding of values; text by default.")
def produce(
    words: tuple[str, ...],
    servers: Servers,
    topic: str | None,
    kind: str | None,
    partition: int | None,
    codec: str | None,
    encoding: EncodingOptions,
    key_column: str | None,
    value_column: str | None,
    timestamp_column: str | None,
    key_encoding: str,
    value_encoding: str,
    **lines: Any,
) -> None:
    """Send records to a topic: each line of standard input, or the rows of files.

    Reads the formats and columns that `kafkacodec encode` reads; files other than lines need the extra arrow. Options
    of the producer, such as acks=1 or linger.ms=100, come from -F and -X, also those of security. Exits with 0 when all
    records are acknowledged; the first error ends it. After an error or an interrupt, standard error has the number of
    records that went out.

    With --values and --keys, those of lines are JSON, and are encoded with the latest schemas of a registry.

    With -b kafka07://HOST:PORT lines go to a broker of Kafka 0.7, which does not acknowledge them, and with
    -b kafka07+zookeeper://HOST:PORT to all that are registered there; keys choose the partition, and are not sent.
    """
    topic, inputs = _apart(topic, words)
    old = kafka07_servers(servers.bootstrap)
    if old is not None:
        sources = [_source(path, kind) for path in inputs or (STANDARD,)]
        plan = _lines(sources, lines)
        if plan is None:
            raise click.UsageError("Kafka 0.7 takes lines only; add --format lines")
        records = encoding.encoders(topic).records(record for source in sources for record in plan.records(source))
        count = send_lines(old, topic, records, codec)
        note(f"{topic}: {counted(count, 'message')}")
        return
    from kafkacodec.client import Producer
    from kafkacodec.client.producing.settings import ProducerSettings

    legal_topic(topic)
    own = {} if codec is None else {"compression_type": ("--codec", codec)}
    options = servers.options(ProducerSettings, own)
    sources = [_source(path, kind) for path in inputs or (STANDARD,)]
    plan = _lines(sources, lines)
    asked = {"key": key_column, "value": value_column, "timestamp": timestamp_column, "headers": None}
    encodings = {"key": key_encoding, "value": value_encoding}
    if plan is not None and (any(asked.values()) or set(encodings.values()) != {"text"}):
        raise click.UsageError("column options do not apply to lines")
    if encoding and plan is None:
        raise click.UsageError("--values and --keys encode lines only; add --format lines")
    encoders = encoding.encoders(topic)
    producer = made(Producer, options)
    limit_ms = options.get("delivery_timeout_ms", ProducerSettings.delivery_timeout_ms)
    sent = _Sent(producer, topic, partition)
    with sent.telling(), producer, sent.leaving(limit_ms):
        if plan is not None:
            total = sum(source.size_in_bytes for source in sources)
            with progress("sending", total or None, typing=is_typed(sources)) as advance:
                for source in sources:
                    source.advance = advance
                    if encoding:
                        sent.records(encoders.records(plan.records(source)), plan.headers)
                    else:
                        sent.lines(plan.tables(source), plan.headers)
        else:
            with closing(batches(sources, asked, encodings)) as found:
                for batch in found:
                    sent.table(batch)
        sent.finish()
    note(f"{topic}: {counted(sent.count, 'record')}")


def _apart(topic: str | None, words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The topic, which may be the first of the arguments, and the files."""
    if topic is None and not words:
        raise click.UsageError("Missing argument 'TOPIC'.")
    if topic is None and len(words) == 1 and os.path.isfile(words[0]):
        raise click.UsageError(f"{words[0]} is a file: name the topic first, as in: produce TOPIC {words[0]}")
    files = words if topic is not None else words[1:]
    kind, context = click.Path(exists=True, dir_okay=False, allow_dash=True), click.get_current_context()
    return topic or words[0], tuple(str(kind.convert(path, None, context)) for path in files)


def _source(path: str, kind: str | None) -> Source:
    """An input; standard input has lines unless something else is asked for."""
    return Source(path, kind or (_LINES if path == STANDARD else None))


def _lines(sources: list[Source], options: dict[str, Any]) -> Lines | None:
    """How lines become records; None if the inputs are not lines."""
    from kafkacodec.cli.rows.produced_lines import Lines

    kinds = {source.kind == _LINES for source in sources}
    if kinds == {True}:
        return Lines.of(**options)
    if any(value for value in options.values()):
        raise click.UsageError("--key, --header, --key-delimiter, --delimiter and --empty-as-null are for lines")
    if len(kinds) > 1:
        raise click.UsageError("lines and other formats cannot be sent at once; add --format")
    return None


class _Sent:
    """Sends records, and raises the first error of those that were sent."""

    def __init__(self, producer: Producer, topic: str, partition: int | None) -> None:
        self._producer, self._topic, self._partition = producer, topic, partition
        # Apart, since a deque of tuples would be walked by the garbage collector again and again.
        self._waiting: deque[Delivery | TableDelivery] = deque()
        self._counts: deque[int] = deque()
        self._delivered = self.count = 0
        self._look_at = 0.0

    def records(self, records: Iterable[tuple[bytes | None, bytes | None]], headers: Any) -> None:
        """Send records, as they come."""
        send = partial(self._producer.send, self._topic, headers=headers, partition=self._partition)
        for key, value in records:
            with self._named():
                sent = send(value, key=key)
            self._add(sent, 1)

    def lines(self, tables: Iterable[Table], headers: Any) -> None:
        """Send records of lines, as they come."""
        for table in tables:
            with self._named():
                sent = self._producer._send_rows(table, self._topic, self._partition, headers)
            self._add(sent, len(table))

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Give an error about a record its number among all; those before it are sent first."""
        try:
            yield
        except EncodeError as error:
            row = _ROW.match(error.path or "")
            number = self.count + (0 if row is None else int(row[1])) + 1
            self.finish()
            raise click.ClickException(f"{self._topic}: record {number}: {error.reason}") from None

    def table(self, batch: InputBatch) -> None:
        """Send the rows of a table."""
        import numpy as np
        import pyarrow as pa

        from kafkacodec.records.encode import encode

        rows = batch.rows
        if self._partition is not None:
            numbers = pa.array(np.full(rows.num_rows, self._partition, np.int32))
            rows = rows.append_column("partition", numbers)
        with batch.named():
            if not self.count:  # a topic may be created for its first rows: check the columns before
                encode(batch.rows.slice(0, 1))
            sent = self._producer.send_columns(rows, topic=self._topic)
        self._add(sent, rows.num_rows)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Around the use of the producer: after an error or an interrupt, say how many records went out."""
        try:
            yield
        except BaseException:
            with in_one_piece:
                found = self._producer.metrics()
                out, failed = (int(found[f"producer.{name}"]) for name in ("records", "record_errors"))
                note(f"{self._topic}: {counted(out, 'record')} went out{f', {failed:,} failed' if failed else ''}")
            raise

    @contextmanager
    def leaving(self, limit_ms: int) -> Iterator[None]:
        """After an interrupt, wait for what was sent, and say so if that takes long; another one ends the wait.

        A delivery takes `limit_ms` at most.
        """
        try:
            yield
        except KeyboardInterrupt:
            try:
                with suppress(DeadlineExceeded):
                    self._producer.flush(_SOON_SECONDS)
                self._tell_left(limit_ms)
                self._producer.flush()  # not close, which would not tell what is left if it were interrupted
            except KeyboardInterrupt:
                with in_one_piece:
                    self._producer.close(0)
                raise
            raise

    def _tell_left(self, limit_ms: int) -> None:
        left = sum(count for sent, count in zip(self._waiting, self._counts, strict=True) if not sent.done())
        if left:
            note(
                f"{self._topic}: waiting for {counted(left, 'record')} that {'is' if left == 1 else 'are'} not "
                f"acknowledged, for at most {limit_ms / 1000:g} s; a second Ctrl-C or SIGTERM gives up"
            )

    def finish(self) -> None:
        """Wait until all are acknowledged. Raises the first error."""
        self._producer.flush()
        self._look()

    def _add(self, sent: Delivery | TableDelivery, count: int) -> None:
        self._waiting.append(sent)
        self._counts.append(count)
        self.count += count
        if count > 1 or self.count % _LOOK_RECORDS == 0 or monotonic() >= self._look_at:
            self._look()
            self._look_at = monotonic() + _LOOK_SECONDS

    def _look(self) -> None:
        """Take the deliveries that are known from the front."""
        while self._waiting and self._waiting[0].done():
            sent = self._waiting.popleft()
            if sent.error is not None:
                raise click.ClickException(f"{self._topic}: record {self._delivered + 1} and later: {sent.error}")
            self._delivered += self._counts.popleft()
