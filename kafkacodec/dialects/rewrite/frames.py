"""Frames of the rewrite's calls: an int32 size, for calls an int16 API key, then the body.

The text has only bodies. A reply has no key: its correlation id shows which call it answers.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from kafkacodec._core._buffer import octets
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.rewrite.rpcs import (
    CommitOffsets,
    CreateEphemeralGroup,
    CreateGroup,
    DeleteGroup,
    FetchOffsets,
    Heartbeat,
    ListGroups,
    RegisterConsumer,
    RewindConsumer,
    Rpc,
)
from kafkacodec.errors import DecodeError, EncodeError, LimitExceeded

__all__ = [
    "API_KEYS",
    "MAX_REPLY_BYTES",
    "MAX_REQUEST_BYTES",
    "PASSED_ON",
    "Request",
    "decode_reply",
    "decode_request",
    "encode_reply",
    "encode_request",
    "reply_id",
    "with_id",
]

API_KEYS: Final[dict[int, type[Rpc]]] = {
    10_000: ListGroups,
    10_001: CreateGroup,
    10_002: DeleteGroup,
    10_003: RegisterConsumer,
    10_004: Heartbeat,
    10_005: RewindConsumer,
    10_006: CommitOffsets,
    10_007: FetchOffsets,
    10_008: CreateEphemeralGroup,
}
"""The class of a call by its key; the keys are outside of Kafka's."""

PASSED_ON: Final[dict[int, type[Rpc]]] = {
    10_100: ListGroups,
    10_101: CreateGroup,
    10_102: DeleteGroup,
    10_103: CreateEphemeralGroup,
}
"""The class of a forwarded call, by its key: the other server answers it alone."""

MAX_REQUEST_BYTES: Final = 4 << 20
"""The largest call, without its size field."""

MAX_REPLY_BYTES: Final = 64 << 20
"""The largest reply, without its size field."""

_KEYS: Final = {call: key for key, call in API_KEYS.items()}
_KEYS_PASSED_ON: Final = {call: key for key, call in PASSED_ON.items()}
_HEAD: Final = Struct(">ih")
_SIZE: Final = Struct(">i")
_HEAD_AFTER_SIZE: Final = 2
_MIN_REPLY_BYTES: Final = 10  # version and correlation id
_CORRELATION_ID: Final = Struct(">q")
_AFTER_VERSION: Final = 2


class Request(NamedTuple):
    """A call as it was received.

    Attributes:
        call: the call.
        passed_on: by another server; this one answers for its own groups only.
    """

    call: Rpc
    passed_on: bool


def encode_request(call: Rpc, *, passed_on: bool = False) -> bytes:
    """The frame of a call.

    Raises:
        EncodeError: a value that the layout cannot represent; not a call.
    """
    key = (_KEYS_PASSED_ON if passed_on else _KEYS).get(type(call))
    if key is None:
        raise EncodeError(f"{type(call).__name__} is not a call")
    body = call.encode()
    if len(body) + _HEAD_AFTER_SIZE > MAX_REQUEST_BYTES:
        raise EncodeError(f"a call of {len(body):,} bytes exceeds the limit of {MAX_REQUEST_BYTES:,}")
    return _HEAD.pack(len(body) + _HEAD_AFTER_SIZE, key) + body


def decode_request(frame: Any) -> Request:
    """The call in a frame with its size field.

    Raises:
        DecodeError: an unknown key, or not a valid body.
    """
    frame = octets(frame)
    if len(frame) < _HEAD.size:
        raise DecodeError("a call without a key", position=len(frame))
    key = _HEAD.unpack_from(frame)[1]
    passed_on = key in PASSED_ON
    call = (PASSED_ON if passed_on else API_KEYS).get(key)
    if call is None:
        raise DecodeError(f"unknown API key {key}", position=_SIZE.size)
    return Request(call.decode(frame, start=_HEAD.size), passed_on)


def encode_reply(reply: Rpc) -> bytes:
    """The frame of a reply.

    Raises:
        EncodeError: a value that the layout cannot represent.
        LimitExceeded: it would be larger than `MAX_REPLY_BYTES`.
    """
    body = reply.encode()
    if len(body) > MAX_REPLY_BYTES:
        raise LimitExceeded(f"a reply of {len(body):,} bytes exceeds the limit of {MAX_REPLY_BYTES:,}")
    return _SIZE.pack(len(body)) + body


def decode_reply(frame: Any, answer: type[Rpc]) -> Rpc:
    """The reply in a frame with its size field, of the kind that its call has. Raises DecodeError."""
    return answer.decode(frame, start=_SIZE.size)


def reply_id(frame: Any) -> int:
    """The correlation id of the reply in a frame with its size field. Raises DecodeError."""
    frame = octets(frame)
    if len(frame) < _SIZE.size + _MIN_REPLY_BYTES:
        raise DecodeError("a reply without a correlation id", position=len(frame))
    number: int = _CORRELATION_ID.unpack_from(frame, _SIZE.size + _AFTER_VERSION)[0]
    return number


def with_id(request: bytes, correlation_id: int) -> bytes:
    """The frame of a call with another correlation id."""
    at = _HEAD.size + _AFTER_VERSION
    return request[:at] + _CORRELATION_ID.pack(correlation_id) + request[at + _CORRELATION_ID.size :]
