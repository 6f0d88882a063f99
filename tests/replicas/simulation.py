"""Brokers with replicas in one process, without sockets and disks: what happens next is drawn at random.

The machines, the steps and the decisions are those of the product. Here are a network that loses and delays what it
carries, disks that lose what was not flushed when the power fails, a clock, and clients that note what they see.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kafkacodec.dialects.line.broker import Reply
from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.parsing import Request, parse_response
from kafkacodec.dialects.line.replicas import following
from kafkacodec.dialects.line.replicas.broker import ReplicatedBroker
from kafkacodec.dialects.line.replicas.commands import REPLICA_COMMANDS
from kafkacodec.dialects.line.replicas.roles import Roles
from kafkacodec.dialects.line.replicas.watching import Elect, Follow, Renew, Stop, Watch
from kafkacodec.dialects.line.storage import MemoryStorage
from kafkacodec.errors import KafkaCodecError
from tests.replicas.cluster import fields, parsed, parsed_partitions
from tests.replicas.history import Committed, Consumed, History, Owned, Produced

TOPIC, KEY, BROKERS, IN_SYNC = "orders", ("orders", 0), 3, 2
Record = tuple[int, str]  # leader epoch and value


class _Files(NamedTuple):
    """What is in the files, and which change that was."""

    version: int
    groups: Any
    offsets: Any
    roles: list[dict[str, Any]]


class Disk(MemoryStorage):
    """What a broker keeps: one partition's records, its epochs, groups, roles. Its log is also a `ReplicaLog`."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Record] = []
        self.epochs: list[tuple[int, int]] = []  # epoch and where it begins
        self.flushed = self.group_changes = 0
        self.taken: list[str] = []
        self.leader_epoch_of_appends = 0
        self.version = 0  # of groups, offsets and roles
        self.saved = _Files(0, [], [], [])

    # A Storage

    def append(self, topic: str, partition: int, key: str, value: str) -> int:
        self.taken.append(value)
        return self.end(topic, partition) - 1

    def end(self, topic: str = "", partition: int = 0) -> int:  # type: ignore[override]
        return len(self.log) + len(self.taken)

    def read(self, topic: str, partition: int, start: int, stop: int) -> Iterator[tuple[int, str]]:
        return ((offset, self.log[offset][1]) for offset in range(start, min(stop, len(self.log))))

    def topics(self) -> set[str]:
        return {TOPIC} if self.log else set()

    def save_groups(self, groups: Any) -> None:
        super().save_groups(json.loads(json.dumps(groups)))
        self.group_changes += 1
        self.version += 1

    def save_offsets(self, offsets: Any) -> None:
        super().save_offsets(json.loads(json.dumps(offsets)))
        self.group_changes += 1
        self.version += 1

    # A ReplicaStorage

    @property
    def has_kept_groups(self) -> bool:
        return self.saved.version == self.version

    def stored_end(self, topic: str, partition: int) -> int:
        return len(self.log)

    def flushed_end(self, topic: str, partition: int) -> int:
        return min(self.flushed, len(self.log))

    def start(self, topic: str, partition: int) -> int:
        return 0

    def epoch_end(self, topic: str, partition: int, epoch: int) -> tuple[int, int]:
        latest = self.epochs[-1][0] if self.epochs else -1
        if epoch >= latest:
            return latest, len(self.log)
        above = next(begin for one, begin in self.epochs if one > epoch)
        below = [one for one, _ in self.epochs if one <= epoch]
        return (below[-1] if below else epoch), above

    def batches(self, topic: str, partition: int, offset: int, most: int) -> tuple[bytes, int]:
        epoch = self.log[offset][0]
        end = next((i for i in range(offset, len(self.log)) if self.log[i][0] != epoch), len(self.log))
        return json.dumps([offset, [value for _, value in self.log[offset : min(end, offset + 5)]]]).encode(), epoch

    # What the driver does

    def store(self) -> bool:
        taken, self.taken = self.taken, []
        self._extend([(self.leader_epoch_of_appends, value) for value in taken])
        return bool(taken)

    def copy(self, records: bytes, epoch: int) -> None:
        first, values = json.loads(records)
        assert first == len(self.log), "a replica has a hole"
        self._extend([(epoch, value) for value in values])

    def truncate(self, offset: int) -> None:
        del self.log[offset:]
        self.flushed = min(self.flushed, len(self.log))
        self.epochs = [one for one in self.epochs if one[1] < len(self.log)]

    def begin_epoch(self, epoch: int) -> None:
        if not self.epochs or epoch > self.epochs[-1][0]:
            self.epochs = [one for one in self.epochs if one[1] < len(self.log)] + [(epoch, len(self.log))]
        self.leader_epoch_of_appends = epoch

    def begin_again(self) -> None:
        """A process begins: of files and records it has what was written."""
        self.taken = []
        self.version = self.saved.version
        super().save_groups(self.saved.groups)
        super().save_offsets(self.saved.offsets)

    def lose_power(self) -> None:
        self.truncate(self.flushed)

    def _extend(self, records: list[Record]) -> None:
        for epoch, value in records:
            if not self.epochs or epoch > self.epochs[-1][0]:
                self.epochs.append((epoch, len(self.log)))
            self.log.append((epoch, value))


