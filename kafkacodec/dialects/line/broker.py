"""A broker of the line protocol without network I/O: lines and a clock go in, lines come out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import islice
from typing import Any

from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.dialects.line.commands import COMMANDS
from kafkacodec.dialects.line.config import MAX_ID_LENGTH, MAX_NAME_LENGTH, RESPONSE_ROOM, BrokerConfig
from kafkacodec.dialects.line.errors import IS_FOLLOWER, ErrorCode, LineProtocolError
from kafkacodec.dialects.line.groups import Group, GroupLimits, Groups, Refused
from kafkacodec.dialects.line.messages import message_size
from kafkacodec.dialects.line.parsing import Request, Response, parse_request
from kafkacodec.dialects.line.partitions import Partitions, by_crc
from kafkacodec.dialects.line.replication import Partition
from kafkacodec.dialects.line.storage import Storage
from kafkacodec.errors import KafkaCodecError, LocalProtocolError
from kafkacodec.shown import repr_of
from kafkacodec.signatures import suggests_options

__all__ = ["HANDLERS", "Broker", "Reply"]

# Failures of the storage that are kept until the host takes them.
_MAX_FAILURES = 100


class Reply(NamedTuple):
    """A response line and the connection that it is for."""

    connection: Hashable
    line: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A PRODUCE with acks=all that waits for its response."""

    connection: Hashable
    correlation_id: str
    offset: int
    deadline: int


Fields = dict[str, Any]
Handler = Callable[[Any, Request, Hashable], Fields | None]


