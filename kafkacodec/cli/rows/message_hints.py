"""What bytes that cannot be decoded as asked look like, for the error message of ``kafkacodec message decode``."""

from __future__ import annotations

from typing import Any

from kafkacodec import messages, protocol
from kafkacodec.errors import KafkaCodecError

_SIZE = 4


def hint(raw: bytes, name: str | None, version: int | None, frame: bool) -> str | None:
    """What the bytes are instead, and the options for it; None if that is unknown.

    Args:
        raw: the bytes.
        name: ``--rpc``.
        version: ``--version``.
        frame: ``--frame``.
    """
    whole = int.from_bytes(raw[:_SIZE], "big") == len(raw) - _SIZE
    request = _request_in(raw) if whole else None
    if request is not None and not (frame and name in (None, request[0])):
        return f"it looks like a frame with {request[0]} version {request[1]}: use --frame alone"
    if name is None or version is None:
        return "it looks like the frame of a response: use --frame, --rpc and --version" if whole else None
    other = _other_side(name)
    if not whole and frame:
        for kind in filter(None, (name, other)):
            if _decodes(kind, version, raw):
                return f"it looks like a body without size and header: use --rpc {kind} without --frame"
        return None
    if other is not None and other.endswith("Response") and whole and _is_response(other, version, raw):
        return f"it looks like a response: use --frame --rpc {other}"
    if other is not None and not whole and _decodes(other, version, raw):
        what = "response" if other.endswith("Response") else "request"
        return f"it looks like a {what}: use --rpc {other}"
    if whole and not frame:
        return "it looks like a frame: use --frame"
    return None


def _request_in(frame: bytes) -> tuple[str, int] | None:
    try:
        header, message = protocol.decode_request(frame)
    except (KafkaCodecError, ValueError):
        return None
    return type(message).__name__, header.request_api_version


def _is_response(name: str, version: int, frame: bytes) -> bool:
    cls: Any = getattr(messages, name)
    try:
        protocol.decode_response(frame, cls.api_key, version)
    except (KafkaCodecError, ValueError):
        return False
    return True


def _other_side(name: str) -> str | None:
    """The response of a request and the reverse."""
    pairs = (("Request", "Response"), ("Response", "Request"))
    found = next((name.removesuffix(this) + that for this, that in pairs if name.endswith(this)), None)
    return found if found in messages.message_names() else None


def _decodes(name: str, version: int, body: bytes) -> bool:
    if name not in messages.message_names():
        return False
    try:
        getattr(messages, name).decode(body, version)
    except (KafkaCodecError, ValueError):
        return False
    return True