class _View:
    """The log of a disk, for the steps."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    @property
    def end(self) -> int:
        return len(self._disk.log)

    @property
    def leader_epoch(self) -> int:
        return self._disk.epoch_end(*KEY, 1 << 62)[0]

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        return self._disk.epoch_end(*KEY, epoch)


class _Lost(KafkaCodecError):
    """No answer came."""


class _Task:
    """Steps that are being carried out by a node."""

    def __init__(self, node: Node, steps: following.Steps, epoch: int | None, what: Any) -> None:
        self.node, self.steps, self.epoch, self.what = node, steps, epoch, what
        self.done = False
        node.saved_then(lambda: self.advance(None))

    def advance(self, result: Any) -> None:
        """Go on with the result of a step, or with an exception."""
        while not self.done:
            try:
                step = self.steps.throw(result) if isinstance(result, Exception) else self.steps.send(result)
                result = self._do(step)
            except (StopIteration, following.NotElected, following.Diverged, KafkaCodecError) as end:
                self.done = True
                self.node.watch.ended(KEY)
                if isinstance(self.what, Elect) and not isinstance(end, StopIteration):
                    self.node.replied(self.node.machine.not_elected(KEY, str(end)))
                return
            if result is _LATER:
                return

    def _do(self, step: Any) -> Any:
        node, disk = self.node, self.node.disk
        if isinstance(step, following.Promise):
            self.epoch = step.epoch
        elif node.roles[KEY].promised != self.epoch:
            raise _Lost("another epoch was promised")
        match step:
            case following.Ask(broker, command, args):
                node.world.ask(node, broker, command, args, self._answered)
            case following.AskAll(command, args, enough):
                _All(self, command, args, enough)
            case following.Flush():
                node.world.later(node, lambda: self._flushed(len(disk.log)))
            case following.Truncate(offset):
                return disk.truncate(offset)
            case following.Copy(records, epoch, _):
                return disk.copy(records, epoch)
            case following.Promise(epoch):
                node.machine.promise(KEY, epoch)
                node.saved_then(lambda: self._answered(None))
            case following.Accept(epoch):
                node.roles.change(KEY, accepted=epoch)
                node.saved_then(lambda: self._answered(None))
            case following.Lead(epoch):
                node.roles.change(KEY, leads=True)
                node.saved_then(lambda: self._led(epoch))
            case following.Learn(high_watermark):
                return node.machine.learn(KEY, high_watermark)
            case following.KeepGroups(text, epoch, ticket):
                node.machine.keep_groups(KEY, text, epoch, ticket)
                node.saved_then(lambda: self._answered(None))
        return _LATER

    def _led(self, epoch: int) -> None:
        node = self.node
        if self.done:
            return
        if node.roles[KEY].promised != epoch:
            self.advance(_Lost("another epoch was promised"))
            return
        node.disk.begin_epoch(epoch)
        node.replied(node.machine.lead(KEY, node.world.now))
        self.advance(None)

    def _answered(self, answer: Any) -> None:
        if not self.done:
            self.advance(answer)

    def _flushed(self, end: int) -> None:
        if not self.done:
            self.node.disk.flushed = max(self.node.disk.flushed, min(end, len(self.node.disk.log)))
            self.advance(None)


_LATER = object()


class _All:
    """A question to all others."""

    def __init__(self, task: _Task, command: str, args: dict[str, Any], enough: int) -> None:
        self._task, self._enough, self._answers = task, enough, dict[int, Any]()
        others = [number for number in range(BROKERS) if number != task.node.number]
        self._left = len(others)
        self._told = False
        for number in others:
            task.node.world.ask(task.node, number, command, args, lambda a, n=number: self._answered(n, a))

    def _answered(self, number: int, answer: Any) -> None:
        self._left -= 1
        if not isinstance(answer, Exception):
            self._answers[number] = answer
        granted = sum(one["granted"] for one in self._answers.values())
        if not self._told and not self._task.done and (granted >= self._enough or not self._left):
            self._told = True
            self._task.advance(self._answers)


class Node:
    """One broker while it runs."""

    def __init__(self, world: World, number: int, disk: Disk) -> None:
        self.world, self.number, self.disk = world, number, disk
        self.is_running = True
        disk.begin_again()
        self.roles = Roles(disk.saved.roles, self._changed_roles, leads=number == 0)
        self.roles_version = self.asked = disk.version
        config = BrokerConfig(
            replication_factor=BROKERS, min_in_sync=IN_SYNC, replica_lag_ms=2000, session_timeout_ms=4000
        )
        self.machine = ReplicatedBroker(disk, config, self.roles, number, now=world.now)
        others = [other for other in range(BROKERS) if other != number]
        self.watch = Watch(self.machine, self.roles, others, BROKERS - IN_SYNC + 1)
        self._task: _Task | None = None
        self._groups: _Task | None = None

    def receive(self, line: str, answer: Callable[[str], None]) -> None:
        """A line of a client or of another broker."""
        self.store()
        self.replied(self.machine.receive(line, self.world.now, answer))
        if self.world.random.random() < 0.7:
            self.store()

    def store(self) -> None:
        """What was taken goes to the log, and later to the disk."""
        if self.disk.store():
            self.replied(self.machine.stored(self.world.now))
            end = len(self.disk.log)
            self.world.later(self, lambda: self._flushed(end))

    def tick(self) -> None:
        """Time has passed."""
        self.store()
        self.replied(self.machine.tick(self.world.now))

    def look(self) -> None:
        """Ask the others who leads."""
        for number in range(BROKERS):
            if number != self.number:
                self.world.ask(self, number, "REPLICA_STATE", {}, lambda a, n=number: self._heard(n, a))

    def replied(self, replies: list[Reply]) -> None:
        """Answers go out once the disk has the roles, and wishes are looked at."""
        if self.roles_version > self.disk.saved.version:
            self.saved_then(lambda: self._send(replies))
        else:
            self._send(replies)
            if self.asked < self.disk.version:
                self.saved_then(lambda: None)
        wishes = self.machine.take_wishes()
        if wishes:
            self.watch.wish(wishes)
            self.world.later(self, self._decide)

    def saved_then(self, then: Callable[[], None]) -> None:
        """Go on once the disk has groups, offsets and roles as they are now."""
        disk, tickets = self.disk, self.machine.tickets()
        self.asked = disk.version
        rows = [dict(row) for row in self.roles.rows()]
        found = _Files(disk.version, disk.load_groups(), disk.load_offsets(), rows)

        def saved() -> None:
            if found.version >= disk.saved.version:
                disk.saved = found
            self.replied(self.machine.kept_groups(tickets, self.world.now))
            then()

        if found.version == disk.saved.version:
            then()
        else:
            self.world.later(self, saved)

    def _send(self, replies: list[Reply]) -> None:
        for reply in replies:
            reply.connection(reply.line)  # type: ignore[operator]

    def _changed_roles(self) -> None:
        self.disk.version += 1
        self.roles_version = self.disk.version

    def _heard(self, number: int, answer: Any) -> None:
        due = self.watch.heard(number, None if isinstance(answer, Exception) else answer)
        if KEY in due:
            self._decide()

    def _flushed(self, end: int) -> None:
        self.disk.flushed = max(self.disk.flushed, min(end, len(self.disk.log)))
        self.replied(self.machine.stored(self.world.now))

    def _decide(self) -> None:
        task = self._task
        decision = self.watch.decide(KEY, None if task is None or task.done else task.what)
        if decision is None:
            return
        for one in (self._task, self._groups):
            if one is not None:
                one.done = True
        self._task = self._groups = None
        log, role = _View(self.disk), self.roles[KEY]
        if isinstance(decision, Follow):
            self.machine.promise(KEY, decision.epoch)
            leader, epoch = decision.leader, decision.epoch
            me, committed = (self.number - leader) % BROKERS, self.machine.partition(*KEY).high_watermark
            steps = following.follow(log, KEY, leader, epoch, role.accepted, committed, me)
            self._task = _Task(self, steps, epoch, decision)
            self._groups = _Task(self, following.follow_groups(TOPIC, leader, epoch, me), epoch, decision)
        elif isinstance(decision, Elect):
            steps = following.elect(log, KEY, self.roles, self.number, BROKERS, decision.needed, 1)
            self._task = _Task(self, steps, None, decision)
        elif isinstance(decision, Renew):
            args = {"topic": TOPIC, "partition": 0, "epoch": decision.epoch}
            self.world.ask(self, decision.leader, "REPLICA_RENEW", args, lambda _: None)
        else:
            assert isinstance(decision, Stop)


class World:
    """Everything. `run` lets so many events happen.

    Args:
        seed: of the random choices.

    Attributes:
        history: what the clients saw.
    """

    def __init__(self, seed: int) -> None:
        self.random, self.now, self.history = random.Random(seed), 0, History()
        self.is_calm = False
        self._events: list[Callable[[], None]] = []
        self._disks = [Disk() for _ in range(BROKERS)]
        self._number = 0
        self._time = 0.0
        self._generations: dict[str, int] = {}
        self.nodes: list[Node] = [Node(self, number, disk) for number, disk in enumerate(self._disks)]

    def run(self, events: int) -> None:
        """Let so many things happen."""
        for _ in range(events):
            self._time += 1
            if len(self._events) > 8 or self.random.random() < 0.6:
                if self._events:
                    self._events.pop(self.random.randrange(len(self._events)))()
            elif self.random.random() < 0.25 or self.is_calm:
                self._pass_time()
            elif self.random.random() < 0.95:
                self.random.choice((self._produce, self._produce, self._consume, self._work))()
            else:
                self.random.choice((self._crash, self._promote))()

    def settle(self) -> list[str]:
        """Nothing breaks any more: until all have the same; what is wrong then.

        Raises AssertionError if they never have, though nothing that is committed differs.
        """
        self.is_calm = True
        for number, node in enumerate(self.nodes):
            if not node.is_running:
                self.nodes[number] = Node(self, number, self._disks[number])
        for round_ in range(600):
            if round_ % 100 == 0:
                self._promote()
            self.run(50)
            leaders = [node for node in self.nodes if node.machine.leads(KEY)]
            logs = {json.dumps(disk.log) for disk in self._disks}
            if len(leaders) == 1 and len(logs) == 1:
                committed = leaders[0].machine.partition(*KEY).high_watermark
                if committed == len(self._disks[0].log):
                    return self.history.faults({0: {at: value for at, (_, value) in enumerate(self._disks[0].log)}})
        differences = [
            f"at {offset} replicas have {sorted(values)}"
            for offset in range(min(node.machine.partition(*KEY).high_watermark for node in self.nodes))
            if len(values := {disk.log[offset][1] for disk in self._disks if offset < len(disk.log)}) > 1
        ]
        assert differences, "the replicas never have the same"
        return differences

    def later(self, node: Node, event: Callable[[], None]) -> None:
        """At some time, unless the node has ended by then."""
        self._events.append(lambda: event() if node.is_running else None)

    def ask(self, node: Node, broker: int, command: str, args: dict[str, Any], then: Callable[[Any], None]) -> None:
        """A request from broker to broker. `then` gets the fields of the answer, or an exception; perhaps too late."""
        line = Request("1", command, args).encode(commands=REPLICA_COMMANDS)

        def answered(text: str) -> None:
            response = parse_response(text, command, commands=REPLICA_COMMANDS)
            self.later(node, lambda: once(response.fields if response.ok else _Lost(text)))

        self._send(broker, line, answered, lambda: self.later(node, lambda: once(_Lost("no answer"))))
        once = _Once(then)

    def _send(self, broker: int, line: str, answered: Callable[[str], None], lost: Callable[[], None]) -> None:
        target = self.nodes[broker]

        def arrives() -> None:
            is_lost = not self.is_calm and self.random.random() < 0.05
            if target.is_running and not is_lost:
                target.receive(line, answered)
            if is_lost or not target.is_running or (not self.is_calm and self.random.random() < 0.05):
                lost()

        self._events.append(arrives)

    def _pass_time(self) -> None:
        self.now += self.random.choice((10, 100, 600))
        for node in self.nodes:
            if node.is_running:
                node.tick()
                node.look()

    def _crash(self) -> None:
        number = self.random.randrange(BROKERS)
        node = self.nodes[number]
        if node.is_running:
            node.is_running = False
            if self.random.random() < 0.5:
                node.disk.lose_power()
        else:
            self.nodes[number] = Node(self, number, self._disks[number])

    def _promote(self) -> None:
        self._send(self.random.randrange(BROKERS), f"V1|1|SET_PARTITION_ROLE|{TOPIC} 0 leader", _ignored, _nothing)

    # Clients

    def _produce(self) -> None:
        self._number += 1
        begin, value = self._time, f"v{self._number}"

        def answered(line: str) -> None:
            if "|OK|" in line:
                found = fields(line.split("|", 2)[2])
                self.history.produced.append(Produced(begin, self._time, 0, int(found["offset"]), value))

        self._send(self._any(), f"V1|1|PRODUCE|{TOPIC} k:{value} acks=all", answered, _nothing)

    def _consume(self) -> None:
        begin, start = self._time, self.random.randrange(max(1, self._number))

        def answered(line: str) -> None:
            messages = parsed(line.split("|", 2)[2])
            if messages:
                self.history.consumed.append(Consumed(begin, self._time, 0, messages))

        self._send(self._any(), f"V1|1|CONSUME|{TOPIC} 0 {start}", answered, _nothing)

    def _work(self) -> None:
        """A member of a group joins, or asks for an offset, or commits."""
        member = self.random.choice(("a", "b"))
        generation = self._generations.get(member)
        if generation is None or self.random.random() < 0.3:
            self._send(self._any(), f"V1|1|JOIN|g {TOPIC} {member}", lambda line: self._joined(member, line), _nothing)
            return
        begin, offset = self._time, self._number

        def answered(line: str) -> None:
            text = line.split("|", 2)[2]
            if text.startswith("OK"):
                told = int(fields(text).get("offset", offset))
                self.history.committed.append(Committed(begin, self._time, 0, told, "offset=" in text))

        commit = f"COMMIT|g {TOPIC} {member} {generation} 0 {offset}"
        line = self.random.choice((commit, f"OFFSET|g {TOPIC} 0"))
        self._send(self._any(), f"V1|1|{line}", answered, _nothing)

    def _joined(self, member: str, line: str) -> None:
        text = line.split("|", 2)[2]
        if text.startswith("OK"):
            found = fields(text)
            self._generations[member] = int(found["generation"])
            self.history.owned.append(Owned(int(found["generation"]), member, parsed_partitions(found["assigned"])))

    def _any(self) -> int:
        leaders = [node.number for node in self.nodes if node.is_running and node.machine.leads(KEY)]
        return self.random.choice(leaders * 3 + list(range(BROKERS)))


class _Once:
    """Gives the first of several answers on."""

    def __init__(self, then: Callable[[Any], None]) -> None:
        self._then: Callable[[Any], None] | None = then

    def __call__(self, answer: Any) -> None:
        then, self._then = self._then, None
        if then is not None:
            then(answer)


def _ignored(_: str) -> None:
    """The answer does not matter."""


def _nothing() -> None:
    """The loss does not matter."""
