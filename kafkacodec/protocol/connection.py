"""One Kafka connection without any I/O: bytes in, events out; messages in, bytes out.

A `Connection` keeps the state of one connection: the incomplete frame, the pending requests in order, and the API
versions both sides support. It has no sockets and no clock, so it works with blocking code, asyncio, proxies and
tests alike::

    connection = Connection("client", client_id="me")
    _, data = connection.negotiate()
    ...                                     # write data, read some bytes
    for event in connection.receive(received):
        ...                                 # VersionsAgreed, then ResponseReceived for each request sent

Responses arrive in the order of the requests. A Produce request with acks=0 has none. An error of the peer raises
RemoteProtocolError, after which the connection must be closed. An error of the caller raises LocalProtocolError and
changes nothing. A broker with `max_pending` requests to answer is paused: `Connection.paused`.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from kafkacodec import errors, messages
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import LocalProtocolError
from kafkacodec.messages import APIS, by_key, keys
from kafkacodec.protocol.framed import Frame, FramedConnection
from kafkacodec.protocol.frames import (
    MAX_FRAME_SIZE,
    SIZE_BYTES,
    decode_response,
    decode_response_prefix,
    encode_request,
    encode_response,
    request_pieces,
    response_pieces,
)
from kafkacodec.protocol.headers import decode_request_header
from kafkacodec.protocol.versions import api_versions_response, highest_common, ranges_in, supported_ranges
from kafkacodec.signatures import suggests_options
from kafkacodec.version import __version__

if TYPE_CHECKING:
    from kafkacodec.messages import Message, RequestHeader, ResponseHeader

__all__ = ["Connection", "RequestReceived", "ResponseReceived", "VersionsAgreed", "VersionsRefused"]

# A broker accepts letters, digits, dots and dashes (ApiVersionsRequest.isValid); a local version has a plus sign.
_SOFTWARE_VERSION = __version__.replace("+", "-")

_correlation_at = struct.Struct(">i").unpack_from

Data = TypeVar("Data", bytes, "list[bytes | memoryview]")


class ResponseReceived(NamedTuple):
    """A response and its request.

    `trailing` are bytes after the message, which only a connection with ``allow_trailing_bytes`` accepts.
    """

    correlation_id: int
    api_key: int
    version: int
    header: ResponseHeader
    message: Message
    request: Message
    trailing: bytes = b""


class VersionsAgreed(NamedTuple):
    """The broker's versions are known; requests without a version are now sent in the highest common one."""

    ranges: Mapping[int, range]


class VersionsRefused(NamedTuple):
    """The broker lacks the version of the ApiVersions request; `Connection.negotiate` now uses one that it has."""

    version: int


class RequestReceived(NamedTuple):
    """A request. `message` is None for an ApiVersions request of an unsupported version: answer it with the result of
    `Connection.api_versions`. `wants_response` is False for a Produce request with acks=0. `trailing` are bytes after
    the message, which only a connection with ``allow_trailing_bytes`` accepts.
    """

    correlation_id: int
    api_key: int
    version: int
    header: RequestHeader
    message: Message | None
    wants_response: bool
    trailing: bytes = b""


@dataclass(eq=False, slots=True)
class _Pending:
    """A pending request: on a client it waits for its response, on a broker for its turn."""

    correlation_id: int
    api_key: int
    version: int
    request: Message | None
    supported: bool = True
    answer: list[bytes | memoryview] | None = field(default=None)


