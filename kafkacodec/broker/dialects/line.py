"""The line protocol V1 as a service of the host: lines in, lines out."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.dialects.line_storage import Counts, TopicStorage
from kafkacodec.dialects.line.broker import Broker
from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.parsing import Response
from kafkacodec.dialects.line.reading import MAX_LINE_BYTES, LineReader
from kafkacodec.net.service import NOTHING, Effect, Reply

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.dialects.line.broker import Reply as LineReply
    from kafkacodec.dialects.line.errors import LineProtocolError

__all__ = ["LineCodec", "LineService"]

_log = logging.getLogger("kafkacodec.broker")
_RECEIVED_BYTES: Final = 1 << 16


class LineCodec:
    """The codec of a connection of the line protocol: a request is a line, or what is wrong with one."""

    in_order = False  # a PRODUCE with acks=all is answered when it is replicated

    def __init__(self) -> None:
        self._reader = LineReader(max_line_bytes=MAX_LINE_BYTES)
        self._memory = memoryview(bytearray(_RECEIVED_BYTES))

    def buffer(self) -> memoryview:
        """Where the next received bytes go."""
        return self._memory

    def received(self, count: int) -> list[str | LineProtocolError]:
        """The lines that are now complete."""
        return self._reader.receive(self._memory[:count])

    def response(self, request: Any, response: str) -> list[bytes | memoryview]:
        """The bytes of a response."""
        return [response.encode() + b"\n"]

    def rest(self, request: Any) -> float:
        """The connection never rests."""
        return 0.0

    def release(self, request: Any) -> None:
        """Nothing is kept of a request."""

    def drop(self) -> None:
        """Free the memory of an incomplete line."""
        self._reader = LineReader(max_line_bytes=MAX_LINE_BYTES)


class _Asked:
    """A request that waits: where its answer goes. It is equal to all others of its connection, which end together."""

    __slots__ = ("session", "to")

    def __init__(self, session: Any, to: Any) -> None:
        self.session, self.to = session, to

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and other.session is self.session

    def __hash__(self) -> int:
        return id(self.session)


class LineService:
    """A `kafkacodec.net.service.Service` for clients of the line protocol.

    Args:
        inside: what it uses of the broker.
    """

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._storage = TopicStorage(inside)
        self._now = 0

    @cached_property
    def _broker(self) -> Broker:
        """The state machine, begun by the first request: by then the topics are loaded."""
        config = BrokerConfig(
            topics=Counts(self._inside.catalog), default_partitions=self._inside.config.number("num.partitions")
        )
        return Broker(self._storage, config, now=self._now)

    def receive(self, request: str | LineProtocolError, session: Any, to: Any, now: float) -> Effect:
        """Answer a line, or keep it until it is replicated."""
        self._now = int(now)
        return self._replies(self._broker.receive(request, self._now, _Asked(session, to)))

    def disconnected(self, session: Any, now: float) -> Effect:
        """Forget what waits for a connection."""
        self._broker.disconnect(_Asked(session, None))
        return NOTHING

    def tick(self, now: float) -> Effect:
        """Do what is due."""
        self._now = int(now)
        return self._replies(self._broker.tick(self._now))

    def next_deadline(self) -> float | None:
        """When `tick` is needed."""
        return self._broker.next_deadline()

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """Nothing is appended by effects: the storage does."""
        return NOTHING

    def not_appended(self, token: Any, error: Exception, now: float) -> Effect:
        """Nothing is appended by effects: the storage does."""
        return NOTHING

    def _replies(self, found: list[LineReply]) -> Effect:
        for failure in self._broker.take_failures():
            _log.warning("line protocol: %s", failure)
        written = self._storage.take_written()
        replies = [Reply(reply.connection.to, reply.line) for reply in found]  # type: ignore[attr-defined]
        return Effect(
            (), replies, (), written, [Reply(to, _not_stored(line)) for to, line in replies] if written else ()
        )


def _not_stored(line: str) -> str:
    """The response instead of one that needs the disk, which did not take the records."""
    correlation_id = line.split("|", 2)[1]
    return Response.error(correlation_id, ErrorCode.STORAGE_ERROR, "the records may be lost; try again").encode()
