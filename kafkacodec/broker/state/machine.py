"""The base of all coordinators: requests and a clock go in, records to append and replies come out.

A job is one decision about one key, such as a group. It may write: its records go out as an `Append`, and until they
are appended all later jobs of that key wait, so that every decision sees the state after the one before. When they are
appended they are applied, with the method that also loads the state when a broker starts, and only then the job goes
on and replies. A job that waits for others keeps the `to` of its request and replies when it is due.
"""

from __future__ import annotations

import heapq
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any, ClassVar, Protocol

from kafkacodec.broker.state.java import java_hash
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import MESSAGE_TOO_LARGE, NONE, NOT_COORDINATOR, RECORD_LIST_TOO_LARGE, UNKNOWN_SERVER_ERROR
from kafkacodec.messages.stored import StoredRecord, decode_internal_record, encode_internal_record
from kafkacodec.net.service import Append, Effect, Reply
from kafkacodec.net.timers import Alarm

__all__ = [
    "Client",
    "Handler",
    "Machine",
    "Marker",
    "NoTopics",
    "Prune",
    "Question",
    "Records",
    "Room",
    "Topics",
    "partition_of",
]

Then = Callable[[int], None]
"""Continues a job after the append of its records: gets 0, or the error code if the append failed."""


class Client(NamedTuple):
    """The sender of a request: its client id, and its address as Kafka writes it."""

    id: str = ""
    host: str = "/127.0.0.1"


Handler = Callable[[Any, int, Client, Any], None]
"""Takes a request, its version, its sender, and the address of its response."""


class Records(NamedTuple):
    """Records to append as one batch; those of a producer belong to its open transaction.

    Attributes:
        rows: keys and values; the value of a tombstone is None.
        timestamp: milliseconds since 1970.
        producer_id, producer_epoch: -1 outside of transactions. The sequence of the batch is -1.
    """

    rows: Sequence[tuple[bytes | None, bytes | None]]
    timestamp: int
    producer_id: int = -1
    producer_epoch: int = -1


class Topics(Protocol):
    """Questions of coordinators about the topics of a cluster."""

    def names(self) -> Iterable[str]:
        """All topics, internal ones too."""

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic; 0 if there is none of this name."""

    def id_of(self, topic: str) -> uuid.UUID | None:
        """The id of a topic."""

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        """The name of the topic with this id."""


class NoTopics:
    """A cluster without topics."""

    def names(self) -> Iterable[str]:
        """None."""
        return ()

    def partitions(self, topic: str) -> int:
        """0."""
        return 0

    def id_of(self, topic: str) -> uuid.UUID | None:
        """None."""
        return None

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        """None."""
        return None


class Room(NamedTuple):
    """The machine's interface for the jobs of one key."""

    machine: Machine
    key: str

    @property
    def now(self) -> int:
        """The time of this call, in milliseconds since 1970."""
        return self.machine.now

    def reply(self, to: Any, response: Any) -> None:
        """Answer a request."""
        self.machine.reply(to, response)

    def write(self, records: Sequence[StoredRecord], then: Then, producer: tuple[int, int] = (-1, -1)) -> None:
        """Append records as one batch, apply them, and continue; other jobs of this key wait."""
        self.machine.write(self.key, records, then, producer)

    def set_timer(self, name: str, delay_ms: float, call: Callable[[], None]) -> None:
        """Call in some time, as a job of this key; an earlier timer of the same name is forgotten."""
        self.machine.set_timer(self.key, name, self.now + max(0, int(delay_ms)), call)

    def waits(self, name: str) -> bool:
        """Whether this timer exists."""
        return self.machine.has_timer(self.key, name)

    def cancel(self, name: str) -> None:
        """Forget a timer."""
        self.machine.cancel_timer(self.key, name)


