"""The servers of the groups, for clients: connections by address, and which server a call goes to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from kafkacodec.dialects.connection import Dialer
from kafkacodec.dialects.rewrite.controller import Broker
from kafkacodec.dialects.rewrite.exchange import Exchange
from kafkacodec.dialects.rewrite.rpcs import (
    CreateEphemeralGroup,
    CreateGroup,
    DeleteGroup,
    ErrorCode,
    Heartbeat,
    ListGroups,
    RegisterConsumer,
    RewindConsumer,
    Rpc,
    refusal,
)
from kafkacodec.errors import ClientClosed, ConnectionFailed, DeadlineExceeded, RemoteProtocolError

__all__ = ["Servers"]

_TO_ANY: Final = (ListGroups, CreateGroup, CreateEphemeralGroup, DeleteGroup)
_WAITS_FOR_MEMBERS: Final = (RegisterConsumer, RewindConsumer)


class Servers:
    """Connections to the servers, each opened by its first call.

    Args:
        bootstrap: host and port of some of them.
        timeout_ms: the time limit of connecting and of a reply; replies that wait for other members take as long as
            these.
    """

    def __init__(self, bootstrap: Iterable[tuple[str, int]], timeout_ms: float) -> None:
        self._bootstrap = list(bootstrap)
        self._timeout_ms = timeout_ms
        self._dialers: dict[tuple[str, int], Dialer] = {}
        self._controllers: dict[str, tuple[str, int]] = {}  # by group
        self._registered: dict[str, str] = {}  # group by client id
        self.closed = False

    async def ask(self, call: Any) -> Rpc:
        """Return the reply of the right server for a call.

        It asks for a group's controller once, and again after the controller was unreachable or has named another.

        Raises:
            ConnectionFailed, DeadlineExceeded, RemoteProtocolError: there is none.
            EncodeError: a value that the layout cannot represent.
        """
        group = self._registered.get(call.client_id) if isinstance(call, Heartbeat) else _group_of(call)
        if group is None:
            return await self.ask_any(call)
        address = self._controllers.get(group)
        if address is None:
            listed: Any = await self.ask_any(ListGroups(client_id=call.client_id, consumer_groups=[group]))
            if not listed.groups_info:
                return refusal(call, listed.error_code or ErrorCode.UNKNOWN_GROUP)
            broker = listed.groups_info[0].controller_broker
            address = self._controllers[group] = (broker.host, broker.port)
        if isinstance(call, RegisterConsumer):
            self._registered[call.client_id] = group
        try:
            reply: Any = await self.ask_at(address, call)
        except (ConnectionFailed, DeadlineExceeded, RemoteProtocolError):
            self._controllers.pop(group, None)
            raise
        if getattr(reply, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            self._controllers.pop(group, None)
        return reply  # type: ignore[no-any-return]

    async def ask_any(self, call: Rpc) -> Rpc:
        """Return the reply of the first server that answers; the next call starts with it. Raises as `ask`."""
        error: Exception = ConnectionFailed("there is no server")
        for _ in range(len(self._bootstrap)):
            address = self._bootstrap[0]
            try:
                return await self.ask_at(address, call)
            except (ConnectionFailed, DeadlineExceeded, RemoteProtocolError) as failure:
                error = failure
            if self._bootstrap[0] == address:
                self._bootstrap.append(self._bootstrap.pop(0))
        raise error

    async def ask_of(self, broker: Broker | None, call: Rpc) -> Rpc:
        """The reply of a controller, or of any server. Raises as `ask`."""
        return await (self.ask_any(call) if broker is None else self.ask_at((broker.host, broker.port), call))

    async def ask_at(self, address: tuple[str, int], call: Rpc) -> Rpc:
        """The reply of the server at an address. Raises as `ask`."""
        if self.closed:
            raise ClientClosed("the client is closed")
        dialer = self._dialers.get(address)
        if dialer is None:
            dialer = self._dialers[address] = Dialer(address, self._timeout_ms, Exchange)
        if isinstance(call, _WAITS_FOR_MEMBERS):
            connection = await dialer.connected()
            reply: Rpc = await connection.ask(call)
        else:
            reply = await dialer.ask(call)
        return reply

    def close(self) -> None:
        """Close all connections; members whose connections they are leave their groups."""
        self.closed = True
        for dialer in self._dialers.values():
            dialer.close()


def _group_of(call: Any) -> str | None:
    """Return the group of a call for a controller; None: any server answers."""
    return None if isinstance(call, _TO_ANY) else call.consumer_group


async def ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait for their ends."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
