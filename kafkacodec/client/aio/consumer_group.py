"""A consumer in its group: rebalances, committed positions, automatic commits."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafkacodec.client.aio.assignor_names import assignors_of
from kafkacodec.client.aio.consumer_parts import ConsumerParts
from kafkacodec.client.aio.reads import Reads
from kafkacodec.client.consuming.positions import Key, PartitionState, Position
from kafkacodec.client.groups.classic import ClassicMembership
from kafkacodec.client.groups.membership import (
    Assigned,
    Event,
    Failed,
    GroupMetadata,
    GroupSettings,
    Left,
    Lost,
    Membership,
    Revoke,
    Subscription,
    TopicPartition,
)
from kafkacodec.client.groups.modern import ModernMembership
from kafkacodec.client.groups.offsets import CommittedOffset, OffsetCommit, OffsetFetch
from kafkacodec.errors import ClientClosed, KafkaCodecError, UnsupportedVersion, error

__all__ = ["ConsumerGroup", "Listener"]

_LOOK_MS: Final = 500.0  # how late a member that left may notice that the application reads again
_NO_MEMBER: Final = 25
_UNSUPPORTED_VERSION: Final = 35
_log = logging.getLogger("kafkacodec.client")

OnPartitions = Callable[[list[Key]], Any]


class Listener(NamedTuple):
    """What the application wants to be called with the partitions of: functions or coroutine functions, or None."""

    on_assigned: OnPartitions | None = None
    on_revoked: OnPartitions | None = None
    on_lost: OnPartitions | None = None


class ConsumerGroup:
    """The group of a consumer that has a group id.

    Args:
        parts: the consumer's.
        call: calls a function of the application with partitions.

    Attributes:
        membership: None while partitions are assigned by hand.
    """

    def __init__(self, parts: ConsumerParts, call: Callable[[OnPartitions, list[Key]], Any] | None = None) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._network = parts.network
        self._positions = parts.positions
        self._call = call or _call
        assert parts.settings.group_id is not None
        self._group_id: str = parts.settings.group_id
        self.membership: Membership | None = None
        self._listener = Listener()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._left = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._committed: dict[Key, Position] = {}
        self._reads: Reads | None = None
        self._commits: set[asyncio.Task[None]] = set()

    # Membership

    @property
    def listens(self) -> bool:
        """Whether the application is called about its partitions."""
        return self._listener != Listener()

    def subscribe(self, subscription: Subscription, listener: Listener) -> None:
        """Join the group, or change what is subscribed to."""
        self._listener, self._parts.refusal = listener, None
        if self.membership is None:
            self.membership = self._new_membership()
            self._reads = Reads(self._parts.reader, self.membership)
            self._network.add(self._reads)
            self._network.add(self.membership, self._changed, self._parts.end)
        self._start()
        self._left.clear()
        self.membership.subscribe(subscription, self._network.now())
        self._network.wake()

    def assigned_by_hand(self) -> None:
        """Partitions were assigned without the group: find out their committed positions."""
        self._start()
        self._look_up_committed()

    def metadata(self) -> GroupMetadata:
        """Under what to commit. Raises UnknownMemberIdError while this is no member."""
        if self.membership is None:
            return GroupMetadata(self._group_id)
        found = self.membership.metadata
        if found is None:
            raise error(_NO_MEMBER)("the consumer is not a member of its group: a rebalance is under way")
        return found

    async def leave(self) -> None:
        """Commit, give the partitions up and leave the group; nothing if this is no member."""
        membership = self.membership
        if membership is None:
            return
        membership.leave(self._network.now())
        self._network.wake()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                await self._left.wait()
        self._network.remove(membership)
        if self._reads is not None:
            self._network.remove(self._reads)
        self.membership = self._reads = self._parts.refusal = None

    async def close(self, *, processed: bool) -> None:
        """Commit what is processed, leave, end the tasks. With `processed` that is all that was given out."""
        for state in self._positions.partitions.values() if processed else ():
            state.processed = state.position
        try:
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                if self.membership is not None:
                    await self.leave()
                else:
                    await self._auto_commit(self._positions.partitions.values())
        except TimeoutError:
            _log.warning("group %r was not left in good order: no answer in time", self._group_id)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._commits, return_exceptions=True)

    def _new_membership(self) -> Membership:
        s = self._settings
        settings = GroupSettings(
            group_id=self._group_id,
            group_instance_id=s.group_instance_id,
            session_timeout_ms=s.session_timeout_ms,
            heartbeat_interval_ms=s.heartbeat_interval_ms,
            max_poll_interval_ms=s.max_poll_interval_ms,
            client_rack=s.client_rack,
            request_timeout_ms=s.request_timeout_ms,
            remote_assignor=s.group_remote_assignor,
            backoff=self._network.retry_backoff(),
        )
        if s.group_protocol == "consumer":
            return ModernMembership(settings, self._network.cluster)
        return ClassicMembership(settings, self._network.cluster, assignors_of(s.partition_assignment_strategy))

    def _start(self) -> None:
        if not self._tasks:
            work = [self._handle_events(), self._watch_reads()]
            if self._settings.enable_auto_commit:
                work.append(self._commit_at_times())
            self._tasks = [asyncio.create_task(each) for each in work]

    # Events

    def _changed(self) -> None:
        assert self.membership is not None
        for event in self.membership.take_events():
            self._events.put_nowait(event)

    async def _handle_events(self) -> None:
        while True:
            event = await self._events.get()
            try:
                await self._handle(event)
            except Exception as problem:
                self._parts.fail(problem)

    async def _handle(self, event: Event) -> None:
        match event:
            case Revoke(partitions):
                await self._revoke(partitions)
            case Lost(partitions):
                self._take_away(partitions)
                await self._tell(self._listener.on_lost or self._listener.on_revoked, partitions)
            case Assigned(added, partitions):
                await self._assigned(added, partitions)
            case Failed(problem):
                self._parts.end(self._explained(problem))
            case Left():
                self._take_away(list(self._positions.partitions))
                self._left.set()

    def _explained(self, problem: Exception) -> Exception:
        if self._settings.group_protocol == "consumer" and getattr(problem, "code", None) == _UNSUPPORTED_VERSION:
            text = 'the broker does not offer group_protocol="consumer" (KIP-848, Kafka 4.0); use "classic"'
            return UnsupportedVersion(f"{text}: {problem}")
        return problem

    async def _revoke(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop reading, wait until the application has processed what it has, commit, give up."""
        try:
            states = [self._positions.partitions[p] for p in partitions if p in self._positions.partitions]
            for state in states:
                self._positions.pause(state.key)
            await self._until_processed(states)
            await self._auto_commit(states)
            await self._tell(self._listener.on_revoked, partitions)
        finally:
            self._take_away(partitions)
            if self.membership is not None:
                self.membership.revoked(self._network.now())
            self._network.wake()

    async def _assigned(self, added: Sequence[TopicPartition], partitions: Sequence[TopicPartition]) -> None:
        self._network.metrics.counter("consumer.rebalances").add()
        self._positions.assign(map(_key, partitions), committed=True)
        if added:
            await self._tell(self._listener.on_assigned, added)
        self._look_up_committed()
        self._network.wake()

    def _take_away(self, partitions: Iterable[Key]) -> None:
        gone = set(partitions)
        self._positions.assign([key for key in self._positions.partitions if key not in gone], committed=True)
        for key in gone:
            self._committed.pop(key, None)

    async def _tell(self, function: OnPartitions | None, partitions: Sequence[TopicPartition]) -> None:
        if function is not None and partitions:
            result = self._call(function, [_key(p) for p in partitions])
            if inspect.isawaitable(result):
                await result

    async def _until_processed(self, states: list[PartitionState]) -> None:
        """Wait for the application to ask for more than it has of these partitions, or to be late for the group."""
        limit = self._network.now() + self._settings.max_poll_interval_ms
        while any(s.processed != s.position for s in states) and self._network.now() < limit:
            if self._parts.closing or not self._events.empty():  # or lost meanwhile
                return
            await asyncio.sleep(0.01)

    async def _watch_reads(self) -> None:
        """Pass on that the application reads, or waits for records."""
        while True:
            if self._reads is not None and self._reads.news:
                self._network.wake()
            await asyncio.sleep(min(_LOOK_MS, self._settings.max_poll_interval_ms / 4) / 1000)

    # Committed positions

    def _look_up_committed(self) -> None:
        waiting = [key for key, state in self._positions.partitions.items() if state.awaits_committed]
        if waiting:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks.append(asyncio.create_task(self._set_committed(waiting)))

    async def _set_committed(self, keys: list[Key]) -> None:
        while True:
            keys = [key for key in keys if key in self._positions.partitions]
            try:
                found = await self.committed(keys)
                break
            except KafkaCodecError as problem:
                self._parts.fail(problem)
            await asyncio.sleep(self._settings.retry_backoff_max_ms / 1000)
        for key, offset in found.items():
            self._positions.set_committed(key, None if offset is None else Position(offset.offset, offset.leader_epoch))
        self._network.wake()

    async def committed(self, keys: Iterable[Key]) -> dict[Key, CommittedOffset | None]:
        """The group's committed offsets."""
        places = [TopicPartition(*key) for key in keys]
        call = OffsetFetch(
            self._network.cluster,
            places,
            lambda: GroupMetadata(self._group_id),
            deadline=self._network.now() + self._settings.default_api_timeout_ms,
            request_timeout_ms=self._settings.request_timeout_ms,
            backoff=self._network.retry_backoff(),
            require_stable=self._settings.isolation_level == "read_committed",
        )
        await self._parts.finish(call)
        for problem in call.errors.values():
            raise problem
        return {_key(place): call.offsets.get(place) for place in places}

    async def commit(self, offsets: Mapping[Key, CommittedOffset]) -> None:
        """Commit offsets. Raises the error of the first partition that was refused."""
        call = OffsetCommit(
            self._network.cluster,
            {TopicPartition(*key): offset for key, offset in offsets.items()},
            self._member,
            deadline=self._network.now() + self._settings.default_api_timeout_ms,
            request_timeout_ms=self._settings.request_timeout_ms,
            backoff=self._network.retry_backoff(),
            topic_ids=self._positions.topic_ids(),
        )
        await self._parts.finish(call)
        for place, problem in call.errors.items():
            raise type(problem)(f"{place.topic}-{place.partition}: {problem}")
        self._network.metrics.counter("consumer.commits").add()
        for key, offset in offsets.items():
            self._committed[key] = Position(offset.offset, offset.leader_epoch)

    def commit_soon(self, offsets: Mapping[Key, CommittedOffset]) -> None:
        """Commit offsets without waiting; failures are logged."""
        task = asyncio.create_task(self._commit_or_log(offsets))
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)

    def _member(self) -> GroupMetadata | None:
        return GroupMetadata(self._group_id) if self.membership is None else self.membership.metadata

    # Automatic commits

    async def _commit_at_times(self) -> None:
        while True:
            await asyncio.sleep(self._settings.auto_commit_interval_ms / 1000)
            await self._auto_commit(self._positions.partitions.values())

    async def _auto_commit(self, states: Iterable[PartitionState]) -> None:
        """Commit what is processed, if that is wanted; failures are logged, and tried again with the next commit."""
        if not self._settings.enable_auto_commit:
            return
        self._parts.reader.update_position()
        offsets = {
            state.key: CommittedOffset(*state.processed)
            for state in states
            if state.processed is not None
            and self._committed.get(state.key) != state.processed
            and self._same_topic(state)
        }
        if offsets and self._member() is not None:
            await self._commit_or_log(offsets)

    def _same_topic(self, state: PartitionState) -> bool:
        """Whether the topic that was read still exists: brokers before Kafka 4.1 take an offset for a newer one too."""
        known = self._network.cluster.topics.get(state.topic)
        return known is None or (known.error is None and state.topic_id in (None, known.topic_id))

    async def _commit_or_log(self, offsets: Mapping[Key, CommittedOffset]) -> None:
        try:
            await self.commit(offsets)
        except ClientClosed:
            return
        except KafkaCodecError as problem:
            _log.warning("offsets of group %r were not committed: %s", self._group_id, problem)


def _key(place: TopicPartition) -> Key:
    return place.topic, place.partition


def _call(function: OnPartitions, partitions: list[Key]) -> Any:
    return function(partitions)
