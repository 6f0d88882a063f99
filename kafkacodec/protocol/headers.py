"""Header versions, and reading and writing headers.

A request has header version 2 in flexible versions and 1 in others; a response has 1 and 0. Two exceptions:
ControlledShutdown version 0 has request header 0, which has no client id. ApiVersions responses always have header 0,
so that a client can read the response even if its request version was too high. The client id has an int16 length in
all header versions. (KIP-482, KIP-511)
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kafkacodec import messages
from kafkacodec._core._buffer import octets
from kafkacodec.errors import DecodeError
from kafkacodec.messages import APIS, by_key, keys

if TYPE_CHECKING:
    from kafkacodec.messages import Message, RequestHeader, ResponseHeader

__all__ = [
    "decode_request_header",
    "decode_response_header",
    "encode_request_header",
    "encode_response_header",
    "request_header_version",
    "response_header_version",
]

_front_at = struct.Struct(">hh").unpack_from  # key and version of the API
_KNOWN = 1024  # more than there are APIs and versions, so that a peer's nonsense takes no more memory


@lru_cache(_KNOWN)
def request_header_version(api_key: int, version: int) -> int:
    """The header version of a request. Raises KeyError for an unknown API.

    A version newer than the known ones counts as flexible if the newest known version is.
    """
    if api_key == keys.CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if _is_flexible(by_key(api_key)[0], version) else 1


@lru_cache(_KNOWN)
def response_header_version(api_key: int, version: int) -> int:
    """The header version of a response; like `request_header_version`."""
    if api_key == keys.API_VERSIONS:
        return 0
    return 1 if _is_flexible(by_key(api_key)[1], version) else 0


def _is_flexible(message: type[Message], version: int) -> bool:
    flexible = message.flexible_versions
    return bool(flexible) and version >= flexible.start


def encode_request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None, tags: dict[int, bytes] | None = None
) -> bytes:
    """The header of a request, without the frame size."""
    is_id = type(correlation_id) is int and -1 << 31 <= correlation_id < 1 << 31
    if not tags and is_id and (client_id is None or type(client_id) is str):
        before, after = _around_correlation(api_key, version, client_id)
        return before + correlation_id.to_bytes(4, "big", signed=True) + after
    return _request_header(api_key, version, correlation_id, client_id, tags)


@lru_cache
def _around_correlation(api_key: int, version: int, client_id: str | None) -> tuple[bytes, bytes]:
    """What precedes and follows the correlation id in a request header without tags."""
    whole = _request_header(api_key, version, 0, client_id, None)
    return whole[:4], whole[8:]


def _request_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None, tags: dict[int, bytes] | None
) -> bytes:
    header = messages.RequestHeader(request_api_key=api_key, request_api_version=version, correlation_id=correlation_id)
    header.unknown_tagged_fields = tags or {}
    form = request_header_version(api_key, version)
    if form > 0:
        header.client_id = client_id
    return header.encode(form)


def encode_response_header(
    api_key: int, version: int, correlation_id: int, tags: dict[int, bytes] | None = None
) -> bytes:
    """The header of a response, without the frame size."""
    form = response_header_version(api_key, version)
    if not tags and type(correlation_id) is int and -1 << 31 <= correlation_id < 1 << 31:
        return correlation_id.to_bytes(4, "big", signed=True) + _after_correlation(form)
    header = messages.ResponseHeader(correlation_id=correlation_id)
    header.unknown_tagged_fields = tags or {}
    return header.encode(form)


@lru_cache
def _after_correlation(form: int) -> bytes:
    """What follows the correlation id in a response header without tags."""
    return messages.ResponseHeader(correlation_id=0).encode(form)[4:]


def decode_request_header(data: Any, start: int = 0) -> tuple[RequestHeader, int]:
    """The header at `start` and the position of the body. Raises DecodeError, also for an unknown API."""
    try:
        key, version = _front_at(data, start)  # with which all header versions start
    except (struct.error, TypeError, BufferError):
        front, _ = messages.RequestHeader.decode_prefix(data, 0, start)  # raises
        key, version = front.request_api_key, front.request_api_version
    if key not in APIS:
        octets(data)  # raises, if these are no bytes
        raise DecodeError(f"unknown API key {key}", position=start, path="request_api_key")
    return messages.RequestHeader.decode_prefix(data, request_header_version(key, version), start)


def decode_response_header(data: Any, api_key: int, version: int, start: int = 0) -> tuple[ResponseHeader, int]:
    """The header at `start` and the position of the body."""
    form = response_header_version(api_key, version)
    return messages.ResponseHeader.decode_prefix(data, form, start)
