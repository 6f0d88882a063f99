"""The offsets of a consumer's group: look-ups, commits by the application and at intervals."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.aio.consumer_parts import ConsumerParts
from kafkacodec.client.consuming.positions import Key, PartitionState, Position
from kafkacodec.client.core.calls import Place
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.client.groups.offsets import CommittedOffset, Member, OffsetCommit, OffsetFetch
from kafkacodec.errors import REBALANCE_IN_PROGRESS, ClientClosed, KafkaCodecError, error

__all__ = ["GroupOffsets"]

_log = logging.getLogger("kafkacodec.client")


class GroupOffsets:
    """Commits and look-ups for one group.

    A repeated commit, for example after its coordinator moved, must not undo later ones: it leaves out partitions in a
    later commit, and partitions that this member no longer owns.

    Args:
        parts: the consumer's.
        group_id: the group.
        member: returns the identity for commits.
        place: the destination of commits, if it is not the coordinator's.

    Attributes:
        known: the newest committed position of each partition.
    """

    def __init__(self, parts: ConsumerParts, group_id: str, member: Member, place: Callable[[], Place | None]) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._network = parts.network
        self._positions = parts.positions
        self._group_id = group_id
        self._member, self._place = member, place
        self.known: dict[Key, Position] = {}
        self._calls: set[OffsetCommit] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._later: deque[tuple[dict[Key, CommittedOffset], dict[Key, int] | None]] = deque()
        self._told = False  # whether `_commit_later` will look at them

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
        return {(place.topic, place.partition): call.offsets.get(place) for place in places}

    async def commit(self, offsets: Mapping[Key, CommittedOffset]) -> None:
        """Commit offsets. Raises the error of the first partition that was refused."""
        await self._finish(self._begin(offsets), offsets)

    def commit_soon(self, offsets: Mapping[Key, CommittedOffset]) -> None:
        """Commit offsets without waiting; failures are logged."""
        task = self._network.start(self._finish_or_log(self._begin(offsets), offsets))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def commit_later(
        self, offsets: dict[Key, CommittedOffset], versions: dict[Key, int] | None, soon: Callable[..., object]
    ) -> None:
        """As `commit_soon`, from another thread. Of several calls at nearly the same time, it commits the newest.

        Args:
            offsets: must not change any more.
            versions: of the partitions, if the offsets are their positions: it leaves out a partition with another
                version by now.
            soon: calls a function in the loop's thread.
        """
        self._later.append((offsets, versions))
        if not self._told:
            self._told = True
            soon(self._commit_later)

    def _commit_later(self) -> None:
        self._told = False  # first, since others may come now
        found: dict[Key, CommittedOffset] = {}
        while self._later:
            offsets, versions = self._later.popleft()
            found.update(offsets if versions is None else {k: o for k, o in offsets.items() if self._is(k, versions)})
        if found:
            self.commit_soon(found)

    def _is(self, key: Key, versions: Mapping[Key, int]) -> bool:
        state = self._positions.partitions.get(key)
        return state is not None and state.version == versions[key]

    async def auto_commit(self, states: Iterable[PartitionState]) -> None:
        """Commit processed records, if enabled; log failures, and retry them with the next commit."""
        if not self._settings.enable_auto_commit:
            return
        self._parts.reader.update_position()
        offsets = {
            state.key: CommittedOffset(*state.processed)
            for state in states
            if state.processed is not None and self.known.get(state.key) != state.processed and self._same_topic(state)
        }
        if offsets and self._member() is not None:
            await self._finish_or_log(self._begin(offsets), offsets)

    async def commit_at_times(self) -> None:
        """Commit processed records every ``auto_commit_interval_ms``."""
        while True:
            await asyncio.sleep(self._settings.auto_commit_interval_ms / 1000)
            await self.auto_commit(self._positions.partitions.values())

    def taken_away(self, keys: Iterable[Key]) -> None:
        """Forget the committed offsets of partitions that others may have, and drop waiting commits for them."""
        gone = {TopicPartition(*key) for key in keys}
        for call in self._calls:
            call.leave_out(
                gone, error(REBALANCE_IN_PROGRESS)("the partition was given up before its offset was committed")
            )
        for offsets, _ in tuple(self._later):
            for key in gone & offsets.keys():
                del offsets[key]
        for key in gone:
            self.known.pop(key, None)

    async def settle(self, timeout_ms: float) -> None:
        """Wait for commits without a waiter."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_ms / 1000)

    async def close(self) -> None:
        """End them."""
        for task in self._tasks:
            task.cancel()
            _log.warning("offsets of group %r were not committed: the consumer was closed", self._group_id)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, offsets: Mapping[Key, CommittedOffset]) -> OffsetCommit:
        places = {TopicPartition(*key): offset for key, offset in offsets.items()}
        for earlier in self._calls:
            earlier.leave_out(places)
        call = OffsetCommit(
            self._network.cluster,
            places,
            self._member,
            deadline=self._network.now() + self._settings.default_api_timeout_ms,
            request_timeout_ms=self._settings.request_timeout_ms,
            backoff=self._network.retry_backoff(),
            topic_ids=self._positions.topic_ids(),
            place=self._place,
        )
        self._calls.add(call)
        return call

    async def _finish(self, call: OffsetCommit, offsets: Mapping[Key, CommittedOffset]) -> None:
        try:
            await self._parts.finish(call)
        finally:
            self._calls.discard(call)
        for place, problem in call.errors.items():
            raise type(problem)(f"{place.topic}-{place.partition}: {problem}")
        self._network.metrics.counter("consumer.commits").add()
        for key in offsets.keys() - call.left_out.keys():
            self.known[key] = Position(offsets[key].offset, offsets[key].leader_epoch)

    async def _finish_or_log(self, call: OffsetCommit, offsets: Mapping[Key, CommittedOffset]) -> None:
        try:
            await self._finish(call, offsets)
        except ClientClosed:
            return
        except KafkaCodecError as problem:
            _log.warning("offsets of group %r were not committed: %s", self._group_id, problem)

    def _same_topic(self, state: PartitionState) -> bool:
        """Whether the topic of the position still exists: brokers before Kafka 4.1 accept an offset for a newer one
        too.
        """
        known = self._network.cluster.topics.get(state.topic)
        return known is None or (known.error is None and state.topic_id in (None, known.topic_id))
