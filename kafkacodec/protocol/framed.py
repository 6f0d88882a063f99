"""What every connection without I/O remembers: the frame that is coming in, the requests that wait, the failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Generic, Literal, NoReturn, TypeVar

from kafkacodec.errors import DecodeError, LocalProtocolError, RemoteProtocolError, UnsupportedVersion
from kafkacodec.protocol.frames import MAX_FRAME_SIZE, SIZE_BYTES, frame_size

if TYPE_CHECKING:
    from typing_extensions import Buffer

Waiting = TypeVar("Waiting")
Event = TypeVar("Event")


class FramedConnection(ABC, Generic[Waiting, Event]):
    """One side of a connection of frames that begin with their size, whose responses come in the order of requests.

    Args:
        role: ``"client"`` or ``"broker"``.
        max_frame_size: the largest frame that is taken in, in bytes. No more than this and one read are ever kept.
        max_pending: how many requests may wait for their responses.
    """

    def __init__(
        self, role: Literal["client", "broker"], *, max_frame_size: int = MAX_FRAME_SIZE, max_pending: int = 1000
    ) -> None:
        if role not in ("client", "broker"):
            raise ValueError(f"role is 'client' or 'broker', not {role!r}")
        if max_frame_size < 1 or max_pending < 1:
            raise ValueError(f"max_frame_size and max_pending are at least 1, not {max_frame_size} and {max_pending}")
        self.role = role
        self.max_frame_size = max_frame_size
        self.max_pending = max_pending
        self._pending: deque[Waiting] = deque()
        self._received = bytearray()
        self._failure: str | None = None

    @property
    def pending(self) -> int:
        """How many requests wait for their responses."""
        return len(self._pending)

    def receive(self, data: Buffer) -> list[Event]:
        """Takes in what has been read (any buffer) and returns the events that it completes, in order.

        Raises:
            RemoteProtocolError: bytes that break the protocol, then and ever after; its cause is the DecodeError,
                where there is one. Its `events` are those of the whole frames before the fault.
        """
        if self._failure is not None:
            raise RemoteProtocolError(self._failure)
        self._received += memoryview(data).cast("B")
        events: list[Event] = []
        try:
            while (frame := self._next_frame()) is not None:
                if self.role == "broker":
                    events += self._request_events(frame)
                else:
                    if not self._pending:
                        self._fail("a response, where no request waits for one")
                    events += self._response_events(frame, self._pending[0])
        except (DecodeError, UnsupportedVersion) as error:
            self._note_failure(str(error))
            raise RemoteProtocolError(str(error), events=events) from error
        except RemoteProtocolError as error:
            error.events = events
            raise
        return events

    @abstractmethod
    def _request_events(self, frame: bytes) -> list[Event]:
        """What a request means to a broker."""

    @abstractmethod
    def _response_events(self, frame: bytes, waiting: Waiting) -> list[Event]:
        """What a response means to a client; takes the request that it answers from those that wait."""

    def _next_frame(self) -> bytes | None:
        if len(self._received) < SIZE_BYTES:
            return None
        size = frame_size(self._received, max_size=self.max_frame_size)
        if size > len(self._received):
            return None
        frame = bytes(memoryview(self._received)[:size])
        del self._received[:size]
        return frame

    def _check_room(self) -> None:
        """Whether one more request may wait, at a client."""
        if len(self._pending) >= self.max_pending:
            raise LocalProtocolError(f"{len(self._pending)} requests wait for their responses")

    def _require(self, role: str) -> None:
        if self.role != role:
            raise LocalProtocolError(f"this is the {self.role}'s side of a connection")
        if self._failure is not None:
            raise LocalProtocolError(f"the connection has failed: {self._failure}")

    def _fail_full(self) -> NoReturn:
        self._fail(f"more than {self.max_pending} requests that wait for their responses")

    def _fail(self, reason: str) -> NoReturn:
        self._note_failure(reason)
        raise RemoteProtocolError(reason)

    def _note_failure(self, reason: str) -> None:
        self._failure = reason
        self._received.clear()
