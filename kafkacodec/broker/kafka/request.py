"""Requests, and one connection's bytes to requests and answers to bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkacodec.errors import DecodeError
from kafkacodec.messages import APIS, SaslAuthenticateRequest, by_key, keys
from kafkacodec.net.frames import Frame, FrameBuffers, FrameReader
from kafkacodec.net.requests import received_requests
from kafkacodec.protocol.frames import MAX_FRAME_SIZE, SIZE_BYTES, response_pieces
from kafkacodec.protocol.headers import decode_request_header

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.security.peers import Peer

__all__ = ["KafkaCodec", "Request"]

MAX_TOKEN_SIZE: Final = 512 << 10
"""The largest request in bytes before a client has logged in."""

_NEGATIVE_LENGTHS: Final = 8  # are read as null in one request, each with a copy of it
_CLIENT_ID_AT: Final = SIZE_BYTES + 8  # after key, version and correlation id


class Accounts(Protocol):
    """Counts what clients with quotas use: `kafkacodec.broker.kafka.security.quotas.Quotas`."""

    @property
    def present(self) -> Mapping[Any, Any]:
        """The quotas of clients; empty if there are none."""

    def account(
        self, request: Request, response: Any, encode: Callable[[Any], Sequence[bytes | memoryview]]
    ) -> Sequence[bytes | memoryview]:
        """Count a request and its answer; return the bytes of what the client gets."""


class Request:
    """One request.

    Attributes:
        key, version: of the API.
        correlation_id, client_id: of the header.
        message: None for an ApiVersions request of an unknown version.
        nbytes: its memory.
        size: its bytes, without those of the size.
        session: its session; set by the service.
        broker: the id of its broker; set by the service.
        to: the address of its reply; set by the service.
        peer: its sender.
        spent: the seconds of its handling; set by the service.
        may: the sender's rights, if there is an authorizer (`kafkacodec.broker.kafka.security.rules.May`).
        rest: the pause of the connection in ms after the answer; infinite closes it.
        settled: whether everything that it does is done, once the effect that is returned with it is carried out: only
            the disk may have to take it before the answer.
        bare: whether it is a SASL token without a header.
        received: its start by the host's clock, for waits for I/O; set by the service.
        now: the broker's time; set by the service.
        withhold: returns the answer of a client over a quota, and makes the rest of the answer undone; None: the answer
            may leave as it is.
    """

    __slots__ = (
        "bare", "broker", "client_id", "correlation_id", "frame", "key", "may", "message", "nbytes", "now", "peer",
        "received", "rest", "session", "settled", "size", "spent", "to", "version", "withhold",
    )  # fmt: skip

    broker: int
    now: float

    def __init__(self, frame: Frame, versions: Mapping[int, range], peer: Peer) -> None:
        self.frame, self.peer = frame, peer
        view = frame.view
        self.nbytes, self.size = frame.nbytes, len(view) - SIZE_BYTES
        self.message: Any = None
        self.session: Any = None
        self.to: Any = None
        self.may: Any = None
        self.withhold: Callable[[], Any] | None = None
        self.received = self.rest = self.spent = 0.0
        self.settled = False
        self.bare = peer.bare
        if peer.bare:
            self._take_token(view[SIZE_BYTES:])
        else:
            self._take(view, versions)

    def _take_token(self, token: memoryview) -> None:
        self.key, self.version, self.correlation_id = keys.SASL_AUTHENTICATE, 0, 0
        self.client_id: str | None = None
        self.message = SaslAuthenticateRequest(auth_bytes=bytes(token))

    def _take(self, view: memoryview, versions: Mapping[int, range]) -> None:
        try:
            header, at = decode_request_header(view, SIZE_BYTES)
        except DecodeError:
            view = _without_client_id(view)
            header, at = decode_request_header(view, SIZE_BYTES)
        self.key, self.version = key, version = header.request_api_key, header.request_api_version
        self.correlation_id, self.client_id = header.correlation_id, header.client_id
        if version in versions.get(key, ()):
            self.message = _decoded(key, version, view, at)
        elif key != keys.API_VERSIONS:
            raise DecodeError(f"{APIS[key].name} version {version} is not served")

    def encoded(self, response: Any) -> Sequence[bytes | memoryview]:
        """Return the bytes of an answer, with its header."""
        version = 0 if self.message is None else self.version
        return response_pieces(response, version, self.correlation_id)


def _without_client_id(view: memoryview) -> memoryview:
    """Return a request with a null client id for one of negative length, as brokers read it."""
    length = view[_CLIENT_ID_AT : _CLIENT_ID_AT + 2]
    if len(length) < 2 or length[0] < 0x80:
        return view
    return memoryview(b"".join((view[:_CLIENT_ID_AT], b"\xff\xff", view[_CLIENT_ID_AT + 2 :])))


def _decoded(key: int, version: int, view: memoryview, at: int) -> Any:
    """Decode a message; texts, bytes and arrays of negative length are null, as brokers read them."""
    kind, wrong = by_key(key)[0], 0
    while True:
        try:
            return kind.decode_prefix(view, version, at)[0]
        except DecodeError as error:
            end = error.position or 0
            size = _negative_length(view, end) if "a length below -1" in str(error) else 0
            wrong += 1
            if not size or wrong > _NEGATIVE_LENGTHS:
                raise
            view = memoryview(b"".join((view[: end - size], b"\xff" * size, view[end:])))


def _negative_length(view: memoryview, end: int) -> int:
    """Return the number of bytes of the length below -1 that ends here."""
    sizes = (size for size in (2, 4) if int.from_bytes(view[end - size : end], "big", signed=True) < -1)
    return next(sizes, 0)


class KafkaCodec:
    """The codec of a connection of the Kafka protocol.

    Args:
        versions: the supported versions, by API key.
        buffers: memory for large frames, which all connections share.
        peer: the client.
        quotas: of the clients.

    Attributes:
        waits: whether a request that begins waits for memory.
        buffer: returns memory for the next received bytes.
    """

    in_order = True
    answers_last = True

    def __init__(self, versions: Mapping[int, range], buffers: FrameBuffers, peer: Peer, quotas: Accounts) -> None:
        self._versions, self._peer, self._quotas = versions, peer, quotas
        self._reader = FrameReader(buffers, MAX_FRAME_SIZE)
        self.buffer, self.waits = self._reader.buffer, False

    def received(self, count: int) -> list[Request]:
        """Return the requests that are now complete.

        Raises:
            RemoteProtocolError: a frame or a request is invalid; `events` are the requests before it.
        """
        reader = self._reader
        reader.max_frame_size = MAX_FRAME_SIZE if self._peer.trusted else MAX_TOKEN_SIZE
        requests = received_requests(reader, count, self._request)
        self.waits = reader.waits
        return requests

    def _request(self, frame: Frame) -> Request:
        return Request(frame, self._versions, self._peer)

    def response(self, request: Request, response: Any) -> Sequence[bytes | memoryview]:
        """The bytes of a response."""
        if request.bare:
            token = bytes(response.auth_bytes)
            return [len(token).to_bytes(SIZE_BYTES, "big") + token]
        if self._quotas.present:
            return self._quotas.account(request, response, request.encoded)
        return request.encoded(response)

    def settled(self, request: Request) -> bool:
        """Return whether a request waits only for the disk: brokers serve those of a connection one after another."""
        return request.settled

    def rest(self, request: Request) -> float:
        """Return the pause of the connection after the answer."""
        return request.rest

    def release(self, request: Request) -> None:
        """Let the memory of a request be used again."""
        request.message = request.withhold = None
        request.frame.release()

    def drop(self) -> None:
        """Free the memory of an incomplete request."""
        self._reader.drop()
