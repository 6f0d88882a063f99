"""The common state of sans-I/O connections: the incomplete frame, the pending requests, the failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Literal, NoReturn, TypeAlias, TypeVar

from kafkacodec._core._buffer import octets
from kafkacodec.errors import DecodeError, LocalProtocolError, RemoteProtocolError, UnsupportedVersion
from kafkacodec.protocol.frames import MAX_FRAME_SIZE, SIZE_BYTES, frame_size
from kafkacodec.shown import counted, repr_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

Waiting = TypeVar("Waiting")
Event = TypeVar("Event")
Frame: TypeAlias = bytes | memoryview


class FramedConnection(ABC, Generic[Waiting, Event]):
    """One side of a connection of size-prefixed frames, with responses in the order of the requests.

    Args:
        role: ``"client"`` or ``"broker"``.
        max_frame_size: the largest frame accepted, in bytes. No more than this and one read is kept.
        max_pending: the maximum number of unanswered requests. At the limit a client refuses to send, a broker pauses.
    """

    def __init__(
        self, role: Literal["client", "broker"], *, max_frame_size: int = MAX_FRAME_SIZE, max_pending: int = 1000
    ) -> None:
        if role not in ("client", "broker"):
            raise ValueError(f"role must be 'client' or 'broker', not {role!r}")
        if max_frame_size < 1 or max_pending < 1:
            raise ValueError(
                f"max_frame_size and max_pending must be at least 1, not {max_frame_size} and {max_pending}"
            )
        self.role = role
        self.max_frame_size = max_frame_size
        self.max_pending = max_pending
        self._pending: deque[Waiting] = deque()
        self._received = bytearray()
        self._failure: str | None = None

    def __repr__(self) -> str:
        kept = "received later" if self.paused else "of an incomplete frame"
        waiting = f"{counted(len(self._received), 'byte')} {kept}{self._state()}"
        return repr_of(self, self.role, f"{self.pending} pending", waiting)

    def _state(self) -> str:
        """More state for `repr`: whether it is paused, and the failure."""
        paused = ", paused" if self.paused else ""
        return paused if self._failure is None else f"{paused}, failed: {self._failure}"

    @property
    def pending(self) -> int:
        """The number of unanswered requests."""
        return len(self._pending)

    @property
    def paused(self) -> bool:
        """Whether this is a broker with `max_pending` pending requests, which keeps later ones as bytes.

        Stop reading from the socket. After sending responses, call ``receive(b"")`` for the requests that were kept.
        """
        return self.role == "broker" and self._failure is None and len(self._pending) >= self.max_pending

    @property
    def room(self) -> int:
        """The number of bytes that `receive` accepts while paused: the rest of `max_frame_size` and a size field.

        A connection that is not paused accepts a read of any size, since it only keeps incomplete frames and what
        follows the request that pauses it.
        """
        return max(0, self.max_frame_size + SIZE_BYTES - len(self._received))

    def receive(self, data: Buffer) -> list[Event]:
        """Takes received bytes (any buffer) and returns the events that they complete, in order.

        A paused broker returns no events. With fewer pending requests it continues where it paused, also for ``b""``.

        Raises:
            LocalProtocolError: more than `room` bytes while paused; none of them are taken.
            RemoteProtocolError: the bytes violate the protocol. Every later call raises it again. Its cause is the
                DecodeError, if there is one; its `events` are those of the complete frames before the error.
        """
        if self._failure is not None:
            raise RemoteProtocolError(self._failure)
        view = octets(data)
        if self.paused and len(view) > self.room:
            raise LocalProtocolError(
                f"{len(view)} bytes received while paused, with room for {self.room}: "
                f"send responses to the {self.pending} pending requests before reading more"
            )
        self._received += view
        return self._events_of(self._kept_frames())

    def receive_frame(self, frame: Buffer) -> list[Event]:
        """Takes one complete frame with its size field, which the caller received into its own memory.

        Records in the messages are views of `frame`. Nothing is copied or kept. Raises RemoteProtocolError like
        `receive`, and LocalProtocolError on a broker, or if bytes of an incomplete frame are kept.
        """
        if self.role != "client" or self._failure is not None:
            self._require("client")  # raises
        if self._received:
            raise LocalProtocolError(f"{len(self._received)} bytes of an incomplete frame were received before")
        return self._events_of([octets(frame)])

    def _events_of(self, frames: Iterable[Frame]) -> list[Event]:
        """The events of complete frames, in order."""
        if self._failure is not None:
            raise RemoteProtocolError(self._failure)
        events: list[Event] = []
        try:
            for frame in frames:
                if self.role == "broker":
                    events += self._request_events(frame)
                else:
                    if not self._pending:
                        self._fail("unexpected response: no request is pending")
                    events += self._response_events(frame, self._pending[0])
        except (DecodeError, UnsupportedVersion) as error:
            self._note_failure(str(error))
            raise RemoteProtocolError(str(error), events=events) from error
        except RemoteProtocolError as error:
            error.events = events
            raise
        return events

    def _kept_frames(self) -> Iterator[bytes]:
        while not self.paused and (frame := self._next_frame()) is not None:
            yield frame

    @abstractmethod
    def _request_events(self, frame: Frame) -> list[Event]:
        """The events of a request, on a broker."""

    @abstractmethod
    def _response_events(self, frame: Frame, waiting: Waiting) -> list[Event]:
        """The events of a response, on a client; removes its request from the pending ones."""

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
        if len(self._pending) >= self.max_pending:
            raise LocalProtocolError(f"too many pending requests (at most {self.max_pending})")

    def _require(self, role: str) -> None:
        if self.role != role:
            raise LocalProtocolError(f"this is a {self.role} connection; only a {role} connection does this")
        if self._failure is not None:
            raise LocalProtocolError(f"the connection has failed: {self._failure}")

    def _fail(self, reason: str) -> NoReturn:
        self._note_failure(reason)
        raise RemoteProtocolError(reason)

    def _note_failure(self, reason: str) -> None:
        self._failure = reason
        self._received.clear()
