"""A member that polls until it leaves or is killed, here or as a process: python -m tests.rewrite_group.member …"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite.aio import Consumer
from kafkacodec.dialects.rewrite.config import ConsumerConfig
from kafkacodec.dialects.rewrite.consuming import Consuming
from kafkacodec.dialects.rewrite.groups import Partition
from kafkacodec.dialects.rewrite.member import MemberState
from kafkacodec.errors import KafkaCodecError

TOPIC = "orders"
MANY = 200  # offsets in one event: what is written to a pipe at once must be short

Tell = Callable[..., None]
"""Takes the name of an event of `History`, and its arguments."""


class Watched(Consuming):
    """Tells of commits."""

    tell: Tell

    async def _commit(self, offsets: Mapping[Partition, int]) -> None:
        self.tell("commits", [(p.partition, offset) for p, offset in offsets.items()])
        await super()._commit(offsets)
        self.tell("committed")


class Member:
    """A consumer that polls.

    Args:
        name: its client id.
        config: of the consumer.
        tell: takes an event without the name.
    """

    def __init__(self, name: str, config: Mapping[str, Any], tell: Tell) -> None:
        self.name, self._tell = name, tell
        given = {**config, "client.id": name}
        self.consumer = Consumer(given)
        self._work = self.consumer._work = Watched(ConsumerConfig.parse(given), {})
        self._work.tell = tell
        self.consumer.add_topic(TOPIC)
        self._own: Any = None
        self._generation = 0
        self._frozen_until = 0.0
        self._rewinds: list[tuple[int, int]] = []

    async def run(self) -> None:
        """Poll until it is cancelled."""
        while True:
            if time.monotonic() < self._frozen_until:
                await asyncio.sleep(0.05)
                continue
            try:
                messages = await self.consumer.poll(0.1)
            except rewrite.GroupError:  # another try by the next poll
                messages = []
            self.look()
            offsets: dict[int, list[int]] = {}
            for message in messages:
                offsets.setdefault(message.partition, []).append(message.offset)
            for partition, found in offsets.items():
                for start in range(0, len(found), MANY):
                    self._tell("read", partition, found[start : start + MANY])
            while self._rewinds:
                await self._rewind(*self._rewinds.pop())

    def look(self) -> None:
        """Tell of new partitions and generations."""
        member = self._work._member
        if member.state in (MemberState.CONSUMING, MemberState.REWINDING):
            if member.partitions is not self._own:
                self._own, self._generation = member.partitions, 0
                self._tell("assigned", [(p.partition, offset) for p, offset in self._own.items()])
            if member.generation != self._generation:
                self._generation = member.generation
                self._tell("owned", self._generation, [p.partition for p in self._own])
        elif self._own is not None:
            self._own = None
            self._tell("stopped")

    def freeze(self, seconds: float) -> None:
        """Do not poll for a while."""
        self._frozen_until = time.monotonic() + seconds

    def rewind(self, partition: int, offset: int) -> None:
        """Rewind after the next poll."""
        self._rewinds.append((partition, offset))

    async def _rewind(self, partition: int, offset: int) -> None:
        place = Partition(TOPIC, partition)
        self._tell("rewinds", partition, offset)
        is_answered = False
        try:
            await self.consumer.rewind_offsets({place: offset})
            is_answered = True
        except KafkaCodecError:
            pass
        is_own = self._own is self._work._member.partitions and place in self._own
        self._tell("rewound", is_answered, is_own)
        self.look()


class Handle(Protocol):
    """A member as whoever disturbs the group has it."""

    name: str

    def check(self) -> None:
        """Raises what has ended it."""

    def freeze(self, seconds: float) -> None:
        """Do not poll for a while."""

    def rewind(self, partition: int, offset: int) -> None:
        """Rewind after the next poll."""

    async def leave(self) -> None:
        """Commit, and leave the group."""

    async def kill(self) -> None:
        """End at once."""


class Inside(Member):
    """A member in this process."""

    def __init__(self, name: str, config: Mapping[str, Any], tell: Tell) -> None:
        super().__init__(name, config, tell)
        self._task = asyncio.ensure_future(self.run())

    def check(self) -> None:
        """Raises what has ended it."""
        if self._task.done():
            self._task.result()

    async def leave(self) -> None:
        """Commit, and leave the group."""
        await self._end()
        await self.consumer.close()

    async def kill(self) -> None:
        """As a killed process: its connections end, and nothing else happens."""
        await self._end()
        self._work._config = ConsumerConfig.parse(
            {"bootstrap.servers": "h:1", "rewrite.servers": "h:1", "enable.auto.commit": False}
        )
        await self.consumer.close()

    async def _end(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


class Outside:
    """A member in a process of its own.

    Args:
        name, config: as for `Member`.
        told: the writing end of a pipe, which takes a line for each event.
    """

    def __init__(self, name: str, config: Mapping[str, Any], told: int) -> None:
        self.name = name
        command = [sys.executable, "-m", "tests.rewrite_group.member", name, json.dumps(config), str(told)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(told,), text=True)

    def check(self) -> None:
        """Raises what has ended it."""
        assert self._process.poll() is None, f"{self.name} has ended with {self._process.returncode}"

    def freeze(self, seconds: float) -> None:
        """Do not poll for a while."""
        self._ask("freeze", seconds)

    def rewind(self, partition: int, offset: int) -> None:
        """Rewind after the next poll."""
        self._ask("rewind", partition, offset)

    async def leave(self) -> None:
        """Commit, and leave the group."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.to_thread(self._process.wait, 60)

    async def kill(self) -> None:
        """End at once."""
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)
        self._process.stdin.close()

    def _ask(self, *what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()


async def main(name: str, config: str, told: str) -> None:
    """Be a member until the input ends."""
    loop = asyncio.get_running_loop()

    def tell(event: str, *arguments: Any) -> None:
        os.write(int(told), json.dumps([event, [name, *arguments]]).encode() + b"\n")

    member = Inside(name, json.loads(config), tell)
    ended = asyncio.Event()

    def listen() -> None:
        for line in sys.stdin:
            what, *arguments = json.loads(line)
            loop.call_soon_threadsafe(getattr(member, what), *arguments)
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=listen, daemon=True).start()
    waiting = asyncio.ensure_future(ended.wait())
    await asyncio.wait([waiting, member._task], return_when=asyncio.FIRST_COMPLETED)
    member.check()
    await member.leave()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
