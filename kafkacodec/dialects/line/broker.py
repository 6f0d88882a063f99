"""The behaviour of a line protocol broker, without I/O: lines and a clock go in, lines come out."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkacodec.dialects.line.errors import ErrorCode, LineProtocolError
from kafkacodec.dialects.line.groups import Group, Groups, Refused
from kafkacodec.dialects.line.parsing import Request, Response, parse_request
from kafkacodec.dialects.line.replication import Partition
from kafkacodec.dialects.line.storage import Storage
from kafkacodec.errors import LocalProtocolError

__all__ = ["Broker", "BrokerConfig", "Reply"]


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """What a broker is set to. Times are in milliseconds of the clock that is passed in.

    Attributes:
        topics: number of partitions by topic.
        default_partitions: of any other topic; 0 refuses other topics.
        replication_factor: replicas per partition, this broker's (id 0) included.
        min_in_sync: replicas that must be in sync for acks=all.
        replication_timeout_ms: how long acks=all may wait.
        replica_lag_ms: how long a follower may stay behind and count as in sync.
        session_timeout_ms: how long a member may be silent.
        max_messages: the most that one CONSUME answers with.
        max_topics, max_groups, max_members: bounds on what requests can make the broker keep.
    """

    topics: Mapping[str, int] = field(default_factory=dict)
    default_partitions: int = 1
    replication_factor: int = 1
    min_in_sync: int = 1
    replication_timeout_ms: int = 5_000
    replica_lag_ms: int = 10_000
    session_timeout_ms: int = 10_000
    max_messages: int = 500
    max_topics: int = 10_000
    max_groups: int = 10_000
    max_members: int = 1_000


class Reply(NamedTuple):
    """A response line and the connection that it is for."""

    connection: Hashable
    line: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A PRODUCE with acks=all that is not answered yet."""

    connection: Hashable
    correlation_id: str
    offset: int
    deadline: int


def _by_crc(key: str, partitions: int) -> int:
    return zlib.crc32(key.encode("utf-8", "surrogatepass")) % partitions


Fields = dict[str, Any]


