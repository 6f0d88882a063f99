"""Sends the calls of a group member in the running event loop; its consumer does the rest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from kafkacodec.dialects.rewrite.member import Action, GroupMember, Send
from kafkacodec.dialects.rewrite.rpcs import Rpc
from kafkacodec.dialects.rewrite.servers import Servers, ended
from kafkacodec.errors import KafkaCodecError

__all__ = ["MemberDriver"]

_PAUSE_SECONDS: Final = 0.1  # before the member hears that a call got no reply, and tries again


class MemberDriver:
    """Sends the calls of a member, and keeps the replies until they are taken.

    Args:
        member: decides.
        servers: get the calls.

    Attributes:
        arrived: set while there is a reply.
        last_error: the error of the last call; None if it got a reply.
    """

    def __init__(self, member: GroupMember, servers: Servers) -> None:
        self.member = member
        self._servers = servers
        self._tasks: set[asyncio.Task[None]] = set()
        self._found: deque[tuple[Rpc, Rpc | None]] = deque()
        self.arrived = asyncio.Event()
        self.last_error: Exception | None = None

    @staticmethod
    def now() -> int:
        """The time of the member, in milliseconds."""
        return int(asyncio.get_running_loop().time() * 1000)

    def sent(self, actions: Iterable[Action]) -> list[Action]:
        """Send calls; return the other actions."""
        left: list[Action] = []
        for action in actions:
            if isinstance(action, Send):
                task = asyncio.get_running_loop().create_task(self._ask(action))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                left.append(action)
        return left

    def replies(self) -> Iterator[tuple[Rpc, Rpc | None]]:
        """The calls with their replies since the last time; None: there was none."""
        while self._found:
            yield self._found.popleft()
        self.arrived.clear()

    async def close(self) -> None:
        """End the calls."""
        await ended(self._tasks)

    async def _ask(self, action: Send) -> None:
        reply = None
        try:
            reply = await self._servers.ask_of(action.broker, action.call)
            self.last_error = None
        except KafkaCodecError as error:
            self.last_error = error
            await asyncio.sleep(_PAUSE_SECONDS)
        self._found.append((action.call, reply))
        self.arrived.set()
