"""The consumer for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, Unpack, overload

from kafkacodec.client.aio.consumer_offsets import ConsumerOffsets
from kafkacodec.client.aio.consumer_parts import ConsumerParts
from kafkacodec.client.checks import row_limit, seconds
from kafkacodec.client.consuming._iterating import Iterating
from kafkacodec.client.consuming.deadline import Deadline
from kafkacodec.client.consuming.positions import Key
from kafkacodec.client.consuming.record import ConsumedColumns, ConsumerRecord, table_columns
from kafkacodec.client.consuming.settings import ConsumerOptions, ConsumerSettings
from kafkacodec.client.consuming.typed import typing_of
from kafkacodec.client.core.foreign_names import knows
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.lifecycle import shown
from kafkacodec.client.options import option_defaults
from kafkacodec.errors import LocalProtocolError
from kafkacodec.questions import answering
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.values.decoding import ValueDecoder

__all__ = ["Consumer"]


@knows("Consumer")
class Consumer(Iterating, ConsumerOffsets):
    """Reads topics in an event loop: records one by one, in lists, or as tables.

    An async context manager, and an async iterator over records, which ends after `assign_ranges` only::

        async with Consumer("orders", bootstrap_servers="localhost:9092", group_id="billing") as consumer:
            async for record in consumer:
                ...

    It belongs to the event loop of its first use. Reading raises the errors of `kafkacodec.client.Consumer`.

    Args:
        topics: to subscribe to at once; `subscribe` and `assign` do it later.
        bootstrap_servers, **options: `kafkacodec.client.ConsumerSettings` describes them.

    Raises:
        TypeError: an option is unknown or has a wrong type.
        ValueError: an option or topic name has a wrong value.
    """

    @shows_options(ConsumerOptions, ConsumerSettings, instead_of)
    def __init__(
        self, *topics: str, bootstrap_servers: str | Iterable[str], **options: Unpack[ConsumerOptions]
    ) -> None:
        super().__init__(ConsumerSettings(bootstrap_servers=bootstrap_servers, **options), topics)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *topics: str, **options: Any) -> Self:
        """Make a consumer with the dotted option names of Java and librdkafka, such as ``bootstrap.servers``.

        Pass `options` by keyword, as to the class: deserializers, for instance.

        Raises:
            TypeError: a name is unknown; the error has the nearest known one.
            ValueError: a value is wrong.
        """
        from kafkacodec.client.security.config_words import from_config

        return from_config(cls, config, DEFAULTS, topics, options)

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
    ) -> AsyncIterator[ConsumedColumns]: ...

    @overload
    def columns(
        self,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        columns: Iterable[str] | None = None,
        keys: ValueDecoder | None = None,
        values: ValueDecoder,
    ) -> AsyncIterator[pa.RecordBatch]: ...

    @overload
    def columns(
        self,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        columns: Iterable[str] | None = None,
        keys: ValueDecoder,
        values: None = None,
    ) -> AsyncIterator[pa.RecordBatch]: ...

    async def columns(
        self,
        *,
        max_rows: int | None = None,
        timeout: float | None = None,
        columns: Iterable[str] | None = None,
        keys: ValueDecoder | None = None,
        values: ValueDecoder | None = None,
    ) -> AsyncIterator[Any]:
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
        limit, most, names = seconds("timeout", timeout), row_limit("max_rows", max_rows), table_columns(columns)
        made, end = typing_of(names, keys, values), Deadline(limit)
        while True:
            parts = self._reading()
            table = await answering(parts.reader.columns, most, names, made)
            if table is not None:
                yield table
                await asyncio.sleep(0)  # the loop continues to fetch
                end.restart()
            elif not await self._wait(parts, end):
                return

    async def getmany(
        self, timeout: float | None = 0, max_records: int | None = None
    ) -> dict[Key, list[ConsumerRecord]]:
        """Return records by (topic, partition): those that are there, or that come within `timeout` seconds.

        Args:
            timeout: in seconds; None waits until records come.
            max_records: the maximum number of records in all. Default: ``max_poll_records``.
        """
        end = Deadline(seconds("timeout", timeout))
        most = row_limit("max_records", max_records) or self._settings.max_poll_records
        await asyncio.sleep(0)
        while True:
            parts = self._reading()
            found = await answering(parts.reader.records_by_partition, most)
            if found or not await self._wait(parts, end):
                return found

    async def _more(self) -> ConsumerRecord:
        """The first of the next records."""
        await asyncio.sleep(0)
        while True:
            parts = self._reading()
            self._records = await answering(parts.reader.iterated)
            if self._records is not None:
                for record in self._records:
                    return record
            if not await self._wait(parts, Deadline(None)):
                raise StopAsyncIteration

    def _reading(self) -> ConsumerParts:
        """The parts, if there is something to read. Raises what ends the consumer's work."""
        parts = self._started()
        self._check_something_to_read(parts)
        return parts

    def _check_something_to_read(self, parts: ConsumerParts) -> None:
        parts.raise_error()
        if self._topics is None and not parts.positions.partitions:
            raise LocalProtocolError("nothing to read: call subscribe() or assign() first")

    def _explain_nothing(self, parts: ConsumerParts) -> None:
        """After a wait without records, raise what prevents them."""
        parts.raise_unreachable()
        parts.raise_missing()
        parts.raise_leaderless()

    async def _wait(self, parts: ConsumerParts, end: Deadline) -> bool:
        """Wait until there may be something to read; False if the time is over, or nothing can come."""
        self._event.clear()
        left = end.left
        if left != 0 and parts.readable:
            return True
        if not end.waits or parts.positions.read:
            return False
        parts.reader.wait(True)
        try:
            async with asyncio.timeout(left):
                await self._event.wait()
            return True
        except TimeoutError:
            self._explain_nothing(parts)
            return False
        finally:
            parts.reader.wait(False)

    # The client

    def metrics(self) -> dict[str, float]:
        """Return the client's metrics by name; `kafkacodec.client.METRICS` describes them."""
        if self._parts is None:
            return {}
        self._parts.count_records()
        return self._parts.network.metrics.snapshot()

    async def close(self, timeout: float | None = None) -> None:
        """Commit what is processed if `enable_auto_commit`, leave the group, close the connections.

        All returned records count as processed; if an exception ends a ``with`` block, only those after which the
        application has asked for more. A second call waits for the first, or does nothing. Callbacks of `subscribe` may
        call it, and it does not wait for them. If it is cancelled, the group gets no notice.

        Args:
            timeout: the seconds to wait for the group's coordinator. Default: ``request_timeout_ms``.

        Raises the exceptions of callbacks of `subscribe`.
        """
        limit, parts = seconds("timeout", timeout), self._parts
        if self._closed or parts is None:
            self._closed = True
            return
        parts.network.check()
        if parts.closing:
            if self._group is None or not self._group.is_calling:
                await self._ended.wait()
            return
        parts.closing = True
        try:
            parts.reader.finish()
            if self._group is not None:
                parts.errors.clear()
                await self._group.close(processed=not self._interrupted, timeout=limit)
                parts.raise_error()
        finally:
            self._closed = True
            await self._end(parts)

    async def _close_dropped(self) -> None:
        self._interrupted = True
        if self._group is not None:
            self._group.stop_calling()
        await super()._close_dropped()

    async def _end(self, parts: ConsumerParts) -> None:
        try:
            if self._group is not None:
                await self._group.end()
        finally:
            try:
                await parts.close()
            finally:
                self._ended.set()

    async def __aenter__(self) -> Self:
        self._started()
        return self

    async def __aexit__(self, kind: object, *exception: object) -> None:
        self._interrupted = kind is not None
        await self.close()

    def __repr__(self) -> str:
        return shown(self, self._settings, closed=self._closed)


DEFAULTS: Final = option_defaults(ConsumerSettings)
"""The default of each option by name."""
