"""The outcome of records given to a producer: one shared `Outcome` per batch, one `Delivery` per record."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from bisect import bisect_right, insort
from collections.abc import Callable, Generator
from typing import Any, Generic, NamedTuple, Self, TypeVar

from kafkacodec.client.checks import seconds
from kafkacodec.errors import ClientClosed, LocalProtocolError

__all__ = [
    "Delivery",
    "OffsetRange",
    "Outcome",
    "Part",
    "RecordMetadata",
    "TableDelivery",
    "TableMetadata",
    "TableOutcome",
]

_log = logging.getLogger("kafkacodec.client.producer")
# For waiting and callbacks; both happen once per batch, or for few records. Reentrant for signal handlers.
_lock = threading.RLock()


def _renew_lock() -> None:
    """Replace the lock, which another thread may have held when this process was forked."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

Result = TypeVar("Result")


class RecordMetadata(NamedTuple):
    """The position of a delivered record.

    Attributes:
        topic, partition: the record's topic and partition.
        offset: -1 if the broker does not report it: with ``acks=0``, or for a batch that it already had.
        timestamp: the record's, or the broker's for topics with log append time, in ms since 1970.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class OffsetRange(NamedTuple):
    """`rows` consecutive offsets from `first` on; `first` is -1 if the broker does not report it."""

    first: int
    rows: int


class TableMetadata(NamedTuple):
    """The positions of the delivered rows of a table.

    Attributes:
        rows: the number of rows.
        offsets: the offsets of each topic and partition, in the order of the rows.
    """

    rows: int
    offsets: dict[tuple[str, int], list[OffsetRange]]


class Part(NamedTuple):
    """The outcome of records [first, end). `time` is the broker's timestamp in ms; -1 if the records kept theirs."""

    end: int
    first: int
    topic: str
    partition: int
    offset: int
    time: int
    error: Exception | None


class Outcome:
    """The outcome of several records, resolved part by part, since a batch may be split.

    Args:
        loop: the client's event loop, which must keep running for the outcome to be resolved. Only the process that
            created the outcome learns it, not one forked from it.
    """

    __slots__ = ("_callbacks", "_condition", "_process", "failure", "loop", "parts", "resolved")

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self._process = os.getpid()
        self.parts: list[Part] = []
        self.resolved = 0
        self.failure: Exception | None = None
        self._condition: threading.Condition | None = None
        self._callbacks: list[tuple[int, Callable[[], object]]] = []

    def find(self, index: int) -> Part | None:
        """The part that has a record, if it is resolved."""
        at = bisect_right(self.parts, index, key=lambda part: part.end)
        found = self.parts[at] if at < len(self.parts) else None
        return found if found is not None and found.first <= index else None

    def resolve(self, part: Part) -> None:
        """Resolve a part and call its callbacks in the order of the records."""
        with _lock:
            insort(self.parts, part)
            self.resolved += part.end - part.first
            self.failure = self.failure or part.error
            if self._condition is not None:
                self._condition.notify_all()
            due = sorted((c for c in self._callbacks if self._known(c[0])), key=lambda c: c[0])
            if due:
                self._callbacks = [c for c in self._callbacks if not self._known(c[0])]
        for _, call in due:
            call()

    def when(self, index: int, call: Callable[[], object]) -> bool:
        """Call `call` once a record is resolved; returns True without calling it if the record is resolved already.

        `call` must not raise: that would hold up the outcome of others.
        """
        with _lock:
            if self._known(index):
                return True
            self._check_process()
            self._callbacks.append((index, call))
            return False

    def wait(self, index: int, timeout: float | None) -> bool:
        """Wait until a record is resolved; returns whether it is."""
        self._check_process()
        with _lock:
            if self._condition is None:
                self._condition = threading.Condition(_lock)
            return self._condition.wait_for(lambda: self._known(index), timeout)

    def _known(self, index: int) -> bool:
        return self.find(index) is not None

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ClientClosed(
                "the record belongs to the process that this one was forked from: only that waits for it"
            )


class TableOutcome(Outcome):
    """The outcome of the rows of a table: record 0 stands for all rows."""

    __slots__ = ("queued", "whole")

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__(loop)
        self.queued = 0
        self.whole = False

    def finish(self) -> None:
        """Mark that no more rows follow."""
        self.whole = True
        self.resolve(Part(0, 0, "", -1, -1, -1, None))

    def _known(self, index: int) -> bool:
        return self.whole and self.resolved == self.queued


