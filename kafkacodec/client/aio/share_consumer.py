"""The share consumer for asyncio (KIP-932)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final, Self, Unpack

from kafkacodec.client.checks import row_limit, seconds, topic_names
from kafkacodec.client.consuming.positions import Key
from kafkacodec.client.core.foreign_names import knows
from kafkacodec.client.core.foreign_options import instead_of
from kafkacodec.client.core.held_up import RECENT_MS, HeldUp
from kafkacodec.client.core.missing import MissingTopics
from kafkacodec.client.driver.network import Network
from kafkacodec.client.groups.membership import Assigned, Broken, Failed, GroupSettings, Left, Lost, Revoke
from kafkacodec.client.groups.share import NOT_OFFERED, ShareMembership
from kafkacodec.client.groups.share_reader import ShareReader
from kafkacodec.client.groups.share_records import Acknowledged
from kafkacodec.client.groups.share_session import ShareLimits
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.client.lifecycle import AsyncClient, shown
from kafkacodec.client.options import option_defaults
from kafkacodec.client.security.config_words import from_config
from kafkacodec.client.sharing.deliveries import Deliveries, ShareRecord
from kafkacodec.client.sharing.settings import ShareConsumerOptions, ShareConsumerSettings
from kafkacodec.datatypes import replace
from kafkacodec.errors import (
    UNSUPPORTED_VERSION,
    ClientClosed,
    DeadlineExceeded,
    LocalProtocolError,
    UnsupportedVersion,
)
from kafkacodec.questions import answering
from kafkacodec.signatures import shows_options

__all__ = ["DEFAULTS", "ShareConsumer"]

DEFAULTS: Final = option_defaults(ShareConsumerSettings)
"""The default of each option, for `config_options`."""

_log = logging.getLogger("kafkacodec.client")

_FLUSH_MS = 5000.0  # how long acknowledgements wait for the next fetch


@knows("ShareConsumer")
class ShareConsumer(AsyncClient):
    """Reads topics together with other members of a share group: each record goes to one of them, as in a queue.

    Needs Kafka 4.2, or 4.1 with share groups enabled. The consumer holds a record for some time (30 s by default at the
    broker), in which it accepts, releases or rejects the record. The broker delivers unacknowledged records again.

        async with kc.client.aio.ShareConsumer("jobs", bootstrap_servers="localhost:9092", group_id="workers") as jobs:
            async for record in jobs:
                ...

    Args:
        topics: to read; `subscribe` does it later.
        bootstrap_servers, **options: `kafkacodec.client.ShareConsumerSettings` describes them.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    @shows_options(ShareConsumerOptions, ShareConsumerSettings, instead_of)
    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Iterable[str],
        group_id: str,
        **options: Unpack[ShareConsumerOptions],
    ) -> None:
        self._settings = ShareConsumerSettings(bootstrap_servers=bootstrap_servers, group_id=group_id, **options)
        self._first_topics = topic_names(topics)
        self._begin()
        self._event = asyncio.Event()
        self._closed = self._left = False
        self._ended = asyncio.Event()
        self._refusal: Exception | None = None  # of the group
        self._fault: Exception | None = None  # of a machine
        self._broken: Exception | None = None  # raised once
        self._outcomes: dict[Key, Exception | None] = {}
        self._flushed_at = self._asked_at = 0.0
        self._asking = 0  # the reads under way

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *topics: str, **options: Any) -> Self:
        """Make a share consumer with the dotted option names of Java, such as ``bootstrap.servers``.

        Pass `options` by keyword, as to the class: deserializers, for instance.

        Raises:
            TypeError: a name is unknown; the error has the nearest known one.
            ValueError: a value is wrong.
        """
        return from_config(cls, config, DEFAULTS, topics, options)

    def __repr__(self) -> str:
        return shown(self, self._settings, closed=self._closed)

    async def __aenter__(self) -> Self:
        self._started()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    # Reading

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics; replaces an earlier subscription."""
        network = self._started()
        names = topic_names(topics)
        if not names:
            raise ValueError("subscribe needs topics; close() leaves the group")
        self._subscribed, self._refusal = True, None
        self._membership.subscribe(Subscription(names), network.now())
        network.wake()

    async def getmany(self, timeout: float | None = 0, max_records: int | None = None) -> list[ShareRecord]:
        """Return acquired records: those that are there, or that come within `timeout` seconds.

        In implicit mode this accepts the records of the previous call, unless they were released or rejected.

        Args:
            timeout: in seconds; None waits until records come.
            max_records: the maximum number of records. Default: ``max_poll_records``.

        Raises:
            LocalProtocolError: nothing is subscribed to; in explicit mode, a record is not acknowledged.
            ClientClosed: the consumer is closed, or used after a fork or in another event loop.
            DecodeError: a batch cannot be read; its records were released.
            BrokerError: the group refuses this member, or a partition cannot be read.
            AuthenticationFailed: the brokers refuse this client.
            DeadlineExceeded: `timeout` has passed, and no broker ever answered, or none has for
                `default_api_timeout_ms`.
            The exceptions of a deserializer, whose record was released.
        """
        limit = seconds("timeout", timeout)
        most = row_limit("max_records", max_records) or self._settings.max_poll_records
        network = self._reading()
        self._deliveries.processed()
        self._acknowledge_sometimes(network)
        self._membership.polled(network.now(), waiting=True)
        self._asking += 1
        try:
            if await self._filled(network, limit):
                return await answering(self._deliveries.next, most)
            return []
        finally:
            self._asking -= 1
            self._asked_at = network.now()
            self._membership.polled(network.now())

    def __aiter__(self) -> AsyncIterator[ShareRecord]:
        return self._each()

    async def _each(self) -> AsyncIterator[ShareRecord]:
        while True:
            for record in await self.getmany(None, 1):
                yield record

    # Acknowledging

    def acknowledge(self, record: ShareRecord, kind: str = "accept") -> None:
        """Acknowledge a record, with the next request for records or with `commit`.

        Args:
            record: a record of this consumer.
            kind: ``"accept"``: it is done; ``"release"``: deliver it again, to any member; ``"reject"``: never deliver
                it again; ``"renew"``: its time starts again with `commit`, and it needs another acknowledgement
                (KIP-1222, Kafka 4.2; only in explicit mode).

        Raises:
            ValueError: another kind.
            LocalProtocolError: the record was not returned, is acknowledged already, or its time is over; or
                ``"renew"`` in implicit mode.
        """
        self._started()
        self._deliveries.acknowledge(record, kind)

    async def commit(self, timeout: float | None = None) -> dict[Key, Exception | None]:
        """Send the acknowledgements so far, and wait until the brokers have them.

        In implicit mode this accepts the returned records.

        Args:
            timeout: in seconds. Default: ``default_api_timeout_ms``.

        Returns:
            The outcome of the acknowledgements since the last call, by (topic, partition): None, or the reason why the
                broker will deliver records of that partition again.

        Raises:
            DeadlineExceeded: no answer in time.
            BrokerError, AuthenticationFailed: the group or the brokers refuse this member meanwhile.
            ClientClosed: as `getmany`.
        """
        limit = seconds("timeout", timeout)
        network = self._reading()
        if self._settings.share_acknowledgement_mode == "implicit":
            self._deliveries.processed()
        self._reader.flush()
        network.wake()
        most = self._settings.default_api_timeout_ms / 1000 if limit is None else limit

        def flushed() -> bool:
            if not self._reader.flushed:
                self._raise_refusal(network)
            return self._reader.flushed

        with network.waiting(most * 1000):
            over = await self._until(flushed, most)
        if not over:
            raise DeadlineExceeded(f"the acknowledgements were not answered within {most:g} s", sent=True)
        self._take_results()
        found, self._outcomes = self._outcomes, {}
        return found

    async def close(self) -> None:
        """Send the acknowledgements so far, release other records, leave the group and close all connections.

        A second call waits for the first, or does nothing.
        """
        network = self._network
        if self._closed or network is None:
            if network is not None:
                await self._ended.wait()
            self._closed = True
            return
        network.check()
        self._closed = True
        self._deliveries.forget()
        most = self._settings.request_timeout_ms / 1000
        try:
            with contextlib.suppress(ClientClosed):
                if not self._over and self._subscribed:
                    self._reader.close()
                    network.wake()
                    await self._until(lambda: self._reader.closed or self._over, most)
                    self._membership.leave(network.now())
                    network.wake()
                    await self._until(lambda: self._left or self._over, most)
        finally:
            try:
                await network.close()
            finally:
                self._ended.set()
            self._log_results()

    def assignment(self) -> list[Key]:
        """The current partitions, as (topic, number). Other members may read them too."""
        return list(self._membership.partitions) if self._network is not None else []

    def metrics(self) -> dict[str, float]:
        """Return the client's metrics by name; `kafkacodec.client.METRICS` describes them."""
        return {} if self._network is None else self._network.metrics.snapshot()

    # Parts

    def _started(self) -> Network:
        if self._closed:
            raise ClientClosed("the share consumer is closed")
        if self._network is None:
            self._network = self._start()
        self._network.check()
        return self._network

    def _start(self) -> Network:
        s = self._settings
        # What the loop refers to must not refer to the application, whose methods the deserializers may be.
        network = Network(replace(s, key_deserializer=None, value_deserializer=None))
        group = GroupSettings(
            group_id=s.group_id,
            max_poll_interval_ms=s.max_poll_interval_ms,
            client_rack=s.client_rack,
            request_timeout_ms=s.request_timeout_ms,
            backoff=network.retry_backoff(),
        )
        limits = ShareLimits(
            max_wait_ms=s.fetch_max_wait_ms,
            min_bytes=s.fetch_min_bytes,
            max_bytes=s.fetch_max_bytes,
            max_records=s.max_poll_records,
            batch_size=s.max_poll_records,
        )
        self._membership = membership = ShareMembership(group, network.cluster)
        self._reader = ShareReader(
            network.cluster, lambda: membership.metadata, limits=limits, implicit=False, backoff=network.retry_backoff()
        )
        self._deliveries = Deliveries(self._reader, s)
        self._subscribed = bool(self._first_topics)
        self._flushed_at = network.now()
        for machine in (membership, self._reader):
            network.add(machine, self._hold.calling(ShareConsumer._changed), self._hold.calling(ShareConsumer._end))
        network.add(MissingTopics(network.cluster))
        network.add(HeldUp(network.cluster.hindrances, self._hold.calling(ShareConsumer._asks)))
        if self._first_topics:
            membership.subscribe(Subscription(self._first_topics), network.now())
        return network

    def _reading(self) -> Network:
        network = self._started()
        if not self._subscribed:
            raise LocalProtocolError("the share consumer reads nothing: call subscribe() first")
        return network

    def _asks(self) -> bool:
        """Whether the application asks for records now."""
        assert self._network is not None
        return self._asking > 0 or self._network.now() - self._asked_at < RECENT_MS

    def _changed(self) -> None:
        """A machine was called."""
        for event in self._membership.take_events():
            if isinstance(event, Assigned):
                self._reader.assign(event.partitions)
            elif isinstance(event, Lost):
                self._reader.assign(self._membership.partitions)
            elif isinstance(event, Revoke):  # while it leaves: the sessions have ended before
                assert self._network is not None
                self._membership.revoked(self._network.now())
                self._network.wake()
            elif isinstance(event, Failed):
                self._refusal = _explained(event.error)
            elif isinstance(event, Broken):
                self._broken = event.error
            elif isinstance(event, Left):
                self._left = True
        self._event.set()

    def _end(self, problem: Exception) -> None:
        self._fault = self._fault or problem
        self._event.set()

    # Waiting

    async def _filled(self, network: Network, timeout: float | None) -> bool:
        """Wait for records; False if none came in time."""

        def filled() -> bool:
            self._deliveries.take()
            self._raise(network)
            if not self._deliveries.ready and self._membership.partitions and not self._reader.fetching:
                self._reader.fetch()
                network.wake()
            return self._deliveries.ready

        await asyncio.sleep(0)
        if await self._until(filled, timeout):
            self._deliveries.raise_error()
            self._log_results()
            return True
        cause = network.cluster.unreachable
        if timeout and cause is not None:
            raise DeadlineExceeded(f"no broker answers: {cause}") from cause
        return False

    def _acknowledge_sometimes(self, network: Network) -> None:
        """Send acknowledgements while fetched records wait here, before the time of returned records ends."""
        if self._deliveries.ready and network.now() - self._flushed_at >= _FLUSH_MS:
            self._flushed_at = network.now()
            self._reader.flush()
            network.wake()

    @property
    def _over(self) -> bool:
        """Whether nothing will come, unless `subscribe` changes that."""
        return self._fault is not None or self._refusal is not None

    def _raise_refusal(self, network: Network) -> None:
        if network.cluster.refused is not None:
            raise network.cluster.refused.with_traceback(None)
        reason = self._fault or self._refusal
        if reason is not None:
            raise reason.with_traceback(None)

    def _raise(self, network: Network) -> None:
        """Raise why nothing will come."""
        self._raise_refusal(network)
        broken, self._broken = self._broken, None
        if broken is not None:
            raise broken
        for place, error in list(self._reader.errors.items()):
            del self._reader.errors[place]
            raise error

    async def _until(self, reached: Any, timeout: float | None) -> bool:
        """Wait for something that changes only where `_changed` is called; returns whether it came in time."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not reached():
            self._event.clear()
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                return False
            with contextlib.suppress(TimeoutError), self._hold:
                async with asyncio.timeout(left):
                    await self._event.wait()
        return True

    def _take_results(self) -> list[Acknowledged]:
        """Take the outcomes of acknowledgements, and keep them for `commit`."""
        results = self._reader.take_results()
        for result in results:
            self._outcomes[result.partition] = self._outcomes.get(result.partition) or result.error
        return results

    def _log_results(self) -> None:
        """Report acknowledgements that brokers refused."""
        for result in self._take_results():
            if result.error is not None:
                first, last = result.runs[0].first, result.runs[-1].last
                where = f"{result.partition.topic}-{result.partition.partition}"
                _log.warning("offsets %d to %d of %s will be delivered again: %s", first, last, where, result.error)


def _explained(problem: Exception) -> Exception:
    if getattr(problem, "code", None) == UNSUPPORTED_VERSION:
        return UnsupportedVersion(f"{NOT_OFFERED}: {problem}")
    return problem