class Broker:
    """A broker as a state machine.

    If the storage fails for a request, the answer is STORAGE_ERROR and nothing changes; the broker retries an expiry
    later. `take_failures` returns the failures.

    Args:
        storage: keeps records, groups and offsets.
        config: see `BrokerConfig`.
        now: the time in milliseconds of a monotonic clock; all calls must use the same clock.
        partitioner: returns the partition for a key and a number of partitions. Default: CRC-32 of the key.

    Raises:
        OSError: on construction, from the storage.
    """

    @suggests_options
    def __init__(
        self,
        storage: Storage,
        config: BrokerConfig | None = None,
        *,
        now: int = 0,
        partitioner: Callable[[str, int], int] = by_crc,
    ) -> None:
        self._config = config = config or BrokerConfig()
        self._storage = storage
        self._now = now
        self._partitioner = partitioner
        self._commands, self._handlers = COMMANDS, HANDLERS
        self._partitions = self._made_partitions()
        self._waiting: dict[tuple[str, int], deque[_Waiting]] = {}
        self._waiting_count = 0
        self._failures: deque[Exception] = deque(maxlen=_MAX_FAILURES)
        limits = GroupLimits(
            session_timeout_ms=config.session_timeout_ms,
            retention_ms=config.group_retention_ms,
            max_groups=config.max_groups,
            max_members=config.max_members,
            max_offsets=config.max_offsets,
        )
        self._groups = Groups(
            storage, self._partitions.count, limits, now=now, failed=self._failures.append, manages=self._managing()
        )

    def __repr__(self) -> str:
        return repr_of(self, repr(self._storage))

    def receive(self, line: str | LineProtocolError, now: int, connection: Hashable = None) -> list[Reply]:
        """Take a request line and return the responses that are due, on this and on other connections.

        `LineReader` returns an error in place of an invalid line; the broker answers it as an error. The response to a
        PRODUCE with acks=all may come from a later call, after responses to later requests.

        Raises:
            LocalProtocolError: `now` is earlier than in a previous call.
        """
        self._set_clock(now)
        answer = self._answer(line, connection)
        replies = [Reply(connection, answer)] if answer is not None else []
        return replies + self._answer_waiting()

    def receive_all(self, lines: Iterable[str], now: int, connection: Hashable = None) -> list[Reply]:
        """As `receive` for each line of a connection, all at one time.

        Raises:
            LocalProtocolError: `now` is earlier than in a previous call.
        """
        self._set_clock(now)
        answers = [self._answer(line, connection) for line in lines]
        return [Reply(connection, answer) for answer in answers if answer is not None] + self._answer_waiting()

    def lost(self, topic: str, partition: int) -> list[Reply]:
        """End a partition where the storage does, which has fewer records than it returned offsets for.

        Return the answers to the waiting requests whose records are lost: the next records get their offsets.
        """
        self._partitions.lost(topic, partition)
        end, queue = self._storage.end(topic, partition), self._waiting.get((topic, partition), deque())
        lost: deque[_Waiting] = deque()
        while queue and queue[-1].offset >= end:
            lost.appendleft(queue.pop())
        self._waiting_count -= len(lost)
        if not queue:
            self._waiting.pop((topic, partition), None)
        reason = "the disk refused the record; try again"
        return [
            Reply(one.connection, Response.error(one.correlation_id, ErrorCode.STORAGE_ERROR, reason).encode())
            for one in lost
        ]

    def tick(self, now: int) -> list[Reply]:
        """Advance the clock: expire followers, sessions and waiting acks=all.

        Raises:
            LocalProtocolError: `now` is earlier than in a previous call.
        """
        self._set_clock(now)
        self._partitions.expire(now)
        self._groups.expire(now)
        return self._answer_waiting()

    def next_deadline(self) -> int | None:
        """Return when `tick` is needed next; None if nothing is pending."""
        deadlines = [queue[0].deadline for queue in self._waiting.values()]
        pending = (self._partitions.next_deadline(), self._groups.next_deadline())
        deadlines += [deadline for deadline in pending if deadline is not None]
        return min(deadlines, default=None)

    def disconnect(self, connection: Hashable) -> None:
        """Drop the waiting responses of a connection; its records stay."""
        kept = {key: deque(w for w in queue if w.connection != connection) for key, queue in self._waiting.items()}
        self._waiting = {key: queue for key, queue in kept.items() if queue}
        self._waiting_count = sum(map(len, self._waiting.values()))

    def take_failures(self) -> list[Exception]:
        """The exceptions of the storage since the last call, at most the last hundred.

        After construction they include a CorruptRecord for each committed offset past the end of its partition, which
        was lowered to that end.
        """
        failures = list(self._failures)
        self._failures.clear()
        return failures

    def partition(self, topic: str, partition: int) -> Partition:
        """The replication state of a partition, for reading.

        Raises:
            LocalProtocolError: the partition does not exist.
        """
        try:
            return self._partitions.look(topic, partition, self._now)
        except Refused as e:
            raise LocalProtocolError(e.message) from None

    def _made_partitions(self) -> Partitions:
        return Partitions(self._storage, self._config)

    def _managing(self) -> Callable[[str], bool] | None:
        return None

    def _set_clock(self, now: int) -> None:
        if now < self._now:
            raise LocalProtocolError(f"the clock went back from {self._now} to {now}")
        self._now = now

    def _answer(self, line: str | LineProtocolError, connection: Hashable) -> str | None:
        """The response line; None if it comes later."""
        try:
            if isinstance(line, LineProtocolError):
                raise line
            factor = self._config.replication_factor
            request = parse_request(line, replication_factor=factor, commands=self._commands)
        except LineProtocolError as e:
            return _refusal(e.correlation_id, e.code or ErrorCode.BAD_REQUEST, str(e))
        return self._handled(request, connection)

    def _handled(self, request: Request, connection: Hashable) -> str | None:
        """The response line to a request; None if it comes later."""
        return self._answered_with(self._handlers[request.command], request, connection)

    def _answered_with(self, handler: Handler, request: Request, connection: Hashable) -> str | None:
        try:
            _check_names(request)
            fields = handler(self, request, connection)
            return None if fields is None else self._success(request, fields)
        except Refused as e:
            return _refusal(request.correlation_id, e.code, e.message)
        except (OSError, KafkaCodecError) as e:
            self._failures.append(e)
            return _refusal(request.correlation_id, ErrorCode.STORAGE_ERROR, "storage failure; try again")

    def _success(self, request: Request, fields: Fields) -> str:
        return Response.success(request.correlation_id, request.command, fields, commands=self._commands).encode()

    def _answer_waiting(self) -> list[Reply]:
        """Answer the waiting acks=all that are replicated, have timed out, or lost their leader."""
        replies = []
        for (topic, index), queue in list(self._waiting.items()):
            state = self._partitions.look(topic, index, self._now)
            while queue:
                waiting = queue[0]
                if not state.leader:
                    response = Response.error(waiting.correlation_id, ErrorCode.NOT_LEADER, "no longer the leader")
                elif state.high_watermark > waiting.offset and len(state.in_sync) >= self._config.min_in_sync:
                    response = Response.success(
                        waiting.correlation_id, "PRODUCE", _produced(index, waiting.offset, state)
                    )
                elif self._now >= waiting.deadline:
                    reason = f"{len(state.in_sync)} replicas in sync, high watermark {state.high_watermark}"
                    response = Response.error(waiting.correlation_id, ErrorCode.REPLICATION_TIMEOUT, reason)
                else:
                    break
                replies.append(Reply(waiting.connection, response.encode()))
                queue.popleft()
                self._waiting_count -= 1
            if not queue:
                del self._waiting[topic, index]
        return replies

    def _produce(self, request: Request, connection: Hashable) -> Fields | None:
        args, topic = request.args, request.args["topic"]
        count = self._partitions.count(topic)
        if count < 1:
            raise Refused(ErrorCode.BAD_REQUEST, "unknown topic")
        room = self._config.max_line_bytes - RESPONSE_ROOM
        if message_size(_LONGEST_OFFSET, args["value"]) > room:
            raise Refused(ErrorCode.BAD_REQUEST, f"value too long: a CONSUME response has room for {room} bytes")
        index = self._partitioner(args["key"], count)
        state = self._partitions.look(topic, index, self._now)
        if not state.leader:
            raise Refused(ErrorCode.NOT_LEADER, IS_FOLLOWER)
        if args["acks"] == "all" and self._waiting_count >= self._config.max_waiting:
            raise Refused(ErrorCode.BAD_REQUEST, "too many waiting requests with acks=all")
        self._partitions.require_room(topic)
        offset = self._storage.append(topic, index, args["key"], args["value"])
        self._partitions.appended(topic, index, state)
        state.appended(offset + 1, self._now)
        if args["acks"] != "all":
            return _produced(index, offset, state)
        deadline = self._now + self._config.replication_timeout_ms
        waiting = _Waiting(connection, request.correlation_id, offset, deadline)
        self._waiting.setdefault((topic, index), deque()).append(waiting)
        self._waiting_count += 1
        return None

    def _consume(self, request: Request, _: Hashable) -> Fields:
        topic, index, start = request.args["topic"], request.args["partition"], request.args["offset"]
        state = self._partitions.look(topic, index, self._now)
        if start < 0:
            raise Refused(ErrorCode.BAD_REQUEST, "negative offset")
        found = self._storage.read(topic, index, start, state.high_watermark) if start < state.high_watermark else ()
        room = self._config.max_line_bytes - RESPONSE_ROOM
        messages: list[dict[str, Any]] = []
        for offset, value in islice(found, self._config.max_messages):  # offsets may have no records
            room -= message_size(offset, value)
            if room < 0 and not messages:
                raise Refused(ErrorCode.BAD_REQUEST, f"record at offset {offset} too long for a response line")
            if room < 0:
                break
            messages.append({"offset": offset, "value": value})
        return {"messages": messages, "hw": state.high_watermark}

    def _join(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        if self._partitions.count(args["topic"]) < 1:
            raise Refused(ErrorCode.BAD_REQUEST, "unknown topic")
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
        self._groups.leave(key, request.args["consumer_id"], self._now)
        return {"left": True}

    def _commit(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        key, group = self._member(request)
        if args["partition"] not in group.assignments[args["consumer_id"]]:
            raise Refused(ErrorCode.GENERATION_MISMATCH, "the partition is not assigned to this member")
        if args["offset"] < 0:
            raise Refused(ErrorCode.BAD_REQUEST, "negative offset")
        self._groups.commit(key, args["partition"], args["offset"])
        return {"committed": True}

    def _offset(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        self._partitions.check(args["topic"], args["partition"])
        return {"offset": self._groups.committed(args["group"], args["topic"], args["partition"])}

    def _replica_fetch(self, request: Request, _: Hashable) -> Fields:
        args, topic, index = request.args, request.args["topic"], request.args["partition"]
        state = self._partitions.look(topic, index, self._now)
        if not state.leader:
            raise Refused(ErrorCode.NOT_LEADER, IS_FOLLOWER)
        if not 0 <= args["offset"] <= state.end:
            raise Refused(ErrorCode.BAD_REQUEST, f"offset out of range: the leader's log ends at {state.end}")
        state.reported(args["replica_id"], args["offset"], self._now)
        self._partitions.reported(topic, index, state)
        return {
            "replica": args["replica_id"],
            "acked_offset": args["offset"],
            "hw": state.high_watermark,
            "isr": state.in_sync,
            "under_replicated": len(state.in_sync) < self._config.replication_factor,
        }

    def _set_role(self, request: Request, _: Hashable) -> Fields | None:
        args, topic, index = request.args, request.args["topic"], request.args["partition"]
        state = self._partitions.look(topic, index, self._now)
        self._partitions.set_role(topic, index, state, leader=args["role"] == "leader")
        return {"topic": topic, "partition": index, "role": args["role"], "hw": state.high_watermark}

    def _ping(self, _request: Request, _: Hashable) -> Fields:
        return {}

    def _member(self, request: Request) -> tuple[tuple[str, str], Group]:
        args = request.args
        key = (args["group"], args["topic"])
        return key, self._groups.check(key, args["consumer_id"], args["generation"], self._now)


# The offset with the longest text.
_LONGEST_OFFSET = -(1 << 63)


def _refusal(correlation_id: str, code: ErrorCode, message: str) -> str:
    """The response line of an error."""
    if len(correlation_id) > MAX_ID_LENGTH:
        reason = f"correlation id longer than {MAX_ID_LENGTH} characters"
        return Response.error("0", ErrorCode.BAD_REQUEST, reason).encode()
    return Response.error(correlation_id, code, message).encode()


def _check_names(request: Request) -> None:
    """Limit the length of names and ids, which are kept and sent back."""
    long = [n for n in ("topic", "group", "consumer_id") if len(request.args.get(n, "")) > MAX_NAME_LENGTH]
    if long or len(request.correlation_id) > MAX_ID_LENGTH:
        raise Refused(ErrorCode.BAD_REQUEST, f"{', '.join(long)} longer than {MAX_NAME_LENGTH} characters")


def _produced(partition: int, offset: int, state: Partition) -> Fields:
    return {"partition": partition, "offset": offset, "hw": state.high_watermark}


HANDLERS: Mapping[str, Handler] = {
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
