"""Requests, and one connection's bytes to requests and answers to bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kafkacodec.broker.kafka.security.peers import Peer
from kafkacodec.errors import DecodeError
from kafkacodec.messages import APIS, SaslAuthenticateRequest, by_key, keys
from kafkacodec.net.frames import Frame, FrameBuffers, FrameReader
from kafkacodec.net.requests import received_requests
from kafkacodec.protocol.frames import MAX_FRAME_SIZE, SIZE_BYTES, response_pieces
from kafkacodec.protocol.headers import decode_request_header

__all__ = ["KafkaCodec", "Request"]

MAX_TOKEN_SIZE: Final = 512 << 10
"""The largest request in bytes before a client has logged in."""

Encode = Callable[[Any], Sequence[bytes | memoryview]]
"""Makes the bytes of an answer, with its header."""

_NEGATIVE_LENGTHS: Final = 8  # are read as null in one request, each with a copy of it
_CLIENT_ID_AT: Final = SIZE_BYTES + 8  # after key, version and correlation id


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

    def __init__(self, frame: Frame, versions: Mapping[int, range], peer: Peer) -> None:
        self.frame, self.peer = frame, peer
        self.nbytes, self.size = frame.nbytes, len(frame.view) - SIZE_BYTES
        self.session: Any = None
        self.to: Any = None
        self.broker = -1
        self.received = self.now = self.rest = 0.0
        self.settled = False
        self.bare = peer.bare
        self.may: Any = None
        self.spent = 0.0
        self.withhold: Callable[[], Any] | None = None
        self.correlation_id = 0
        self.client_id: str | None = None
        if peer.bare:
            self._take_token(frame.view[SIZE_BYTES:])
        else:
            self._take(frame.view, versions)

    def _take_token(self, token: memoryview) -> None:
        self.key, self.version = keys.SASL_AUTHENTICATE, 0
        self.message: Any = SaslAuthenticateRequest(auth_bytes=bytes(token))

    def _take(self, view: memoryview, versions: Mapping[int, range]) -> None:
        try:
            header, at = decode_request_header(view, SIZE_BYTES)
        except DecodeError:
            view = _without_client_id(view)
            header, at = decode_request_header(view, SIZE_BYTES)
        self.key, self.version = key, version = header.request_api_key, header.request_api_version
        self.correlation_id = header.correlation_id
        self.client_id = header.client_id
        self.message = None
        if version in versions.get(key, ()):
            self.message = _decoded(key, version, view, at)
        elif key != keys.API_VERSIONS:
            raise DecodeError(f"{APIS[key].name} version {version} is not served")


def _without_client_id(view: memoryview) -> memoryview:
    """Return a request with a null client id for one of negative length, as brokers read it."""
    length = view[_CLIENT_ID_AT : _CLIENT_ID_AT + 2]
    if len(length) < 2 or length[0] < 0x80:
        return view
    return memoryview(b"".join((view[:_CLIENT_ID_AT], b"\xff\xff", view[_CLIENT_ID_AT + 2 :])))


def _decoded(key: int, version: int, view: memoryview, at: int) -> Any:
    """Decode a message; texts, bytes and arrays of negative length are null, as brokers read them."""
    kind = by_key(key)[0]
    for _ in range(_NEGATIVE_LENGTHS):
        try:
            return kind.decode_prefix(view, version, at)[0]
        except DecodeError as error:
            end = error.position or 0
            size = _negative_length(view, end) if "a length below -1" in str(error) else 0
            if not size:
                raise
            view = memoryview(b"".join((view[: end - size], b"\xff" * size, view[end:])))
    return kind.decode_prefix(view, version, at)[0]


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
        account: counts an answer; returns the bytes of that, or of what the client gets instead.
    """

    in_order = True
    answers_last = True

    def __init__(
        self, versions: Mapping[int, range], buffers: FrameBuffers, peer: Peer,
        account: Callable[[Request, Any, Encode], Sequence[bytes | memoryview]],
    ) -> None:  # fmt: skip
        self._versions, self._peer, self._account = versions, peer, account
        self._reader = FrameReader(buffers, MAX_FRAME_SIZE)

    @property
    def waits(self) -> bool:
        """Whether a request that begins waits for memory."""
        return self._reader.waits

    def buffer(self) -> memoryview:
        """Return memory for the next received bytes."""
        return self._reader.buffer()

    def received(self, count: int) -> list[Request]:
        """Return the requests that are now complete.

        Raises:
            RemoteProtocolError: a frame or a request is invalid; `events` are the requests before it.
        """
        self._reader.max_frame_size = MAX_FRAME_SIZE if self._peer.trusted else MAX_TOKEN_SIZE
        return received_requests(self._reader, count, self._request)

    def _request(self, frame: Frame) -> Request:
        return Request(frame, self._versions, self._peer)

    def response(self, request: Request, response: Any) -> Sequence[bytes | memoryview]:
        """The bytes of a response."""
        if request.bare:
            token = bytes(response.auth_bytes)
            return [len(token).to_bytes(SIZE_BYTES, "big") + token]
        version = 0 if request.message is None else request.version
        return self._account(request, response, lambda answer: response_pieces(answer, version, request.correlation_id))

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