class _Awaitable(Generic[Result]):
    """Waiting and callbacks, for both kinds of deliveries."""

    __slots__ = ("_index", "_outcome")
    _outcome: Outcome
    _index: int

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._outcome._known(self._index)

    def _result(self) -> Result:
        raise NotImplementedError

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the broker's acknowledgement. In a coroutine, await the delivery instead.

        Args:
            timeout: the limit in seconds; None waits as long as ``delivery_timeout_ms`` allows.

        Raises:
            TimeoutError: the outcome is not known in time.
            LocalProtocolError: called in the client's own event loop, from a coroutine or callback.
            ClientClosed: the outcome is unknown, and this process was forked from the one that sent the record.
            BrokerError, DeadlineExceeded, ConnectionFailed, ClientClosed, …: the record was not delivered.
        """
        if not self.done():
            _refuse_in(self._outcome.loop)
            if not self._outcome.wait(self._index, seconds("timeout", timeout)):
                raise TimeoutError(f"not acknowledged within {timeout} s")
        return self._result()

    def add_done_callback(self, function: Callable[[Self], object]) -> None:
        """Call ``function(delivery)`` once the outcome is known, or at once if it already is.

        Callbacks of a batch are called in the order of its records, in the thread of the client's event loop. Their
        exceptions are logged. SystemExit and KeyboardInterrupt end the event loop of an asyncio client, after the other
        callbacks; a blocking client logs them. A callback that is called at once raises them to the caller.

        Raises:
            ClientClosed: the outcome is unknown, and this process was forked from the one that sent the record.
        """
        if self._outcome.when(self._index, lambda: self._call_in_loop(function)):
            self._call(function)

    def _call(self, function: Callable[[Self], object]) -> None:
        try:
            function(self)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:  # also CancelledError and exceptions of test frameworks, which have no receiver here
            _log.exception("a callback of a delivery failed")

    def _call_in_loop(self, function: Callable[[Self], object]) -> None:
        try:
            self._call(function)
        except BaseException as error:
            loop = self._outcome.loop
            if loop is None:
                raise
            loop.call_soon(_end_loop, error)

    def __await__(self) -> Generator[Any, None, Result]:
        if not self.done():
            loop = asyncio.get_running_loop()
            known: asyncio.Future[None] = loop.create_future()
            if not self._outcome.when(self._index, lambda: _tell(loop, known)):
                yield from known
        return self._result()


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for the result
        loop.call_soon_threadsafe(_set, future)


def _end_loop(error: BaseException) -> None:
    raise error


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _refuse_in(loop: asyncio.AbstractEventLoop | None) -> None:
    """Refuse to block the event loop of the client that must deliver the record. A blocking client has its own loop."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        return
    if here is loop:
        raise LocalProtocolError(f"result() would block {loop!r}: await the delivery, or call result() when it is done")


class Delivery(_Awaitable[RecordMetadata]):
    """A record given to a producer. Also awaitable.

    Deliveries share the state of their batch, so keeping many costs little.
    """

    __slots__ = ("_timestamp",)

    def __init__(self, outcome: Outcome, index: int, timestamp: int) -> None:
        self._outcome = outcome
        self._index = index
        self._timestamp = timestamp

    def _result(self) -> RecordMetadata:
        part = self._outcome.find(self._index)
        assert part is not None
        if part.error is not None:
            raise part.error.with_traceback(None)  # a traceback would keep the frames of every call
        return RecordMetadata(part.topic, part.partition, self._offset(part), self._time(part))

    def _offset(self, part: Part) -> int:
        return part.offset + self._index - part.first if part.offset >= 0 else -1

    def _time(self, part: Part) -> int:
        return part.time if part.time >= 0 else self._timestamp

    @property
    def error(self) -> Exception | None:
        """Why the record was not delivered; None if it was, or while the outcome is unknown."""
        part = self._outcome.find(self._index)
        return None if part is None else part.error

    @property
    def offset(self) -> int | None:
        """The record's offset; None while it is unknown, -1 if the broker does not report it."""
        part = self._outcome.find(self._index)
        return None if part is None or part.error is not None else self._offset(part)

    @property
    def timestamp(self) -> int:
        """The record's timestamp in ms since 1970, or the broker's once the broker is known to have set it."""
        part = self._outcome.find(self._index)
        return self._timestamp if part is None else self._time(part)

    def __repr__(self) -> str:
        part = self._outcome.find(self._index)
        if part is None:
            return "<Delivery pending>"
        if part.error is not None:
            return f"<Delivery failed: {part.error!r}>"
        return f"<Delivery {part.topic}-{part.partition} offset {self._offset(part)}>"


class TableDelivery(_Awaitable[TableMetadata]):
    """The rows of a table given to a producer; done when all rows are. Also awaitable."""

    __slots__ = ()

    def __init__(self, outcome: TableOutcome) -> None:
        self._outcome = outcome
        self._index = 0

    def _result(self) -> TableMetadata:
        if self._outcome.failure is not None:
            raise self._outcome.failure.with_traceback(None)
        offsets: dict[tuple[str, int], list[OffsetRange]] = {}
        for part in self._outcome.parts:
            if part.end > part.first:
                ranges = offsets.setdefault((part.topic, part.partition), [])
                ranges.append(OffsetRange(part.offset, part.end - part.first))
        return TableMetadata(self._outcome.resolved, offsets)

    @property
    def error(self) -> Exception | None:
        """The first reason why rows were not delivered; None if all were, or while none has failed."""
        return self._outcome.failure

    def __repr__(self) -> str:
        return f"<TableDelivery {self._outcome.resolved} rows known, {'done' if self.done() else 'pending'}>"
