"""Frames (an int32 size, a header, a body), and splitting a stream into frames."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kafkacodec import errors
from kafkacodec._core._buffer import octets
from kafkacodec.arguments import limit
from kafkacodec.errors import DecodeError, LimitExceeded, Truncated, UnsupportedVersion
from kafkacodec.messages import by_key, keys
from kafkacodec.protocol.foreign import spoken
from kafkacodec.protocol.headers import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)

if TYPE_CHECKING:
    from kafkacodec.messages import Message, RequestHeader, ResponseHeader

__all__ = [
    "MAX_FRAME_SIZE",
    "decode_request",
    "decode_response",
    "decode_response_prefix",
    "encode_request",
    "encode_response",
    "frame_size",
    "request_pieces",
    "response_pieces",
    "split_frames",
]

# The default limit of brokers (socket.request.max.bytes).
MAX_FRAME_SIZE = 100 << 20

SIZE_BYTES = 4
_size_at = struct.Struct(">i").unpack_from
_id_pack = struct.Struct(">i").pack
_INT32_MAX = 2**31 - 1


def frame_size(data: Any, start: int = 0, *, max_size: int = MAX_FRAME_SIZE) -> int:
    """The size in bytes of the frame at `start`, including the four bytes of the size field.

    Raises:
        Truncated: fewer than four bytes.
        DecodeError: a negative size.
        LimitExceeded: a frame larger than `max_size`.
    """
    head = bytes(octets(data)[start : start + SIZE_BYTES])
    if len(head) < SIZE_BYTES:
        raise Truncated(f"a frame size needs {SIZE_BYTES} bytes, {len(head)} left", position=start)
    size = int.from_bytes(head, "big", signed=True)
    if size < 0:
        raise DecodeError(f"negative frame size {size}", position=start)
    if size > max_size:
        name = spoken(head)
        meaning = f"; it begins as {name} does" if name else ""
        raise LimitExceeded(f"a frame of {size} bytes exceeds the limit of {max_size}{meaning}", position=start)
    return size + SIZE_BYTES


def split_frames(buffer: Any, *, max_size: int = MAX_FRAME_SIZE) -> tuple[list[memoryview], memoryview]:
    """Splits a stream into its complete frames and the remaining bytes.

    Frames (including their size fields) and remaining bytes are memoryviews of `buffer`. Raises like `frame_size`, and
    ValueError or TypeError for a `max_size` that is negative or not an integer.
    """
    max_size = limit("max_size", max_size)
    view = octets(buffer)
    frames = []
    at = 0
    while len(view) - at >= SIZE_BYTES:
        size = frame_size(view, at, max_size=max_size)
        if size > len(view) - at:
            break
        frames.append(view[at : at + size])
        at += size
    return frames, view[at:]


def encode_request(
    message: Message,
    version: int,
    correlation_id: int,
    client_id: str | None = None,
    *,
    header_tags: dict[int, bytes] | None = None,
) -> bytes:
    """A request as a frame, including its size.

    `header_tags` are tagged fields of the header. Raises EncodeError and UnsupportedVersion like `Message.encode`.
    """
    header = _request_header(message, version, correlation_id, client_id, header_tags)
    return message.encode_frame(version, header)


def request_pieces(
    message: Message,
    version: int,
    correlation_id: int,
    client_id: str | None = None,
    *,
    header_tags: dict[int, bytes] | None = None,
) -> list[bytes | memoryview]:
    """Like `encode_request`, but returns pieces as `Message.encode_frame_pieces` does."""
    header = _request_header(message, version, correlation_id, client_id, header_tags)
    return message.encode_frame_pieces(version, header)


def encode_response(
    message: Message, version: int, correlation_id: int, *, header_tags: dict[int, bytes] | None = None
) -> bytes:
    """A response as a frame, including its size; `version` is that of the request. Errors as for `encode_request`."""
    header = _response_header(message, version, correlation_id, header_tags)
    return message.encode_frame(version, header)


def response_pieces(
    message: Message, version: int, correlation_id: int, *, header_tags: dict[int, bytes] | None = None
) -> list[bytes | memoryview]:
    """Like `encode_response`, but returns pieces as `Message.encode_frame_pieces` does."""
    header = _response_header(message, version, correlation_id, header_tags)
    return message.encode_frame_pieces(version, header)


def _request_header(
    message: Message, version: int, correlation_id: int, client_id: str | None, tags: dict[int, bytes] | None
) -> bytes:
    kind: Any = type(message)
    api_key = _key_of(kind, 0)
    if version not in message.valid_versions:
        message.require_version(version)  # raises
    return encode_request_header(api_key, version, correlation_id, client_id, tags)


def _response_header(message: Message, version: int, correlation_id: int, tags: dict[int, bytes] | None) -> bytes:
    kind: Any = type(message)
    if not tags and type(correlation_id) is int and -1 << 31 <= correlation_id < 1 << 31:
        return _id_pack(correlation_id) + _after_correlation(kind, version)
    message.require_version(version)
    return encode_response_header(_key_of(kind, 1), version, correlation_id, tags)


@lru_cache(1024)
def _after_correlation(kind: Any, version: int) -> bytes:
    """What follows the correlation id in the header of a response without tags."""
    key = _key_of(kind, 1)
    kind.require_version(version)
    return encode_response_header(key, version, 0)[SIZE_BYTES:]


def decode_request(frame: Any) -> tuple[RequestHeader, Message]:
    """The header and the message of a request frame.

    Raises DecodeError, whose position counts from the start of the frame, and UnsupportedVersion.
    """
    _check_whole(frame)
    header, at = decode_request_header(frame, SIZE_BYTES)
    request, _ = by_key(header.request_api_key)
    return header, request.decode(frame, header.request_api_version, at)


def decode_response(frame: Any, api_key: int, version: int) -> tuple[ResponseHeader, Message]:
    """The header and the message of a response frame; `version` is that of the request.

    A broker that lacks the version of an ApiVersions request answers in version 0 with error 35; this is handled.
    Raises DecodeError, whose position counts from the start of the frame, and UnsupportedVersion.
    """
    header, response, version, at = _response_begun(frame, api_key, version)
    return header, response.decode(frame, version, at)


def decode_response_prefix(frame: Any, api_key: int, version: int) -> tuple[ResponseHeader, Message, int]:
    """Like `decode_response`, but bytes may follow the message, whose end is returned too.

    For an ApiVersions response with error 35 the code is enough, whatever the layout of the rest.
    """
    header, response, version, at = _response_begun(frame, api_key, version)
    try:
        return header, *response.decode_prefix(frame, version, at)
    except DecodeError:
        if api_key != keys.API_VERSIONS or _error_code_at(frame, at) != errors.UNSUPPORTED_VERSION:
            raise
        return header, response(error_code=errors.UNSUPPORTED_VERSION), memoryview(frame).nbytes


def _response_begun(frame: Any, api_key: int, version: int) -> tuple[ResponseHeader, type[Message], int, int]:
    """The header of a response, and the class, version and position of its message."""
    try:
        is_whole = _size_at(frame)[0] + SIZE_BYTES == memoryview(frame).nbytes
    except (struct.error, TypeError, BufferError):
        is_whole = False
    if not is_whole:
        _check_whole(frame)
    try:
        _, response = by_key(api_key)
    except KeyError:
        raise UnsupportedVersion(f"unknown API key {api_key}") from None
    header, at = decode_response_header(frame, api_key, version, SIZE_BYTES)
    if api_key == keys.API_VERSIONS and _error_code_at(frame, at) == errors.UNSUPPORTED_VERSION:
        version = 0
    return header, response, version, at


def _check_whole(frame: Any) -> None:
    have = octets(frame).nbytes
    size = frame_size(frame, max_size=_INT32_MAX)
    if size > have:
        raise Truncated(f"incomplete frame: {have} of {size} bytes", position=0)
    if size < have:
        raise DecodeError(f"unexpected {have - size} bytes after the frame", position=size)


def _error_code_at(frame: Any, at: int) -> int:
    return int.from_bytes(bytes(octets(frame)[at : at + 2]), "big", signed=True)


@lru_cache(1024)
def _key_of(kind: Any, side: int) -> int:
    """The API key of a request (side 0) or a response (side 1)."""
    key: int | None = getattr(kind, "api_key", None)
    if key is None or not issubclass(kind, by_key(key)[side]):
        raise TypeError(f"not a {('request', 'response')[side]}: {kind.__name__}")
    return key