class Connection(FramedConnection[_Pending, Any]):
    """One side of a connection. Records in messages are memoryviews of the received frame.

    Args:
        role: ``"client"`` or ``"broker"``.
        client_id: the client id of requests.
        versions: the versions to use by API key. Default: all that the library supports.
        max_frame_size: the largest frame accepted, in bytes. No more than this and one read is kept.
        max_pending: the maximum number of unanswered requests. At the limit a client refuses to send, a broker pauses.
        allow_trailing_bytes: accept bytes after a message, as Kafka's brokers and clients do: some clients and
            stand-ins for brokers send them. They are in `trailing` of the event. A client then also takes an
            ApiVersions response with error 35 by its code alone. Default: such a message raises RemoteProtocolError.

    Attributes:
        next_correlation_id: of the next request.
    """

    @suggests_options
    def __init__(
        self,
        role: Literal["client", "broker"],
        *,
        client_id: str | None = None,
        versions: Mapping[int, range] | None = None,
        max_frame_size: int = MAX_FRAME_SIZE,
        max_pending: int = 1000,
        allow_trailing_bytes: bool = False,
    ) -> None:
        super().__init__(role, max_frame_size=max_frame_size, max_pending=max_pending)
        self.allow_trailing_bytes = allow_trailing_bytes
        self.client_id = client_id
        self.versions: Mapping[int, range] = versions if versions is not None else supported_ranges()
        self.peer_versions: Mapping[int, range] | None = None
        self.next_correlation_id = 0
        # On a broker: the unanswered requests by correlation id, oldest first; a client may reuse an id.
        self._unanswered: dict[int, deque[_Pending]] = {}

    def _state(self) -> str:
        agreed = self.role == "client" and f", versions {'unknown' if self.peer_versions is None else 'agreed'}"
        return (agreed or "") + super()._state()

    # The client side

    def version_of(self, api_key: int) -> int:
        """The version in which requests of an API are sent, after negotiation.

        Raises UnsupportedVersion if there is no common version, LocalProtocolError before negotiation.
        """
        if self.peer_versions is None:
            raise LocalProtocolError("the broker's versions are unknown: call negotiate() first or pass a version")
        return highest_common(api_key, self.peer_versions, self.versions.get(api_key, range(0)))

    def negotiate(self) -> tuple[int, bytes]:
        """An ApiVersions request: its correlation id and the bytes to send.

        It has the highest version in `versions`; after VersionsRefused the highest that the broker reported, or 0.
        """
        key = keys.API_VERSIONS
        ours = self.versions.get(key) or APIS[key].valid_versions
        version = ours[-1] if self.peer_versions is None else highest_common(key, self.peer_versions, ours)
        request = messages.ApiVersionsRequest()
        if version >= 3:
            request.client_software_name, request.client_software_version = "kafkacodec", _SOFTWARE_VERSION
        return self.send_request(request, version)

    @suggests_options
    def send_request(
        self,
        message: Message,
        version: int | None = None,
        *,
        client_id: str | EllipsisType | None = ...,
        header_tags: dict[int, bytes] | None = None,
    ) -> tuple[int, bytes]:
        """A request: its correlation id and the bytes to send.

        Args:
            message: the request.
            version: default: the highest common one.
            client_id: the client id of this request; None sends null. Default: that of the connection.
            header_tags: tagged fields of the header, in flexible versions.

        Raises:
            LocalProtocolError: not a client; not a request; too many pending requests; the versions are unknown.
            EncodeError, UnsupportedVersion: as for `Message.encode`.
        """
        return self._sent(encode_request, message, version, client_id, header_tags)

    @suggests_options
    def send_request_pieces(
        self,
        message: Message,
        version: int | None = None,
        *,
        client_id: str | EllipsisType | None = ...,
        header_tags: dict[int, bytes] | None = None,
    ) -> tuple[int, list[bytes | memoryview]]:
        """Like `send_request`, with the bytes in pieces to be written one after another, for example by ``writelines``.

        Records of 16 KiB and more are not copied: the pieces are views of the message's records, which must not change
        until they are written.
        """
        return self._sent(request_pieces, message, version, client_id, header_tags)

    def _sent(
        self,
        encode: Callable[..., Data],
        message: Message,
        version: int | None,
        client_id: str | EllipsisType | None,
        header_tags: dict[int, bytes] | None,
    ) -> tuple[int, Data]:
        if self.role != "client" or self._failure is not None:
            self._require("client")  # raises
        key = getattr(message, "api_key", None)
        if key not in APIS or not isinstance(message, by_key(key)[0]):
            raise LocalProtocolError(f"not a request: {type(message).__name__}")
        if len(self._pending) >= self.max_pending:
            self._check_room()  # raises
        if version is None:
            version = self.version_of(key)
        correlation_id = self.next_correlation_id
        sender = self.client_id if client_id is ... else client_id
        data = encode(message, version, correlation_id, sender, header_tags=header_tags)
        if key != keys.PRODUCE or _wants_response(key, message):
            self._pending.append(_Pending(correlation_id, key, version, message))
        self.next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        return correlation_id, data

    def adopt(self, correlation_id: int, message: Message, version: int) -> None:
        """Expect the answer to a request that was written without `send_request`, after all others, and whose
        correlation id was taken from `next_correlation_id`."""
        self._pending.append(_Pending(correlation_id, message.api_key or 0, version, message))

    def expects(self, correlation_id: int) -> bool:
        """Whether the last request sent will get a response: one with acks=0 will not."""
        return bool(self._pending) and self._pending[-1].correlation_id == correlation_id

    # The broker side

    def send_response(self, correlation_id: int, message: Message) -> bytes:
        """Answers a request; returns the bytes that may be sent now.

        Responses are sent in the order of the requests: one given early is kept, and returned once those before it
        have been given.

        Raises:
            LocalProtocolError: not a broker; unknown correlation id; the message is not a response of that API.
            EncodeError, UnsupportedVersion: as for `Message.encode`.
        """
        return b"".join(self._answered(_whole_response, correlation_id, message))

    def send_response_pieces(self, correlation_id: int, message: Message) -> list[bytes | memoryview]:
        """Like `send_response`, in pieces to be written one after another, for example by ``writelines``.

        Records of 16 KiB and more are not copied: the pieces are views of the message's records, which must not change
        until they are written, even while a response is kept for its turn.
        """
        return self._answered(response_pieces, correlation_id, message)

    def _answered(
        self, encode: Callable[..., list[bytes | memoryview]], correlation_id: int, message: Message
    ) -> list[bytes | memoryview]:
        """The pieces that may be sent once a request is answered."""
        self._require("broker")
        same_id = self._unanswered.get(correlation_id)
        if same_id is None:
            raise LocalProtocolError(f"no pending request with correlation id {correlation_id}")
        waiting = same_id[0]
        if not isinstance(message, APIS[waiting.api_key].response):
            raise LocalProtocolError(f"not a response to {APIS[waiting.api_key].name}: {type(message).__name__}")
        waiting.answer = encode(message, waiting.version if waiting.supported else 0, correlation_id)
        same_id.popleft()
        if not same_id:
            del self._unanswered[correlation_id]
        pieces: list[bytes | memoryview] = []
        while self._pending and self._pending[0].answer is not None:
            pieces += self._pending.popleft().answer or ()
        return pieces

    def api_versions(self, event: RequestReceived) -> Message:
        """The response to an ApiVersions request, with error 35 if its version is not supported."""
        return api_versions_response(self.versions, error_code=0 if event.message else errors.UNSUPPORTED_VERSION)

    # Received frames

    def _response_events(self, frame: Frame, waiting: _Pending) -> list[Any]:
        assert waiting.request is not None
        if len(frame) >= SIZE_BYTES + 4:
            found = _correlation_at(frame, SIZE_BYTES)[0]
            if found != waiting.correlation_id:
                self._fail(f"unexpected correlation id {found} (the next response has {waiting.correlation_id})")
        end, version = len(frame), waiting.version
        if self.allow_trailing_bytes:
            header, message, end = decode_response_prefix(frame, waiting.api_key, version)
        else:
            header, message = decode_response(frame, waiting.api_key, version)
        trailing = b"" if end == len(frame) else bytes(frame[end:])
        self._pending.popleft()
        events: list[Any] = []
        if waiting.api_key == keys.API_VERSIONS:
            events = self._learn_versions(message, version)
            if events and isinstance(events[0], VersionsRefused):
                version = 0
        answered = (waiting.correlation_id, waiting.api_key, version, header, message, waiting.request)
        return [ResponseReceived(*answered, trailing), *events]

    def _learn_versions(self, response: Any, version: int) -> list[Any]:
        if response.error_code == errors.UNSUPPORTED_VERSION and version > 0:
            # Old brokers list no versions in this response; they have version 0.
            named = ranges_in(response).get(keys.API_VERSIONS, range(1))
            ours = range(version)
            overlap = range(max(named.start, 0), min(named.stop, ours.stop))
            self.peer_versions = {keys.API_VERSIONS: overlap or range(1)}
            return [VersionsRefused(version)]
        if response.error_code:
            return []
        self.peer_versions = ranges_in(response)
        return [VersionsAgreed(self.peer_versions)]

    def _request_events(self, frame: Frame) -> list[Any]:
        header, at = decode_request_header(frame, SIZE_BYTES)
        api, version = APIS[header.request_api_key], header.request_api_version
        supported = version in self.versions.get(api.key, range(0))
        if not supported and api.key != keys.API_VERSIONS:
            self._fail(f"{api.name} version {version} is not supported")
        message, end = self._request_at(frame, at, api.request, version) if supported else (None, len(frame))
        wants_response = message is None or _wants_response(api.key, message)
        if wants_response:
            waiting = _Pending(header.correlation_id, api.key, version, message, supported)
            self._pending.append(waiting)
            self._unanswered.setdefault(header.correlation_id, deque()).append(waiting)
        trailing = bytes(frame[end:])
        return [RequestReceived(header.correlation_id, api.key, version, header, message, wants_response, trailing)]

    def _request_at(self, frame: Frame, at: int, request: type[Message], version: int) -> tuple[Message, int]:
        """The request at `at` and the position after it."""
        if self.allow_trailing_bytes:
            return request.decode_prefix(frame, version, at)
        return request.decode(frame, version, at), len(frame)


def _whole_response(message: Message, version: int, correlation_id: int) -> list[bytes | memoryview]:
    return [encode_response(message, version, correlation_id)]


def _wants_response(api_key: int, message: Any) -> bool:
    return api_key != keys.PRODUCE or message.acks != 0
