"""A group of eight members over three servers, which are processes: members and controllers join, leave and are killed.

What every member reads is checked by the rules of the text: a partition has one owner in a generation, who reads from
the offset that it was given, without a gap; that offset is not before what was committed, nor after what was read.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

import kafkacodec as kc
from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite.aio import Consumer
from kafkacodec.dialects.rewrite.config import ConsumerConfig
from kafkacodec.dialects.rewrite.consuming import Consuming
from kafkacodec.dialects.rewrite.groups import Partition
from kafkacodec.dialects.rewrite.member import MemberState
from kafkacodec.errors import KafkaCodecError
from tests.replicas.cluster import free_ports

ROUNDS = 500 if os.environ.get("KAFKACODEC_LONG") else 10
MEMBERS, SERVERS, PARTITIONS = 8, 3, 12
SESSION_MS = 2_000
PATIENCE = 120.0  # seconds, on a busy machine


class Servers:
    """The servers of the groups."""

    def __init__(self, path):
        self.path = path
        self.ports = free_ports(SERVERS)
        self.processes = {}
        for number in range(SERVERS):
            self.start(number)

    @property
    def addresses(self):
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self, number):
        servers = ",".join(f"{n}@127.0.0.1:{port}" for n, port in enumerate(self.ports))
        command = [
            sys.executable, "-m", "kafkacodec.cli", "serve", "--data", self.path / str(number), "--listen",
            f"rewrite://127.0.0.1:{self.ports[number]}", "--topic", f"orders:{PARTITIONS}", "--broker-id", str(number),
            "--config", f"rewrite.servers={servers}",
        ]  # fmt: skip
        with open(self.path / f"{number}.log", "a") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.processes[number] = process
        listening = process.stdout.readline()
        assert listening.startswith("listening on"), (self.path / f"{number}.log").read_text()[-2000:]

    def kill(self, number):
        process = self.processes.pop(number)
        process.kill()
        process.wait()
        process.stdout.close()

    def stop(self):
        for number in list(self.processes):
            self.kill(number)


class History:
    """What members have read and committed, and what is wrong with it."""

    def __init__(self):
        self.faults = []
        self.reads = Counter()  # by partition and offset
        self.end = Counter()  # after the last offset that was read, by partition
        self.committed = Counter()
        self.rewinding = Counter()  # rewinds that go on, by partition
        self.unknown = Counter()  # rewinds whose member was killed or gave up: they may happen later, once
        self.owed = {}  # by partition: the offset of a rewind that was answered, until it is read or another one begins
        self.honoured = 0
        self.owners = {}  # by generation and partition
        self.generations = set()

    def assigned(self, name, starts):
        for partition, offset in starts.items():
            start = max(offset, 0)
            self.has_rewound(partition, start)
            if not self.committed[partition] <= start <= self.end[partition]:
                least, most = self.committed[partition], self.end[partition]
                self.faults.append(f"{name} begins {partition} at {offset}, which is not from {least} to {most}")

    def owned(self, name, generation, partitions):
        self.generations.add(generation)
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), name)
            if owner != name:
                self.faults.append(f"{owner} and {name} own {partition} in generation {generation}")

    def read(self, name, partition, offset, expected):
        self.reads[partition, offset] += 1
        if self.owed.get(partition) == offset:
            del self.owed[partition]
            self.honoured += 1
        self.end[partition] = max(self.end[partition], offset + 1)
        if offset != expected and not self.has_rewound(partition, offset):
            self.faults.append(f"{name} reads {offset} of {partition} instead of {expected}")

    def has_rewound(self, partition, offset):
        """Whether a rewind with an unknown outcome has happened now."""
        found = self.unknown[partition, offset] > 0
        if found:
            self.owed.pop(partition, None)
            self.unknown[partition, offset] -= 1
            self.committed[partition] = min(self.committed[partition], offset)
        return found

    def has_committed(self, offsets):
        for partition, offset in offsets.items():
            if not self.rewinding[partition]:
                self.committed[partition] = offset


class Watched(Consuming):
    """Tells the history of commits that were acknowledged."""

    history: History

    async def _commit(self, offsets):
        await super()._commit(offsets)
        self.history.has_committed(offsets)


class Member:
    """A consumer that polls until it leaves or is killed."""

    def __init__(self, name, config, history):
        self.name, self.history = name, history
        config = {**config, "client.id": name}
        self.consumer = Consumer(config)
        self.consumer._work = Watched(ConsumerConfig.parse(config), {})
        self.consumer._work.history = history
        self.consumer.add_topic("orders")
        self.own = None
        self.expected = {}
        self.frozen_until = 0.0
        self.rewinds = []
        self.task = asyncio.ensure_future(self.run())

    async def run(self):
        while True:
            if time.monotonic() < self.frozen_until:
                await asyncio.sleep(0.05)
                continue
            try:
                messages = await self.consumer.poll(0.1)
            except rewrite.GroupError:  # another try by the next poll
                messages = []
            self.look()
            for m in messages:
                partition = Partition(m.topic, m.partition)
                self.history.read(self.name, partition, m.offset, self.expected.get(partition))
                self.expected[partition] = m.offset + 1
            while self.rewinds:
                await self.rewind(*self.rewinds.pop())

    def look(self):
        member = self.consumer._work._member
        if member.partitions is not self.own and member.state is MemberState.CONSUMING:
            self.own = member.partitions
            self.history.assigned(self.name, self.own)
            self.expected = {partition: max(offset, 0) for partition, offset in self.own.items()}
        if member.generation and member.state is MemberState.CONSUMING:
            self.history.owned(self.name, member.generation, self.own)

    async def rewind(self, partition, offset):
        before = self.history.reads[partition, offset]
        self.history.owed.pop(partition, None)
        is_alone = not self.history.rewinding[partition]
        self.history.rewinding[partition] += 1
        self.history.committed[partition] = min(self.history.committed[partition], offset)
        try:
            await self.consumer.rewind_offsets({partition: offset})
        except (KafkaCodecError, asyncio.CancelledError) as error:
            self.history.unknown[partition, offset] += 1
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            if partition in self.consumer._work._member.partitions:
                self.expected[partition] = offset
            is_read = self.history.reads[partition, offset] > before
            self.history.honoured += is_read
            if is_alone and not is_read and self.history.rewinding[partition] == 1:
                self.history.owed[partition] = offset
        finally:
            self.history.rewinding[partition] -= 1
        self.look()

    async def leave(self):
        await self.end()
        await self.consumer.close()

    async def kill(self):
        """As a killed process: its connections end, and nothing else happens."""
        await self.end()
        self.consumer._work._config = ConsumerConfig.parse(
            {"bootstrap.servers": "h:1", "rewrite.servers": "h:1", "enable.auto.commit": False}
        )
        await self.consumer.close()

    async def end(self):
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


class Group:
    """The members, and the records that they read."""

    def __init__(self, broker, servers):
        self.broker, self.servers = broker, servers
        self.history = History()
        self.config = {
            "bootstrap.servers": broker.bootstrap_servers, "rewrite.servers": servers.addresses, "group.id": "g",
            "session.timeout.ms": SESSION_MS, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 300,
            "request.timeout.ms": 5_000,
        }  # fmt: skip
        self.members = []
        self.names = 0
        self.written = 0

    def join(self):
        self.names += 1
        self.members.append(Member(f"member-{self.names}", self.config, self.history))

    def write(self, count=5):
        for partition in range(PARTITIONS):
            values = [kc.Record(i, 1_000, 0, None, b"%d" % (self.written + i), ()) for i in range(count)]
            self.broker.write("orders", values, partition=partition)
        self.written += count

    async def caught_up(self):
        """Until everything is read, and what was read anew after rewinds, too."""
        await self.until(lambda: all(self.history.end[place(p)] == self.written for p in range(PARTITIONS)))

    def is_settled(self):
        """Whether all members share the partitions in one generation."""
        members = [m.consumer._work._member for m in self.members]
        owned = [partition for member in members for partition in member.partitions]
        generations = {member.generation for member in members}
        return len(owned) == len(set(owned)) == PARTITIONS and len(generations) == 1 and 0 not in generations

    async def until(self, is_true):
        end = time.monotonic() + PATIENCE
        while not is_true():
            assert time.monotonic() < end, self.shown()
            assert not self.history.faults, self.history.faults[:5]
            for member in self.members:
                if member.task.done():
                    member.task.result()
            await asyncio.sleep(0.02)

    def shown(self):
        states = {m.name: (m.consumer._work._member.state, m.consumer.last_error) for m in self.members}
        return f"{dict(self.history.end)} of {self.written}, {self.history.owed}; {states}"

    def controller(self):
        """The number of the group's server."""
        return next(m.consumer._work._member.controller.broker_id for m in self.members if self.knows(m))

    @staticmethod
    def knows(member):
        return member.consumer._work._member.controller is not None

    async def disturb(self, rnd):
        kinds = ["join", "leave", "kill", "kill", "freeze", "kill the controller", "kill a server", "rewind", "rewind"]
        kind = rnd.choice(kinds)
        one = rnd.choice(self.members)
        match kind:
            case "join" if len(self.members) < MEMBERS + 2:
                self.join()
            case "leave" | "kill":
                self.members.remove(one)
                await (one.leave() if kind == "leave" else one.kill())
                self.join()
            case "freeze":
                one.frozen_until = time.monotonic() + rnd.random() * 1.5 * SESSION_MS / 1000
            case "kill the controller" | "kill a server":
                await self.until(lambda: any(map(self.knows, self.members)))
                number = self.controller() if kind == "kill the controller" else rnd.randrange(SERVERS)
                self.servers.kill(number)
                await asyncio.sleep(rnd.random())
                await asyncio.to_thread(self.servers.start, number)
            case "rewind":
                partition = place(rnd.randrange(PARTITIONS))
                await self.until(lambda: self.history.end[partition] > 0)
                offset = rnd.randrange(max(self.history.end[partition] - 10, 0), self.history.end[partition])
                one.rewinds.append((partition, offset))


