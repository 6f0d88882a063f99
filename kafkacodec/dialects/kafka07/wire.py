"""Requests and responses of Kafka 0.6/0.7, as frames that include their int32 size.

A response contains neither a reference to its request nor the offset of its messages: it is decoded with its request.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from kafkacodec._core._buffer import octets
from kafkacodec.datatypes import dataclass, fields
from kafkacodec.errors import DecodeError, EncodeError, LocalProtocolError, Truncated
from kafkacodec.messages.classes import Message, build
from kafkacodec.net.service import FilePart
from kafkacodec.protocol.frames import MAX_FRAME_SIZE, SIZE_BYTES, frame_size

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "EARLIEST",
    "LATEST",
    "RANDOM_PARTITION",
    "ErrorCode",
    "FetchRequest",
    "FetchResponse",
    "MultiFetchRequest",
    "MultiFetchResponse",
    "MultiProduceRequest",
    "OffsetsRequest",
    "OffsetsResponse",
    "ProduceRequest",
    "Request",
    "Response",
    "check_topic",
    "decode_received",
    "decode_request",
    "decode_response",
]

_SCHEMA = build((Path(__file__).parent / "wire.kmsg").read_text("ascii"), __name__)

LATEST, EARLIEST = -1, -2
"""Special times of an `OffsetsRequest`."""

RANDOM_PARTITION = -1
"""The partition of a `ProduceRequest` for which the broker chooses one."""


# Names that a broker refuses: `.`, `..`, and any with control characters, slashes, surrogates or specials.
_ILLEGAL_TOPIC = re.compile("^\\.{1,2}$|[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
_LONGEST_TOPIC = 255
_WRONG_TOPICS = 9  # for which one request is searched, each with a copy of it
_STRING_LENGTH = 2  # bytes
_HEAD = struct.Struct(">ih")  # of a response: size and error code
_CODE_BYTES = 2


def check_topic(topic: str, *, path: str | None = None) -> str:
    """Returns the topic name if a 0.7 broker accepts it.

    Args:
        topic: the name.
        path: the field to name in the error.

    Raises:
        EncodeError: the name is empty, longer than 255 characters (UTF-16 units, as in Java), ``.`` or ``..``, or has
            characters that a 0.7 broker refuses.
    """
    length = len(topic) if topic.isascii() else len(topic) + sum(character > "\uffff" for character in topic)
    if not topic or length > _LONGEST_TOPIC or _ILLEGAL_TOPIC.search(topic):
        raise EncodeError(f"invalid topic name {topic[:80]!r}", path=path)
    return topic


class ErrorCode(IntEnum):
    """Error codes. Brokers never send INVALID_MESSAGE and INVALID_FETCH_SIZE: clients detect these faults."""

    UNKNOWN = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    INVALID_MESSAGE = 2
    WRONG_PARTITION = 3
    INVALID_FETCH_SIZE = 4


@dataclass(frozen=True, slots=True)
class _Body:
    """Fields in wire order; the schema with the same name encodes and decodes them."""

    request_type: ClassVar[int]
    has_response: ClassVar[bool] = True

    def encode(self) -> bytes:
        """The frame.

        Raises:
            EncodeError: a value that the frame cannot represent, or a topic that `check_topic` refuses, for which the
                broker would close the connection. FETCH takes any topic: the broker answers with an error code.
        """
        header = _SCHEMA["RequestType"](type=self.request_type).encode(0)
        frame = _to_schema(self).encode_frame(0, header)
        for path, topic in _checked_topics(self):
            check_topic(topic, path=path)
        return frame


@dataclass(frozen=True, slots=True)
class ProduceRequest(_Body):
    """PRODUCE: append a message set to a partition; with -1 the broker chooses one. It has no response."""

    topic: str
    partition: int
    message_set: Buffer
    request_type: ClassVar[int] = 0
    has_response: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class FetchRequest(_Body):
    """FETCH: at most `max_size` bytes of the log from `offset`; the last message may be cut."""

    topic: str
    partition: int
    offset: int
    max_size: int
    request_type: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class MultiFetchRequest(_Body):
    """MULTIFETCH: several `FetchRequest` in one."""

    requests: Sequence[FetchRequest]
    request_type: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class MultiProduceRequest(_Body):
    """MULTIPRODUCE: several `ProduceRequest` in one. It has no response."""

    requests: Sequence[ProduceRequest]
    request_type: ClassVar[int] = 3
    has_response: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class OffsetsRequest(_Body):
    """OFFSETS: at most `max_offsets` start offsets of segments last written at or before `time` (ms).

    `LATEST` requests the end of the log and all start offsets, `EARLIEST` only the first start offset.
    """

    topic: str
    partition: int
    time: int
    max_offsets: int
    request_type: ClassVar[int] = 4


Request: TypeAlias = ProduceRequest | FetchRequest | MultiFetchRequest | MultiProduceRequest | OffsetsRequest

_REQUESTS: dict[int, type[_Body]] = {
    cls.request_type: cls
    for cls in (ProduceRequest, FetchRequest, MultiFetchRequest, MultiProduceRequest, OffsetsRequest)
}
_PARTS: dict[type[_Body], type[_Body]] = {MultiFetchRequest: FetchRequest, MultiProduceRequest: ProduceRequest}
_VALUES: dict[type[_Body], Callable[[Any], tuple[Any, ...]]] = {
    cls: attrgetter(*(field.name for field in fields(cls))) for cls in (ProduceRequest, FetchRequest, OffsetsRequest)
}

B = TypeVar("B", bound=_Body)


def _to_schema(body: _Body) -> Message:
    schema: Any = _SCHEMA[type(body).__name__]
    if isinstance(body, (MultiFetchRequest, MultiProduceRequest)):
        part = schema.Fetch if isinstance(body, MultiFetchRequest) else schema.Produce
        made: Message = schema(requests=[part(**_by_name(request)) for request in body.requests])
        return made
    made = schema(**_by_name(body))
    return made


def _by_name(body: _Body) -> dict[str, Any]:
    return {field.name: getattr(body, field.name) for field in fields(body)}


def _checked_topics(body: _Body) -> list[tuple[str, str]]:
    """Path and name of the topics that the broker checks."""
    if isinstance(body, MultiProduceRequest):
        return [(f"requests[{i}].topic", request.topic) for i, request in enumerate(body.requests)]
    return [("topic", body.topic)] if isinstance(body, (ProduceRequest, OffsetsRequest)) else []


def _from_schema(cls: type[B], body: Any) -> B:
    part = _PARTS.get(cls)
    if part is not None:
        return cls(**{"requests": tuple(_from_schema(part, request) for request in body.requests)})
    return cls(*_VALUES[cls](body))


def decode_request(frame: Buffer, *, max_size: int = MAX_FRAME_SIZE) -> Request:
    """The request in a frame. Message sets are memoryviews of the frame.

    Raises:
        DecodeError: an unknown type, invalid lengths, a topic that is not UTF-8, unexpected bytes at the end.
        Truncated: the frame is incomplete.
        LimitExceeded: the frame's size exceeds `max_size`.
    """
    _check_frame(frame, max_size)
    cls, at = _request_class(frame)
    made: Request = _from_schema(cls, _SCHEMA[cls.__name__].decode(frame, 0, at))
    return made


def decode_received(frame: Buffer) -> Request:
    """The request in a frame as a 0.7 broker reads it: bytes after the last field are ignored.

    A topic that is not UTF-8 becomes one that `check_topic` refuses, as it does in Java. Message sets are
    memoryviews of the frame, or of a copy.

    Raises:
        DecodeError: an unknown type, invalid lengths, more than 8 topics that are not UTF-8.
    """
    cls, at = _request_class(frame)
    for _ in range(_WRONG_TOPICS):
        try:
            body = _SCHEMA[cls.__name__].decode_prefix(frame, 0, at)[0]
        except DecodeError as error:
            if "not UTF-8" not in error.reason or error.position is None:
                raise
            frame = _without_text(frame, error.position)
        else:
            made: Request = _from_schema(cls, body)
            return made
    raise DecodeError(f"more than {_WRONG_TOPICS - 1} topics are not UTF-8")


def _request_class(frame: Buffer) -> tuple[Any, int]:
    header: Any
    header, at = _SCHEMA["RequestType"].decode_prefix(frame, 0, SIZE_BYTES)
    cls = _REQUESTS.get(header.type)
    if cls is None:
        raise DecodeError(f"unknown request type {header.type}", position=SIZE_BYTES)
    return cls, at


def _without_text(frame: Buffer, position: int) -> Buffer:
    """A copy in which a string is slashes, which no topic may have; it begins at a position, after its length."""
    view = octets(frame)
    size = int.from_bytes(view[position - _STRING_LENGTH : position], "big")
    return b"".join((view[:position], b"/" * size, view[position + size :]))


def _check_frame(frame: Buffer, max_size: int) -> None:
    size, found = frame_size(frame, max_size=max_size), memoryview(frame).nbytes
    if size > found:
        raise Truncated(f"incomplete frame: {found} of {size} bytes", position=found)
    if size < found:
        raise DecodeError(f"unexpected {found - size} bytes after the frame", position=size)


class _Answer:
    """Common parts of responses."""

    __slots__ = ()

    def pieces(self) -> list[bytes | memoryview | FilePart]:
        """The frame in pieces, without a copy of the messages. Raises as `encode`."""
        raise NotImplementedError

    def encode(self) -> bytes:
        """The frame.

        Raises:
            EncodeError: a value that it cannot represent, such as an error code of more than 16 bits.
        """
        return b"".join(part.view() if isinstance(part, FilePart) else part for part in self.pieces())


def _response_pieces(
    error_code: int, parts: Sequence[bytes | memoryview | FilePart]
) -> list[bytes | memoryview | FilePart]:
    size = _CODE_BYTES + sum(map(len, parts))
    try:
        return [_HEAD.pack(size, error_code), *parts]
    except struct.error as error:
        raise EncodeError(f"a response of {size} bytes with error code {error_code}: {error}") from None


@dataclass(frozen=True, slots=True)
class FetchResponse(_Answer):
    """Messages from the offset of the request; none if there is an error. A broker's may be in a file."""

    error_code: int
    message_set: Any  # Buffer or FilePart

    def pieces(self) -> list[bytes | memoryview | FilePart]:
        """As in `encode`, in pieces."""
        found = self.message_set
        return _response_pieces(self.error_code, [found if isinstance(found, FilePart) else octets(found)])


