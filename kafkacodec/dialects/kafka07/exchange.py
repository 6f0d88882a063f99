"""The requests of a client's connection that wait for their responses, and connections to one broker."""

from __future__ import annotations

from collections import deque
from typing import Any

from kafkacodec.dialects.connection import Dialer
from kafkacodec.dialects.kafka07.connection import Connection, ResponseReceived
from kafkacodec.dialects.kafka07.wire import Request, Response
from kafkacodec.errors import RemoteProtocolError

__all__ = ["Exchange", "dialer"]


class Exchange:
    """Requests and their waiters, in order: a broker answers one after the other."""

    def __init__(self) -> None:
        self._connection = Connection("client")
        self._waiters: deque[Any] = deque()

    @property
    def pending(self) -> int:
        """How many requests wait."""
        return len(self._waiters)

    def request(self, request: Request, *, waiter: Any) -> bytes:
        """The frame of a request that has a response. Raises EncodeError, LocalProtocolError: too many wait."""
        frame = self._connection.send_request(request)
        self._waiters.append(waiter)
        return frame

    def received(self, data: bytes) -> list[tuple[Any, Response]]:
        """The responses that are complete now, each with the waiter of its request.

        Raises:
            RemoteProtocolError: a frame is no response: the connection is of no more use. Its `events` are the
                responses before it.
        """
        try:
            return self._answered(self._connection.receive(data))
        except RemoteProtocolError as error:
            error.events = self._answered(error.events)
            raise

    def give_up(self) -> list[Any]:
        """The waiters of all requests that have got no response."""
        waiters = list(self._waiters)
        self._waiters.clear()
        return waiters

    def _answered(self, events: Any) -> list[tuple[Any, Response]]:
        return [(self._waiters.popleft(), event.response) for event in events if isinstance(event, ResponseReceived)]


def dialer(address: tuple[str, int], timeout_ms: float) -> Dialer:
    """The connection to a broker, made by the first request."""
    return Dialer(address, timeout_ms, Exchange)
