"""Calls of one server of the client rewrite to the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kafkacodec.dialects.connection import Dialer
from kafkacodec.dialects.rewrite.exchange import Exchange
from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Running
    from kafkacodec.broker.dialects.rewrite import RewriteService
    from kafkacodec.dialects.rewrite.server import Ask

__all__ = ["Peers"]

_log = logging.getLogger("kafkacodec.broker")
_TIMEOUT_MS: Final = 3_000


class Peers:
    """The other servers and this server's address.

    Args:
        service: of this server.
        servers: host and port of all servers by id; empty: this one is alone.
        own: the id of this one.
    """

    def __init__(self, service: RewriteService, servers: Mapping[int, tuple[str, int]], own: int) -> None:
        self._service, self._own = service, servers.get(own)
        exchange = partial(Exchange, passes_on=True)
        self._others = {number: Dialer(servers[number], _TIMEOUT_MS, exchange) for number in servers if number != own}
        self._runner: Running | None = None
        self._early: list[Ask] = []  # from before the topics are loaded
        self._tasks: set[asyncio.Task[None]] = set()
        service.ask = self.ask

    async def start(self, address: tuple[str, int]) -> None:
        """Tell members the configured address, or the address of the bound listener."""
        self._service.listens(self._own or address)

    async def close(self) -> None:
        """Nothing is registered."""

    def begin(self, runner: Running) -> None:
        """Start, once the topics are loaded."""
        self._runner = runner
        early, self._early = self._early, []
        self.ask(early)

    async def end(self) -> None:
        """Stop asking others."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for dialer in self._others.values():
            dialer.close()

    def ask(self, asks: list[Ask]) -> None:
        """Make calls; the service gets each reply, or that there is none."""
        if self._runner is None:
            self._early += asks
            return
        for one in asks:
            task = asyncio.get_running_loop().create_task(self._asked(one, self._runner))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    async def _asked(self, ask: Ask, runner: Running) -> None:
        reply = None
        try:
            reply = await self._others[ask.server].ask(ask.call)
        except (KafkaCodecError, OSError) as error:
            _log.info("server %d of the client rewrite: %s", ask.server, error)
        runner.run(self._service.answered(ask.token, reply, runner.now))

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a call to another server failed", exc_info=task.exception())