@dataclass(frozen=True, slots=True)
class MultiFetchResponse(_Answer):
    """A `FetchResponse` for each request, in order. Brokers always set the outer error code to 0."""

    error_code: int
    responses: Sequence[FetchResponse]

    def pieces(self) -> list[bytes | memoryview | FilePart]:
        """As in `encode`, in pieces."""
        return _response_pieces(self.error_code, [piece for part in self.responses for piece in part.pieces()])


@dataclass(frozen=True, slots=True)
class OffsetsResponse(_Answer):
    """Offsets, the largest first; None for an error without a list. Real brokers send no errors here."""

    error_code: int
    offsets: Sequence[int] | None

    def pieces(self) -> list[bytes | memoryview | FilePart]:
        """As in `encode`, in pieces."""
        if self.offsets is None:
            return _response_pieces(self.error_code, [])
        return _response_pieces(self.error_code, [_SCHEMA["OffsetsResponse"](offsets=list(self.offsets)).encode(0)])


Response: TypeAlias = FetchResponse | MultiFetchResponse | OffsetsResponse


def decode_response(frame: Buffer, request: Request, *, max_size: int = MAX_FRAME_SIZE) -> Response:
    """The response to `request` in a frame. Message sets are memoryviews of the frame.

    Error codes are ints, not limited to those of `ErrorCode`.

    Raises:
        DecodeError: invalid counts or lengths, more or fewer message sets than requested.
        Truncated: the frame is incomplete.
        LimitExceeded: the frame's size exceeds `max_size`.
        LocalProtocolError: the request has no response.
    """
    if not request.has_response:
        raise LocalProtocolError(f"{type(request).__name__} has no response")
    view = octets(frame)
    _check_frame(view, max_size)
    if isinstance(request, FetchRequest):
        return _fetch_response(view)
    error_code, at = _error_code(view)
    if isinstance(request, MultiFetchRequest):
        return MultiFetchResponse(error_code, _fetch_responses(view, at, len(request.requests), error_code))
    if error_code and at == len(view):
        return OffsetsResponse(error_code, None)
    body: Any = _SCHEMA["OffsetsResponse"].decode(view, 0, at)
    return OffsetsResponse(error_code, body.offsets)


def _error_code(view: memoryview) -> tuple[int, int]:
    header: Any
    header, at = _SCHEMA["ErrorCode"].decode_prefix(view, 0, SIZE_BYTES)
    return header.error_code, at


def _fetch_response(view: memoryview) -> FetchResponse:
    error_code, at = _error_code(view)
    return FetchResponse(error_code, view[at:])


def _fetch_responses(view: memoryview, at: int, count: int, error_code: int) -> tuple[FetchResponse, ...]:
    if error_code and at == len(view):
        return ()
    responses = []
    for i in range(count):
        try:
            size = frame_size(view, at, max_size=len(view))
            if size > len(view) - at:
                raise Truncated(f"incomplete response: {len(view) - at} of {size} bytes", position=at)
            responses.append(_fetch_response(view[at : at + size]))
        except DecodeError as e:
            e.position = at
            raise e.within(f"responses[{i}]") from None
        at += size
    if at != len(view):
        raise DecodeError(f"unexpected {len(view) - at} bytes after {count} responses", position=at)
    return tuple(responses)
