"""What became of records that were given to a producer: one shared `Outcome` per batch, one `Delivery` per record."""

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
# For waiting and callbacks; both are once per batch, or for few records. A signal handler may come back to it.
_lock = threading.RLock()


def _renew_lock() -> None:
    """Another thread may have held it when this process was forked."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

Result = TypeVar("Result")


class RecordMetadata(NamedTuple):
    """Where a record is.

    Attributes:
        topic, partition: of the record.
        offset: -1 where the broker does not tell it: with ``acks=0``, or for a batch that it had already.
        timestamp: in ms since 1970: the record's, or the broker's for topics with log append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class OffsetRange(NamedTuple):
    """`rows` consecutive offsets from `first` on; `first` is -1 where the broker does not tell it."""

    first: int
    rows: int


class TableMetadata(NamedTuple):
    """Where the rows of a table are.

    Attributes:
        rows: their number.
        offsets: the offsets of each topic and partition, in the order of the rows.
    """

    rows: int
    offsets: dict[tuple[str, int], list[OffsetRange]]


class Part(NamedTuple):
    """What became of records [first, end) of an outcome. `time` is the broker's in ms, -1 if it took the records'."""

    end: int
    first: int
    topic: str
    partition: int
    offset: int
    time: int
    error: Exception | None


class Outcome:
    """What became of a number of records: known part by part, as a batch may be sent in several.

    Args:
        loop: the event loop of the client, which must go on for the outcome to be known. Only the process that made
            the outcome learns it, and not one that is forked from that.
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
        """The part of a record, if it is known."""
        at = bisect_right(self.parts, index, key=lambda part: part.end)
        found = self.parts[at] if at < len(self.parts) else None
        return found if found is not None and found.first <= index else None

    def resolve(self, part: Part) -> None:
        """A part is known. Calls back, in the order of the records."""
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
        """Call as soon as a record is known; returns whether it is known already, and does not call then.

        What `call` raises would keep back the outcome of others.
        """
        with _lock:
            if self._known(index):
                return True
            self._check_process()
            self._callbacks.append((index, call))
            return False

    def wait(self, index: int, timeout: float | None) -> bool:
        """Wait until a record is known; returns whether it is."""
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
    """The outcome of the rows of a table: record 0 stands for all of them."""

    __slots__ = ("queued", "whole")

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        super().__init__(loop)
        self.queued = 0
        self.whole = False

    def finish(self) -> None:
        """No more rows follow."""
        self.whole = True
        self.resolve(Part(0, 0, "", -1, -1, -1, None))

    def _known(self, index: int) -> bool:
        return self.whole and self.resolved == self.queued


class _Awaitable(Generic[Result]):
    """What both kinds of deliveries have in common: waiting and callbacks."""

    __slots__ = ("_index", "_outcome")
    _outcome: Outcome
    _index: int

    def done(self) -> bool:
        """Whether it is known what became of it."""
        return self._outcome._known(self._index)

    def _result(self) -> Result:
        raise NotImplementedError

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the broker's acknowledgement. In a coroutine, await the delivery instead.

        Args:
            timeout: in seconds; None waits as long as ``delivery_timeout_ms`` allows.

        Raises:
            TimeoutError: not known in time.
            LocalProtocolError: called in the client's own event loop: in a coroutine or callback.
            ClientClosed: not known, and this process was forked from the one that sent the record.
            BrokerError, DeadlineExceeded, ConnectionFailed, ClientClosed, …: why it was not delivered.
        """
        if not self.done():
            _refuse_in(self._outcome.loop)
            if not self._outcome.wait(self._index, seconds("timeout", timeout)):
                raise TimeoutError(f"not acknowledged within {timeout} s")
        return self._result()

    def add_done_callback(self, function: Callable[[Self], object]) -> None:
        """Call ``function(delivery)`` when it is known; at once if it is.

        Callbacks of a batch are called in the order of its records, in the thread of the client's event loop. What
        they raise is logged. SystemExit and KeyboardInterrupt end the event loop of a client for asyncio, after others
        have been called; a blocking client logs them. A callback that is called at once raises them.

        Raises:
            ClientClosed: not known, and this process was forked from the one that sent the record.
        """
        if self._outcome.when(self._index, lambda: self._call_in_loop(function)):
            self._call(function)

    def _call(self, function: Callable[[Self], object]) -> None:
        try:
            function(self)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:  # also CancelledError and the outcomes of test frameworks: they are for nobody here
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
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(_set, future)


def _end_loop(error: BaseException) -> None:
    raise error


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _refuse_in(loop: asyncio.AbstractEventLoop | None) -> None:
    """Refuse to block the loop whose own client would have to answer. A blocking client has another one."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        return
    if here is loop:
        raise LocalProtocolError(f"result() would block {loop!r}: await the delivery, or call result() when it is done")


class Delivery(_Awaitable[RecordMetadata]):
    """A record that was given to a producer. Also awaitable.

    It shares the state of its batch, so keeping many costs little.
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
            raise part.error.with_traceback(None)  # else it keeps the frames of every call
        return RecordMetadata(part.topic, part.partition, self._offset(part), self._time(part))

    def _offset(self, part: Part) -> int:
        return part.offset + self._index - part.first if part.offset >= 0 else -1

    def _time(self, part: Part) -> int:
        return part.time if part.time >= 0 else self._timestamp

    @property
    def error(self) -> Exception | None:
        """Why the record was not delivered; None if it was, or while that is not known."""
        part = self._outcome.find(self._index)
        return None if part is None else part.error

    @property
    def offset(self) -> int | None:
        """The record's offset; None while it is not known, -1 where the broker does not tell it."""
        part = self._outcome.find(self._index)
        return None if part is None or part.error is not None else self._offset(part)

    @property
    def timestamp(self) -> int:
        """The record's timestamp in ms since 1970; the broker's once it is known to have set its own."""
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
    """The rows of a table that was given to a producer; known when all of them are. Also awaitable."""

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
        """Why some rows were not delivered: the first reason; None if all were, or while none has failed."""
        return self._outcome.failure

    def __repr__(self) -> str:
        return f"<TableDelivery {self._outcome.resolved} rows known, {'done' if self.done() else 'pending'}>"
