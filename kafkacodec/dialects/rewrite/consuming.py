"""The work of a consumer of the rewrite in `poll`: the group's calls, reading its partitions, commits."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.client.aio.consumer import Consumer as Reader
from kafkacodec.client.lifecycle import owned
from kafkacodec.dialects.rewrite.driving import MemberDriver
from kafkacodec.dialects.rewrite.errors import GroupError
from kafkacodec.dialects.rewrite.groups import Partition
from kafkacodec.dialects.rewrite.member import Action, Assigned, Failed, GroupMember, MemberState, Rewound, Stop
from kafkacodec.dialects.rewrite.rpcs import (
    CommitOffsets,
    CreateGroup,
    ErrorCode,
    FetchOffsets,
    ListGroupsResponse,
)
from kafkacodec.dialects.rewrite.servers import Servers
from kafkacodec.errors import DeadlineExceeded, KafkaCodecError, LocalProtocolError

if TYPE_CHECKING:
    from kafkacodec.client.consuming.record import ConsumerRecord
    from kafkacodec.dialects.rewrite.config import ConsumerConfig

__all__ = ["Consuming"]

_PASSES: Final = (ErrorCode.CONTROLLER_UNREACHABLE, ErrorCode.NOT_CONTROLLER, ErrorCode.STORAGE_ERROR)
_TURNS: Final = 5  # of the loop: take replies that have come since the last poll before the member misses them
_PAUSE_MS: Final = 100  # before temporary failures are tried again


class Consuming:
    """The work of a consumer, in the event loop that it is first used in.

    Args:
        config: of the consumer.
        options: of the consumer that reads, by keyword.
    """

    def __init__(self, config: ConsumerConfig, options: Mapping[str, Any]) -> None:
        self._config = config
        given = {**config.of_reader, "client.id": config.client_id}
        self._reader = owned(Reader.from_config(given, **{**options, "enable_auto_commit": False}))
        self._servers = Servers(config.servers, config.request_timeout_ms)
        self._member = GroupMember(
            config.client_id, config.group, config.client_id, request_timeout_ms=config.request_timeout_ms
        )
        self._topics: dict[str, None] = {}  # for the group
        self._fixed: dict[Partition, None] = {}
        self._begun: set[Partition] = set()  # of these, with known offsets
        self._positions: dict[Partition, int] = {}  # after returned messages
        self._committed: dict[Partition, int] = {}
        self._kept: dict[Any, list[ConsumerRecord]] = {}  # of a poll that was cancelled
        self._commit_at = 0.0
        self._start_at = 0
        self._due: deque[Action] = deque()  # pending actions from replies
        self._rewound: list[Rewound] = []
        self._going_back: frozenset[Partition] = frozenset()  # by a rewind that may happen at any moment
        self._error: Exception | None = None
        self._driver: MemberDriver | None = None

    @property
    def assignment(self) -> list[Partition]:
        """The current partitions."""
        return [*self._fixed, *self._member.partitions]

    @property
    def generation(self) -> int:
        """The group's generation, from the last answer."""
        return self._member.generation

    @property
    def last_error(self) -> Exception | None:
        """The error of the last call or commit."""
        of_calls = None if self._driver is None else self._driver.last_error
        return of_calls or self._error

    def add(self, topic: str, number: int | None) -> None:
        """Read a topic by the group, or one of its partitions. Raises ValueError, LocalProtocolError."""
        if (topic in {p.topic for p in self._fixed}) if number is None else (topic in self._topics):
            raise ValueError(
                f"topic {topic!r} was added in the other way: the group assigns its partitions, or you add them"
            )
        if number is not None:
            self._fixed[Partition(topic, number)] = None
        elif not self._config.group:
            raise ValueError("the configuration has no group.id: pass the partition, too")
        elif self._driver is not None and topic not in self._topics:
            raise LocalProtocolError("add topics for the group before the first poll")
        else:
            self._topics[topic] = None

    async def poll(self, left: float) -> list[ConsumerRecord]:
        """Work for a number of seconds, or until there are records."""
        if not self._topics and not self._fixed:
            raise LocalProtocolError("nothing to read: call add_topic() first")
        end = time.monotonic() + left
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        while True:
            await self._work()
            await self._commit_now_and_then()
            found = await self._read(max(end - time.monotonic(), 0.0))
            if found or time.monotonic() >= end:
                return found

    async def commit(self, topic: str | None = None, number: int | None = None) -> None:
        """Commit returned messages. Raises GroupError, ConnectionFailed, DeadlineExceeded."""
        wanted = {
            p: offset
            for p, offset in self._to_commit().items()
            if topic in (None, p.topic) and number in (None, p.partition)
        }
        if wanted:
            await self._commit(wanted)

    async def rewind(self, offsets: Mapping[Partition, int]) -> None:
        """Continue at other offsets. Raises GroupError, DeadlineExceeded."""
        fixed = {p: offset for p, offset in offsets.items() if p in self._fixed}
        shared = {p: offset for p, offset in offsets.items() if p not in self._fixed}
        if fixed:
            await self._begin_fixed()
            for partition, offset in fixed.items():
                await self._go_to(partition, offset)
        if not shared:
            return
        if not self._topics:
            raise LocalProtocolError("the group assigns nothing to this consumer: only its given partitions go back")
        await self._work()
        limit = (self._config.request_timeout_ms + self._config.session_timeout_ms) / 1000
        end = time.monotonic() + limit
        is_sent = False
        while not (is_sent and self._rewound):
            if self._member.state is MemberState.CONSUMING:
                self._rewound.clear()  # of a former partition
                self._going_back, is_sent = frozenset(shared), True
                self._sent(self._member.rewind(shared, self._now()))
            left = end - time.monotonic()
            if left <= 0:
                raise DeadlineExceeded(f"the group has not answered a rewind within {limit:g} s", sent=True)
            await self._wait(left)
            await self._work()
        errors = self._rewound.pop().errors
        if errors:
            place, code = next(iter(errors.items()))
            raise GroupError(f"{place.topic}-{place.partition} is not rewound", code)

    async def close(self) -> None:
        """Commit, leave, and close."""
        try:
            if self._config.auto_commit and self._driver is not None:
                await self._try_commit()
        finally:
            if self._driver is not None:
                await self._driver.close()
            self._servers.close()
            await self._reader.close()

    # The group

    async def _work(self) -> None:
        """Do due work, and take replies."""
        if self._driver is None:
            self._driver = MemberDriver(self._member, self._servers)
            await self._reader.assign([])
        if self._fixed.keys() - self._begun:
            await self._begin_fixed()
        if not self._topics:
            return
        await self._do(())
        missing = ""
        for call, reply in self._driver.replies():
            if isinstance(reply, ListGroupsResponse):
                missing = self._missing_topics(reply)
            if reply is None or missing:
                await self._do(self._member.unanswered(call, self._now()))
            else:
                await self._do(self._member.receive(reply, self._now()))
        if self._member.state is MemberState.IDLE and self._now() >= self._start_at:
            self._sent(self._member.start(self._now()))
        await self._do(self._member.tick(self._now()))
        if missing:
            raise LocalProtocolError(missing)

    async def _do(self, actions: Iterable[Action]) -> None:
        """Do the actions of one reply before taking the next, which may end them."""
        self._due.extend(self._sent(actions))
        while self._due:
            action = self._due[0]
            try:
                await _DOING[type(action)](self, action)
            except asyncio.CancelledError:
                raise  # the next call does it again
            except BaseException:
                self._due.popleft()
                raise
            self._due.popleft()

    async def _assigned(self, action: Assigned) -> None:
        self._going_back = frozenset()
        await self._reader.assign([*self._fixed, *action.partitions])
        for partition, offset in action.partitions.items():
            if offset >= 0:
                self._committed[partition] = offset
                await self._reader.seek(*partition, offset)

    async def _stopped(self, action: Stop) -> None:
        shared = [p for p in self._positions if p not in self._fixed]
        await self._reader.assign(self._fixed)
        self._kept = {place: records for place, records in self._kept.items() if Partition(*place) in self._fixed}
        if self._config.auto_commit:
            await self._try_commit()
        for partition in shared:
            del self._positions[partition]
        self._committed = {p: offset for p, offset in self._committed.items() if p in self._fixed}
        self._sent(self._member.stopped(self._now()))

    async def _failed(self, action: Failed) -> None:
        self._start_at = self._now() + _PAUSE_MS
        if action.error_code == ErrorCode.UNKNOWN_GROUP:
            await self._create()
        elif action.error_code not in _PASSES:
            raise GroupError(f"group {self._config.group!r} refuses the consumer", action.error_code)

    async def _has_rewound(self, action: Rewound) -> None:
        for partition, offset in action.offsets.items():
            if partition in self._member.partitions:
                await self._go_to(partition, offset)
        self._rewound.append(action)
        self._going_back = frozenset()

    async def _create(self) -> None:
        """Make the group; what passes is tried again by the next call."""
        call = CreateGroup(
            client_id=self._config.client_id, consumer_group=self._config.group,
            session_timeout=self._config.session_timeout_ms, topics=list(self._topics),
        )  # fmt: skip
        try:
            reply: Any = await self._servers.ask(call)
        except KafkaCodecError as error:
            self._error = error
            return
        if reply.error_code in (ErrorCode.NONE, ErrorCode.GROUP_EXISTS):
            self._start_at = 0
        elif reply.error_code not in _PASSES:
            raise GroupError(f"group {self._config.group!r} cannot be created", reply.error_code)

    def _missing_topics(self, reply: Any) -> str:
        """Return the error about the topics of a listed group."""
        for info in reply.groups_info:
            missing = [topic for topic in self._topics if topic not in info.topics]
            if info.group_name == self._config.group and missing:
                return f"group {self._config.group!r} has the topics {list(info.topics)}, and not {missing}"
        return ""

    def _sent(self, actions: Iterable[Action]) -> list[Action]:
        assert self._driver is not None
        return self._driver.sent(actions)

    def _now(self) -> int:
        return MemberDriver.now()

    # Reading

    async def _read(self, left: float) -> list[ConsumerRecord]:
        """Return records that are there, or that come before the member has something to do."""
        if self._kept:
            found, self._kept = self._kept, {}
            return self._returned(found)
        if not self._reader.assignment() or self._member.state is MemberState.REWINDING:
            await self._wait(left)
            return []
        reading = asyncio.ensure_future(self._reader.getmany(self._limited(left)))
        assert self._driver is not None
        arrived = asyncio.ensure_future(self._driver.arrived.wait())
        try:
            await asyncio.wait((reading, arrived), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if reading.done() and reading.exception() is None:
                self._kept = reading.result()
            raise
        finally:
            reading.cancel()
            arrived.cancel()
        if not reading.done():
            await asyncio.wait((reading,))
            return []
        return self._returned(reading.result())

    def _returned(self, found: Mapping[tuple[str, int], list[ConsumerRecord]]) -> list[ConsumerRecord]:
        for place, records in found.items():
            self._positions[Partition(*place)] = records[-1].offset + 1
        return [record for records in found.values() for record in records]

    async def _wait(self, left: float) -> None:
        """Wait until the member has something to do."""
        assert self._driver is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limited(left)):
                await self._driver.arrived.wait()

    def _limited(self, left: float) -> float:
        """Return a number of seconds, or the time until the member has something to do, if that is earlier."""
        if not self._topics:
            return left
        idle = self._member.state is MemberState.IDLE
        deadline = self._start_at if idle else self._member.next_deadline()
        return left if deadline is None else min(left, max(deadline - self._now(), 0) / 1000)

    async def _go_to(self, partition: Partition, offset: int) -> None:
        await self._reader.seek(*partition, offset)
        for known in (self._positions, self._committed, self._kept):
            known.pop(partition, None)

    async def _begin_fixed(self) -> None:
        """Start given partitions at their committed offsets, if the group has any."""
        new = [partition for partition in self._fixed if partition not in self._begun]
        offsets = await self._fetched(new) if self._config.group else {}
        if offsets is None:
            return
        await self._reader.assign([*self._fixed, *self._member.partitions])
        for partition in new:
            self._begun.add(partition)
            if partition in offsets:
                await self._reader.seek(*partition, offsets[partition])

    async def _fetched(self, partitions: Iterable[Partition]) -> dict[Partition, int] | None:
        """Return the committed offsets; None if they are unavailable now, with the reason in `last_error`."""
        entry = FetchOffsets.TopicPartition
        call = FetchOffsets(
            client_id=self._config.client_id, consumer_group=self._config.group,
            partitions=[entry(topic=p.topic, partition=p.partition) for p in partitions],
        )  # fmt: skip
        try:
            reply: Any = await self._servers.ask(call)
        except KafkaCodecError as error:
            self._error = error
            return None
        if reply.error_code == ErrorCode.UNKNOWN_GROUP:
            await self._create()
        elif reply.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_PARTITION):
            self._error = GroupError(f"group {self._config.group!r} did not answer with its offsets", reply.error_code)
            return None
        return {Partition(o.topic, o.partition): o.offset for o in reply.offsets if o.offset >= 0}

    # Commits

    async def _commit_now_and_then(self) -> None:
        now = time.monotonic()
        if self._config.auto_commit and now >= self._commit_at:
            self._commit_at = now + self._config.auto_commit_ms / 1000
            await self._try_commit()

    def _to_commit(self) -> dict[Partition, int]:
        """Return the offsets to commit, without rewinding partitions: a commit after the rewind would undo it."""
        return {p: offset for p, offset in self._positions.items() if p not in self._going_back}

    async def _try_commit(self) -> None:
        """Commit changes; `last_error` has failures."""
        changed = {p: offset for p, offset in self._to_commit().items() if self._committed.get(p) != offset}
        self._error = None
        if changed and self._config.group:
            try:
                await self._commit(changed)
            except KafkaCodecError as error:
                self._error = error

    async def _commit(self, offsets: Mapping[Partition, int]) -> None:
        """Commit offsets. Raises GroupError and the errors of `Servers.ask`."""
        entry = CommitOffsets.PartitionOffset
        call = CommitOffsets(
            client_id=self._config.client_id, consumer_group=self._config.group,
            offsets=[entry(topic=p.topic, partition=p.partition, offset=offset) for p, offset in offsets.items()],
        )  # fmt: skip
        reply: Any = await self._servers.ask(call)
        done = {Partition(r.topic, r.partition) for r in reply.results if not r.error_code}
        self._committed.update({p: offset for p, offset in offsets.items() if p in done})
        if reply.error_code:
            wrong = next((f"{r.topic}-{r.partition}" for r in reply.results if r.error_code), self._config.group)
            raise GroupError(f"the offset of {wrong} is not committed", reply.error_code)


_DOING: Final[dict[type[Action], Callable[[Consuming, Any], Any]]] = {
    Assigned: Consuming._assigned,
    Stop: Consuming._stopped,
    Failed: Consuming._failed,
    Rewound: Consuming._has_rewound,
}
