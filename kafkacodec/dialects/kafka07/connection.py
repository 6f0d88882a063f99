"""One Kafka 0.6/0.7 connection without any I/O: requests and responses in, bytes out; bytes in, events out.

Responses do not identify their requests: brokers answer in order, and do not answer PRODUCE and MULTIPRODUCE. A
`Connection` keeps that order, for either side::

    connection = Connection("client")
    data = connection.send_request(FetchRequest("orders", 0, 0, 65536))
    ...                                     # write data, read some bytes
    for event in connection.receive(received):
        ...                                 # ResponseReceived: event.request, event.response

A fault of the peer raises RemoteProtocolError, after which the connection must be closed. A fault of the caller raises
LocalProtocolError and changes nothing.
"""

from __future__ import annotations

from kafkacodec.datatypes import dataclass
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
from kafkacodec.protocol.framed import Frame, FramedConnection

__all__ = ["Connection", "RequestReceived", "ResponseReceived"]

_ANSWERS: dict[type[Request], type[Response]] = {
    FetchRequest: FetchResponse,
    MultiFetchRequest: MultiFetchResponse,
    OffsetsRequest: OffsetsResponse,
}


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A request was received; `wants_response` says whether it must be answered."""

    request: Request
    wants_response: bool


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """A response was received, to this request."""

    request: Request
    response: Response


class Connection(FramedConnection[Request, "RequestReceived | ResponseReceived"]):
    """One side of a connection. Its arguments are those of `kafkacodec.protocol.framed.FramedConnection`."""

    def send_request(self, request: Request) -> bytes:
        """The bytes of a request.

        Raises:
            LocalProtocolError: not a client; too many pending requests; the connection has failed.
            EncodeError: a value that the frame cannot represent.
        """
        self._require("client")
        if request.has_response:
            self._check_room()
        data = request.encode()
        if request.has_response:
            self._pending.append(request)
        return data

    def send_response(self, response: Response) -> bytes:
        """The bytes of the response to the oldest pending request.

        Raises:
            LocalProtocolError: not a broker; no pending request; the response is of another kind; the connection has
                failed.
            EncodeError: a value that the frame cannot represent.
        """
        self._require("broker")
        if not self._pending:
            raise LocalProtocolError("no request is pending")
        request = self._pending[0]
        if type(response) is not _ANSWERS[type(request)]:
            raise LocalProtocolError(f"not a response to {type(request).__name__}: {type(response).__name__}")
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
            LocalProtocolError: a paused broker keeps received bytes: send responses and call `receive` first.
            RemoteProtocolError: inside a frame, or while a client waits for responses.
        """
        if self.paused and self._received:
            raise LocalProtocolError(
                f"paused, with {len(self._received)} received bytes: send responses, then call receive(b'')"
            )
        if self._received:
            self._fail(f"connection closed inside a frame, of which {len(self._received)} bytes were received")
        if self.role == "client" and self._pending:
            self._fail(f"connection closed with {len(self._pending)} pending requests")

    def _request_events(self, frame: Frame) -> list[RequestReceived | ResponseReceived]:
        request = decode_request(frame, max_size=self.max_frame_size)
        if request.has_response:
            self._pending.append(request)
        return [RequestReceived(request, request.has_response)]

    def _response_events(self, frame: Frame, waiting: Request) -> list[RequestReceived | ResponseReceived]:
        response = decode_response(frame, waiting, max_size=self.max_frame_size)
        self._pending.popleft()
        return [ResponseReceived(waiting, response)]
