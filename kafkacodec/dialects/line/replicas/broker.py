"""One of several brokers of the line protocol with the same partitions, without I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.broker import HANDLERS, Broker, Reply
from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.errors import NOT_ELECTED, TOO_MANY_WAIT, ErrorCode
from kafkacodec.dialects.line.group_files import groups_text, read_groups_text
from kafkacodec.dialects.line.groups import Refused
from kafkacodec.dialects.line.parsing import Request, Response
from kafkacodec.dialects.line.partitions import Partitions
from kafkacodec.dialects.line.replicas.changes import Changes
from kafkacodec.dialects.line.replicas.commands import REPLICA_COMMANDS, Led
from kafkacodec.dialects.line.replicas.following import NO_TICKET
from kafkacodec.dialects.line.replicas.roles import ALL, Role, Roles
from kafkacodec.dialects.line.replicas.storage import ReplicaStorage
from kafkacodec.dialects.line.replicas.tickets import Answer, Tickets
from kafkacodec.dialects.line.replication import Partition

__all__ = ["ReplicatedBroker", "Wish"]

_FETCH_WAIT_MS: Final = 2_000
_MAX_ROLES: Final = 100_000
_LAST: Final = 1 << 31  # epochs of records have 32 bits
_RECORDS_BYTES: Final = 1 << 19  # of an answer, or one batch

Wish = Literal["look", "lead", "lead uncleanly"]
"""The next step for a partition: find its leader; or lead it, even if committed records may be missing."""

Key = tuple[str, int]
Fields = dict[str, Any]


class _Asked(NamedTuple):
    """A request whose answer comes later."""

    connection: Hashable
    request: Request
    deadline: int


class _Partitions(Partitions):
    """Partitions of which the broker leads only those that it was elected for."""

    def __init__(self, storage: ReplicaStorage, config: BrokerConfig, roles: Roles) -> None:
        super().__init__(storage, config)
        self._records_of, self._roles = storage, roles

    def look(self, topic: str, partition: int, now: int) -> Partition:
        state = super().look(topic, partition, now)
        if state.leader:
            state.flushed(self._records_of.flushed_end(topic, partition))
        else:
            state.end = self._records_of.stored_end(topic, partition)
        return state

    def set_role(self, topic: str, partition: int, state: Partition, *, leader: bool) -> None:
        super().set_role(topic, partition, state, leader=leader)
        self._states[topic, partition] = state  # also without records: it was elected

    def _new(self, topic: str, partition: int, end: int) -> Partition:
        known = min(self._roles[topic, partition].high_watermark, end)
        return Partition(self._config.replica_lag_ms, end, self._config.min_in_sync, known, leader=False)


class ReplicatedBroker(Broker):
    """A broker whose partitions have replicas on others. `take_wishes` returns the work for the driver.

    Args:
        storage: keeps records, groups and offsets.
        config: see `BrokerConfig`.
        roles: its durable state.
        broker_id: its id, below the replication factor; for a leader, a replica's id is its distance from the leader's.
        now: as for `Broker`.
    """

    def __init__(
        self, storage: ReplicaStorage, config: BrokerConfig, roles: Roles, broker_id: int, *, now: int = 0
    ) -> None:
        self._roles, self._broker_id, self._records_of = roles, broker_id, storage
        self._parked: dict[Key, deque[_Asked]] = {}  # records for a partition that is about to be led
        self._fetches: dict[Key, deque[_Asked]] = {}
        self._pulls: dict[str, deque[_Asked]] = {}  # of the groups of a topic
        self._tickets: dict[str, Tickets] = {}  # of the topics whose groups this broker has
        self._to_lead: dict[Key, list[_Asked]] = {}
        self._wishes: dict[Key, Wish] = {}
        self._touched: set[Key] | None = set()  # with possible answers; None: any
        self._changes = Changes()  # of led partitions
        super().__init__(storage, config, now=now)
        self._commands = REPLICA_COMMANDS
        self._handlers = _HANDLERS

    def _made_partitions(self) -> Partitions:
        return _Partitions(self._records_of, self._config, self._roles)

    def _managing(self) -> Callable[[str], bool]:
        return self._tickets.__contains__

    # For the driver of `replicas.following`

    def take_wishes(self) -> dict[Key, Wish]:
        """Return the partitions whose role may have to change since the last call."""
        wishes, self._wishes = self._wishes, {}
        return wishes

    def count(self, topic: str) -> int:
        """The number of partitions of a topic."""
        return self._partitions.count(topic)

    def leads(self, key: Key) -> bool:
        """Whether it leads a partition."""
        return key[1] < self._partitions.count(key[0]) and self._partitions.look(*key, self._now).leader

    def promise(self, key: Key, epoch: int) -> None:
        """Promise to serve no leader older than an epoch, and stop leading."""
        own = epoch % self._config.replication_factor == self._broker_id
        self._roles.change(key, promised=epoch, leads=own and self._roles[key].leads)
        self._step_down(key)

    def lead(self, key: Key, now: int) -> list[Reply]:
        """Start leading after an election. Return the answers."""
        self._set_clock(now)
        replies = self._answer_waiting()  # to an earlier leader
        state = self._partitions.look(*key, now)
        self._partitions.set_role(*key, state, leader=True)
        self._touch([key])
        self._changes.add(key)
        state.epoch_begin = state.end
        if key[1] == 0:
            self._roles.change(key, group_epoch=self._roles[key].promised, group_ticket=ALL)
            self._groups.renew(key[0], now)
            self._tickets[key[0]] = Tickets(self._config.min_in_sync - 1)
        for asked in self._to_lead.pop(key, ()):
            replies.append(Reply(asked.connection, self._success(asked.request, _role(key, asked, state))))
        for asked in self._parked.pop(key, ()):
            answer = self._handled(asked.request, asked.connection)
            replies += [Reply(asked.connection, answer)] if answer is not None else []
        return replies

    def not_elected(self, key: Key, reason: str) -> list[Reply]:
        """Note that it cannot lead now. Return the answers."""
        return [_refused(asked, reason) for asked in self._to_lead.pop(key, ())]

    def learn(self, key: Key, high_watermark: int) -> None:
        """Note the leader's high watermark."""
        state = self._partitions.look(*key, self._now)
        if not state.leader:
            state.high_watermark = max(state.high_watermark, min(high_watermark, state.end))
            self._partitions.set_role(*key, state, leader=False)
            self._roles.note(key, state.high_watermark)

    def keep_groups(self, key: Key, text: bytes, epoch: int, ticket: int) -> None:
        """Have the groups of a topic as another broker has them. Raises CorruptRecord: nothing has changed."""
        self._groups.take_over(key[0], *read_groups_text(key[0], text), self._now)
        self._roles.change(key, group_epoch=epoch, group_ticket=ticket)

    def stored(self, now: int, keys: Iterable[Key] | None = None) -> list[Reply]:
        """Note that logs, or their flushed parts, have grown; None: any. Return the answers."""
        self._set_clock(now)
        self._touch(keys)
        return self._answer_waiting()

    def tickets(self) -> dict[str, int]:
        """Return the last ticket of each topic whose groups this broker has."""
        return {topic: tickets.last for topic, tickets in self._tickets.items()}

    def kept_groups(self, tickets: Mapping[str, int], now: int) -> list[Reply]:
        """Note that the disk has the groups of these tickets. Return the answers."""
        self._set_clock(now)
        for topic, ticket in tickets.items():
            if topic in self._tickets:
                self._tickets[topic].kept_here = max(ticket, self._tickets[topic].kept_here)
        self._touch((topic, 0) for topic in tickets)
        return self._answer_waiting()

    def lost_groups(self, now: int) -> list[Reply]:
        """Note that the disk refused the groups. Return the answers."""
        self._set_clock(now)
        found: list[Reply] = []
        for tickets in self._tickets.values():
            for answer in tickets.waiting:
                reason = "the disk refused the change"
                line = Response.error(answer.correlation_id, ErrorCode.STORAGE_ERROR, reason).encode()
                found.append(Reply(answer.connection, line))
            tickets.waiting.clear()
        return found

    def disconnect(self, connection: Hashable) -> None:
        """Drop the waiting requests of a connection."""
        super().disconnect(connection)
        self._changes.forget(connection)
        for waiting in (self._parked, self._fetches, self._pulls):
            for key, queue in list(waiting.items()):
                kept = deque(asked for asked in queue if asked.connection != connection)
                waiting[key] = kept  # type: ignore[index]
                if not kept:
                    del waiting[key]  # type: ignore[arg-type]
        for tickets in self._tickets.values():
            tickets.waiting = deque(answer for answer in tickets.waiting if answer.connection != connection)

    def next_deadline(self) -> int | None:
        """As in `Broker`."""
        queues = (*self._parked.values(), *self._fetches.values(), *self._pulls.values())
        found = [super().next_deadline(), *(queue[0].deadline for queue in queues)]
        found += [tickets.waiting[0].deadline for tickets in self._tickets.values() if tickets.waiting]
        return min((deadline for deadline in found if deadline is not None), default=None)

    # Inside

    def _touch(self, keys: Iterable[Key] | None) -> None:
        """Note that these may have answers; None: all."""
        if keys is None:
            self._touched = None
        elif self._touched is not None:
            self._touched.update(keys)

    def _handled(self, request: Request, connection: Hashable) -> str | None:
        self._touch([(request.args.get("topic", ""), request.args.get("partition", 0))])
        return super()._handled(request, connection)

    def _step_down(self, key: Key) -> None:
        self._touch([key])
        state = self._partitions.look(*key, self._now)
        if state.leader:
            self._changes.add(key)
            self._partitions.set_role(*key, state, leader=False)
        self._wishes.setdefault(key, "look")

    def tick(self, now: int) -> list[Reply]:
        """As in `Broker`."""
        before = self._records_of.group_changes
        self._touch(None)
        replies = super().tick(now)
        if self._records_of.group_changes != before:  # members were silent for too long
            for tickets in self._tickets.values():
                tickets.take(changes=True)
            replies += self._answer_waiting()
        return replies

    def _answer_waiting(self) -> list[Reply]:
        replies = super()._answer_waiting()
        touched, self._touched = self._touched, set()
        keys = list(self._fetches) if touched is None else touched & self._fetches.keys()
        for key in keys:
            replies += self._answered_fetches(key, self._fetches[key])
            if not self._fetches[key]:
                del self._fetches[key]
        topics = (
            {*self._tickets, *self._pulls} if touched is None else {topic for topic, number in touched if not number}
        )
        for topic in topics & self._tickets.keys():
            replies += self._answered_about_groups(topic)
        for topic in topics & self._pulls.keys():
            replies += self._answered_pulls(topic, self._pulls[topic])
            if not self._pulls[topic]:
                del self._pulls[topic]
        for key, queue in list(self._parked.items()):
            while queue and (queue[0].deadline <= self._now or not self._roles[key].leads):
                replies.append(_refused(queue.popleft(), NOT_ELECTED))
            if not queue:
                del self._parked[key]
        return replies

    def _answered_fetches(self, key: Key, queue: deque[_Asked]) -> Iterator[Reply]:
        promised = self._roles[key].promised
        for asked in list(queue):
            args = asked.request.args
            if args["epoch"] != promised:
                yield _refused(asked, f"epoch {promised} was promised since then")
            elif self._has_news(key, args) or asked.deadline <= self._now:
                yield Reply(asked.connection, self._success(asked.request, self._records(key, args["offset"])))
            else:
                continue
            queue.remove(asked)

    def _produce(self, request: Request, connection: Hashable) -> Fields | None:
        topic = request.args["topic"]
        count = self._partitions.count(topic)
        key = topic, self._partitioner(request.args["key"], count) if count else 0
        if count and self._roles[key].leads and not self._partitions.look(*key, self._now).leader:
            if sum(map(len, self._parked.values())) >= self._config.max_waiting:
                raise Refused(ErrorCode.NOT_LEADER, TOO_MANY_WAIT)
            deadline = self._now + self._config.replication_timeout_ms
            self._parked.setdefault(key, deque()).append(_Asked(connection, request, deadline))
            self._wishes.setdefault(key, "look")
            return None
        return super()._produce(request, connection)

    def _of_group(self, request: Request, connection: Hashable) -> Fields | None:
        """Handle a group request, at the leader of the topic's partition 0; the answer waits for followers with its
        ticket.
        """
        topic = request.args["topic"]
        key = topic, 0
        if not self._partitions.count(topic):
            return HANDLERS[request.command](self, request, connection)
        if not self._partitions.look(*key, self._now).leader:
            if self._roles[key].leads:
                self._wishes.setdefault(key, "look")
            raise Refused(ErrorCode.NOT_LEADER, "the leader of the topic's partition 0 has the groups")
        tickets = self._tickets[topic]
        self._touch([key])
        if len(tickets.waiting) >= self._config.max_waiting:
            raise Refused(ErrorCode.BAD_REQUEST, "too many requests about groups wait")
        before = self._records_of.group_changes
        line = self._answered_with(HANDLERS[request.command], request, connection)
        ticket = tickets.take(changes=self._records_of.group_changes != before)
        deadline = self._now + self._config.replication_timeout_ms
        tickets.waiting.append(Answer(ticket, connection, request.correlation_id, line or "", deadline))
        return None

    def _answered_about_groups(self, topic: str) -> Iterator[Reply]:
        tickets = self._tickets[topic]
        if self._records_of.has_kept_groups:
            tickets.kept_here = tickets.last
        yield from (Reply(answer.connection, answer.line) for answer in tickets.due())
        leads = self.leads((topic, 0))
        while tickets.waiting and (not leads or tickets.waiting[0].deadline <= self._now):
            answer = tickets.waiting.popleft()
            code = ErrorCode.REPLICATION_TIMEOUT if leads else ErrorCode.NOT_LEADER
            reason = "too few replicas have taken it over in time" if leads else "no longer the leader"
            yield Reply(answer.connection, Response.error(answer.correlation_id, code, reason).encode())
        if not leads:
            del self._tickets[topic]

    def _answered_pulls(self, topic: str, queue: deque[_Asked]) -> Iterator[Reply]:
        promised, tickets = self._roles[topic, 0].promised, self._tickets.get(topic)
        for asked in list(queue):
            args = asked.request.args
            if args["epoch"] != promised or tickets is None:
                yield _refused(asked, f"epoch {promised} was promised since then")
            elif args["ticket"] < tickets.last or asked.deadline <= self._now:
                yield Reply(asked.connection, self._success(asked.request, self._pulled(topic, args["ticket"])))
            else:
                continue
            queue.remove(asked)

    def _asked_for_groups(self, request: Request, connection: Hashable) -> Fields | None:
        self._require_epoch(request)
        args, topic = request.args, request.args["topic"]
        tickets = self._tickets.get(topic)
        if tickets is None:  # not the leader, but it may have the newest records
            return self._pulled(topic, NO_TICKET)
        tickets.kept(args["replica_id"], args["ticket"])
        if args["ticket"] < tickets.last:
            return self._pulled(topic, args["ticket"])
        self._pulls.setdefault(topic, deque()).append(_Asked(connection, request, self._now + _FETCH_WAIT_MS))
        return None

    def _pulled(self, topic: str, ticket: int) -> Fields:
        tickets = self._tickets.get(topic)
        if tickets is not None and tickets.changed <= ticket:
            return {"ticket": tickets.last, "groups": b""}
        groups, offsets = self._records_of.load_groups(), self._records_of.load_offsets()
        return {"ticket": 0 if tickets is None else tickets.last, "groups": groups_text(topic, groups, offsets)}

    def _replica_fetch(self, request: Request, connection: Hashable) -> Fields:
        self._require_epoch(request)
        return super()._replica_fetch(request, connection)

    def _set_role(self, request: Request, connection: Hashable) -> Fields | None:
        args = request.args
        key = args["topic"], args["partition"]
        state = self._partitions.look(*key, self._now)
        if (args["role"] == "leader") == state.leader:
            self._roles.change(key, leads=state.leader)
            return super()._set_role(request, connection)
        if args["role"] == "follower":
            self._roles.change(key, leads=False)
            self._step_down(key)
            return super()._set_role(request, connection)
        self._require_room(key)
        self._to_lead.setdefault(key, []).append(_Asked(connection, request, 0))
        self._wishes[key] = "lead uncleanly" if args["unclean"] == "true" else "lead"
        return None

    def _state(self, request: Request, connection: Hashable) -> Fields:
        changed = self._changes.since(request.args["since"], connection)
        keys = list(self._roles) if changed is None else changed
        led = [key for key in keys if self.leads(key)]
        leads = [Led(key[0], self._partitions.count(key[0]), key[1], self._roles[key].accepted) for key in led]
        gone = [] if changed is None else [key for key in changed if not self.leads(key)]
        return {"version": self._changes.version, "whole": changed is None, "leads": leads, "gone": gone}

    def _renew(self, request: Request, _: Hashable) -> Fields:
        key, epoch = (request.args["topic"], request.args["partition"]), request.args["epoch"]
        if (
            self._partitions.count(key[0]) > key[1] >= 0
            and self.leads(key)
            and self._roles[key].promised < epoch < _LAST
        ):
            self.promise(key, epoch)
            self._roles.change(key, leads=True)
            self._wishes[key] = "lead"
        return {}

    def _leaders(self, request: Request, _: Hashable) -> Fields:
        topic = request.args["topic"]
        count = self._partitions.count(topic)
        found = [(number, role.promised) for number in range(count) if (role := self._roles[topic, number]).leads]
        return {"partitions": count, "leads": [one for one, _ in found], "epochs": [epoch for _, epoch in found]}

    def _asked_to_promise(self, request: Request, _: Hashable) -> Fields:
        args, epoch = request.args, request.args["epoch"]
        key = args["topic"], args["partition"]
        if not 0 <= args["partition"] < args["count"] or epoch < 0:
            raise Refused(ErrorCode.BAD_REQUEST, "no such partition or epoch")
        self._require_room(key)
        before = self._roles[key].promised
        if epoch > before:
            if self._partitions.count(key[0]) > key[1]:
                self.promise(key, epoch)
            else:
                self._roles.change(key, promised=epoch, leads=False)
        role: Role = self._roles[key]
        return {
            "granted": epoch >= before,
            "promised": role.promised,
            "accepted": role.accepted,
            "end": self._records_of.stored_end(*key),
            "group_epoch": role.group_epoch,
            "group_ticket": role.group_ticket,
        }

    def _epoch(self, request: Request, _: Hashable) -> Fields:
        args = request.args
        epoch, end = self._records_of.epoch_end(args["topic"], args["partition"], args["epoch"])
        return {"epoch": epoch, "end": end}

    def _asked_for_records(self, request: Request, connection: Hashable) -> Fields | None:
        self._require_epoch(request)
        key, offset = (request.args["topic"], request.args["partition"]), request.args["offset"]
        end = self._records_of.stored_end(*key)
        if not 0 <= offset <= end:
            raise Refused(ErrorCode.BAD_REQUEST, f"offset out of range: the log ends at {end}")
        if self._has_news(key, request.args):
            return self._records(key, offset)
        queue = self._fetches.setdefault(key, deque())
        if len(queue) >= self._config.max_waiting:
            raise Refused(ErrorCode.BAD_REQUEST, "too many requests wait for records")
        queue.append(_Asked(connection, request, self._now + _FETCH_WAIT_MS))
        return None

    def _has_news(self, key: Key, args: Fields) -> bool:
        """Whether there are records, or a high watermark, that a request does not know."""
        known = args["hw"]
        return args["offset"] < self._records_of.stored_end(*key) or (
            known is not None and self._partitions.look(*key, self._now).high_watermark > known
        )

    def _records(self, key: Key, offset: int) -> Fields:
        storage, state = self._records_of, self._partitions.look(*key, self._now)
        start, end = storage.start(*key), storage.stored_end(*key)
        records, epoch = storage.batches(*key, max(offset, start), _RECORDS_BYTES) if offset < end else (b"", 0)
        begin = state.epoch_begin if state.leader else end
        return {"start": start, "begin": begin, "end": end, "hw": state.high_watermark, "of": epoch, "records": records}

    def _require_epoch(self, request: Request) -> None:
        """Refuse a request about another leader's log."""
        args = request.args
        promised = self._roles[args["topic"], args["partition"]].promised
        if args["epoch"] is None:
            raise Refused(ErrorCode.BAD_REQUEST, "a report of a replica names the leader's epoch: epoch=<number>")
        if args["epoch"] != promised:
            raise Refused(ErrorCode.NOT_LEADER, f"epoch {promised} was promised, not {args['epoch']}")

    def _require_room(self, key: Key) -> None:
        if self._roles[key].promised < 0 and len(self._roles) >= _MAX_ROLES:
            raise Refused(ErrorCode.BAD_REQUEST, "too many partitions")


