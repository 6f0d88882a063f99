"""A connection to a server of the line protocol, in the running event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacodec.dialects import connection
from kafkacodec.dialects.line.errors import RequestRefused
from kafkacodec.dialects.line.exchange import Exchange
from kafkacodec.dialects.line.parsing import Response

__all__ = ["Dialer"]


class Dialer(connection.Dialer):
    """The connection to a server. The first request opens it; after its end, the next request opens another.

    Args:
        address: host and port.
        timeout_ms: the time limit of connecting and of each answer.
        exchange: makes the state of a connection's requests.
    """

    def __init__(
        self, address: tuple[str, int], timeout_ms: float, exchange: Callable[[], Exchange] = Exchange
    ) -> None:
        super().__init__(address, timeout_ms, exchange)

    async def demand(self, command: str, args: dict[str, Any]) -> Response:
        """As `ask`, but a refusal is raised as RequestRefused."""
        response: Response = await self.ask(command, args)
        if not response.ok:
            raise RequestRefused(response.code or "", response.message or "")
        return response
