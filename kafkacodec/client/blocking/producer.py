"""The blocking producer."""

from __future__ import annotations

import atexit
import inspect
import logging
import os
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack

from kafkacodec.client.aio import producer as aio
from kafkacodec.client.aio.inside import ProducerInside
from kafkacodec.client.checks import partition_number, seconds, time_number
from kafkacodec.client.core.foreign_names import knows
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.lifecycle import BlockingClient, blocking, owned
from kafkacodec.client.producing._appending import Sending
from kafkacodec.client.producing._delivery import Delivery
from kafkacodec.client.producing.settings import ProducerOptions, ProducerSettings
from kafkacodec.errors import ClientClosed, EncodeError
from kafkacodec.net.loop import LoopThread
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    from kafkacodec.client.producing._appending import FewRows
    from kafkacodec.client.producing._delivery import TableDelivery
    from kafkacodec.client.producing.queue import Queues, TopicQueues
    from kafkacodec.client.producing.transactions import Transaction
    from kafkacodec.moments import Moment

__all__ = ["Producer"]

_log = logging.getLogger("kafkacodec.client.producer")


@knows("Producer")
class Producer(Sending, BlockingClient):
    """Writes records to topics; a context manager. Threads may share it.

    The caller's thread encodes records into batches; a thread of the client sends a batch when it is full or
    ``linger_ms`` old. `send` returns when the record is queued; its `Delivery` has the outcome.

        with kc.client.Producer("localhost:9092") as producer:
            delivery = producer.send("orders", b"value", key=b"key")
            print(delivery.result().offset)

    Args:
        bootstrap_servers: ``host:port`` of some brokers, in one text with commas or as a list.
        **options: `kafkacodec.client.ProducerSettings` describes them.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    @shows_options(ProducerOptions, ProducerSettings, instead_of)
    def __init__(self, bootstrap_servers: str | Iterable[str], **options: Unpack[ProducerOptions]) -> None:
        self._face: aio.Producer = owned(aio.Producer(bootstrap_servers, **options))
        self._closed = self._forked = False
        self._inside = inside = ProducerInside(self._face)
        self._plain, self._check_transaction = inside.is_plain, inside.check_transaction
        self._thread = LoopThread("kafkacodec producer")
        try:
            self._queues = self._thread.run(inside.start)
        except BaseException:
            self._thread.close()
            raise
        self._thread.bell = inside.woken()
        self._refuse_handler = self._thread.before_waiting = self._queues.refuse_handler
        _open.add(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], **options: Any) -> Self:
        """Make a producer from options with dotted names of Java's producer or librdkafka.

        ``{"bootstrap.servers": "localhost:9092"}`` is an example. Pass `options` by keyword, as to the class:
        serializers, for instance.
        """
        from kafkacodec.client.security.config_words import from_config

        return from_config(cls, config, aio.DEFAULTS, options=options)

    def __del__(self) -> None:
        thread = getattr(self, "_thread", None)
        if thread is not None and not thread.ends:
            _dropped[thread] = self._face
        super().__del__()

    def _send(
        self, topic: str, value: Any, key: Any, headers: Any, partition: int | None, timestamp: Moment | None
    ) -> Delivery:
        """The part of `send` without an open batch, which may have to wait."""
        if self._closed or self._forked:
            self._check()
        begun = self._check_transaction()
        if not self._plain:
            key, value = self._inside.serialized(key, value)
        return self._append(begun, topic, value, key, headers, partition, timestamp)

    def _append(
        self,
        begun: Transaction | None,
        topic: str,
        value: Any,
        key: Any,
        headers: Any,
        partition: int | None,
        timestamp: Moment | None,
    ) -> Delivery:
        """Queue a record of a transaction, or of none."""
        if partition is not None:
            partition = partition_number(partition)
        # The caller's thread appends; it waits for the client's only if there is no room.
        self._refuse_handler()
        queues: Queues = self._queues
        own = queues.topic(topic)
        if own is None or queues.full or (partition is not None and partition not in own.present):
            own = self._room(topic, partition)
        timestamp = int(time.time() * 1000) if timestamp is None else time_number(timestamp)
        try:
            with queues.lock:
                if self._closed:
                    self._check()
                if begun is not None:
                    self._check_transaction(begun)
                delivery, due = queues.append(own, partition, key, value, headers, timestamp)
                self._inside.make_ready(own)
            if due:
                self._thread.ring()
        except BaseException:
            # A signal handler's may come when the record is queued, and others would join it without a ring.
            with suppress(ClientClosed):
                self._thread.ring()
            raise
        return delivery

    def _send_columns(self, data: Any, topic: str | None) -> TableDelivery:
        """The part of `send_columns` for tables that are not small, or whose topic may have to be waited for."""
        if self._closed or self._forked:
            self._check()
        begun, table = self._check_transaction(), self._inside.table(data, topic)
        if not table.is_ready:
            self._thread.run(partial(self._inside.prepare, table))
        if (rows := table.few_rows()) is not None:
            return self._add_rows(rows, begun)
        self._refuse_handler()
        try:
            for batch in table.batches():
                if self._queues.full:
                    self._room(batch.topic_name)
                with self._queues.lock:
                    if self._closed:
                        self._check()
                    self._check_transaction(begun)
                    enough = table.queue(batch)
                if enough:
                    self._thread.ring()
        finally:
            if table.has_batches:
                self._thread.ring()
        return table.finish()

    def _send_rows(self, data: Any, topic: str, partition: int | None, headers: Any) -> TableDelivery:
        """Send keys and values of a table as `send` sends records, without serializers: for `kafkacodec produce`."""
        if self._closed or self._forked:
            self._check()
        return self._add_rows(self._inside.rows(data, topic, partition, headers), self._check_transaction())

    def _add_rows(self, rows: FewRows, begun: Transaction | None) -> TableDelivery:
        """Add rows to batches, and start batches for those that have no open one."""
        while True:
            self._refuse_handler()
            with self._queues.lock:
                if self._closed:
                    self._check()
                self._check_transaction(begun)
                if rows.add():
                    return rows.finish()
            key, value = rows.pair()
            try:
                rows.took(self._append(begun, rows.topic, value, key, rows.headers, rows.partition, None))
            except EncodeError as error:
                raise rows.located(error) from None

    flush = blocking(aio.Producer.flush)
    partitions_for = blocking(aio.Producer.partitions_for)
    forget_topics = blocking(aio.Producer.forget_topics)
    init_transactions = blocking(aio.Producer.init_transactions)

    def begin_transaction(self) -> None:
        """Begin."""
        self._check()
        self._refuse_handler()
        if not self._inside.begun_at_once():
            self._thread.run(self._face.begin_transaction)

    begin_transaction.__doc__ = aio.Producer.begin_transaction.__doc__
    prepare_transaction = blocking(aio.Producer.prepare_transaction)
    commit_transaction = blocking(aio.Producer.commit_transaction)
    abort_transaction = blocking(aio.Producer.abort_transaction)
    send_offsets_to_transaction = blocking(aio.Producer.send_offsets_to_transaction)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: committed at the end of the block, aborted if an exception leaves it or committing fails.

        If committing is interrupted or ends by DeadlineExceeded, it is not known which: brokers may still commit it.
        Aborting waits for a broker too, up to ``max_block_ms`` after the exception.

        Raises:
            As `begin_transaction` and `commit_transaction`.
        """
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException as reason:
            try:
                self._thread.run(self._inside.rolled_back)
            except Exception as error:
                reason.add_note(f"the transaction could not be aborted: {error}")
            raise

    def metrics(self) -> dict[str, float]:
        """Return the client's metrics by name; `kafkacodec.client.METRICS` describes them."""
        return self._face.metrics()

    def close(self, timeout: float | None = None) -> None:
        """Send what is queued, wait for it, and close all connections. Does nothing the second time.

        In a callback of a delivery it returns at once, and queued records are sent afterwards. Another `close` waits
        for them.

        Args:
            timeout: in seconds; unacknowledged records then fail with ClientClosed. None waits as long as
                ``delivery_timeout_ms`` allows, and ``max_block_ms`` for the abort of an open transaction.
        """
        seconds("timeout", timeout)
        if not self._closed:
            self._refuse_handler()
            self._closed = True
            self._queues.metadata_changed()
        self._thread.end(lambda: self._face.close(timeout))

    def _check(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")
        self._thread.check()

    def _room(self, topic: str, partition: int | None = None) -> TopicQueues:
        return self._thread.run(partial(self._inside.room, topic, partition))


# What is compiled does not know types and text.
for _name in ("send", "send_columns"):
    _own, _known = getattr(Producer, _name), getattr(aio.Producer, _name)
    _own.__doc__, _own.__signature__ = _known.__doc__, inspect.signature(_known)

_open: weakref.WeakSet[Producer] = weakref.WeakSet()
_dropped: weakref.WeakKeyDictionary[LoopThread, aio.Producer] = weakref.WeakKeyDictionary()  # threads that still end


def _mark_forked() -> None:
    """Asking for the process id would take a fifth of the time of `Producer.send`."""
    for producer in list(_open):
        producer._forked = True  # noqa: SLF001
        producer._queues.metadata_changed()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_forked)


@atexit.register
def _close_all() -> None:
    """At the end of the interpreter, wait for brokers only if a callback has closed a producer; log lost records."""
    for producer in list(_open):
        try:
            producer.close(0)
        except Exception:
            _log.exception("a producer could not be closed")
    for thread, client in list(_dropped.items()):
        try:
            thread.run(partial(client.close, 0))
        except ClientClosed:
            continue
        except Exception:
            _log.exception("a producer could not be closed")
