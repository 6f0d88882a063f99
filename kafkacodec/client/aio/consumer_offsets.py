"""Positions and commits of a consumer for asyncio."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.arguments import meant
from kafkacodec.client.aio.consumer_base import ConsumerBase
from kafkacodec.client.aio.consumer_parts import ConsumerParts
from kafkacodec.client.checks import by_partition, check_topic, offset_number, partition_keys, seconds, time_number
from kafkacodec.client.consuming.offset_lookup import FoundOffset
from kafkacodec.client.consuming.positions import Key, Position
from kafkacodec.client.consuming.reset_policy import EARLIEST, LATEST
from kafkacodec.client.core.missing import UNKNOWN_MS, all_topics, names_in
from kafkacodec.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, KafkaCodecError, LocalProtocolError, error
from kafkacodec.lazy import imported_later

if TYPE_CHECKING:
    from kafkacodec.client.aio.consumer_group import ConsumerGroup
    from kafkacodec.client.groups import offsets as group_offsets
    from kafkacodec.client.groups.membership import GroupMetadata
    from kafkacodec.client.groups.offsets import CommittedOffset
    from kafkacodec.moments import Moment
else:  # loaded with a consumer's group
    group_offsets = imported_later("kafkacodec.client.groups.offsets")

__all__ = ["ConsumerOffsets"]

_SUGGESTION_MS: Final = 2000.0


class ConsumerOffsets(ConsumerBase):
    """Positions, offsets of partitions, and commits."""

    async def seek(self, topic: str, partition: int, offset: int) -> None:
        """Continue at an offset. Raises LocalProtocolError if the partition is not assigned."""
        parts = self._started()
        (key,) = partition_keys([(topic, partition)])
        parts.reader.update_position()
        parts.positions.seek(key, Position(offset_number(offset)))
        parts.network.wake()

    async def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Continue at the first offsets of these partitions, or of all assigned ones."""
        self._look_up(partitions, EARLIEST)

    async def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Continue at the ends of these partitions, or of all assigned ones."""
        self._look_up(partitions, LATEST)

    async def seek_to_timestamp(self, timestamp: Moment, *partitions: tuple[str, int]) -> None:
        """Continue at the first records that are not older than `timestamp`, or at the end.

        A time is ms since 1970, a datetime (UTC without a time zone), a date, or text such as ``"-1h"``.
        """
        self._look_up(partitions, time_number(timestamp))

    def _look_up(self, partitions: Iterable[tuple[str, int]], timestamp: int) -> None:
        parts = self._started()
        states = [parts.positions.state(key) for key in partition_keys(partitions) or self.assignment()]
        for state in states:
            parts.positions.look_up(state, timestamp)
        parts.network.wake()

    async def position(self, topic: str, partition: int, *, timeout: float | None = None) -> int:
        """Return the offset of the next record; look it up first if needed.

        Args:
            topic, partition: an assigned partition.
            timeout: the limit in seconds; None: ``default_api_timeout_ms``.

        Raises:
            LocalProtocolError: the partition is not assigned. Others as `beginning_offsets`.
        """
        limit_ms, parts = self._limit_ms(timeout), self._started()
        (key,) = partition_keys([(topic, partition)])
        state = parts.positions.state(key)
        parts.reader.update_position()
        if state.awaits_committed and self._group is not None:
            self._group.look_up(
                [key]
            )  # a new partition's position is looked up after `on_assigned`, which may ask here

        def problem() -> Exception:
            cause = parts.network.cluster.last_error or parts.missing(key)
            return cause or LocalProtocolError(f"no position of {topic}-{partition}")

        absent = _Absent(parts)

        def known() -> bool:
            missing = parts.missing(key)
            absent.check(missing if isinstance(missing, error(UNKNOWN_TOPIC_OR_PARTITION)) else None)
            return state.position is not None or state.failing

        try:
            await parts.until(known, limit_ms, problem)
        except error(UNKNOWN_TOPIC_OR_PARTITION) as missing:
            raise await self._suggesting(parts, missing, [topic]) from None
        if state.position is None:
            raise parts.positions.failure(state) or problem()
        return state.position.offset

    async def pause(self, *partitions: tuple[str, int]) -> None:
        """Get no records of these partitions until `resume`. They stay assigned."""
        parts = self._started()
        states = [parts.positions.state(key) for key in partition_keys(partitions)]
        parts.reader.update_position()
        for state in states:
            parts.positions.pause(state.key)

    async def resume(self, *partitions: tuple[str, int]) -> None:
        """End `pause`."""
        parts = self._started()
        for state in [parts.positions.state(key) for key in partition_keys(partitions)]:
            parts.positions.resume(state.key)
        parts.network.wake()

    def paused(self) -> list[Key]:
        """The assigned partitions that are paused."""
        return (
            []
            if self._parts is None
            else [key for key, state in self._parts.positions.partitions.items() if state.paused]
        )

    # Partitions, assigned or not

    async def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[int]:
        """The partitions of a topic, as brokers know them now, for `assign`.

        Args:
            topic: its name. It is not created.
            timeout: the limit in seconds; None: ``default_api_timeout_ms``.

        Raises:
            UnknownTopicOrPartitionError: brokers have said for five seconds that there is no such topic.
            DeadlineExceeded: they are not known in time; its cause is why.
            BrokerError: the topic cannot be read.
        """
        limit_ms, parts = self._limit_ms(timeout), self._started()
        cluster = parts.network.cluster
        before, answers = cluster.topics.get(check_topic(topic)), cluster.next_answer
        cluster.want({topic}, create=False, keep=False)
        parts.network.wake()
        absent = _Absent(parts)

        def known() -> bool:
            absent.check(parts.missing_topic(topic))
            found = cluster.topics.get(topic)
            if found is before or cluster.answers < answers:  # from before this call: it may have been deleted since
                if cluster.ask(topic):  # at first, and again if the answer to an older request came meanwhile
                    parts.network.wake()
                return False
            if found is not None and found.refusal is not None:
                raise found.refusal(f"topic {topic!r}: {found.refusal.name}")
            return found is not None and found.error is None and bool(found.partitions)

        def problem() -> Exception:
            found = cluster.topics.get(topic)
            refusal = found.error(f"topic {topic!r}: {found.error.name}") if found and found.error else None
            unknown = LocalProtocolError(f"the cluster does not have topic {topic!r}")
            return cluster.last_error or parts.missing_topic(topic) or refusal or unknown

        try:
            await parts.until(known, limit_ms, problem)
        except error(UNKNOWN_TOPIC_OR_PARTITION) as missing:
            self._forget_unused(parts)
            raise await self._suggesting(parts, missing, [topic]) from None
        return sorted(cluster.topics[topic].partitions)

    async def _suggesting(self, parts: ConsumerParts, missing: BrokerError, topics: Iterable[str]) -> BrokerError:
        """The error about a topic that does not exist, with the most similar name."""
        with suppress(KafkaCodecError):
            names = names_in(await parts.network.call(all_topics, timeout_ms=_SUGGESTION_MS))
            for topic in topics:
                if topic not in names and (similar := meant(topic, names)):
                    return type(missing)(f"{missing}; {similar}")
        return missing

    async def topic_id(self, topic: str, *, timeout: float | None = None) -> uuid.UUID | None:
        """Return the id of a topic, which differs from the id of a later topic with its name.

        None before Kafka 2.8. It has the arguments and errors of `partitions_for`.
        """
        await self.partitions_for(topic, timeout=timeout)
        return self._started().network.cluster.topic_id(topic)

    async def beginning_offsets(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[Key, int]:
        """The first offset of each partition.

        Args:
            partitions: a list of (topic, number).
            timeout: the limit in seconds; None: ``default_api_timeout_ms``.

        Raises:
            UnknownTopicOrPartitionError: brokers have said for five seconds that there is no such partition.
            DeadlineExceeded: not known in time, such as of a partition without a leader; its cause is why.
            BrokerError: a partition cannot be read.
        """
        return await self._ends(partitions, EARLIEST, timeout)

    async def end_offsets(
        self, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> dict[Key, int]:
        """The offset after the last record of each partition; after the last stable one for ``read_committed``.

        It has the arguments and errors of `beginning_offsets`.
        """
        return await self._ends(partitions, LATEST, timeout)

    async def offsets_for_times(
        self, timestamps: Mapping[tuple[str, int], Moment], *, timeout: float | None = None
    ) -> dict[Key, FoundOffset | None]:
        """Return the first record at or after a time in each partition; None if there is none.

        Args:
            timestamps: times by (topic, number), as for `seek_to_timestamp`.
            timeout: the limit in seconds; None: ``default_api_timeout_ms``.

        Raises:
            UnsupportedVersion: the broker is older than 0.10.1. Others as `beginning_offsets`.
        """
        wanted = by_partition("timestamps", timestamps)
        return await self._found({key: time_number(time) for key, time in wanted.items()}, timeout)

    async def _ends(
        self, partitions: Iterable[tuple[str, int]], timestamp: int, timeout: float | None
    ) -> dict[Key, int]:
        found = await self._found(dict.fromkeys(partition_keys(partitions), timestamp), timeout)
        return {key: 0 if offset is None else offset.offset for key, offset in found.items()}

    async def _found(self, wanted: dict[Key, int], timeout: float | None) -> dict[Key, FoundOffset | None]:
        limit_ms, parts = self._limit_ms(timeout), self._started()
        query = parts.lookup.ask(wanted)
        parts.network.wake()

        def problem() -> Exception:
            missing = ", ".join(f"{topic}-{number}" for topic, number in sorted(query.left)[:3])
            cause = query.last_error or parts.network.cluster.last_error
            return cause or LocalProtocolError(f"the cluster does not have {missing}")

        try:
            await parts.until(lambda: query.done, limit_ms, problem)
        finally:
            parts.lookup.cancel(query)
            self._forget_unused(parts)
        if isinstance(query.error, error(UNKNOWN_TOPIC_OR_PARTITION)):
            raise await self._suggesting(parts, query.error, [topic for topic, _ in wanted]) from None
        if query.error is not None:
            raise query.error
        return {key: query.found[key] for key in wanted}

    def lag(self) -> dict[Key, int]:
        """Return the offsets between position and end of each assigned partition with a known end.

        Fetches report the ends. For partitions without a fetch, because they are paused or have records to read, the
        consumer asks after this call, at most once a second: the next call has their ends.
        """
        return {} if self._parts is None else self._parts.lags()

    # Committing

    async def commit(self, offsets: Mapping[tuple[str, int], Any] | None = None, *, wait: bool = True) -> None:
        """Commit the positions of all assigned partitions, or the given offsets.

        Args:
            offsets: by (topic, number): the offset of the next record to process, or a pair of it and a text.
            wait: for the coordinator's answer. Otherwise the consumer logs failures, `close` waits for the answer, and
                of several calls at nearly the same time only the newest offsets are sent.

        Raises:
            LocalProtocolError: the consumer has no group id.
            BrokerError: the coordinator refused; RebalanceInProgressError, IllegalGenerationError and
                UnknownMemberIdError mean that partitions may have another owner now: the last records come again.
            DeadlineExceeded: not within ``default_api_timeout_ms``.
        """
        parts = self._started()
        group, found, _ = self._to_commit(parts, offsets)
        if wait:
            await group.offsets.commit(found)
        else:
            group.offsets.commit_soon(found)

    async def committed(self, topic: str, partition: int) -> int | None:
        """The group's committed offset of a partition; None without one."""
        (key,) = partition_keys([(topic, partition)])
        found = (await self.committed_offsets([key]))[key]
        return None if found is None else found.offset

    async def committed_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[Key, CommittedOffset | None]:
        """The group's committed offsets with leader epochs and metadata; None without one."""
        self._started()
        return await self._require_group("committed_offsets").offsets.committed(partition_keys(partitions))

    def group_metadata(self) -> GroupMetadata:
        """Return the metadata for a transactional producer that commits this consumer's offsets."""
        return self._require_group("group_metadata").metadata()

    # Internal

    def _limit_ms(self, timeout: float | None) -> float:
        """How long a call may take: `timeout` seconds, or what the settings say."""
        limit = seconds("timeout", timeout)
        return self._settings.default_api_timeout_ms if limit is None else limit * 1000

    def _to_commit(
        self, parts: ConsumerParts, offsets: Mapping[tuple[str, int], Any] | None
    ) -> tuple[ConsumerGroup, dict[Key, CommittedOffset], dict[Key, int] | None]:
        """Return the group, the offsets to commit, and the versions of partitions for positions. For any thread."""
        group = self._require_group("commit")
        if parts.refusal is not None:  # the group's: there is nothing to commit as, and never will be
            raise parts.refusal.with_traceback(None)
        parts.reader.update_position()
        versions: dict[Key, int] | None = None
        if offsets is None:
            group.losses.check()
            states = list(parts.positions.partitions.values())
            versions = {s.key: s.version for s in states}
            made, positions = group_offsets.CommittedOffset, {s.key: s.position for s in states}
            found = {key: made(*position) for key, position in positions.items() if position is not None}
        else:
            found = {key: _committed_offset(value) for key, value in by_partition("offsets", offsets).items()}
        for key, offset in found.items():
            parts.positions.processed(key, offset.offset)
        return group, found, versions

    def _require_group(self, method: str) -> ConsumerGroup:
        if self._group is None and self._settings.group_id is not None:
            raise LocalProtocolError(f"{method} needs a member of the group: enter `async with`, or read, first")
        if self._group is None:
            raise LocalProtocolError(f"{method} needs a group: give the consumer a group_id")
        return self._group


class _Absent:
    """Raises an error about what does not exist, once it has been so for `UNKNOWN_MS` while a call waits."""

    def __init__(self, parts: ConsumerParts) -> None:
        self._now = parts.network.now
        self._since: float | None = None

    def check(self, missing: BrokerError | None) -> None:
        if missing is None:
            self._since = None
        elif self._since is None:
            self._since = self._now()
        elif self._now() - self._since >= UNKNOWN_MS:
            raise missing


def _committed_offset(value: Any) -> CommittedOffset:
    """An offset, or a pair of offset and metadata, or a CommittedOffset."""
    if isinstance(value, group_offsets.CommittedOffset):
        return value
    offset, metadata = value if isinstance(value, tuple) and len(value) == 2 else (value, "")
    if not isinstance(metadata, str):
        raise TypeError(f"the metadata of a committed offset must be text, not {type(metadata).__name__}")
    return group_offsets.CommittedOffset(offset_number(offset), -1, metadata)