class Marker(NamedTuple):
    """The end of a transaction, to be written as a control batch to a partition; the log of the Append is that.

    Attributes:
        producer_id, producer_epoch: whose transaction.
        committed: whether its records count.
        coordinator: topic and partition of the log of the coordinator; the marker has its leader epoch.
        timestamp: milliseconds since 1970.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator: tuple[str, int]
    timestamp: int


class Question(NamedTuple):
    """A request to another coordinator of this broker, in place of an append.

    The host passes its answer to `Machine.appended` as the result.
    """

    request: Any
    version: int


class Prune(NamedTuple):
    """Records before an offset are no longer needed; in place of an append."""

    before: int


class _Sent(NamedTuple):
    """A pending append: its continuation, and replies of the same call that leave after it."""

    then: Then
    replies: list[Reply]
    answered: Callable[[Any], None] | None = None  # what takes the answer to a question


class Machine:
    """A coordinator whose state is the records of an internal topic.

    All times are milliseconds since 1970, of a clock that does not go back.

    Args:
        partitions: the number of partitions of its topic.

    Attributes:
        handlers: the function for each request, by API key.
        now: the time of this call.
        offset: of the first record of the current batch; -1 if unknown.
        loading: true until `loaded` is called.
        alarm: gets each new timer; the host may replace it.
        partitions: of its topic; set it before loading if the topic has another number.
    """

    topic: ClassVar[str]
    handlers: dict[int, Handler]

    def __init__(self, partitions: int) -> None:
        self.now = 0
        self.offset = -1
        self.loading = True
        self.partitions = partitions
        self._appends: list[Append] = []
        self._replies: list[Reply] = []
        self._sent: dict[int, _Sent] = {}
        self._writing: set[str] = set()  # keys with records on their way
        self._waiting: dict[str, deque[Callable[[], None]]] = {}  # jobs behind those
        self._tokens = count(1)
        self.alarm = Alarm()
        self._timers: dict[str, dict[str, int]] = {}  # by key and name, the number of the entry in `_due`
        self._timer_count = 0
        self._due: list[tuple[int, int, tuple[str, str], Callable[[], None]]] = []

    # For hosts

    def receive(self, request: Any, version: int, client: Client, to: Any, now: float) -> Effect:
        """Take a request of one of the APIs in `handlers`.

        Args:
            request: the decoded message.
            version: its version; the response is for the same.
            client: who sent it.
            to: returned with the response.
            now: the time.
        """
        self._at(now)
        self.handlers[request.api_key](request, version, client, to)
        return self._effect()

    def tick(self, now: float) -> Effect:
        """Do what is due."""
        self._at(now)
        while self._due and self._due[0][0] <= self.now:
            _, number, place, call = heapq.heappop(self._due)
            if self._is_set(place, number):
                self.run(place[0], partial(self._timer_due, place, number, call))
        return self._effect()

    def next_deadline(self) -> float | None:
        """Return when `tick` is needed even if nothing else happens; None for never."""
        while self._due and not self._is_set(self._due[0][2], self._due[0][1]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """Note that the records of an Append are in the log, or that a `Question` was answered."""
        self.offset = getattr(result, "base_offset", -1)
        answered = self._sent[token].answered
        if answered is not None:
            self._sent[token] = self._sent[token]._replace(then=lambda code: answered(result))
        return self._arrived(token, NONE, now)

    def not_appended(self, token: Any, error: Exception, now: float) -> Effect:
        """Note that the records are not, and will not be, in the log; clients retry, unless that cannot help."""
        too_large = getattr(error, "code", None) in (MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE)
        return self._arrived(token, UNKNOWN_SERVER_ERROR if too_large else NOT_COORDINATOR, now)

    def load(self, key: Any, value: Any, producer_id: int = -1, offset: int = -1) -> None:
        """Apply a record of the topic when the broker starts, in the order of the log; other types are ignored.

        Args:
            key, value: of the stored record.
            producer_id: of the record's transaction, otherwise -1.
            offset: of the record.

        Raises:
            DecodeError: an invalid record, or one of a newer version.
        """
        self.offset = offset
        found = decode_internal_record(self.topic, key, value) if key is not None else None
        if found is not None:
            self.apply(found.key, found.value, producer_id)

    def loaded(self, now: float) -> Effect:
        """Start serving, after all records are loaded."""
        self._at(now)
        self.loading = False
        self.start()
        return self._effect()

    def log_of(self, key: str) -> tuple[str, int]:
        """Topic and partition with the records of a key, such as the name of a group."""
        return self.topic, partition_of(key, self.partitions)

    # For coordinators

    def apply(self, key: Any, value: Any, producer_id: int) -> None:
        """Change the state as a record says."""
        raise NotImplementedError

    def start(self) -> None:
        """Set the timers of the loaded state."""

    def run(self, key: str, job: Callable[[], None]) -> None:
        """Run a job now, or after the write of this key that is on its way."""
        if key in self._waiting:
            self._waiting[key].append(job)
        else:
            job()

    def reply(self, to: Any, response: Any) -> None:
        """Answer a request; None is a request without a waiting client."""
        if to is not None:
            self._replies.append(Reply(to, response))

    def write(self, key: str, records: Sequence[StoredRecord], then: Then, producer: tuple[int, int]) -> None:
        """See `Room.write`."""
        if not records:
            then(0)
            return
        self._writing.add(key)
        self._waiting.setdefault(key, deque())
        rows = [encode_internal_record(self.topic, record) for record in records]
        done = partial(self._written, key, records, then, producer[0])
        self.send(self.log_of(key), Records(rows, self.now, *producer), done)

    def send(self, log: tuple[str, int], data: Any, then: Then) -> None:
        """Append to any log, and continue after it; no job waits for it."""
        token = next(self._tokens)
        self._sent[token] = _Sent(then, [])
        self._appends.append(Append(log, data, token))

    def ask(self, request: Any, version: int, answered: Callable[[Any], None]) -> None:
        """Ask another coordinator of this broker, and continue with its answer; no job waits for it."""
        token = next(self._tokens)
        self._sent[token] = _Sent(_never, [], answered)
        self._appends.append(Append(None, Question(request, version), token))

    def set_timer(self, key: str, name: str, due: int, call: Callable[[], None]) -> None:
        """See `Room.set_timer`; `due` is a time."""
        number, timers = next(self._tokens), self._timers.setdefault(key, {})
        self._timer_count += name not in timers
        timers[name] = number
        heapq.heappush(self._due, (due, number, (key, name), call))
        self.alarm.ring()
        if len(self._due) > 64 + 4 * self._timer_count:  # most of these were replaced
            self._due = [entry for entry in self._due if self._is_set(entry[2], entry[1])]
            heapq.heapify(self._due)

    def has_timer(self, key: str, name: str) -> bool:
        """Whether this timer exists."""
        return name in self._timers.get(key, ())

    def cancel_timer(self, key: str, name: str) -> None:
        """Forget a timer."""
        timers = self._timers.get(key)
        if timers is not None and timers.pop(name, None) is not None:
            self._timer_count -= 1
            if not timers:
                del self._timers[key]

    def cancel_timers(self, key: str) -> None:
        """Forget all timers of a key."""
        self._timer_count -= len(self._timers.pop(key, ()))

    # Within

    def _at(self, now: float) -> None:
        self.now = max(self.now, int(now))

    def _timer_due(self, place: tuple[str, str], number: int, call: Callable[[], None]) -> None:
        if self._is_set(place, number):  # and not set again while it waited for a write
            self.cancel_timer(*place)
            call()

    def _is_set(self, place: tuple[str, str], number: int) -> bool:
        return self._timers.get(place[0], {}).get(place[1]) == number

    def _arrived(self, token: Any, code: int, now: float) -> Effect:
        self._at(now)
        sent = self._sent.pop(token)
        self._replies += sent.replies
        sent.then(code)
        return self._effect()

    def _written(self, key: str, records: Sequence[StoredRecord], then: Then, producer_id: int, code: int) -> None:
        if not code:
            for record in records:
                self.apply(record.key, record.value, producer_id)
        self._writing.discard(key)
        then(code)
        behind = self._waiting[key]
        while key not in self._writing and behind:
            behind.popleft()()
        if key not in self._writing:
            del self._waiting[key]

    def _effect(self) -> Effect:
        """Return the effect of this call. Replies that do not depend on an append leave separately, so they do not fail
        with it.
        """
        appends, self._appends = self._appends, []
        replies, self._replies = self._replies, []
        if appends:
            self._sent[appends[0].token].replies.extend(replies)
            return Effect(appends)
        return Effect((), replies)


def _never(code: int) -> None:
    """A question is answered, with an error in the answer if need be."""


def partition_of(key: str, partitions: int) -> int:
    """Return the partition of an internal topic for a coordinator's key: Java's hash of the text, without sign."""
    number = java_hash(key)
    if number >= 1 << 31:  # negative as an int of Java, whose smallest one counts as 0
        number = ((1 << 32) - number) & 0x7FFFFFFF
    return number % partitions
