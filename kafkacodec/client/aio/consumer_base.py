"""The topics and partitions of a consumer for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafkacodec.client.aio.consumer_parts import ConsumerParts, Soon
from kafkacodec.client.checks import by_partition, offset_number, partition_keys, topic_names
from kafkacodec.client.consuming.positions import Key, Position
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.consuming.subscription import AllPartitions, Listener, OnPartitions, name_test
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.client.lifecycle import AsyncClient
from kafkacodec.errors import ClientClosed, LocalProtocolError

if TYPE_CHECKING:
    from kafkacodec.client.aio.consumer_group import ConsumerGroup

__all__ = ["ConsumerBase"]


def _listening(at: int, named: OnPartitions) -> Callable[[ConsumerBase, list[Key]], Any]:
    """Return a caller of the listener's function in this place."""

    def call(consumer: ConsumerBase, partitions: list[Key]) -> Any:
        function = consumer._listener[at]
        return None if function is None else function(partitions)

    call.__name__ = getattr(named, "__name__", "a callback")
    return call


def _at_once(function: Callable[..., object], /, *arguments: Any) -> None:
    function(*arguments)


class ConsumerBase(AsyncClient):
    """A consumer's settings, its parts once it is started, and its partitions.

    `ConsumerInside` sets `_soon`, `_ready` and `_call` before the start of one that another thread reads from.
    """

    _soon: Soon = staticmethod(_at_once)
    _ready: Callable[[], None] | None = None
    _call: Callable[[OnPartitions, list[Key]], Any] | None = None

    def __init__(self, settings: ConsumerSettings, topics: Iterable[str]) -> None:
        self._settings = settings
        self._begin()
        self._listener = Listener()
        self._first_topics = topic_names(topics)
        if settings.partition_assignment_strategy is not ConsumerSettings.partition_assignment_strategy:
            from kafkacodec.client.aio.assignor_names import assignors_of

            assignors_of(settings.partition_assignment_strategy)  # raises if one is unknown
        self._event = asyncio.Event()
        self._closed = False
        self._ended = asyncio.Event()  # all is closed
        self._interrupted = False  # a with block ended by an exception
        self._parts: ConsumerParts | None = None
        self._group: ConsumerGroup | None = None
        self._topics: Subscription | None = None
        self._followed: AllPartitions | None = None

    def _started(self) -> ConsumerParts:
        """The parts, made in the event loop that uses them first. Raises ClientClosed."""
        if self._closed:
            raise ClientClosed("the consumer is closed")
        if self._parts is None:
            self._parts = ConsumerParts(self._settings, self._soon, self._ready or self._event.set)
            self._network = self._parts.network
            if self._settings.group_id is not None:
                from kafkacodec.client.aio.consumer_group import ConsumerGroup

                self._group = ConsumerGroup(self._parts, self._call)
            if self._first_topics:
                self._subscribe(self._parts, Subscription(self._first_topics), Listener())
        self._parts.network.check()
        return self._parts

    async def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: Any = None,
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Read these topics, or the topics whose names a regular expression matches; replaces an earlier subscription.

        With a group id the group shares the partitions among its members. Without one, this consumer reads all.

        Args:
            topics: names.
            pattern: a regular expression that matches a whole name. The consumer finds new topics within
                ``metadata_max_age_ms``.
            on_assigned: called with a list of new (topic, partition), before they are read.
            on_revoked: called with partitions for another member, after their automatic commit; `commit` still works.
            on_lost: called with partitions that another member may have already. Default: `on_revoked`.

        A blocking consumer calls the functions in the thread that reads, while it asks for records or calls another
        method. For asyncio they may be coroutine functions.
        """
        parts = self._started()
        listener = Listener(on_assigned, on_revoked, on_lost)
        names = topic_names(topics)  # of any iterable, such as a numpy array, which may have no truth value
        if (pattern is None) == (not names):
            raise ValueError("subscribe needs either topics or a pattern; unsubscribe() ends a subscription")
        if self._group is None and listener != Listener():
            raise ValueError("a consumer without group_id has no rebalances: on_assigned and the like are not called")
        self._subscribe(parts, Subscription(names, None if pattern is None else name_test(pattern)), listener)

    def _subscribe(self, parts: ConsumerParts, topics: Subscription, listener: Listener) -> None:
        if self._topics is None and parts.positions.partitions:
            raise LocalProtocolError("assign() has assigned partitions: call unsubscribe() before subscribe()")
        self._topics = topics
        parts.subscribed = tuple(topics.topics)
        if self._group is not None:
            # The loop keeps the group. These functions may refer to the consumer, and would keep one that is dropped.
            self._listener = listener
            held = [function and self._hold.calling(_listening(at, function)) for at, function in enumerate(listener)]
            self._group.subscribe(topics, Listener(*held))
            return
        self._stop_following()
        parts.positions.assign([key for key in parts.positions.partitions if self._wants(key[0])], committed=False)
        self._followed = AllPartitions(
            parts.network.cluster, parts.positions, topics.topics, topics.matches, assigned=parts.network.wake
        )
        parts.network.add(self._followed, parts.changed, parts.end)

    def _wants(self, topic: str) -> bool:
        assert self._topics is not None
        return topic in self._topics.topics or (self._topics.matches is not None and self._topics.matches(topic))

    async def unsubscribe(self) -> None:
        """Stop reading; commit if `enable_auto_commit`, and leave the group.

        All returned records count as processed.
        """
        parts = self._started()
        self._topics = None
        parts.subscribed = ()
        self._stop_following()
        if self._group is not None:
            await self._group.unsubscribe()
        parts.positions.assign([], committed=False)

    def _stop_following(self) -> None:
        if self._followed is not None and self._parts is not None:
            self._parts.network.remove(self._followed)
            self._followed = None

    async def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read exactly these partitions, a list of (topic, number), without a group.

        Partitions that are already assigned continue. New ones start at the committed offset of the group, if there is
        a group id, otherwise as ``auto_offset_reset`` says.
        """
        parts = self._started()
        keys = partition_keys(partitions)
        if self._topics is not None:
            raise LocalProtocolError("subscribe() has chosen topics: call unsubscribe() before assign()")
        before = {topic for topic, _ in parts.positions.partitions}
        parts.network.cluster.want({topic for topic, _ in keys})
        parts.positions.assign(keys, committed=self._group is not None)
        self._forget_unused(parts, before)
        if self._group is not None:
            self._group.assigned_by_hand()
        parts.network.wake()

    async def assign_ranges(self, ranges: Mapping[tuple[str, int], tuple[int, int]]) -> None:
        """Read exactly these offsets: `columns` and iteration end after them, and nothing beyond is fetched.

        Records that compaction or aborted transactions removed do not count as missing.

        Args:
            ranges: by (topic, number): the first offset to read, and the offset to stop before.
        """
        wanted = by_partition("ranges", ranges)
        for key, bound in wanted.items():
            if not isinstance(bound, (tuple, list)) or len(bound) != 2:
                raise TypeError(f"ranges: {key} needs a first offset and an end, such as (0, 100), not {bound!r}")
        bounds = {key: (offset_number(first), offset_number(end, "end")) for key, (first, end) in wanted.items()}
        await self.assign(bounds)
        parts = self._started()
        parts.reader.update_position()
        for key, (first, end) in bounds.items():
            parts.positions.seek(key, Position(first))
            parts.positions.state(key).end = end
        parts.network.wake()

    def _forget_unused(self, parts: ConsumerParts, dropped: Iterable[str] = ()) -> None:
        """Stop asking for topics that nothing needs: missing ones, and topics that are no longer read.

        When they are needed again, the consumer asks again, since they may have changed. A membership also needs topics
        of other members.
        """
        if self._group is not None and self._group.membership is not None:
            return
        needed = {topic for topic, _ in parts.positions.partitions} | parts.lookup.topics
        needed.update(() if self._topics is None else self._topics.topics)
        unused = {topic.name for topic in parts.network.cluster.topics.values() if topic.error}
        parts.network.cluster.unwant(unused.union(dropped) - needed)

    def assignment(self) -> list[Key]:
        """The current partitions, as (topic, number)."""
        return [] if self._parts is None else list(self._parts.positions.partitions)

    def subscription(self) -> list[str]:
        """The subscribed topics."""
        return [] if self._topics is None else list(self._topics.topics)
