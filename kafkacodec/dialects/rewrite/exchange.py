"""The client's side of a connection without I/O: calls that wait for their replies, which come in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacodec._core._buffer import octets
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.rewrite.frames import MAX_REPLY_BYTES, decode_reply, encode_request, reply_id, with_id
from kafkacodec.dialects.rewrite.rpcs import ANSWERS, Rpc
from kafkacodec.errors import DecodeError, RemoteProtocolError
from kafkacodec.net.frames import Frame, FrameBuffers, FrameReader

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Exchange"]


class _Asked(NamedTuple):
    answer: type[Rpc]
    correlation_id: int
    waiter: Any


class Exchange:
    """The pending calls of a connection.

    The connection assigns ids to calls, so several users of it need not agree on ids; a reply gets the id of its call
    back.

    Args:
        max_reply_bytes: the largest reply, without its size field.
        passes_on: whether this is a server that forwards calls.
    """

    def __init__(self, *, max_reply_bytes: int = MAX_REPLY_BYTES, passes_on: bool = False) -> None:
        self._reader = FrameReader(FrameBuffers(0), max_reply_bytes)
        self._passes_on = passes_on
        self._waiting: dict[int, _Asked] = {}
        self._last_id = 0

    @property
    def pending(self) -> int:
        """The number of pending calls."""
        return len(self._waiting)

    def request(self, call: Rpc, *, waiter: Any) -> bytes:
        """The frame of a call; `waiter` comes back with the reply. Raises EncodeError."""
        data = encode_request(call, passed_on=self._passes_on)
        self._last_id += 1
        given: int = getattr(call, "correlation_id", 0)
        self._waiting[self._last_id] = _Asked(ANSWERS[type(call)], given, waiter)
        return with_id(data, self._last_id)

    def received(self, data: Buffer) -> list[tuple[Any, Rpc]]:
        """Return the replies that are now complete, each with the waiter of its call.

        Raises:
            RemoteProtocolError: a frame is not a reply to a pending call, so the connection is unusable. Its `events`
                are the earlier replies.
        """
        found: list[tuple[Any, Rpc]] = []
        view = octets(data)
        try:
            while view:
                room = self._reader.buffer()
                count = min(len(room), len(view))
                room[:count] = view[:count]
                view = view[count:]
                self._take(count, found)
        except DecodeError as error:
            raise RemoteProtocolError(f"not a reply: {error}", events=found) from error
        return found

    def give_up(self) -> list[Any]:
        """Return the waiters of all calls without a reply."""
        waiters = [asked.waiter for asked in self._waiting.values()]
        self._waiting.clear()
        return waiters

    def _take(self, count: int, found: list[tuple[Any, Rpc]]) -> None:
        wrong: DecodeError | None = None
        try:
            frames: list[Frame] = self._reader.received(count)
        except DecodeError as error:
            frames, wrong = self._reader.before, error
        for frame in frames:  # replies keep their memory: their arrays are decoded late
            found.append(self._reply(frame.view))
        if wrong is not None:
            raise wrong

    def _reply(self, frame: memoryview) -> tuple[Any, Rpc]:
        number = reply_id(frame)
        asked = self._waiting.get(number)
        if asked is None:
            raise DecodeError(f"{number} is not the id of a call", position=4)
        reply: Any = decode_reply(frame, asked.answer)
        reply.correlation_id = asked.correlation_id
        del self._waiting[number]
        return asked.waiter, reply
