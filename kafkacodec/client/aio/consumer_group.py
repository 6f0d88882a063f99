"""A consumer in its group: its subscription, and its partitions in rebalances."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.aio.assignor_names import assignors_of
from kafkacodec.client.aio.called import Called
from kafkacodec.client.aio.consumer_parts import ConsumerParts
from kafkacodec.client.aio.group_offsets import GroupOffsets
from kafkacodec.client.aio.losses import Losses, listed
from kafkacodec.client.aio.reads import Reads
from kafkacodec.client.consuming.positions import Key, PartitionState, Position
from kafkacodec.client.consuming.subscription import Listener, OnPartitions
from kafkacodec.client.core.calls import Place
from kafkacodec.client.groups.classic import ClassicMembership
from kafkacodec.client.groups.membership import (
    Assigned,
    Broken,
    Event,
    Failed,
    GroupMetadata,
    GroupSettings,
    Left,
    Lost,
    Membership,
    Revoke,
)
from kafkacodec.client.groups.modern import NOT_OFFERED, ModernMembership
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.errors import (
    INCONSISTENT_GROUP_PROTOCOL,
    UNKNOWN_MEMBER_ID,
    UNSUPPORTED_VERSION,
    BrokerError,
    KafkaCodecError,
    UnsupportedVersion,
    error,
)

__all__ = ["ConsumerGroup"]

_LOOK_MS: Final = 500.0  # how late a member that left may notice that the application reads again
_log = logging.getLogger("kafkacodec.client")


class ConsumerGroup:
    """The group of a consumer that has a group id.

    Args:
        parts: the consumer's.
        call: calls a function of the application with partitions.

    Attributes:
        membership: None while partitions are assigned by hand.
        offsets: commits and look-ups.
        losses: positions lost before their commit.
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
        self._called: Called | None = None
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._left = asyncio.Event()
        self._handling: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._reads: Reads | None = None
        self._new_losses = 0  # events that are not handled yet
        self.offsets = GroupOffsets(parts, self._group_id, self._member, self._place)
        self.losses = Losses(self._group_id, parts.reader, self.offsets.known)

    # Membership

    @property
    def listens(self) -> bool:
        """Whether the application has functions for changes."""
        return self._listener != Listener()

    def subscribe(self, subscription: Subscription, listener: Listener) -> None:
        """Join the group, or change the subscription."""
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
        self._look_up_all()

    def metadata(self) -> GroupMetadata:
        """Return the identity for commits. Raises UnknownMemberIdError while this is not a member."""
        found = self._member()
        if found is None:
            raise error(UNKNOWN_MEMBER_ID)("the consumer is not a member of its group: a rebalance is under way")
        return found

    async def unsubscribe(self) -> None:
        """Commit all returned records, give up the partitions and leave the group."""
        self._all_processed()
        await self._leave()

    async def close(self, *, processed: bool, timeout: float | None) -> None:
        """Commit processed records, and leave, within a number of seconds. With `processed`, all returned records
        count.
        """
        if processed:
            self._all_processed()
        await self._leave(timeout)

    def stop_calling(self) -> None:
        """The application is gone: call none of its functions, and wait for none."""
        self._listener = Listener()
        if self._called is not None:
            self._called.leave()

    async def end(self) -> None:
        """End the tasks."""
        for task in self._tasks:
            task.cancel()
        try:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            await self.offsets.close()

    @property
    def is_calling(self) -> bool:
        """Whether the running code is part of a function of the application that the group waits for."""
        return Called.here(self) is not None

    def _all_processed(self) -> None:
        for state in self._positions.partitions.values():
            self._positions.pause(state.key)
            state.processed = state.position

    async def _leave(self, timeout: float | None = None) -> None:
        membership = self.membership
        timeout_ms = self._settings.request_timeout_ms if timeout is None else timeout * 1000
        if (called := Called.here(self)) is not None:
            called.leave()  # it waits for the next steps
        if membership is not None:
            self._start()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.offsets.settle(timeout_ms / 2)  # nothing is committed under a membership that is over
                if membership is None:
                    await self.offsets.auto_commit(self._positions.partitions.values())
                else:
                    membership.leave(self._network.now())
                    self._network.wake()
                    await self._left.wait()
        except TimeoutError:
            _log.warning("leaving group %r got no answer in time", self._group_id)
        if membership is not None and self._reads is not None:
            self._network.remove(membership)
            self._network.remove(self._reads)
            self.membership = self._reads = self._parts.refusal = None

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
        """Start the tasks, again if the end of the program has cancelled them."""
        if self._handling is not None and not self._handling.done() and not self._handling.cancelling():
            return
        self._handling = self._network.start(self._handle_events())
        work = [self._watch_reads()]
        if self._settings.enable_auto_commit:
            work.append(self.offsets.commit_at_times())
        self._tasks += [self._handling, *map(self._network.start, work)]

    # Events

    def _changed(self) -> None:
        assert self.membership is not None
        for event in self.membership.take_events():
            if isinstance(event, Lost):
                self._new_losses += 1
                self.losses.note(self._states(event.partitions))
                self.offsets.taken_away(event.partitions)
            self._events.put_nowait(event)

    async def _handle_events(self) -> None:
        while True:
            event = await self._events.get()
            try:
                await self._handle(event)
            except Exception as problem:
                self._parts.fail(problem)
            except (SystemExit, KeyboardInterrupt) as problem:  # it ends the loop, but not this task
                self._network.loop.call_soon(_raise, problem)

    async def _handle(self, event: Event) -> None:
        match event:
            case Revoke(partitions):
                await self._revoke(partitions)
            case Lost(partitions):
                self._new_losses -= 1
                self._log_assignment("lost", partitions)
                left = [p for p in partitions if p in self._positions.partitions]  # others were just revoked
                self._take_away(left)
                await self._tell(self._listener.on_lost or self._listener.on_revoked, left)
            case Assigned(added, partitions):
                await self._assigned(added, partitions)
            case Failed(problem):
                self._parts.end(self._explained(problem))
            case Broken(problem):
                self._parts.fail(problem)
            case Left():
                self._take_away(list(self._positions.partitions))
                self._left.set()

    def _explained(self, problem: Exception) -> Exception:
        if self._settings.group_protocol == "consumer" and getattr(problem, "code", None) == UNSUPPORTED_VERSION:
            return UnsupportedVersion(f"{NOT_OFFERED}: {problem}")
        if isinstance(problem, BrokerError) and problem.code == INCONSISTENT_GROUP_PROTOCOL:
            return type(problem)(
                f"{problem}: its members lack the assignors of partition_assignment_strategy, or use another protocol; "
                "a member that is gone counts until its session ends or Admin.remove_members removes it"
            )
        return problem

    async def _revoke(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop reading, wait until the application has processed its records, commit, give up.

        A waiting `Lost` handles partitions lost meanwhile; the membership may have changed by then.
        """
        membership, lost = self.membership, False
        self._log_assignment("gives up", partitions)
        try:
            states = self._states(partitions)
            for state in states:
                self._positions.pause(state.key)
            await self._until_processed(states)
            await self.offsets.auto_commit(states)
            lost = bool(self._new_losses)
            if not lost:
                await self._tell(self._listener.on_revoked, partitions)
        finally:
            if not lost:
                self.losses.note(state for state in self._states(partitions) if state.processed != state.position)
                self._take_away(partitions)
            if membership is not None and not self._new_losses:
                membership.revoked(self._network.now())
            self._network.wake()

    async def _assigned(self, added: Sequence[TopicPartition], partitions: Sequence[TopicPartition]) -> None:
        self._network.metrics.counter("consumer.rebalances").add()
        self._log_assignment("assigned", partitions)
        self._positions.assign(map(_key, partitions), committed=True)
        try:
            await self._tell(self._listener.on_assigned, added)
        finally:
            self._look_up_all()
            self._network.wake()

    def _take_away(self, partitions: Iterable[Key]) -> None:
        gone = set(partitions)
        self._positions.assign([key for key in self._positions.partitions if key not in gone], committed=True)
        self.offsets.taken_away(gone)

    def _states(self, partitions: Iterable[Key]) -> list[PartitionState]:
        return [self._positions.partitions[p] for p in partitions if p in self._positions.partitions]

    def _log_assignment(self, change: str, partitions: Sequence[TopicPartition]) -> None:
        if _log.isEnabledFor(logging.INFO):
            _log.info("group %r: %s %s", self._group_id, change, listed(partitions))

    async def _tell(self, function: OnPartitions | None, partitions: Sequence[TopicPartition]) -> None:
        if function is not None and partitions:
            self._called = Called(function, self)
            await self._called.over(self._call, [_key(p) for p in partitions])

    async def _until_processed(self, states: list[PartitionState]) -> None:
        """Wait for the application to ask for more than it has of these partitions, or to be late for the group."""
        limit = self._network.now() + self._settings.max_poll_interval_ms
        while any(s.processed != s.position for s in states) and self._network.now() < limit:
            if self._parts.closing or not self._events.empty():  # or lost meanwhile
                return
            await asyncio.sleep(0.01)

    async def _watch_reads(self) -> None:
        """Tell the membership that the application reads, or waits for records."""
        while True:
            if self._reads is not None and self._reads.news:
                self._network.wake()
            await asyncio.sleep(min(_LOOK_MS, self._settings.max_poll_interval_ms / 4) / 1000)

    # Committed positions

    def look_up(self, keys: list[Key]) -> None:
        """Let these partitions start at their committed positions."""
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(self._network.start(self._set_committed(keys)))

    def _look_up_all(self) -> None:
        waiting = [key for key, state in self._positions.partitions.items() if state.awaits_committed]
        if waiting:
            self.look_up(waiting)

    async def _set_committed(self, keys: list[Key]) -> None:
        while True:
            keys = [key for key in keys if key in self._positions.partitions]
            try:
                found = await self.offsets.committed(keys)
                break
            except KafkaCodecError as problem:
                self._parts.fail(problem)
            await asyncio.sleep(self._settings.retry_backoff_max_ms / 1000)
        for key, offset in found.items():
            position = None if offset is None else Position(offset.offset, offset.leader_epoch)
            if position is not None:
                self.offsets.known[key] = position
            self._positions.set_committed(key, position)
        self._network.wake()

    def _place(self) -> Place | None:
        return None if self.membership is None else self.membership.place

    def _member(self) -> GroupMetadata | None:
        if self._new_losses:  # the positions have not changed yet
            return None
        return GroupMetadata(self._group_id) if self.membership is None else self.membership.metadata


def _key(place: TopicPartition) -> Key:
    return place.topic, place.partition


def _raise(problem: BaseException) -> None:
    raise problem


def _call(function: OnPartitions, partitions: list[Key]) -> Any:
    return function(partitions)