def _role(key: Key, asked: _Asked, state: Partition) -> Fields:
    return {"topic": key[0], "partition": key[1], "role": asked.request.args["role"], "hw": state.high_watermark}


def _refused(asked: _Asked, reason: str) -> Reply:
    response = Response.error(asked.request.correlation_id, ErrorCode.NOT_LEADER, reason)
    return Reply(asked.connection, response.encode())


_HANDLERS: Final = {
    **HANDLERS,
    **dict.fromkeys(("JOIN", "SYNC", "HEARTBEAT", "LEAVE", "COMMIT", "OFFSET"), ReplicatedBroker._of_group),
    "PRODUCE": ReplicatedBroker._produce,
    "REPLICA_FETCH": ReplicatedBroker._replica_fetch,
    "SET_PARTITION_ROLE": ReplicatedBroker._set_role,
    "REPLICA_STATE": ReplicatedBroker._state,
    "REPLICA_LEADERS": ReplicatedBroker._leaders,
    "REPLICA_RENEW": ReplicatedBroker._renew,
    "REPLICA_PROMISE": ReplicatedBroker._asked_to_promise,
    "REPLICA_EPOCH": ReplicatedBroker._epoch,
    "REPLICA_RECORDS": ReplicatedBroker._asked_for_records,
    "REPLICA_GROUPS": ReplicatedBroker._asked_for_groups,
}
