"""Requests in frames, as servers receive them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kafkacodec.errors import KafkaCodecError, RemoteProtocolError

if TYPE_CHECKING:
    from kafkacodec.net.frames import Frame, FrameReader

__all__ = ["received_requests"]

T = TypeVar("T")


def received_requests(reader: FrameReader, count: int, decode: Callable[[Frame], T]) -> list[T]:
    """Return the requests that `count` more bytes complete.

    Args:
        reader: received the bytes.
        count: the number of new bytes.
        decode: makes a request from a frame. Raises KafkaCodecError.

    Raises:
        RemoteProtocolError: a frame or a request is invalid; `events` are the requests before it.
    """
    requests: list[T] = []
    wrong: KafkaCodecError | None = None
    try:
        frames = reader.received(count)
    except KafkaCodecError as error:
        frames, wrong = reader.before, error
    try:
        for frame in frames:
            requests.append(decode(frame))
    except KafkaCodecError as error:
        wrong = error
    if wrong is not None:
        raise RemoteProtocolError(str(wrong), events=requests) from wrong
    return requests
