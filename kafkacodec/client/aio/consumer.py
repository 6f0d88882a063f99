"""The consumer for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Self, Unpack

from kafkacodec.client.aio.assignor_names import assignors_of
from kafkacodec.client.aio.consumer_group import ConsumerGroup, Listener, OnPartitions
from kafkacodec.client.aio.consumer_parts import ConsumerParts, Soon
from kafkacodec.client.consuming.offset_lookup import FoundOffset
from kafkacodec.client.consuming.positions import Key, Position
from kafkacodec.client.consuming.record import ConsumedColumns, ConsumerRecord
from kafkacodec.client.consuming.reset_policy import EARLIEST, LATEST
from kafkacodec.client.consuming.settings import ConsumerOptions, ConsumerSettings
from kafkacodec.client.consuming.subscription import AllPartitions, name_test
from kafkacodec.client.faces import offset_number, partition_keys, row_limit, seconds, topic_names
from kafkacodec.client.groups.membership import GroupMetadata, Subscription
from kafkacodec.client.groups.offsets import CommittedOffset
from kafkacodec.client.options import options_from_config
from kafkacodec.errors import LocalProtocolError
from kafkacodec.records.signatures import shows_options

__all__ = ["Consumer"]


def _at_once(function: Callable[..., object], /, *arguments: Any) -> None:
    function(*arguments)


class Consumer:
    """`kafkacodec.client.Consumer` with coroutines. It is made and used in one event loop.

    An async context manager and an async iterator over records. Callbacks of `subscribe` and nothing else may be
    coroutine functions. The arguments, results and errors of all methods are those of the blocking consumer.
    """

    @shows_options(ConsumerOptions, ConsumerSettings)
    def __init__(
        self, *topics: str, bootstrap_servers: str | Iterable[str], **options: Unpack[ConsumerOptions]
    ) -> None:
        self._open(ConsumerSettings(bootstrap_servers=bootstrap_servers, **options))
        self._subscribe_first(topics)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *topics: str) -> Self:
        """A consumer with the dotted option names of Java and librdkafka, such as ``bootstrap.servers``."""
        return cls(*topics, **options_from_config(config, consumer_defaults()))

    @classmethod
    def _for_threads(
        cls, settings: ConsumerSettings, topics: Iterable[str], soon: Soon, ready: Callable[[], None], call: Any
    ) -> Self:
        """The consumer inside a blocking one, whose thread does the reading and runs the callbacks."""
        made = cls.__new__(cls)
        made._open(settings, soon, ready, call)
        made._subscribe_first(topics)
        return made

    def _open(
        self,
        settings: ConsumerSettings,
        soon: Soon = _at_once,
        ready: Callable[[], None] | None = None,
        call: Any = None,
    ) -> None:
        self._settings = settings
        self._event = asyncio.Event()
        self._parts = ConsumerParts(settings, soon, ready or self._event.set)
        self._network = self._parts.network
        self._positions = self._parts.positions
        self._group: ConsumerGroup | None = None
        if settings.group_id is not None:
            assignors_of(settings.partition_assignment_strategy)
            self._group = ConsumerGroup(self._parts, call)
        self._topics: Subscription | None = None
        self._followed: AllPartitions | None = None
        self._records: Iterator[ConsumerRecord] = iter(())

    def _subscribe_first(self, topics: Iterable[str]) -> None:
        if topics:
            self._subscribe(Subscription(topic_names(topics)), Listener())

    # What is read

    async def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: Any = None,
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Read these topics, or those whose names a regular expression matches in full."""
        self._network.check()
        listener = Listener(on_assigned, on_revoked, on_lost)
        if (pattern is None) == (not topics):
            raise ValueError("subscribe needs either topics or a pattern; unsubscribe() ends a subscription")
        if self._group is None and listener != Listener():
            raise ValueError("a consumer without group_id has no rebalances: on_assigned and the like are not called")
        names = topic_names(topics) if topics else []
        self._subscribe(Subscription(names, None if pattern is None else name_test(pattern)), listener)

    def _subscribe(self, topics: Subscription, listener: Listener) -> None:
        if self._topics is None and self._positions.partitions:
            raise LocalProtocolError("partitions are assigned by assign(): call unsubscribe() before subscribe()")
        self._topics = topics
        if self._group is not None:
            self._group.subscribe(topics, listener)
            return
        self._stop_following()
        self._positions.assign([key for key in self._positions.partitions if self._wants(key[0])], committed=False)
        self._followed = AllPartitions(
            self._network.cluster, self._positions, topics.topics, topics.matches, assigned=self._network.wake
        )
        self._network.add(self._followed, self._parts.changed, self._parts.fail)

    def _wants(self, topic: str) -> bool:
        assert self._topics is not None
        return topic in self._topics.topics or (self._topics.matches is not None and self._topics.matches(topic))

    async def unsubscribe(self) -> None:
        """Read nothing any more; leave the group."""
        self._network.check()
        self._topics = None
        self._stop_following()
        if self._group is not None:
            await self._group.leave()
        self._positions.assign([], committed=False)

    def _stop_following(self) -> None:
        if self._followed is not None:
            self._network.remove(self._followed)
            self._followed = None

    async def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions, without rebalances."""
        self._network.check()
        keys = partition_keys(partitions)
        if self._topics is not None:
            raise LocalProtocolError("topics are subscribed to: call unsubscribe() before assign()")
        self._network.cluster.want({topic for topic, _ in keys})
        self._positions.assign(keys, committed=self._group is not None)
        if self._group is not None:
            self._group.assigned_by_hand()
        self._network.wake()

    def assignment(self) -> list[Key]:
        """The partitions that are read now."""
        return list(self._positions.partitions)

    def subscription(self) -> list[str]:
        """The topics that are subscribed to by name."""
        return [] if self._topics is None else list(self._topics.topics)

    # Where it is read

    async def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on at an offset."""
        self._network.check()
        (key,) = partition_keys([(topic, partition)])
        self._parts.reader.settle()
        self._positions.seek(key, Position(offset_number(offset)))
        self._network.wake()

    async def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Go on at the first offsets of these partitions, or of all that are assigned."""
        self._look_up(partitions, EARLIEST)

    async def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Go on at the ends of these partitions, or of all that are assigned."""
        self._look_up(partitions, LATEST)

    async def seek_to_timestamp(self, timestamp: int, *partitions: tuple[str, int]) -> None:
        """Go on at the first records that are not older; at the end where there are none."""
        self._look_up(partitions, offset_number(timestamp, "timestamp"))

    def _look_up(self, partitions: Iterable[tuple[str, int]], timestamp: int) -> None:
        self._network.check()
        states = [self._positions.state(key) for key in partition_keys(partitions) or self.assignment()]
        for state in states:
            self._positions.look_up(state, timestamp)
        self._network.wake()

    async def position(self, topic: str, partition: int) -> int:
        """The offset of the next record, which is found out first if it is not known."""
        self._network.check()
        (key,) = partition_keys([(topic, partition)])
        state = self._positions.state(key)
        self._parts.reader.settle()

        def problem() -> Exception:
            return self._network.cluster.last_error or LocalProtocolError(f"no position of {topic}-{partition}")

        await self._parts.until(
            lambda: state.position is not None or state.failing, self._settings.default_api_timeout_ms, problem
        )
        if state.position is None:
            self._parts.reader.columns(1)  # raises why
            raise problem()
        return state.position.offset

    async def pause(self, *partitions: tuple[str, int]) -> None:
        """Get no records of these partitions until `resume`."""
        self._network.check()
        states = [self._positions.state(key) for key in partition_keys(partitions)]
        self._parts.reader.settle()
        for state in states:
            self._positions.pause(state.key)

    async def resume(self, *partitions: tuple[str, int]) -> None:
        """End `pause`."""
        self._network.check()
        for state in [self._positions.state(key) for key in partition_keys(partitions)]:
            self._positions.resume(state.key)
        self._network.wake()

    def paused(self) -> list[Key]:
        """The assigned partitions that are paused."""
        return [key for key, state in self._positions.partitions.items() if state.paused]

    # Offsets of partitions, assigned or not

    async def beginning_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[Key, int]:
        """The first offset of each partition."""
        return await self._ends(partitions, EARLIEST)

    async def end_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[Key, int]:
        """The offset after the last record of each partition; after the last stable one for ``read_committed``."""
        return await self._ends(partitions, LATEST)

    async def offsets_for_times(self, timestamps: Mapping[tuple[str, int], int]) -> dict[Key, FoundOffset | None]:
        """The first record at or after a time in each partition; None where there is none."""
        wanted = {key: offset_number(timestamps[key], "timestamp") for key in partition_keys(timestamps)}
        return await self._found(wanted)

    async def _ends(self, partitions: Iterable[tuple[str, int]], timestamp: int) -> dict[Key, int]:
        found = await self._found(dict.fromkeys(partition_keys(partitions), timestamp))
        return {key: 0 if offset is None else offset.offset for key, offset in found.items()}

    async def _found(self, wanted: dict[Key, int]) -> dict[Key, FoundOffset | None]:
        self._network.check()
        query = self._parts.lookup.ask(wanted)
        self._network.wake()

        def problem() -> Exception:
            missing = ", ".join(f"{topic}-{number}" for topic, number in sorted(query.left)[:3])
            cause = query.last_error or self._network.cluster.last_error
            return cause or LocalProtocolError(f"the cluster does not have {missing}")

        try:
            await self._parts.until(lambda: query.done, self._settings.default_api_timeout_ms, problem)
        finally:
            self._parts.lookup.cancel(query)
        if query.error is not None:
            raise query.error
        return {key: query.found[key] for key in wanted}

    def lag(self) -> dict[Key, int]:
        """For each assigned partition that was fetched from, the offsets between its position and its end."""
        return self._parts.lags()

    # Committing

    async def commit(self, offsets: Mapping[tuple[str, int], Any] | None = None) -> None:
        """Commit the positions of all assigned partitions, or the given offsets."""
        self._network.check()
        group = self._require_group("commit")
        group.metadata()
        if offsets is None:
            self._parts.reader.settle()
            states = self._positions.partitions.values()
            found = {s.key: CommittedOffset(*s.position) for s in states if s.position is not None}
        else:
            found = {key: _committed_offset(offsets[key]) for key in partition_keys(offsets)}
        await group.commit(found)

    async def committed(self, topic: str, partition: int) -> int | None:
        """The group's committed offset of a partition; None without one."""
        (key,) = partition_keys([(topic, partition)])
        found = (await self.committed_offsets([key]))[key]
        return None if found is None else found.offset

    async def committed_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[Key, CommittedOffset | None]:
        """The group's committed offsets with their leader epochs and metadata; None without one."""
        self._network.check()
        return await self._require_group("committed_offsets").committed(partition_keys(partitions))

    def group_metadata(self) -> GroupMetadata:
        """What a transactional producer needs to commit this consumer's offsets."""
        return self._require_group("group_metadata").metadata()

    def _require_group(self, method: str) -> ConsumerGroup:
        if self._group is None:
            raise LocalProtocolError(f"{method} needs a group: give the consumer a group_id")
        return self._group

    # Reading

    async def columns(
        self, *, max_rows: int | None = None, timeout: float | None = None
    ) -> AsyncIterator[ConsumedColumns]:
        """Tables of records; ends when `timeout` seconds brought nothing."""
        limit, most = seconds("timeout", timeout), row_limit("max_rows", max_rows)
        while True:
            self._check_reading()
            table = self._parts.reader.columns(most)
            if table is not None:
                yield table
                await asyncio.sleep(0)  # the loop goes on fetching
            elif not await self._wait(limit):
                return

    async def getmany(
        self, timeout: float | None = 0, max_records: int | None = None
    ) -> dict[Key, list[ConsumerRecord]]:
        """Records by partition: what is there, or what comes within `timeout` seconds."""
        limit = seconds("timeout", timeout)
        most = row_limit("max_records", max_records) or self._settings.max_poll_records
        await asyncio.sleep(0)
        while True:
            self._check_reading()
            found = self._parts.reader.records_by_partition(most)
            if found or not await self._wait(limit):
                return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        for record in self._records:
            return record
        await asyncio.sleep(0)
        while True:
            self._check_reading()
            self._records = self._parts.reader.iterated() or iter(())
            for record in self._records:
                return record
            await self._wait(None)

    def _check_reading(self) -> None:
        self._network.check()
        self._parts.raise_error()
        if self._topics is None and not self._positions.partitions:
            raise LocalProtocolError("nothing to read: call subscribe() or assign() first")

    async def _wait(self, limit: float | None) -> bool:
        """Wait until there may be something to read; False if nothing came in time."""
        self._event.clear()
        if self._parts.readable:
            return True
        if limit == 0:
            return False
        reader = self._parts.reader
        reader.waiting = True
        try:
            async with asyncio.timeout(limit):
                await self._event.wait()
            return True
        except TimeoutError:
            self._parts.raise_unreachable()
            return False
        finally:
            reader.waiting = False

    # Else

    def metrics(self) -> dict[str, float]:
        """The numbers of `kafkacodec.client.core.metrics.METRICS`, of now."""
        self._parts.count_records()
        return self._network.metrics.snapshot()

    async def close(self) -> None:
        """Commit what is processed if `enable_auto_commit`, leave the group, close the connections."""
        if self._network.closed:
            return
        self._network.check()
        try:
            self._parts.reader.settle()
            if self._group is not None:
                await self._group.close()
        finally:
            await self._parts.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


def consumer_defaults() -> dict[str, Any]:
    """The default of each option, for `options_from_config`."""
    from dataclasses import MISSING, fields

    found = {option.name: option.default for option in fields(ConsumerSettings)}
    return {name: "" if default is MISSING else default for name, default in found.items()}


def _committed_offset(value: Any) -> CommittedOffset:
    """An offset, or a pair of offset and metadata, or a CommittedOffset."""
    if isinstance(value, CommittedOffset):
        return value
    offset, metadata = value if isinstance(value, tuple) and len(value) == 2 else (value, "")
    if not isinstance(metadata, str):
        raise TypeError(f"the metadata of a committed offset must be text, not {type(metadata).__name__}")
    return CommittedOffset(offset_number(offset), -1, metadata)
