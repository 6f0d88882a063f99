"""Kafka 0.7 as a service of the host: its requests, over logs in its format in the data directory."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkacodec.chance import RANDOM
from kafkacodec.datatypes import NamedTuple, replace
from kafkacodec.dialects.kafka07.driver import answer_offsets
from kafkacodec.dialects.kafka07.message_set import check_produced, encode_messages
from kafkacodec.dialects.kafka07.settings import BrokerSettings
from kafkacodec.dialects.kafka07.wire import (
    RANDOM_PARTITION,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    check_topic,
    decode_received,
)
from kafkacodec.errors import DecodeError, EncodeError
from kafkacodec.internal_records import INTERNAL_TOPICS
from kafkacodec.log.growing.kafka07_directory import GrowingDirectory07
from kafkacodec.net.frames import Frame, FrameBuffers, FrameReader
from kafkacodec.net.requests import received_requests
from kafkacodec.net.service import CLOSE, NO_ANSWER, NOTHING, Append, Effect, FilePart, Reply

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.dialects.kafka07.wire import Request, Response
    from kafkacodec.log.growing.kafka07 import GrowingLog07

__all__ = ["Kafka07Codec", "Kafka07Request", "Kafka07Service"]

_log = logging.getLogger("kafkacodec.broker")
_FIRST_CLEANUP_MS: Final = 60_000
_RETENTION: Final = "retention.ms"
_DEFAULT_RETENTION_MS: Final = 7 * 24 * 3_600_000

_Log: TypeAlias = tuple[str, int]


class Kafka07Request:
    """A request with the memory that it keeps.

    Attributes:
        message: the request.
        nbytes: the size of that memory.
    """

    __slots__ = ("frame", "message", "nbytes")

    def __init__(self, frame: Frame) -> None:
        self.frame, self.nbytes = frame, frame.nbytes
        self.message: Request = decode_received(frame.view)


class Kafka07Codec:
    """The codec of a connection of Kafka 0.7.

    Args:
        buffers: memory for large frames, which all connections share.
        max_request_bytes: the largest request.
    """

    in_order = True
    answers_last = True

    def __init__(self, buffers: FrameBuffers, max_request_bytes: int) -> None:
        self._reader = FrameReader(buffers, max_request_bytes)

    @property
    def waits(self) -> bool:
        """Whether a request that begins waits for memory."""
        return self._reader.waits

    def buffer(self) -> memoryview:
        """Return memory for the next received bytes."""
        return self._reader.buffer()

    def received(self, count: int) -> list[Kafka07Request]:
        """Return the requests that are now complete.

        Raises:
            RemoteProtocolError: a frame or a request is invalid; `events` are the requests before it.
        """
        return received_requests(self._reader, count, Kafka07Request)

    def response(self, request: Kafka07Request, response: Response) -> list[bytes | memoryview | FilePart]:
        """The bytes of a response."""
        return response.pieces()

    def settled(self, request: Kafka07Request) -> bool:
        """Requests take effect at once, and wait only for the disk."""
        return True

    def rest(self, request: Kafka07Request) -> float:
        """The connection never rests."""
        return 0.0

    def release(self, request: Kafka07Request) -> None:
        """Let the memory of a request be used again."""
        request.frame.release()

    def drop(self) -> None:
        """Free the memory of an incomplete request."""
        self._reader.drop()


class _Refused(Exception):
    """An error without an answer: it closes the connection."""


class _Sync(NamedTuple):
    """A log that is being flushed, for a session or because of its age."""

    log: _Log
    session: Any


class _Read(NamedTuple):
    """A request that waits until earlier writes of its session are on the disk."""

    request: Request
    session: Any
    to: Any


class Kafka07Service:
    """A `kafkacodec.net.service.Service` for clients of Kafka 0.6 and 0.7.

    Args:
        inside: the part of the broker that it uses.
        settings: its properties.
        choose: picks one of a number of partitions, for producers that leave the choice to the broker.

    Attributes:
        logs (GrowingDirectory07): of its topics.
        new_topic: called with the name of each topic after the creation of its first log.

    Raises:
        DirectoryRefused: a log is unusable.
        OSError: a file cannot be read.
    """

    def __init__(
        self, inside: Inside, settings: BrokerSettings, choose: Callable[[int], int] = RANDOM.randrange
    ) -> None:
        self._inside, self._settings, self._choose, self._clock = inside, settings, choose, inside.clock
        retention = int(inside.config.topic_defaults.get(_RETENTION, _DEFAULT_RETENTION_MS))
        self.new_topic: Callable[[str], None] = lambda name: None
        self._started = self._now = self._clock(time.time() * 1000)
        self._syncs = inside.config.flushes_always
        self.logs = GrowingDirectory07(
            inside.path, lambda topic: settings.of_topic(topic, retention),
            clean=inside.was_clean, syncs=self._syncs, now=lambda: self._now,
        )  # fmt: skip
        self._next_cleanup = self._now + _FIRST_CLEANUP_MS
        self._served: dict[_Log, GrowingLog07] = {}  # logs that a request may name
        self._unflushed: dict[_Log, GrowingLog07] = {}
        self._next_look = math.inf  # not after the first of them is due
        self._written: dict[_Log, None] = {}  # to be put on the disk
        self._failing: set[_Log] = set()  # refused by the disk, as was logged

    # Of the host

    def receive(self, request: Kafka07Request, session: Any, to: Any, now: float) -> Effect:
        """Answer a request, or carry it out."""
        self._now = self._clock(now)
        message = request.message
        if session.state:
            written = [log for log in _logs_read(message) if session.state[log]]
            if written:
                *others, last = written
                wait = Append(last, None, _Read(message, session, to))
                return Effect([*(Append(log, None) for log in others), wait])
        return self._respond(message, session, to)

    def disconnected(self, session: Any, now: float) -> Effect:
        """Do nothing: it keeps no state of sessions."""
        return NOTHING

    def tick(self, now: float) -> Effect:
        """Flush due logs, and delete old segments."""
        self._now = now = self._clock(now)
        if now >= self._next_look:
            self._flush_due(now)
        if now >= self._next_cleanup:
            self._next_cleanup = now + self._settings.cleanup_minutes * 60_000
            self._clean()
        return self._effect([], None)

    def next_deadline(self) -> float | None:
        """Return when `tick` has something to do."""
        return self._clock.of_host(min(self._next_look, self._next_cleanup))

    def appended(self, token: _Sync | _Read, result: Any, now: float) -> Effect:
        """Answer requests that wait for a log, which is now on the disk."""
        self._now = self._clock(now)
        if isinstance(token, _Read):
            return self._respond(*token)
        if token.session is not None:
            left = token.session.state
            left[token.log] -= 1
            if not left[token.log]:
                del left[token.log]
        return NOTHING

    def not_appended(self, token: _Sync | _Read, error: Exception, now: float) -> Effect:
        """Retry the flush later, and answer requests that wait for the log with what is visible."""
        if isinstance(token, _Sync):
            _log.warning("%s-%d cannot be flushed, and will be tried again: %s", *token.log, error)
            log = self.logs.logs[token.log]
            log.last_flush = self._clock(now)
            self._flush_later(token.log, log)
        return self.appended(token, None, now)

    # Requests

    def _respond(self, request: Request, session: Any, to: Any) -> Effect:
        try:
            response = self._answer(request)
        except (DecodeError, EncodeError, OSError, _Refused) as error:  # _produce has logged that the disk failed
            kind = type(request).__name__
            _log.info("%s: %s failed: %s; closing its connection", session.peer, kind, error)
            response = CLOSE
        return self._effect([Reply(to, response)], session)

    def _answer(self, request: Request) -> Any:
        match request:
            case FetchRequest():
                return self._fetch(request, self._settings.max_request_bytes)
            case MultiFetchRequest():
                return self._fetch_all(request)
            case ProduceRequest():
                self._produce(request)
            case MultiProduceRequest():
                for part in request.requests:
                    self._produce(part)
            case OffsetsRequest():
                return self._offsets(request)
        return NO_ANSWER

    def _produce(self, request: ProduceRequest) -> None:
        """Append a set. Raises _Refused, DecodeError, EncodeError, OSError."""
        topic, partition = request.topic, request.partition
        if partition == RANDOM_PARTITION:
            partition = self._choose(self.partitions(topic))
        key = (topic, partition)
        log = self._found(topic, partition) or self._create(topic, partition)
        data = memoryview(request.message_set)
        found = check_produced(
            data,
            max_payload=self._settings.max_message_size,
            max_decompressed_bytes=self._settings.max_request_bytes,
        )
        if found.too_large:
            _log.info("%s-%d: a message exceeds max.message.size; its message set is not appended", topic, partition)
            return
        self._append(key, log, data[: found.size], found.messages)

    def _append(self, key: _Log, log: GrowingLog07, data: memoryview, messages: int) -> None:
        try:
            log.append(data, messages, self._now, stamps=not self._clock.is_hosts)
        except OSError as error:
            self._fails(key, error)
            raise
        if self._failing:
            self._failing.discard(key)
        end = log.flush_due_to
        if end > log.visible:
            self._flush(key, log, end)
        if log.flush_due_at is not None and key not in self._written:
            self._flush_later(key, log)

    def _fetch(self, request: FetchRequest, most: int) -> FetchResponse:
        try:
            log = self._found(request.topic, request.partition)
            if log is None:
                return FetchResponse(ErrorCode.NONE, b"")
            return log.fetch(request if request.max_size <= most else replace(request, max_size=most))
        except _Refused:
            return FetchResponse(ErrorCode.WRONG_PARTITION, b"")
        except (EncodeError, OSError) as error:
            _log.info("%s-%d: %s", request.topic, request.partition, error)
            return FetchResponse(ErrorCode.UNKNOWN, b"")

    def _fetch_all(self, request: MultiFetchRequest) -> MultiFetchResponse:
        """Answer all parts, together within the limit of one answer; parts that do not fit are empty."""
        left = self._settings.max_request_bytes
        parts = []
        for part in request.requests:
            found = self._fetch(part, left)
            left -= len(found.message_set)
            parts.append(found)
        return MultiFetchResponse(ErrorCode.NONE, parts)

    def _offsets(self, request: OffsetsRequest) -> OffsetsResponse:
        log = self._found(request.topic, request.partition)
        if log is None:
            return answer_offsets((), request)
        if request.max_offsets < 0:
            raise _Refused(f"a count of {request.max_offsets}")
        return log.offsets(request, self._now)

    def _found(self, topic: str, partition: int) -> GrowingLog07 | None:
        """The log of a partition, None if it has none yet. Raises as `_check`."""
        log = self._served.get((topic, partition))
        if log is None:
            self._check(topic, partition)
            log = self.logs.logs.get((topic, partition))
            if log is not None:
                self._served[topic, partition] = log
        return log

    def _check(self, topic: str, partition: int) -> None:
        """Check the topic and partition. Raises EncodeError: the name; _Refused: the partition."""
        check_topic(topic)
        if topic in INTERNAL_TOPICS or self._inside.catalog.topic(topic) is not None:
            raise EncodeError(f"topic {topic!r} belongs to Kafka's later protocol")
        count = self.partitions(topic)
        if not 0 <= partition < count:
            raise _Refused(f"partition {partition} of {topic!r}, which has {count}")

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic, whether it exists or not."""
        given = self._settings.partitions_by_topic.get(topic) or self._inside.partitions.get(topic)
        return given or self._inside.config.number("num.partitions")

    def _fails(self, key: _Log, error: OSError) -> None:
        """Log that the disk refuses a partition, once until it takes messages again."""
        if key not in self._failing:
            self._failing.add(key)
            _log.error("%s-%d could not be appended to: %s", *key, error)

    def _create(self, topic: str, partition: int) -> GrowingLog07:
        is_new = not self.has_topic(topic)
        try:
            log = self.logs.create(topic, partition)
        except OSError as error:
            self._fails((topic, partition), error)
            raise
        if is_new:
            self.new_topic(topic)
        return log

    # Of the broker's handle

    def has_topic(self, name: str) -> bool:
        """Whether there is a log of a topic."""
        return name in self.logs.topics()

    def read(self, topic: str) -> list[tuple[int, bytes]]:
        """Return the visible bytes of all partitions: the offset of the first byte, and the bytes, of each segment."""
        logs = sorted((number, log) for (name, number), log in self.logs.logs.items() if name == topic)
        return [piece for _, log in logs for piece in log.pieces()]

    def write(self, topic: str, partition: int, payloads: list[bytes], now: float) -> tuple[int, Effect]:
        """Append messages; return the offset of the first one, and the effect.

        Raises:
            KeyError: there is no such partition.
            EncodeError: a topic cannot have this name, or a message is larger than ``max.message.size``.
            OSError: it cannot be written.
        """
        self._now = self._clock(now)
        try:
            log = self._found(topic, partition) or self._create(topic, partition)
        except _Refused as error:
            raise KeyError(f"topic {topic!r} has no partition {partition}") from error
        large = next((one for one in payloads if len(one) > self._settings.max_message_size), None)
        if large is not None:
            raise EncodeError(f"a message of {len(large):,} bytes exceeds {self._settings.max_message_size:,}")
        offset, data = log.end, memoryview(encode_messages(payloads))
        self._append((topic, partition), log, data, len(payloads))
        return offset, self._effect([], None)

    # Flushing and cleaning

    def _flush_later(self, key: _Log, log: GrowingLog07) -> None:
        """Schedule the flush of a log."""
        self._unflushed[key] = log
        self._next_look = min(self._next_look, self._flush_at(log))

    def _flush_due(self, now: float) -> None:
        for key, log in list(self._unflushed.items()):
            if self._flush_at(log) <= now:
                self._flush(key, log, log.end)
        self._next_look = min(map(self._flush_at, self._unflushed.values()), default=math.inf)

    def _flush(self, key: _Log, log: GrowingLog07, end: int) -> None:
        self._unflushed.pop(key, None)
        if self._syncs:
            self._written[key] = None
        else:
            log.flushed(end, self._now)

    def _flush_at(self, log: GrowingLog07) -> float:
        """Return the time after which the next check flushes a log; infinite if it has nothing to flush."""
        due = log.flush_due_at
        if due is None:
            return math.inf
        look = self._settings.flush_look_ms
        return self._started + max(-(-(due - self._started) // look), 1) * look

    def _clean(self) -> None:
        for log in self.logs.logs.values():
            try:
                log.retain(self._now)
            except OSError as error:
                _log.warning("%s: old segments cannot be deleted: %s", log.path, error)

    def _effect(self, replies: list[Reply], session: Any) -> Effect:
        """Reply at once, without waiting for the flush; the session's next read waits for it."""
        if not self._written:
            return Effect((), replies)
        written, self._written = list(self._written), {}
        if session is not None:
            session.state = session.state or Counter()
            session.state.update(written)
        syncs = Effect([Append(log, None, _Sync(log, session)) for log in written])
        return Effect((), replies, (syncs,))

    def close(self, *, keeps: bool) -> None:
        """Close the logs. Raises OSError."""
        self.logs.close(keeps=keeps)


def _logs_read(request: Request) -> list[_Log]:
    """Return the logs that an answer uses."""
    match request:
        case FetchRequest() | OffsetsRequest():
            return [(request.topic, request.partition)]
        case MultiFetchRequest():
            return list({(part.topic, part.partition): None for part in request.requests})
    return []
