"""A group of eight members over three servers, which are processes: members and controllers join, leave and are killed.

Every third member is a process of its own, which is killed by SIGKILL. What every member reads is checked by the rules
of the text: see `History`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
import zlib
from contextlib import contextmanager
from functools import partial

import kafkacodec as kc
from kafkacodec.dialects.rewrite import ErrorCode
from tests.replicas.cluster import free_ports
from tests.rewrite_calls import Connection
from tests.rewrite_group.history import History
from tests.rewrite_group.member import Inside, Outside

ROUNDS = 500 if os.environ.get("KAFKACODEC_LONG") else 10
MEMBERS, SERVERS, PARTITIONS = 8, 3, 12
SESSION_MS = 2_000
PROCESSES = 3  # every so many members
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
        self.written = 0
        self.told, self.tells = os.pipe()
        os.set_blocking(self.told, False)
        self.unfinished = b""
        asyncio.get_running_loop().add_reader(self.told, self.hear)

    def hear(self):
        """Take what processes have told."""
        while True:
            try:
                data = os.read(self.told, 1 << 16)
            except BlockingIOError:
                return
            *lines, self.unfinished = (self.unfinished + data).split(b"\n")
            for line in lines:
                self.history.take(*json.loads(line))

    def tell(self, name, event, *arguments):
        """Take what a member of this process tells, after what others have told before."""
        self.hear()
        self.history.take(event, [name, *arguments])

    def join(self):
        number = self.history.joined = self.history.joined + 1
        name = f"member-{number}"
        if number % PROCESSES:
            self.members.append(Inside(name, self.config, partial(self.tell, name)))
        else:
            self.members.append(Outside(name, self.config, self.tells))

    async def end(self, member, *, killed):
        self.members.remove(member)
        await (member.kill() if killed else member.leave())
        self.hear()
        self.history.gone(member.name)

    def close(self):
        asyncio.get_running_loop().remove_reader(self.told)
        os.close(self.told)
        os.close(self.tells)

    def write(self, count=5):
        now = int(time.time() * 1000)  # no retention in a long run
        for partition in range(PARTITIONS):
            values = [kc.Record(i, now, 0, None, b"%d" % (self.written + i), ()) for i in range(count)]
            self.broker.write("orders", values, partition=partition)
        self.written += count

    async def caught_up(self):
        """Until everything is read, and what was read anew after rewinds, too."""
        await self.until(lambda: all(self.history.end[p] == self.written for p in range(PARTITIONS)))

    async def settled(self):
        """Until all members share the partitions in one generation."""
        newest = max(int(member.name.rpartition("-")[2]) for member in self.members)
        await self.until(self.is_settled)
        self.history.settled(newest)

    def is_settled(self):
        history, names = self.history, [member.name for member in self.members]
        owned = sorted(partition for name in names for partition in history.own.get(name, ()))
        return (
            owned == [*range(PARTITIONS)]
            and len({history.generation.get(name, -n) for n, name in enumerate(names)}) == 1
        )

    async def until(self, is_true):
        end = time.monotonic() + PATIENCE
        while not is_true():
            assert time.monotonic() < end, self.shown()
            assert not self.history.faults, self.history.faults[:5]
            for member in self.members:
                member.check()
            await asyncio.sleep(0.02)

    def shown(self):
        history = self.history
        return f"{dict(history.end)} of {self.written}, {history.owed}; {history.own}, {history.generation}"

    async def disturb(self, rnd):
        kinds = ["join", "leave", "kill", "kill", "freeze", "kill the controller", "kill a server", "rewind", "rewind"]
        kind = rnd.choice(kinds)
        one = rnd.choice(self.members)
        match kind:
            case "join" if len(self.members) < MEMBERS + 2:
                self.join()
            case "leave" | "kill":
                await self.end(one, killed=kind == "kill")
                self.join()
            case "freeze":
                one.freeze(rnd.random() * 1.5 * SESSION_MS / 1000)
            case "kill the controller" | "kill a server":
                number = zlib.crc32(b"g") % SERVERS if kind == "kill the controller" else rnd.randrange(SERVERS)
                self.servers.kill(number)
                await asyncio.sleep(rnd.random())
                await asyncio.to_thread(self.servers.start, number)
            case "rewind":
                partition = rnd.randrange(PARTITIONS)
                await self.until(lambda: self.history.end[partition] > 0)
                end = self.history.end[partition]
                one.rewind(partition, rnd.randrange(max(end - 10, 0), end))


async def run(broker, servers, rnd):
    group = Group(broker, servers)
    try:
        await disturbed(group, rnd)
    finally:
        for member in list(group.members):
            await group.end(member, killed=True)
        group.close()
    return group


async def disturbed(group, rnd):
    group.write()
    for _ in range(MEMBERS):
        group.join()
    await group.caught_up()
    for _ in range(ROUNDS):
        group.write()
        await group.disturb(rnd)
        if rnd.random() < 0.7:
            await group.settled()
            await group.caught_up()
    while len(group.members) > MEMBERS:
        await group.end(group.members[-1], killed=False)
    group.write()
    await group.settled()
    await group.caught_up()
    await group.until(lambda: not group.history.owed)
    for member in list(group.members):
        await group.end(member, killed=False)


def test_members_and_controllers_come_and_go(tmp_path):
    servers = Servers(tmp_path)
    try:
        with kc.broker.serve(topics={"orders": PARTITIONS}) as broker:
            group = asyncio.run(run(broker, servers, random.Random(8)))
    finally:
        servers.stop()
    history = group.history
    assert history.faults == []
    assert all(history.reads[partition, offset] for partition in range(PARTITIONS) for offset in range(group.written))
    assert len(history.generations) >= 3
    assert {partition for _, partition in history.owners} == {*range(PARTITIONS)}


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path):
    """A commit that does not fit is refused; what was answered stays, and the server goes on and comes back."""

    @contextmanager
    def serving(*limit):
        command = [sys.executable, "-m", "kafkacodec.cli", "serve", "--data", tmp_path, "--listen",
                   "rewrite://127.0.0.1:0", "--topic", f"orders:{PARTITIONS}"]  # fmt: skip
        if limit:
            command = [sys.executable, "-c", LIMITED, *map(str, limit), *command]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            listening = process.stdout.readline()
            with Connection(listening.split()[2]) as connection:
                yield connection
        finally:
            process.terminate()
            process.communicate()

    with serving(100_000) as calls:
        made = []
        while (code := calls.create(f"g{len(made)}" + "x" * 1_000)) == ErrorCode.NONE:
            made.append(f"g{len(made)}" + "x" * 1_000)
        assert code == ErrorCode.STORAGE_ERROR
        assert len(made) > 50
        assert calls.list(made[0]).error_code == ErrorCode.STORAGE_ERROR  # until the disk has what it would tell of
    with serving() as calls:
        found, code = calls.controllers()
        assert code == ErrorCode.NONE
        assert set(made) <= set(found)
        assert calls.create("one more") == ErrorCode.NONE


def test_the_history_finds_what_is_wrong():
    """Each fault of a broken controller or member is told."""

    def faults(*events):
        history = History()
        for name, *arguments in [("assigned", "a", [(0, -1)]), ("read", "a", 0, [0]), *events]:
            getattr(history, name)(*arguments)
        return history.faults

    committed = ("commits", "a", [(0, 2)]), ("committed", "a")
    fine = ("read", "a", 0, [1]), *committed, ("assigned", "b", [(0, 2)])
    assert faults(*fine) == []
    assert faults(("owned", "a", 1, [0]), ("owned", "b", 1, [0])) != []
    assert faults(("read", "a", 0, [2])) != []  # a gap
    assert faults(("read", "a", 0, [0])) != []  # once more
    assert faults(("assigned", "b", [(0, 5)])) != []  # what nobody has read is passed over
    assert faults(*fine, ("assigned", "b", [(0, 1)])) != []  # before what was committed
    answered = ("read", "a", 0, [1]), ("rewinds", "a", 0, 0), ("rewound", "a", True, True)
    assert faults(*answered, ("read", "a", 0, [0, 1])) == []
    assert faults(*answered, ("assigned", "b", [(0, 0)])) == []
    assert faults(*answered, ("assigned", "b", [(0, 2)])) != []  # a commit has undone it
    given_up = ("read", "a", 0, [1]), ("rewinds", "a", 0, 0), ("rewound", "a", False, True)
    again = ("assigned", "b", [(0, 0)])
    assert faults(*given_up, again) == []
    assert faults(*given_up, ("assigned", "b", [(0, 2)])) == []
    assert (
        faults(("commits", "a", [(0, 1)]), ("committed", "a"), *given_up, again, ("read", "b", 0, [0, 0])) != []
    )  # twice
    assert (
        faults(("rewinds", "a", 0, 0), *fine, ("gone", "a"), ("assigned", "b", [(0, 0)])) == []
    )  # it was killed meanwhile
    late = ("gone", "a"), ("settled", 1), ("commits", "b", [(0, 1)]), ("assigned", "b", [(0, 1)]), ("committed", "b")
    assert faults(("rewinds", "a", 0, 0), *late, ("assigned", "b", [(0, 0)])) != []  # after all have shared anew
