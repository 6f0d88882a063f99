"""The machines of a consumer on one network, and the reader of their records."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from kafkacodec.client.aio.ends import Ends
from kafkacodec.client.consuming.fetcher import Fetcher
from kafkacodec.client.consuming.offset_lookup import OffsetLookup
from kafkacodec.client.consuming.positions import NO_END, Key, PartitionState, Positions
from kafkacodec.client.consuming.reading import Reader
from kafkacodec.client.consuming.received import Part
from kafkacodec.client.consuming.reset_policy import reset_policy
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.consuming.unanswered import Unanswered
from kafkacodec.client.consuming.validation import Validation
from kafkacodec.client.core.held_up import RECENT_MS, HeldUp
from kafkacodec.client.core.missing import MissingTopics
from kafkacodec.client.driver.network import Network
from kafkacodec.errors import (
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerError,
    DeadlineExceeded,
    error,
)

__all__ = ["ConsumerParts", "Soon"]


class Soon(Protocol):
    """Calls a function in the thread of the loop: at once in that thread, soon from another one."""

    def __call__(self, function: Callable[..., object], /, *arguments: Any) -> object:
        """Call it without waiting for its result."""


class ConsumerParts:
    """The parts of the asyncio and the blocking consumer.

    Args:
        settings: the consumer's.
        soon: calls a function in the loop's thread.
        ready: called in the loop's thread when there may be something to read.

    Attributes:
        errors: errors without a partition; each is raised to the user once.
        refusal: the error that ended the consumer; every read raises it.
        closing: whether `close` was called.
        subscribed: the topics that are subscribed to by name.
    """

    def __init__(self, settings: ConsumerSettings, soon: Soon, ready: Callable[[], None]) -> None:
        # What the loop refers to must not refer to the application, whose methods the deserializers may be.
        given, settings = settings, settings.but(key_deserializer=None, value_deserializer=None)
        self.settings = settings
        self.network = network = Network(settings)
        self.soon, self.ready = soon, ready
        self.errors: deque[Exception] = deque()
        self.refusal: Exception | None = None
        self.closing = False
        self._waiting: set[asyncio.Event] = set()
        self._refused: Exception | None = None
        self.subscribed: tuple[str, ...] = ()
        self._answers = 0  # the metadata in which subscribed topics were looked for
        backoff = network.retry_backoff()
        self.positions = Positions(reset_policy(settings.auto_offset_reset))
        committed = settings.isolation_level == "read_committed"
        self.lookup = OffsetLookup(network.cluster, self.positions, committed=committed, backoff=backoff)
        self.validation = Validation(network.cluster, self.positions, backoff=backoff)
        self.fetcher = Fetcher(
            network.cluster, self.positions, self.validation, settings, backoff=backoff, metrics=network.metrics
        )
        self.reader = Reader(
            self.fetcher.ready,
            self.positions,
            settings,
            self._give_back,
            self._again,
            self._feed,
            given=weakref.proxy(given),
        )
        self.fetcher.hungry = lambda: self.reader.hungry
        self._ends = Ends(self.lookup, self.positions, committed=committed)
        for machine in (self.lookup, self.validation, self.fetcher):
            network.add(machine, self.changed, self.end)
        network.add(MissingTopics(network.cluster))
        away_ms = settings.request_timeout_ms + settings.fetch_max_wait_ms
        network.add(Unanswered(self.positions, self.reader, lambda: network.answered_at, away_ms))
        self._held_up = HeldUp(network.cluster.hindrances, lambda: self.reader.asks(RECENT_MS))
        network.add(self._held_up)
        self._add_gauges()

    @property
    def readable(self) -> bool:
        """Whether a read brings records or an error at once."""
        return bool(self.errors) or self.refusal is not None or self.reader.has_data

    def raise_error(self) -> None:
        """Raise an error without a partition, if there is one."""
        if self.errors:
            raise self.errors.popleft().with_traceback(None)
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)

    def raise_unreachable(self) -> None:
        """After a wait without records, raise the reason if no broker was ever reached."""
        cluster = self.network.cluster
        if cluster.absence.reason is not None:
            raise cluster.absence.reason.with_traceback(None)
        cause = cluster.unreachable
        if cause is not None:
            raise DeadlineExceeded(f"no broker answers: {cause}") from cause

    def raise_missing(self) -> None:
        """After such a wait, raise an error for an assigned partition that does not exist."""
        for key in self.positions.partitions:
            missing = self.missing(key)
            if missing is not None:
                raise missing

    def raise_leaderless(self) -> None:
        """After such a wait, raise an error for a partition with an end that cannot be reached without a leader.

        Reads of others are endless, so that nobody takes their pauses for the end; the machine warns of those.
        """
        cluster = self.network.cluster
        for (topic, number), state in self.positions.partitions.items():
            known = cluster.topics.get(topic)
            if state.end != NO_END and not state.read and known is not None and cluster.leader(topic, number) is None:
                raise error(LEADER_NOT_AVAILABLE)(f"{topic}-{number} is not read to its end: it has no leader")
        if cluster.hindrances:
            self.soon(lambda: self._held_up.waited_in_vain(self.network.now()))

    def missing_topic(self, topic: str) -> BrokerError | None:
        """The error about a topic that does not exist; None if it exists, or nothing is known of it."""
        known = self.network.cluster.topics.get(topic)
        if known is None or known.partitions or known.error is not error(UNKNOWN_TOPIC_OR_PARTITION):
            return None
        return known.error(f"topic {topic!r} does not exist")

    def missing(self, key: Key) -> BrokerError | None:
        """The error about a partition that does not exist; None if it exists, or nothing is known of its topic."""
        topic, number = key
        known = self.network.cluster.topics.get(topic)
        if (absent := self.missing_topic(topic)) is not None:
            return absent
        if known is not None and known.error is not None and not known.partitions:
            return known.error(f"topic {topic!r}: {known.error.name}")
        if known is not None and known.partitions and number not in known.partitions:
            missing = f"topic {topic!r} has no partition {number}: its highest is {max(known.partitions)}"
            return error(UNKNOWN_TOPIC_OR_PARTITION)(missing)
        return None

    # In the loop's thread

    def changed(self) -> None:
        """Wake waiters, since a machine was called."""
        self._ends.take()
        refused = self.network.cluster.refused
        if refused is not None and refused is not self._refused:
            self._refused = refused
            self.errors.append(refused)
        if self._answers != self.network.cluster.answers:
            self._answers = self.network.cluster.answers
            self._look_for_refused()
        errors = self.positions.failures or self.errors or self.refusal is not None
        if self.fetcher.ready or errors or self.positions.read:
            self.ready()
        for event in self._waiting:
            event.set()

    def _look_for_refused(self) -> None:
        """Raise an error to the user, once for each answer, about subscribed topics that may not be read.

        Ask again: they may become readable. So reads raise the error about once a second for as long as it is so.
        """
        known = self.network.cluster.topics
        refused = {name: known[name].refusal for name in self.subscribed if name in known and known[name].refusal}
        if refused:
            self.network.cluster.refresh()
        if refused and not self.errors:
            name, kind = next((name, kind) for name, kind in refused.items() if kind is not None)
            others = len(refused) - 1
            more = f", and {others} other subscribed topic{'s' * (others > 1)}" if others else ""
            self.errors.append(kind(f"topic {name!r}{more}: {kind.name}"))

    def fail(self, problem: Exception) -> None:
        """Raise an error to the user, once."""
        if not self.errors:
            self.errors.append(problem)
        self.changed()

    def end(self, problem: Exception) -> None:
        """End the consumer: raise an error at every read."""
        self.refusal = problem
        self.changed()

    async def until(self, reached: Callable[[], bool], timeout_ms: float, what: Callable[[], Exception]) -> None:
        """Wait until something is reached. Raises DeadlineExceeded, with the cause that `what` gives."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            with self.network.waiting(timeout_ms):
                async with asyncio.timeout(timeout_ms / 1000):
                    while not reached():
                        self.network.check()
                        self.raise_error()
                        event.clear()
                        await event.wait()
        except TimeoutError:
            cause = what()
            raise DeadlineExceeded(f"not in time: {cause}") from cause
        finally:
            self._waiting.discard(event)

    async def finish(self, call: Any) -> None:
        """Run a machine of `kafkacodec.client.groups.offsets` until it is done. Raises its error."""
        if not call.done:
            await self.network.run(call, lambda: bool(call.done), self.settings.default_api_timeout_ms)
        if call.error is not None:
            raise call.error

    async def close(self) -> None:
        """Close the connections and give all memory back."""
        self.reader.close()
        try:
            await self.network.close()
        finally:
            self.fetcher.close()

    def _give_back(self, parts: list[Part]) -> None:
        self.soon(self._done, parts)

    def _done(self, parts: list[Part]) -> None:
        if self.fetcher.done(parts):
            self.network.wake()

    def _feed(self) -> None:
        if self.fetcher.held_back:
            self.soon(self.network.wake)

    def _again(self, state: PartitionState, version: int) -> None:
        self.soon(self._try_again, state, version)

    def _try_again(self, state: PartitionState, version: int) -> None:
        self.positions.again(state, version)
        self.network.wake()

    # Metrics

    def lags(self) -> dict[Key, int]:
        """Return the offsets between position and end of each partition with a known end."""
        found = {}
        committed = self.settings.isolation_level == "read_committed"
        self.reader.update_position()
        for key, state in list(self.positions.partitions.items()):
            end = state.last_stable_offset if committed and state.last_stable_offset >= 0 else state.high_watermark
            if state.position is not None and end >= 0:
                found[key] = max(end - state.position.offset, 0)
        if self.network.is_own_process:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self.network.loop.call_soon_threadsafe(self._look_at_ends)
        return found

    def _look_at_ends(self) -> None:
        """The next look at the lag finds the ends of now, also of partitions that are not fetched."""
        quiet = (s for s in self.positions.partitions.values() if s.position is not None and not self.fetcher.asks(s))
        if not self.network.closed and self._ends.ask(quiet, self.network.now()):
            self.network.wake()

    def count_records(self) -> None:
        """Bring the counter of records up to date."""
        counter = self.network.metrics.counter("consumer.records")
        counter.value = self.reader.records_given

    def _add_gauges(self) -> None:
        gauge = self.network.metrics.gauge
        gauge("consumer.queue_bytes", lambda: self.fetcher.kept_bytes)
        gauge("consumer.assigned_partitions", lambda: len(self.positions.partitions))
        gauge("consumer.lag", lambda: sum(self.lags().values()))
        gauge("consumer.lag_max", lambda: max(self.lags().values(), default=0))
