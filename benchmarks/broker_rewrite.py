"""The broker at its rewrite:// listener: heartbeats of many members, and how long they take to share the partitions."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from typing import Any

from benchmarks.broker_servers import Server, printing
from kafkacodec.dialects import rewrite
from kafkacodec.dialects.connection import Connection
from kafkacodec.dialects.rewrite.exchange import Exchange

MEMBERS, HEARTBEATS, IN_FLIGHT = 100, 50_000, 20
PARTITIONS = 1_000
_BEAT_SECONDS = 0.2
_SERVE = """
import sys
import kafkacodec as kc
with kc.broker.serve(sys.argv[1], listen="rewrite://127.0.0.1:0", topics={"orders": int(sys.argv[2])}) as broker:
    print(broker.listeners[0].partition("://")[2], flush=True)
    sys.stdin.read()
"""


def run() -> list[str]:
    """What is said about each."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-c", _SERVE, directory, str(PARTITIONS)]
        with printing(command) as server:
            return asyncio.run(_run(server))


async def _run(server: Server) -> list[str]:
    members = [_Member(f"member-{number}") for number in range(MEMBERS)]
    for member in members:
        await member.connect(server.address)
    create = rewrite.CreateGroup(consumer_group="g", session_timeout=60_000, topics=["orders"])
    await members[0].ask(create)
    beating = [asyncio.ensure_future(member.live()) for member in members[:-1]]
    await _shared(members[:-1])
    start = time.perf_counter()
    beating.append(asyncio.ensure_future(members[-1].live()))
    await _shared(members)
    rebalance = time.perf_counter() - start
    for task in beating:
        task.cancel()
    await asyncio.gather(*beating, return_exceptions=True)
    before, start = server.processor_seconds(), time.perf_counter()
    await asyncio.gather(*(member.beat(HEARTBEATS // MEMBERS) for member in members))
    seconds, spent = time.perf_counter() - start, server.processor_seconds() - before
    return [
        f"client rewrite: {HEARTBEATS / seconds:,.0f} heartbeats a second of {MEMBERS} members, "
        f"{HEARTBEATS / spent:,.0f} a processor second of the server.",
        f"client rewrite: {rebalance:.2f} s from the registration of member {MEMBERS} until all share {PARTITIONS:,} "
        f"partitions, with a heartbeat each {_BEAT_SECONDS:g} s.",
    ]


async def _shared(members: list[_Member]) -> None:
    """Wait until the members share all partitions."""
    while sum(member.count for member in members) != PARTITIONS or any(member.count == 0 for member in members):
        await asyncio.sleep(0.001)


class _Member:
    """A member with a connection of its own, as light as can be."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    async def connect(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        loop = asyncio.get_running_loop()
        _, self._connection = await loop.create_connection(lambda: Connection(address, Exchange()), host, int(port))

    async def ask(self, call: Any) -> Any:
        return await self._connection.ask(call)

    async def live(self) -> None:
        """Register whenever that is asked for."""
        names = {"client_id": self.name, "consumer_group": "g", "consumer_id": self.name}
        while True:
            reply = await self.ask(rewrite.RegisterConsumer(**names))
            self.count = len(reply.partitions_to_own)
            while not (await self.ask(rewrite.Heartbeat(client_id=self.name))).error_code:
                await asyncio.sleep(_BEAT_SECONDS)
            self.count = 0

    async def beat(self, count: int) -> None:
        """Send so many heartbeats, with some in flight."""
        for _ in range(count // IN_FLIGHT):
            calls = [self._connection.ask(rewrite.Heartbeat(client_id=self.name)) for _ in range(IN_FLIGHT)]
            for reply in await asyncio.gather(*calls):
                if reply.error_code:
                    raise RuntimeError(f"{self.name} is told {reply.error_code}")


if __name__ == "__main__":
    print(*run(), sep="\n")
