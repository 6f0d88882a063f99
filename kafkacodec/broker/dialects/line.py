"""The line protocol V1 as a service of the host: lines in, lines out."""

from __future__ import annotations

import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkacodec.broker.dialects.line_files import FILES, LineStore
from kafkacodec.broker.dialects.line_storage import Counts, TopicStorage
from kafkacodec.dialects.line.broker import Broker, Reply as LineReply
from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.errors import ErrorCode
from kafkacodec.dialects.line.parsing import Response
from kafkacodec.dialects.line.reading import MAX_LINE_BYTES, LineReader
from kafkacodec.net.service import NOTHING, Effect, Reply

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.dialects.line.errors import LineProtocolError

__all__ = ["Asked", "LineCodec", "LineRequest", "LineService", "not_kept", "not_stored"]

LineRequest: TypeAlias = "str | LineProtocolError | list[str]"
"""A line, the error of an invalid one, or several lines with records."""

_log = logging.getLogger("kafkacodec.broker")
_OF_GROUPS: Final = tuple(f"{name}|" for name in ("JOIN", "SYNC", "HEARTBEAT", "LEAVE", "COMMIT", "OFFSET"))


class LineCodec:
    """The codec of a connection of the line protocol: a request is a line, or the error of an invalid one.

    Args:
        memory: for received bytes; the connections of an event loop share it, as each takes its bytes at once.
    """

    in_order = False  # a PRODUCE with acks=all is answered when it is replicated
    answers_last = True  # as from a shell: printf 'V1|1|PING|\n' | nc HOST PORT
    waits = False

    def __init__(self, memory: memoryview) -> None:
        self._reader = LineReader(max_line_bytes=MAX_LINE_BYTES)
        self._memory = memory

    def buffer(self) -> memoryview:
        """Return memory for the next received bytes."""
        return self._memory

    def received(self, count: int) -> list[LineRequest]:
        """Return the lines that are now complete; a list groups lines of records that are answered at once."""
        found: list[LineRequest] = []
        run: list[str] = []
        for line in self._reader.receive(self._memory[:count]):
            if isinstance(line, str) and _is_answered_at_once(line):
                if not run:
                    found.append(run)
                run.append(line)
            else:
                run = []
                found.append(line)
        return found

    def response(self, request: Any, response: str) -> list[bytes | memoryview]:
        """The bytes of a response, or of several with line ends between them."""
        return [response.encode() + b"\n"]

    def settled(self, request: Any) -> bool:
        """Requests of a connection are served beside one another."""
        return True

    def rest(self, request: Any) -> float:
        """The connection never rests."""
        return 0.0

    def release(self, request: Any) -> None:
        """Do nothing: it keeps no memory of requests."""

    def drop(self) -> None:
        """Free the memory of an incomplete line."""
        self._reader = LineReader(max_line_bytes=MAX_LINE_BYTES)


def _is_answered_at_once(line: str) -> bool:
    """Whether a line has a record that is answered without waiting for followers."""
    return not line.endswith(" acks=all") and line.partition("|")[2].partition("|")[2].startswith("PRODUCE|")


class Asked:
    """A request that waits: the address of its answer. It equals all others of its connection, which end together."""

    __slots__ = ("session", "to")

    def __init__(self, session: Any, to: Any) -> None:
        self.session, self.to = session, to

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asked) and other.session is self.session

    def __hash__(self) -> int:
        return id(self.session)