def place(number):
    return Partition("orders", number)


async def run(broker, servers, rnd):
    group = Group(broker, servers)
    group.write()
    for _ in range(MEMBERS):
        group.join()
    await group.caught_up()
    for _ in range(ROUNDS):
        group.write()
        await group.disturb(rnd)
        if rnd.random() < 0.7:
            await group.until(group.is_settled)
            await group.caught_up()
    while len(group.members) > MEMBERS:
        await group.members.pop().leave()
    group.write()
    await group.until(group.is_settled)
    await group.caught_up()
    await group.until(lambda: not group.history.owed)
    for member in list(group.members):
        await member.leave()
    return group


def test_members_and_controllers_come_and_go(tmp_path):
    servers = Servers(tmp_path)
    try:
        with kc.broker.serve(topics={"orders": PARTITIONS}) as broker:
            group = asyncio.run(run(broker, servers, random.Random(8)))
    finally:
        servers.stop()
    history = group.history
    assert history.faults == []
    assert all(history.reads[place(p), offset] for p in range(PARTITIONS) for offset in range(group.written))
    assert len(history.generations) >= 3
    assert {partition for _, partition in history.owners} == {place(p) for p in range(PARTITIONS)}


def test_the_history_finds_what_is_wrong():
    """Each fault of a broken controller or member is told."""
    partition = place(0)

    def faults(*events):
        history = History()
        for name, *arguments in [("assigned", "a", {partition: -1}), ("read", "a", partition, 0, 0), *events]:
            getattr(history, name)(*arguments)
        return history.faults

    fine = ("read", "a", partition, 1, 1), ("has_committed", {partition: 2}), ("assigned", "b", {partition: 2})
    assert faults(*fine) == []
    assert faults(("owned", "a", 1, [partition]), ("owned", "b", 1, [partition])) != []
    assert faults(("read", "a", partition, 2, 1)) != []  # a gap
    assert faults(("read", "a", partition, 0, 1)) != []  # once more
    assert faults(("assigned", "b", {partition: 5})) != []  # what nobody has read is passed over
    assert faults(*fine, ("assigned", "b", {partition: 1})) != []  # before what was committed
