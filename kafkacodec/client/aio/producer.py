"""The producer for asyncio."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Never, Self, Unpack

from kafkacodec import messages
from kafkacodec.client.aio.table_producer import TableProducer
from kafkacodec.client.checks import check_topic, partition_number, seconds, time_number
from kafkacodec.client.core.foreign_names import knows
from kafkacodec.client.core.foreign_options import instead_of, unknown_options
from kafkacodec.client.core.missing import MissingTopics
from kafkacodec.client.core.relay import Relay, Reply
from kafkacodec.client.driver.network import Network
from kafkacodec.client.driver.nodes import SLOW_MS
from kafkacodec.client.lifecycle import AsyncClient, shown
from kafkacodec.client.options import option_defaults
from kafkacodec.client.producing._appending import BY_NAME, NAMES
from kafkacodec.client.producing._delivery import Delivery
from kafkacodec.client.producing.given_up import GivenUp
from kafkacodec.client.producing.identity import Idempotence, Identity
from kafkacodec.client.producing.queue import Queues, TopicQueues
from kafkacodec.client.producing.sender import Sender
from kafkacodec.client.producing.serializing import serialized_aside
from kafkacodec.client.producing.settings import ProducerOptions, ProducerSettings
from kafkacodec.client.producing.undelivered import Undelivered
from kafkacodec.errors import BrokerError, ClientClosed, DeadlineExceeded, QueueFull, RemoteProtocolError
from kafkacodec.net.loop import epoll_of, tell_sleeper
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    from kafkacodec.client.producing.transactions import Transaction, Transactions
    from kafkacodec.moments import Moment

__all__ = ["Producer"]

_log = logging.getLogger("kafkacodec.client.producer")

_TIMES_ASKED: Final = 3  # for a partition that a topic does not have
DEFAULTS: Final = option_defaults(ProducerSettings)
"""A value of each option that has its type, for `config_options`."""


@knows("Producer")
class Producer(TableProducer, AsyncClient):
    """Writes records to topics; an asynchronous context manager.

    It sends records in batches, when a batch is full or ``linger_ms`` old. `send` returns when the record is queued;
    its `Delivery` has the outcome.

        async with kc.client.aio.Producer("localhost:9092") as producer:
            delivery = await producer.send("orders", b"value", key=b"key")
            print((await delivery).offset)

    Args:
        bootstrap_servers: ``host:port`` of some brokers, in one text with commas or as a list.
        **options: `kafkacodec.client.ProducerSettings` describes them.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    @shows_options(ProducerOptions, ProducerSettings, instead_of)
    def __init__(self, bootstrap_servers: str | Iterable[str], **options: Unpack[ProducerOptions]) -> None:
        self._settings = ProducerSettings(bootstrap_servers=bootstrap_servers, **options)
        self._begin()
        self._closed = False
        self._broken: Exception | None = None
        self._transactions: Transactions | None = None
        self._given_up: GivenUp | None = None
        self._waiters: list[tuple[asyncio.Future[None], Callable[[], bool] | None]] = []
        own = self._settings
        functions = (own.key_serializer, own.value_serializer, own.partitioner)
        self._is_plain = all(function is None for function in functions)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], **options: Any) -> Self:
        """Make a producer from options with dotted names of Java's producer or librdkafka.

        ``{"bootstrap.servers": "localhost:9092"}`` is an example. Pass `options` by keyword, as to the class:
        serializers, for instance.
        """
        from kafkacodec.client.security.config_words import from_config

        return from_config(cls, config, DEFAULTS, options=options)

    def __repr__(self) -> str:
        return shown(self, self._settings, closed=self._closed)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def _lose(self, network: Network) -> None:
        if network.loop.is_closed() and (lost := sum(batch.count for batch in self._queues.pending)):
            _log.warning("a producer was not closed: %d records are not acknowledged", lost)
        super()._lose(network)

    def _abort(self, network: Network) -> None:
        self._log_left(None)
        super()._abort(network)

    async def start(self) -> None:
        """Use the running event loop from now on, as every other method does. No broker is waited for."""
        self._check()
        if self._network is not None:
            return
        # What the loop refers to must not refer to the application, whose methods the serializers may be.
        settings = self._settings.but(key_serializer=None, value_serializer=None)
        network = Network(settings)
        progress, broke = self._hold.calling(Producer._progress), self._hold.calling(Producer._broke)
        self._queues = Queues(network.cluster, settings, network.now)
        self._queues.loop = network.loop
        identity: Identity
        if settings.transactional_id is None:
            identity = Idempotence(settings, network.retry_backoff())
            self._given_up = GivenUp(network.wake_soon)
            network.add(self._given_up)
        else:
            from kafkacodec.client.producing.transactions import Transactions

            coordinators, backoff = network.cluster.coordinators, network.retry_backoff()
            identity = self._transactions = Transactions(
                settings, coordinators, backoff, progress, self._queues.metadata_changed
            )
        self._sender = Sender(
            self._queues, network.cluster, settings, identity, network.metrics, progress, self._given_up
        )
        self._network = network
        network.add(self._sender, broke=broke)
        network.add(MissingTopics(network.cluster))
        network.add(Undelivered(network.cluster.hindrances, self._queues))

    async def send(
        self,
        topic: str,
        value: Any = None,
        *more: Never,
        key: Any = None,
        headers: Iterable[tuple[str, Any]] | Mapping[str, Any] = (),
        partition: int | None = None,
        timestamp: Moment | None = None,
        **others: Never,
    ) -> Delivery:
        """Queue a record.

        Waits only for the metadata of a new topic, while ``buffer_memory`` is full, or for an encoder's registry.

        Args:
            topic: its name.
            value, key: bytes, text (as UTF-8) or None; or values for ``value_serializer`` and ``key_serializer``.
            headers: pairs of name and value, or a dict.
            partition: its partition. Default: by the hash of the key (murmur2, as in Java's client); without a key, one
                partition after the other, a batch each.
            timestamp: in ms since 1970, a datetime (UTC without a time zone), a date or text; the default is now.

        Returns:
            The record's outcome.

        Raises:
            ValueError, TypeError: an illegal topic, partition or timestamp.
            LocalProtocolError: the producer has a ``transactional_id``, and is not in a transaction, or the transaction
                has ended while the call waited.
            EncodeError: a key, value or header of another type; a record larger than ``max_request_size``; a partition
                that the topic does not have.
            QueueFull: no memory within ``max_block_ms``.
            DeadlineExceeded: no metadata of the topic within ``max_block_ms``; its cause is the reason.
            BrokerError: the client cannot write to the topic.
            ClientClosed: the client is closed, or used after a fork, or in another event loop.
            The exceptions of a serializer.
        """
        if more:
            raise TypeError(BY_NAME)
        if others:
            raise unknown_options([*others], NAMES)
        if self._is_plain and self._network is not None:
            self._check()
            made = self._queues.append_open(topic, key, value, headers, partition, timestamp)
            if made is not None:
                return made
        await self.start()
        begun = self._check_transaction()
        if not self._is_plain:
            key, value = await serialized_aside(self._settings, key, value)
        return await self._append(begun, topic, value, key, headers, partition, timestamp)

    async def _append(
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
        own = self._queues.topic(topic)
        if own is None or self._queues.full or (partition is not None and partition not in own.present):
            own = await self._room(topic, partition)
        timestamp = int(time.time() * 1000) if timestamp is None else time_number(timestamp)
        with self._queues.lock:
            self._check_transaction(begun)
            delivery, due = self._queues.append(own, partition, key, value, headers, timestamp)
            self._make_ready(own)
        if due and self._network is not None:
            self._network.poll_soon(self._sender)
            await asyncio.sleep(0)  # a caller that never waits would keep the loop from sending
        return delivery

    async def flush(self, timeout: float | None = None) -> None:
        """Send everything that is queued, and wait for the outcome.

        Args:
            timeout: in seconds; None waits as long as ``delivery_timeout_ms`` allows.

        Raises:
            DeadlineExceeded: not known in time.
            ClientClosed: as in `send`.
        """
        timeout = seconds("timeout", timeout)
        await self.start()
        with self._queues.lock:
            newest = self._queues.flush()
        self._wake()
        if not await self._until(lambda: self._done_to(newest), timeout, for_records=True):
            raise DeadlineExceeded(f"not everything was acknowledged within {timeout} s")

    async def partitions_for(self, topic: str) -> list[int]:
        """The partitions of a topic that records are distributed over: at most ``metadata_max_age_ms`` old.

        Raises as `send`.
        """
        await self.start()
        return list((await self._room(topic)).numbers)

    def metrics(self) -> dict[str, float]:
        """Return the client's metrics by name; `kafkacodec.client.METRICS` describes them."""
        return {} if self._network is None else self._network.metrics.snapshot()

    async def close(self, timeout: float | None = None) -> None:
        """Send what is queued, wait for it, and close all connections. Does nothing the second time.

        Args:
            timeout: in seconds; what is not acknowledged by then fails with ClientClosed. None waits as long as
                ``delivery_timeout_ms`` allows, and ``max_block_ms`` for an open transaction to be aborted.
        """
        timeout = seconds("timeout", timeout)
        network = self._network
        if self._closed or network is None:
            self._closed = True
            return
        network.check()
        late: DeadlineExceeded | None = None
        try:
            if self._broken is None:
                await self._leave(timeout)
        except DeadlineExceeded as error:
            late = error
        finally:
            self._log_left(late)
            self._closed = True
            if self._given_up is not None:
                self._given_up.close()
            self._sender.abandon(ClientClosed("the client was closed before the record was acknowledged"))
            await network.close()
            self._progress()

    # For the blocking producer

    def _use_shortcuts(self) -> None:
        """Let sending threads write single batches past the loop, if nothing is to be waited for."""
        own, network = self._settings, self._network
        plain = own.required_acks and not own.linger_ms and not own.codec and own.transactional_id is None
        if not plain or network is None or epoll_of(network.loop) is None:
            return
        from kafkacodec.client.producing.shortcuts import shortcuts_of

        limit_ms = min(SLOW_MS + 1, own.request_timeout_ms, own.delivery_timeout_ms)  # as its timer is late by less
        queues, sender = self._queues, self._sender
        sender.shortcuts = shortcuts_of(queues, network.cluster, sender.identity, network.metrics, adopt=sender.adopt,
                                        line=network.line, ring=network.wake_soon, limit_ms=limit_ms)  # fmt: skip
        tell_sleeper(network.loop, sender.shortcuts.shortcut)

    def _make_ready(self, own: TopicQueues) -> None:
        """From now on records of a topic may go into its open batches at once, if the application has no say in it."""
        if self._is_plain:
            self._queues.make_ready(own)
            if self._transactions is not None and not self._transactions.takes_records:
                self._queues.metadata_changed()  # as the transaction may have ended before

    def _wake(self) -> None:
        """Send due batches soon."""
        if self._network is not None:
            self._network.wake()

    async def forget_topics(self) -> None:
        """Ask again for the metadata of each topic at its next use.

        Call this after a pause: topics may have changed or got more partitions. Queued records are not affected.
        """
        await self.start()
        assert self._network is not None
        self._network.cluster.unwant(list(self._network.cluster.topics))
        self._queues.metadata_changed()

    async def _room(self, topic: str, partition: int | None = None) -> TopicQueues:
        """Wait until a topic is known and there is memory; ask again for a missing partition."""
        check_topic(topic)
        limit = self._settings.max_block_ms / 1000
        own = self._queues.topic(topic) or await self._discovered(topic, limit)
        if partition is not None and partition not in own.present:
            own = await self._asked_anew(topic, partition, limit)
        drained = self._queues.drained
        if self._queues.full:
            self._wake()  # open batches are due now
        if self._queues.full and not await self._until(
            lambda: self._queues.drained != drained, limit, for_records=True
        ):
            most = self._settings.buffer_memory
            raise QueueFull(
                f"{self._queues.bytes} bytes wait to be acknowledged, buffer_memory is {most}, for {limit:g} s"
            )
        self._check()
        return own

    # Waiting

    def _check(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")
        if self._broken is not None:
            raise ClientClosed(f"the producer has failed: {self._broken}") from self._broken
        if self._network is not None:
            self._network.check()

    def _progress(self) -> None:
        """Wake waiters; those for records only if their wait is over, since waking a task takes longer than looking."""
        waiters, self._waiters = self._waiters, []
        for waiter, reached in waiters:
            if waiter.done():
                continue
            if reached is None or reached() or self._over:
                waiter.set_result(None)
            else:
                self._waiters.append((waiter, reached))

    @property
    def _over(self) -> bool:
        """Whether waits end with an error."""
        network = self._network
        lost = network is not None and (network.closed or network.cluster.absence.reason is not None)
        return self._closed or self._broken is not None or lost

    def _broke(self, error: Exception) -> None:
        """End the producer: a fault of this library, or the network was closed."""
        if not self._closed:
            self._broken = error
            self._sender.abandon(error)
            self._progress()

    def _done_to(self, newest: int) -> bool:
        with self._queues.lock:
            return self._queues.done_to(newest)

    async def _until(self, condition: Callable[[], bool], timeout: float | None, *, for_records: bool = False) -> bool:
        """Wait for a condition that changes only where `_progress` is called; returns whether it holds in time.

        What holds it up for long is logged; with `for_records`, `Undelivered` does that. Such a condition is only about
        the queues, and changes before `_progress` is called.
        """
        if condition():
            return True
        if for_records or self._network is None:
            return await self._waited(condition, timeout, condition if for_records else None)
        with self._network.waiting(math.inf if timeout is None else timeout * 1000):
            return await self._waited(condition, timeout, None)

    async def _waited(
        self, condition: Callable[[], bool], timeout: float | None, reached: Callable[[], bool] | None
    ) -> bool:
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not condition():
            self._check()
            if self._network is not None and (absent := self._network.cluster.absence.reason) is not None:
                raise absent.with_traceback(None)
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.append((waiter, reached))
            try:
                with self._hold:
                    async with asyncio.timeout_at(deadline):
                        await waiter
            except TimeoutError:
                return condition()
        return True

    def _log_left(self, late: DeadlineExceeded | None) -> None:
        """Log lost records when the producer closes with a time limit, or without a wait."""
        with self._queues.lock:
            left = 0 if self._closed else sum(batch.count for batch in self._queues.pending)
        if left:
            _log.warning("the producer was closed before brokers acknowledged all records: %d are not", left)
        elif late is not None:
            _log.warning("the producer was closed although the transaction has not ended: %s", late)

    async def _leave(self, timeout: float | None) -> None:
        """Send what is queued, or end the transaction."""
        own = self._transactions
        if own is None or own.settled:
            end = None if timeout is None else asyncio.get_running_loop().time() + timeout
            await self.flush(timeout)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(end):
                    await self._read()
            return
        try:
            await asyncio.wait_for(self._left(), timeout)
        except TimeoutError as error:
            raise DeadlineExceeded(f"it is {own.state.value}") from error
        except (BrokerError, RemoteProtocolError) as error:
            _log.warning("the open transaction could not be ended: %s", error)

    async def _read(self) -> None:
        """Without acknowledgements, wait until brokers answer a request after the last batch. The end of the connection
        would take with it what TLS, or a socket whose other side has sent something, still holds of that."""
        brokers = [] if self._settings.required_acks else self._sender.brokers
        if not brokers or self._network is None:
            return
        relay, replies = Relay(), list[Reply]()
        for broker in brokers:
            relay.add(broker, messages.MetadataRequest(topics=[]))

        def answered() -> bool:
            replies.extend(relay.take())
            return len(replies) == len(brokers)

        await self._network.run(relay, answered)

    async def _discovered(self, topic: str, limit: float) -> TopicQueues:
        """Return the queues of an unknown topic."""
        assert self._network is not None
        cluster = self._network.cluster
        cluster.want([topic])
        self._wake()
        await self._until(lambda: self._is_known(topic), limit)
        own = self._queues.topic(topic)
        if own is None:
            refused = cluster.topics.get(topic)
            cause = cluster.last_error or (refused.error() if refused and refused.error else None)
            raise DeadlineExceeded(
                f"no metadata of topic {topic!r} within {limit:g} s{f': {cause}' if cause else ''}"
            ) from cause
        return own

    async def _asked_anew(self, topic: str, partition: int, limit: float) -> TopicQueues:
        """Return the queues of a topic, after brokers have confirmed whether it has a partition.

        It asks several times, since brokers do not learn of a new partition at the same time.
        """
        assert self._network is not None
        cluster = self._network.cluster
        for _ in range(_TIMES_ASKED):
            wanted = cluster.next_answer

            def newer(wanted: int = wanted) -> bool:
                if cluster.answers >= wanted:
                    return True
                cluster.refresh([topic])
                self._wake()
                return False

            if not await self._until(newer, limit):
                raise DeadlineExceeded(f"no metadata of topic {topic!r} within {limit:g} s: {cluster.last_error}")
            own = self._queues.topic(topic) or await self._discovered(topic, limit)
            if partition in own.present:
                break
        return own

    def _is_known(self, topic: str) -> bool:
        """Whether a topic is known; raises an error if it is unusable."""
        assert self._network is not None
        cluster = self._network.cluster
        known = cluster.topics.get(topic)
        if known is None and cluster.refused is not None:
            raise cluster.refused.with_traceback(None)
        if known is not None and known.refusal is not None:
            raise known.refusal(f"{known.refusal.name}: topic {topic!r}")
        return self._queues.topic(topic) is not None