class LineService:
    """A `kafkacodec.net.service.Service` for clients of the line protocol.

    Args:
        inside: the part of the broker that it uses.
    """

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._storage = TopicStorage(inside)
        self._now = 0

    @property
    def store(self) -> LineStore:
        """The store that its effects write to."""
        return LineStore(self._inside.topics, self._storage.files)

    @cached_property
    def _broker(self) -> Broker:
        """The state machine, which the first request starts, once the topics are loaded."""
        config = BrokerConfig(
            topics=Counts(self._inside.catalog), default_partitions=self._inside.config.number("num.partitions")
        )
        return Broker(self._storage, config, now=self._now)

    def receive(self, request: LineRequest, session: Any, to: Any, now: float) -> Effect:
        """Answer a line, or keep it until it is replicated."""
        self.clock(now)
        asked = Asked(session, to)
        if not isinstance(request, list):
            found = self._broker.receive(request, self._now, asked)
            return self._replies(found, tells_of_groups=_is_about_groups(request))
        replies = self._broker.receive_all(request, self._now, asked)
        own = "\n".join(reply.line for reply in replies if reply.connection is asked)
        return self._replies([LineReply(asked, own), *(reply for reply in replies if reply.connection is not asked)])

    def disconnected(self, session: Any, now: float) -> Effect:
        """Forget the waiting requests of a connection."""
        self._broker.disconnect(Asked(session, None))
        return NOTHING

    def tick(self, now: float) -> Effect:
        """Do what is due."""
        return self._replies(self._broker.tick(self.clock(now)), tells_of_groups=True)

    def next_deadline(self) -> float | None:
        """Return when `tick` is needed."""
        deadline = self._broker.next_deadline()
        return None if deadline is None else self._inside.clock.of_host(deadline)

    def clock(self, now: float) -> int:
        """The broker's time, for the machine, at a time of the host."""
        self._now = max(self._now, int(self._inside.clock(now)))
        return self._now

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """Nothing is appended by effects: the storage does."""
        return NOTHING

    def not_appended(self, token: Any, error: Exception, now: float) -> Effect:
        """Nothing is appended by effects: the storage does."""
        return NOTHING

    def close(self, *, keeps: bool) -> None:
        """Write pending files. Raises OSError."""
        if keeps:
            self._storage.files.save(self._inside.topics)

    def _replies(self, found: list[LineReply], *, tells_of_groups: bool = False) -> Effect:
        """Return the answers; answers about groups leave once the disk has the change."""
        has_lost, refused = self._stored()
        replies = [Reply(reply.connection.to, reply.line) for reply in (*found, *refused)]  # type: ignore[attr-defined]
        if has_lost:
            replies = not_stored(replies)
        written = self._storage.take_written()
        if tells_of_groups and not self._storage.files.is_saved:
            return Effect((), replies, (), [*written, FILES], partial(not_kept, replies))
        return Effect((), replies, (), written, partial(not_stored, replies))

    def _stored(self) -> tuple[bool, list[LineReply]]:
        """Append accepted records; return whether some are lost, and the answers to waiting requests with these."""
        lost = self._storage.store()
        refused = [reply for log in lost for reply in self._broker.lost(*log)]
        for failure in self._broker.take_failures():
            _log.warning("line protocol: %s", failure)
        for log, error in lost.items():
            _log.warning("line protocol: %s-%d: %s", *log, error)
        return bool(lost), refused


def _is_about_groups(line: str | LineProtocolError) -> bool:
    return isinstance(line, str) and line.partition("|")[2].partition("|")[2].startswith(_OF_GROUPS)


def not_kept(replies: list[Reply]) -> list[Reply]:
    """Return error responses for changes that the disk refused."""
    _log.warning("line protocol: files could not be written; clients get errors, and the write will be tried again")
    return [Reply(to, "\n".join(map(_not_kept, lines.split("\n")))) for to, lines in replies]


def _not_kept(line: str) -> str:
    _, correlation_id, rest = line.split("|", 2)
    if not rest.startswith("OK"):
        return line
    return Response.error(correlation_id, ErrorCode.STORAGE_ERROR, "the disk refused the change").encode()


def not_stored(replies: list[Reply]) -> list[Reply]:
    """Return error responses for records that the disk refused."""
    return [Reply(to, "\n".join(map(_refused, lines.split("\n")))) for to, lines in replies]


def _refused(line: str) -> str:
    _, correlation_id, rest = line.split("|", 2)
    if not rest.startswith("OK|partition="):  # the answer to a record
        return line
    return Response.error(correlation_id, ErrorCode.STORAGE_ERROR, "the record may be lost; try again").encode()
