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

from dataclasses import dataclass

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
from kafkacodec.errors import LocalProtocolError
from kafkacodec.protocol.framed import FramedConnection

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


class Connection(FramedConnection[Request, "RequestReceived | ResponseReceived"]):
    """One side of a connection. Its arguments are those of `kafkacodec.protocol.framed.FramedConnection`."""

    def send_request(self, request: Request) -> bytes:
        """The bytes of a request.

        Raises:
            LocalProtocolError: no client; too many requests wait; the connection has failed.
            EncodeError: a value that the frame cannot hold.
        """
        self._require("client")
        if request.has_response:
            self._check_room()
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

    def receive_end(self) -> None:
        """The peer has closed its side.

        Raises:
            RemoteProtocolError: inside a frame, or where a client still waits for responses.
        """
        if self._received:
            self._fail(f"the connection was closed inside a frame: {len(self._received)} bytes of it have come")
        if self.role == "client" and self._pending:
            self._fail(f"the connection was closed, {len(self._pending)} requests wait for their responses")

    def _request_events(self, frame: bytes) -> list[RequestReceived | ResponseReceived]:
        request = decode_request(frame, max_size=self.max_frame_size)
        if request.has_response:
            if len(self._pending) >= self.max_pending:
                self._fail_full()
            self._pending.append(request)
        return [RequestReceived(request, request.has_response)]

    def _response_events(self, frame: bytes, waiting: Request) -> list[RequestReceived | ResponseReceived]:
        response = decode_response(frame, waiting, max_size=self.max_frame_size)
        self._pending.popleft()
        return [ResponseReceived(waiting, response)]
