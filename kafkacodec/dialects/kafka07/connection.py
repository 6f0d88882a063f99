"""One Kafka 0.6/0.7 connection without any I/O: requests and responses in, bytes out; bytes in, events out.

Nothing on the wire says which request a response answers: brokers answer in order, and PRODUCE and MULTIPRODUCE not at
all. A `Connection` keeps that order, for either side::

    connection = Connection("client")
    data = connection.send_request(FetchRequest("orders", 0, 0, 65536))
    ...                                     # write data, read some bytes
    for event in connection.receive(received):
        ...                                 # ResponseReceived: event.request, event.response

What the peer does wrong is a RemoteProtocolError, and the connection is of no use after it; what the caller does wrong
is a LocalProtocolError, and nothing has changed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

from kafkacodec.dialects.kafka07.wire import (
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    OffsetsRequest,
    OffsetsResponse,
    Request,
    Response,
    decode_request,
    decode_response,
)
from kafkacodec.errors import DecodeError, LocalProtocolError, RemoteProtocolError
from kafkacodec.protocol.frames import MAX_FRAME_SIZE, SIZE_BYTES, frame_size

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Connection", "RequestReceived", "ResponseReceived"]

_ANSWERS: dict[type[Request], type[Response]] = {
    FetchRequest: FetchResponse,
    MultiFetchRequest: MultiFetchResponse,
    OffsetsRequest: OffsetsResponse,
}


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A request has come; `wants_response` tells whether it is to be answered."""

    request: Request
    wants_response: bool


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """A response has come, with the request that it answers."""

    request: Request
    response: Response


class Connection:
    """One side of a connection.

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
        self.role = role
        self.max_frame_size = max_frame_size
        self.max_pending = max_pending
        self._pending: deque[Request] = deque()
        self._received = bytearray()
        self._failure: str | None = None

    @property
    def pending(self) -> int:
        """How many requests wait for their responses."""
        return len(self._pending)

    def send_request(self, request: Request) -> bytes:
        """The bytes of a request.

        Raises:
            LocalProtocolError: no client; too many requests wait; the connection has failed.
            EncodeError: a value that the frame cannot hold.
        """
        self._require("client")
        if request.has_response and len(self._pending) >= self.max_pending:
            raise LocalProtocolError(f"{len(self._pending)} requests wait for their responses")
        data = request.encode()
        if request.has_response:
            self._pending.append(request)
        return data

    def send_response(self, response: Response) -> bytes:
        """The bytes of the response to the request that has waited longest.

        Raises:
            LocalProtocolError: no broker; no request waits; the response is of another kind; the connection has failed.
            EncodeError: a value that the frame cannot hold.
        """
        self._require("broker")
        if not self._pending:
            raise LocalProtocolError("no request waits for a response")
        request = self._pending[0]
        if type(response) is not _ANSWERS[type(request)]:
            raise LocalProtocolError(f"{type(response).__name__} is no answer to {type(request).__name__}")
        if isinstance(request, MultiFetchRequest) and isinstance(response, MultiFetchResponse):
            count, wanted = len(response.responses), len(request.requests)
            if count != wanted and (count or not response.error_code):
                raise LocalProtocolError(f"{count} responses to {wanted} requests")
        data = response.encode()
        self._pending.popleft()
        return data

    def receive(self, data: Buffer) -> list[RequestReceived | ResponseReceived]:
        """Takes in what has been read and returns the events that it completes, in order.

        Raises:
            RemoteProtocolError: bytes that break the protocol, then and ever after; its cause is the DecodeError,
                where there is one. Events of whole frames before the fault are lost with it.
        """
        if self._failure is not None:
            raise RemoteProtocolError(self._failure)
        self._received += memoryview(data).cast("B")
        events: list[RequestReceived | ResponseReceived] = []
        try:
            while (frame := self._next_frame()) is not None:
                events.append(self._response(frame) if self.role == "client" else self._request(frame))
        except DecodeError as error:
            self._fail(str(error), error)
        return events

    def receive_end(self) -> None:
        """The peer has closed its side.

        Raises:
            RemoteProtocolError: inside a frame, or where a client still waits for responses.
        """
        if self._received:
            self._fail(f"the connection was closed inside a frame: {len(self._received)} bytes of it have come")
        if self.role == "client" and self._pending:
            self._fail(f"the connection was closed, {len(self._pending)} requests wait for their responses")

    def _next_frame(self) -> bytes | None:
        if len(self._received) < SIZE_BYTES:
            return None
        size = frame_size(self._received, max_size=self.max_frame_size)
        if size > len(self._received):
            return None
        frame = bytes(memoryview(self._received)[:size])
        del self._received[:size]
        return frame

    def _request(self, frame: bytes) -> RequestReceived:
        request = decode_request(frame, max_size=self.max_frame_size)
        if request.has_response:
            if len(self._pending) >= self.max_pending:
                self._fail(f"more than {self.max_pending} requests that wait for their responses")
            self._pending.append(request)
        return RequestReceived(request, request.has_response)

    def _response(self, frame: bytes) -> ResponseReceived:
        if not self._pending:
            self._fail("a response, where no request waits for one")
        response = decode_response(frame, self._pending[0], max_size=self.max_frame_size)
        return ResponseReceived(self._pending.popleft(), response)

    def _require(self, role: str) -> None:
        if self.role != role:
            raise LocalProtocolError(f"this is the {self.role}'s side of a connection")
        if self._failure is not None:
            raise LocalProtocolError(f"the connection has failed: {self._failure}")

    def _fail(self, reason: str, cause: BaseException | None = None) -> NoReturn:
        self._failure = reason
        self._received.clear()
        raise RemoteProtocolError(reason) from cause