class Broker:
    """A broker as a state machine.

    Args:
        storage: keeps records, groups and offsets.
        config: see `BrokerConfig`.
        now: milliseconds of any clock that does not go back; the same clock goes into every call.
        partitioner: the partition of a record by its key and the number of partitions; CRC-32 of the key by default.
    """

    def __init__(
        self,
        storage: Storage,
        config: BrokerConfig | None = None,
        *,
        now: int = 0,
        partitioner: Callable[[str, int], int] = _by_crc,
    ) -> None:
        self._config = config = config or BrokerConfig()
        self._storage = storage
        self._now = now
        self._partitioner = partitioner
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._topics = set(config.topics)
        self._waiting: dict[tuple[str, int], deque[_Waiting]] = {}
        self._groups = Groups(
            storage,
            self._count,
            session_timeout_ms=config.session_timeout_ms,
            max_groups=config.max_groups,
            max_members=config.max_members,
            now=now,
        )

    def receive(self, line: str | LineProtocolError, now: int, connection: Hashable = None) -> list[Reply]:
        """Take a request line and return the responses that are due, to this and to other connections.

        `LineReader` gives an error in the place of a line that it cannot read; it is answered as such.

        A PRODUCE with acks=all may be answered by a later call, after requests that came behind it.

        Raises:
            LocalProtocolError: `now` lies before an earlier one.
            OSError: whatever the storage raises; the request has then changed nothing, and is not answered.
        """
        self._set_clock(now)
        response = self._answer(line, connection)
        replies = [Reply(connection, response.encode())] if response is not None else []
        return replies + self._settle()

    def tick(self, now: int) -> list[Reply]:
        """Let time pass: followers fall behind, sessions end, acks=all times out.

        Raises:
            LocalProtocolError: `now` lies before an earlier one.
            OSError: whatever the storage raises.
        """
        self._set_clock(now)
        for partition in self._partitions.values():
            partition.expire(now)
        self._groups.expire(now)
        return self._settle()

    def next_deadline(self) -> int | None:
        """When `tick` will next have something to do; None where nothing is pending."""
        deadlines = [queue[0].deadline for queue in self._waiting.values()]
        deadlines += [d for p in self._partitions.values() if (d := p.next_deadline()) is not None]
        if (session := self._groups.next_deadline()) is not None:
            deadlines.append(session)
        return min(deadlines, default=None)

    def disconnect(self, connection: Hashable) -> None:
        """Forget what a connection waits for; what it has produced stays."""
        kept = {key: deque(w for w in queue if w.connection != connection) for key, queue in self._waiting.items()}
        self._waiting = {key: queue for key, queue in kept.items() if queue}

    def partition(self, topic: str, partition: int) -> Partition:
        """The replication state of a partition, to look at.

        Raises:
            LocalProtocolError: there is no such partition.
        """
        try:
            return self._partition(topic, partition)
        except Refused as e:
            raise LocalProtocolError(e.message) from None

    def _set_clock(self, now: int) -> None:
        if now < self._now:
            raise LocalProtocolError(f"the clock went back from {self._now} to {now}")
        self._now = now

    def _answer(self, line: str | LineProtocolError, connection: Hashable) -> Response | None:
        """The response to a line; None where it comes later."""
        try:
            if isinstance(line, LineProtocolError):
                raise line
            request = parse_request(line, replication_factor=self._config.replication_factor)
        except LineProtocolError as e:
            return Response.error(e.correlation_id, e.code or ErrorCode.BAD_REQUEST, str(e))
        try:
            fields = _HANDLERS[request.command](self, request, connection)
        except Refused as e:
            return Response.error(request.correlation_id, e.code, e.message)
        return Response.success(request.correlation_id, request.command, fields) if fields is not None else None

    def _count(self, topic: str) -> int:
        return self._config.topics.get(topic, self._config.default_partitions)

    def _check_partition(self, topic: str, partition: int) -> None:
        if not 0 <= partition < self._count(topic):
            raise Refused(ErrorCode.BAD_REQUEST, f"the topic has {self._count(topic)} partitions")

    def _partition(self, topic: str, partition: int) -> Partition:
        """The partition's state; made now where nobody has asked for it yet."""
        self._check_partition(topic, partition)
        state = self._partitions.get((topic, partition))
        if state is None:
            if topic not in self._topics and len(self._topics) >= self._config.max_topics:
                raise Refused(ErrorCode.BAD_REQUEST, "too many topics")
            self._topics.add(topic)
            state = Partition(self._config.replica_lag_ms, self._storage.end(topic, partition))
            self._partitions[topic, partition] = state
        state.expire(self._now)
        return state

    def _settle(self) -> list[Reply]:
        """Answer the waiting acks=all whose time or whose condition has come."""
        replies = []
        for (topic, index), queue in list(self._waiting.items()):
            state = self._partitions[topic, index]
            while queue:
                waiting = queue[0]
                if not state.leader:
                    response = Response.error(waiting.correlation_id, ErrorCode.NOT_LEADER, "the role has changed")
                elif state.high_watermark > waiting.offset and len(state.in_sync) >= self._config.min_in_sync:
                    response = Response.success(
                        waiting.correlation_id, "PRODUCE", _produced(index, waiting.offset, state)
                    )
                elif self._now >= waiting.deadline:
                    reason = f"{len(state.in_sync)} in sync, high watermark {state.high_watermark}"
                    response = Response.error(waiting.correlation_id, ErrorCode.REPLICATION_TIMEOUT, reason)
                else:
                    break
                replies.append(Reply(waiting.connection, response.encode()))
                queue.popleft()
            if not queue:
                del self._waiting[topic, index]
        return replies

    def _produce(self, request: Request, connection: Hashable) -> Fields | None:
        args, topic = request.args, request.args["topic"]
        count = self._count(topic)
        if count < 1:
            raise Refused(ErrorCode.BAD_REQUEST, "there is no such topic")
        index = self._partitioner(args["key"], count)
        state = self._partition(topic, index)
        if not state.leader:
            raise Refused(ErrorCode.NOT_LEADER, "the partition is in follower role on this broker")
        offset = self._storage.append(topic, index, args["key"], args["value"])
        state.appended(offset + 1, self._now)
        if args["acks"] != "all":
            return _produced(index, offset, state)
        deadline = self._now + self._config.replication_timeout_ms
        waiting = _Waiting(connection, request.correlation_id, offset, deadline)
        self._waiting.setdefault((topic, index), deque()).append(waiting)
        return None

    def _consume(self, request: Request, _: Hashable) -> Fields:
        topic, index, start = request.args["topic"], request.args["partition"], request.args["offset"]
        state = self._partition(topic, index)
        if start < 0:
            raise Refused(ErrorCode.BAD_REQUEST, "the offset is negative")
        stop = min(state.high_watermark, start + self._config.max_messages)
        records = self._storage.read(topic, index, start, stop) if start < stop else ()
        return {"messages": [{"offset": o, "value": v} for o, v in records], "hw": state.high_watermark}

    def _join(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        if self._count(args["topic"]) < 1:
            raise Refused(ErrorCode.BAD_REQUEST, "there is no such topic")
        key = (args["group"], args["topic"])
        group = self._groups.join(key, args["consumer_id"], args["assignor"], self._now)
        return {"generation": group.generation, "assigned": group.assignments[args["consumer_id"]]}

    def _sync(self, request: Request, _: Hashable) -> Fields:
        group = self._member(request)[1]
        return {"generation": group.generation, "assigned": group.assignments[request.args["consumer_id"]]}

    def _heartbeat(self, request: Request, _: Hashable) -> Fields:
        self._member(request)
        return {"heartbeat": "ok"}

    def _leave(self, request: Request, _: Hashable) -> Fields:
        key, _group = self._member(request)
        self._groups.leave(key, request.args["consumer_id"])
        return {"left": True}

    def _commit(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        key, group = self._member(request)
        if args["partition"] not in group.assignments[args["consumer_id"]]:
            raise Refused(ErrorCode.GENERATION_MISMATCH, "the partition is not assigned to this member")
        if args["offset"] < 0:
            raise Refused(ErrorCode.BAD_REQUEST, "the offset is negative")
        self._groups.commit(key, args["partition"], args["offset"])
        return {"committed": True}

    def _offset(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        self._check_partition(args["topic"], args["partition"])
        return {"offset": self._groups.committed(args["group"], args["topic"], args["partition"])}

    def _replica_fetch(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        state = self._partition(args["topic"], args["partition"])
        if not state.leader:
            raise Refused(ErrorCode.NOT_LEADER, "the partition is in follower role on this broker")
        if not 0 <= args["offset"] <= state.end:
            raise Refused(ErrorCode.BAD_REQUEST, f"the leader's log ends at {state.end}")
        state.reported(args["replica_id"], args["offset"], self._now)
        return {
            "replica": args["replica_id"],
            "acked_offset": args["offset"],
            "hw": state.high_watermark,
            "isr": state.in_sync,
            "under_replicated": len(state.in_sync) < self._config.replication_factor,
        }

    def _set_role(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        state = self._partition(args["topic"], args["partition"])
        end = self._storage.end(args["topic"], args["partition"])
        state.set_role(leader=args["role"] == "leader", end=end)
        return {
            "topic": args["topic"],
            "partition": args["partition"],
            "role": args["role"],
            "hw": state.high_watermark,
        }

    def _ping(self, _request: Request, _: Hashable) -> Fields:
        return {}

    def _member(self, request: Request) -> tuple[tuple[str, str], Group]:
        args = request.args
        key = (args["group"], args["topic"])
        return key, self._groups.check(key, args["consumer_id"], args["generation"], self._now)


def _produced(partition: int, offset: int, state: Partition) -> Fields:
    return {"partition": partition, "offset": offset, "hw": state.high_watermark}


_HANDLERS: Mapping[str, Callable[[Broker, Request, Hashable], Fields | None]] = {
    "PRODUCE": Broker._produce,
    "CONSUME": Broker._consume,
    "JOIN": Broker._join,
    "SYNC": Broker._sync,
    "HEARTBEAT": Broker._heartbeat,
    "LEAVE": Broker._leave,
    "COMMIT": Broker._commit,
    "OFFSET": Broker._offset,
    "REPLICA_FETCH": Broker._replica_fetch,
    "SET_PARTITION_ROLE": Broker._set_role,
    "PING": Broker._ping,
}
