"""The blocking consumer: the asyncio consumer on its own thread, read in the caller's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from kafkacodec.client.aio import consumer as aio
from kafkacodec.client.aio.inside import ConsumerInside
from kafkacodec.client.blocking.callbacks import CallbackThread
from kafkacodec.client.checks import row_limit, seconds
from kafkacodec.client.consuming.deadline import Deadline
from kafkacodec.client.consuming.positions import Key
from kafkacodec.client.consuming.record import ConsumedColumns, ConsumerRecord, no_rows, table_columns
from kafkacodec.client.consuming.settings import ConsumerOptions, ConsumerSettings
from kafkacodec.client.consuming.typed import Typing, reader_of, typing_of
from kafkacodec.client.core.foreign_names import knows
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.lifecycle import BlockingClient, blocking, owned
from kafkacodec.signatures import shows_options, suggests_options

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.client.groups.membership import GroupMetadata
    from kafkacodec.values.decoding import ValueDecoder

__all__ = ["Consumer"]


@knows("Consumer")
class Consumer(BlockingClient):
    """Reads topics: records one by one, in lists, or as tables.

    It fetches ahead on its own thread. Use it from one thread at a time. A context manager, and an iterable over
    records, which ends after `assign_ranges` only::

        with Consumer("orders", bootstrap_servers="localhost:9092", group_id="billing") as consumer:
            for record in consumer:
                ...

    Args:
        topics: to subscribe to at once; `subscribe` and `assign` do it later.
        bootstrap_servers, **options: `kafkacodec.client.ConsumerSettings` describes them.

    Raises:
        TypeError: an option is unknown or has a wrong type.
        ValueError: an option or topic name has a wrong value.

    Errors of reading (`columns`, `getmany`, iteration):
        LocalProtocolError: nothing is subscribed to or assigned; or another thread is reading.
        ClientClosed: it is closed, or was created before this process was forked.
        DecodeError (CorruptRecord, CrcMismatch, UnsupportedCodec, LimitExceeded): a batch is unreadable. The records
            before it were returned; the path names topic and partition. The error comes again until `seek` skips the
            batch.
        NoOffset, OffsetOutOfRangeError, LogTruncated: a partition has no valid position and ``auto_offset_reset`` is
            ``"none"``.
        BrokerError: the cluster refuses to let a topic or partition be read, or the group refuses this member.
            Other topics are read by the next call.
        AuthenticationFailed: the brokers refuse this client.
        DeadlineExceeded: `timeout` has passed, and no broker ever answered or none has for `default_api_timeout_ms`.
        LeaderNotAvailableError: `timeout` has passed, and a partition of `assign_ranges` whose end is not reached has
            no leader.
        UnknownTopicOrPartitionError: `timeout` has passed, and a partition assigned by hand does not exist. A missing
            subscribed topic may come later: the consumer logs it. The exceptions of a deserializer, again until `seek`
            skips the record; the exceptions of callbacks of `subscribe`.
    """

    _face: aio.Consumer
    _thread: CallbackThread

    @shows_options(ConsumerOptions, ConsumerSettings, instead_of)
    def __init__(
        self, *topics: str, bootstrap_servers: str | Iterable[str], **options: Unpack[ConsumerOptions]
    ) -> None:
        self._face = owned(aio.Consumer(*topics, bootstrap_servers=bootstrap_servers, **options))
        self._thread = CallbackThread("kafkacodec consumer")
        thread = self._thread
        self._inside = ConsumerInside(self._face, thread.soon, thread.ready, thread.call)
        self._settings = self._inside.settings
        thread.wanted = self._settings.group_id is not None
        try:
            self._parts = thread.run(self._inside.start)
        except BaseException:
            self._thread.close()
            raise
        self._reader = self._parts.reader

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *topics: str, **options: Any) -> Self:
        """Make a consumer with the dotted option names of Java and librdkafka, such as ``bootstrap.servers``.

        Pass `options` by keyword, as to the class: deserializers, for instance.

        Raises:
            TypeError: a name is unknown; the error has the nearest known one.
            ValueError: a value is wrong.
        """
        from kafkacodec.client.security.config_words import from_config

        return from_config(cls, config, aio.DEFAULTS, topics, options)

    def __exit__(self, *exception: object) -> None:
        self._inside.left_by(exception=exception[0] is not None)
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """Commit what is processed if `enable_auto_commit`, leave the group, close the connections, end the thread.

        Does nothing the second time. In a callback in the client's own thread it returns at once, and closes
        afterwards.

        Args:
            timeout: the seconds to wait for the group's coordinator. Default: ``request_timeout_ms``.
        """
        self._thread.end(partial(self._face.close, seconds("timeout", timeout)))

    subscribe = blocking(aio.Consumer.subscribe)
    assign = blocking(aio.Consumer.assign)
    assign_ranges = blocking(aio.Consumer.assign_ranges)
    unsubscribe = blocking(aio.Consumer.unsubscribe)

    seek = blocking(aio.Consumer.seek)
    seek_to_beginning = blocking(aio.Consumer.seek_to_beginning)
    seek_to_end = blocking(aio.Consumer.seek_to_end)
    seek_to_timestamp = blocking(aio.Consumer.seek_to_timestamp)
    position = blocking(aio.Consumer.position)
    pause = blocking(aio.Consumer.pause)
    resume = blocking(aio.Consumer.resume)

    partitions_for = blocking(aio.Consumer.partitions_for)
    topic_id = blocking(aio.Consumer.topic_id)
    beginning_offsets = blocking(aio.Consumer.beginning_offsets)
    end_offsets = blocking(aio.Consumer.end_offsets)
    offsets_for_times = blocking(aio.Consumer.offsets_for_times)

    def commit(self, offsets: Mapping[tuple[str, int], Any] | None = None, *, wait: bool = True) -> None:
        """Commit."""
        if wait:
            self._thread.run(partial(self._face.commit, offsets))
        else:
            self._thread.check()
            self._inside.commit_later(self._parts, offsets)

    commit.__doc__ = aio.Consumer.commit.__doc__
    committed = blocking(aio.Consumer.committed)
    committed_offsets = blocking(aio.Consumer.committed_offsets)

    def assignment(self) -> list[Key]:
        """The current partitions, as (topic, number)."""
        return self._face.assignment()

    def subscription(self) -> list[str]:
        """The subscribed topics."""
        return self._face.subscription()

    def paused(self) -> list[Key]:
        """The assigned partitions that are paused."""
        return self._face.paused()

    def lag(self) -> dict[Key, int]:
        """Return the offsets between position and end of each assigned partition with a known end.

        Fetches report the ends. For partitions without a fetch, because they are paused or have records to read, the
        consumer asks after this call, at most once a second: the next call has their ends.
        """
        return self._face.lag()

    def group_metadata(self) -> GroupMetadata:
        """Return the metadata for a transactional producer that commits this consumer's offsets."""
        return self._face.group_metadata()

    def metrics(self) -> dict[str, float]:
        """Return the client's metrics by name; `kafkacodec.client.METRICS` describes them."""
        return self._face.metrics()

    # Reading

    @overload
    def columns(
        self,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        columns: Iterable[str] | None = None,
        keys: None = None,
        values: None = None,
    ) -> Iterator[ConsumedColumns]: ...

    @overload
    def columns(
        self,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        columns: Iterable[str] | None = None,
        keys: ValueDecoder | None = None,
        values: ValueDecoder,
    ) -> Iterator[pa.RecordBatch]: ...

    @overload
    def columns(
        self,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        columns: Iterable[str] | None = None,
        keys: ValueDecoder,
        values: None = None,
    ) -> Iterator[pa.RecordBatch]: ...

    def columns(
        self,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        columns: Iterable[str] | None = None,
        keys: ValueDecoder | None = None,
        values: ValueDecoder | None = None,
    ) -> Iterator[Any]:
        """Records as tables, without a Python object per record: the fastest way.

        Args:
            max_rows: the most rows of a table. Default: 8,192, so that a table stays in the processor's cache.
            timeout: the iterator ends after this many seconds without records; None: never.
            columns: the names of the columns to build; others cost nothing. Default: all.
            keys, values: a `kafkacodec.values.ValueDecoder` of keys, and one of values, for typed columns. Needs the
                extra ``values``. Decoders of headers need the column ``headers``.

        Yields:
            ConsumedColumns: ``topic``, ``partition``, ``offset``, ``timestamp``, ``timestamp_type``, ``key``,
            ``value``, ``headers``, in this order; ``offset`` always. Rows of one partition are in order. A table may be
            kept: it has its own memory. With decoders, a ``pyarrow.RecordBatch`` with the same columns, and after them
            ``value_schema_id`` (int64) and ``value_error`` (string), or the same with ``key``. Its types are those of
            its own schemas, unless the decoder has a reader's schema or is prepared.

        Raises:
            DecodeError, SchemaError: from a decoder, after the records before; again until `seek` skips the record.
            RegistryError: the registry does not answer; the next call reads the same records.
        """
        names = table_columns(columns)
        return self._tables(max_rows, timeout, names, typing_of(names, keys, values))

    def _tables(
        self, max_rows: int | None, timeout: float | None, names: tuple[str, ...], typing: Typing | None
    ) -> Iterator[Any]:
        """Checks the arguments at once."""
        read = partial(self._reader.columns, row_limit("max_rows", max_rows), names, typing)
        return self._read_until(Deadline(seconds("timeout", timeout)), read)

    def _read_until(self, end: Deadline, read: Callable[[], Any]) -> Iterator[Any]:
        while True:
            self._check_reading()
            table = read()
            if table is not None:
                yield table
                end.restart()
            elif not self._wait(end):
                return

    def reader(
        self,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        columns: Iterable[str] | None = None,
        keys: ValueDecoder | None = None,
        values: ValueDecoder | None = None,
    ) -> pa.RecordBatchReader:
        """The tables of `columns` as a ``pyarrow.RecordBatchReader``: for Parquet writers, DuckDB and others.

        Args:
            max_rows, timeout, columns, keys, values: as in `columns`. With a timeout of None, the reader never ends.
                A decoder without a reader's schema gives the types of the first values; the call waits for them, but
                not longer than for 64 MiB of records.

        Raises:
            ImportError: pyarrow is not installed.
            SchemaError: raised by the reader: a later table has values of another type. The next read begins with it.
        """
        names = table_columns(columns)
        typing = typing_of(names, keys, values)
        return reader_of(self._tables(max_rows, timeout, names, typing), no_rows(names), typing)

    @suggests_options
    def getmany(self, timeout: float | None = 0, max_records: int | None = None) -> dict[Key, list[ConsumerRecord]]:
        """Return records by (topic, partition): those that are there, or that come within `timeout` seconds.

        Args:
            timeout: in seconds; None waits until records come.
            max_records: the maximum number of records in all. Default: ``max_poll_records``.
        """
        end = Deadline(seconds("timeout", timeout))
        most = row_limit("max_records", max_records) or self._settings.max_poll_records
        while True:
            self._check_reading()
            found = self._reader.records_by_partition(most)
            if found or not self._wait(end):
                return found

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(self._iterators())

    def _iterators(self) -> Iterator[Iterator[ConsumerRecord]]:
        while True:
            self._check_reading()
            records = self._reader.iterated()
            if records is not None:
                yield records
            elif not self._wait(Deadline(None)):
                return

    def _check_reading(self) -> None:
        self._thread.check()
        self._thread.serve()
        self._inside.check_something_to_read(self._parts)

    def _wait(self, end: Deadline) -> bool:
        """Wait until there may be something to read; False if the time is over, or nothing can come."""
        event = self._thread.event
        self._reader.wait(True)
        try:
            while True:
                event.clear()
                left = end.left
                if left != 0 and self._parts.readable:
                    return True
                if self._parts.positions.read:
                    return False
                self._thread.serve()
                if left == 0:
                    if end.waits:
                        self._inside.explain_nothing(self._parts)
                    return False
                event.wait(left)
                self._thread.check()
        finally:
            self._reader.wait(False)
