"""The outcome of records given to a producer, which the deliveries of a batch share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from asyncio.events import _get_running_loop as running_loop  # None where no loop runs, without an exception
from bisect import insort
from collections.abc import Callable
from typing import ClassVar

from kafkacodec.client.producing._callbacks import Callback, Callbacks, forked
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import ClientClosed, LocalProtocolError

__all__ = [
    "OffsetRange",
    "Outcome",
    "Part",
    "RecordMetadata",
    "TableMetadata",
    "TableOutcome",
    "refuse_in",
    "tell",
]

# For waiting, and for callbacks once something is known. Reentrant for signal handlers.
_lock = threading.RLock()


def _forked() -> None:
    """Replace the lock, which another thread may have held when this process was forked."""
    global _lock
    _lock = threading.RLock()
    forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


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


class Outcome(Callbacks):
    """The outcome of several records, resolved part by part, since a batch may be split.

    Args:
        loop: the client's event loop, which must keep running for the outcome to be resolved. Only the process that
            created the outcome learns it, not one forked from it.
    """

    __slots__ = ()
    is_table: ClassVar[bool] = False

    def resolve(self, part: Part) -> None:
        """Resolve a part and call its callbacks in the order of the records."""
        with _lock:
            insort(self.parts, part)
            self.resolved += part.end - part.first
            self.failure = self.failure or part.error
            self._wake_known()
            due = self._due(part)
        self.call(due)

    def _due(self, part: Part) -> list[Callback]:
        """The callbacks of records that are known by now."""
        return self.due(part.first, part.end)

    def when(self, index: int, call: Callable[[], object] | Callback) -> bool:
        """Call `call` once a record is resolved; returns True without calling it if the record is resolved already.

        `call` must not raise: that would hold up the outcome of others.
        """
        with _lock:
            if self._known(index):
                return True
            self._check_process()
            made = self.add(index, call)
            if not self._known(index):  # asked again: rows of tables become known without the lock
                return False
            self.discard(made)
            return True

    def wait(self, index: int, timeout: float | None) -> bool:
        """Wait until a record is resolved; returns whether it is."""
        self._check_process()
        shortcut = self.shortcut  # which the loop may take away at any time
        if shortcut is not None:
            begun = time.monotonic()
            if shortcut.wait(self, timeout):
                return True
            timeout = None if timeout is None else max(0.0, timeout - (time.monotonic() - begun))
        known = threading.Lock()
        known.acquire()
        with _lock:
            self.waiters = [*(self.waiters or ()), (index, known)]
            self._wake_known()  # rows of tables become known without the lock
        if known.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)):
            return True
        with _lock:
            self.waiters = [waiter for waiter in self.waiters or () if waiter[1] is not known]
            return self._known(index)

    def _wake_known(self) -> None:
        """Wake the threads whose records are known."""
        if not self.waiters:
            return
        left = []
        for waiter in self.waiters:
            index, known = waiter
            if self._known(index):
                known.release()
            else:
                left.append(waiter)
        self.waiters = left

    def _known(self, index: int) -> bool:
        return self.find(index) is not None

    def _check_process(self) -> None:
        if not self.is_own:
            raise ClientClosed(
                "the record belongs to the process that this one was forked from: only that waits for it"
            )


class TableOutcome(Outcome):
    """The outcome of the rows of a table: record 0 stands for all rows. Its parts are in the order of their answers."""

    __slots__ = ()
    is_table = True

    def finish(self) -> None:
        """Mark that no more rows follow, and tell if the outcome of all is known."""
        with _lock:
            self.whole = True
            self._wake_known()
            due = self.due(0, 1) if self._known(0) else []
        self.call(due)

    def when(self, index: int, call: Callable[[], object] | Callback) -> bool:
        """As of other outcomes."""
        self.observe()
        return super().when(index, call)

    def wait(self, index: int, timeout: float | None) -> bool:
        """As of other outcomes."""
        self.observe()
        return super().wait(index, timeout)

    def observe(self) -> None:
        """Have the outcomes of rows told."""
        with _lock:
            self.watch()

    def _due(self, part: Part) -> list[Callback]:
        return self.due(0, 1) if self._known(0) else []

    def _known(self, index: int) -> bool:
        if self.asks:
            with _lock:
                self.ask()
        return self.whole and self.resolved == self.queued


def tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Wake a coroutine that waits for an outcome. For any thread."""
    if running_loop() is loop:
        _set(future)
        return
    with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for the result
        loop.call_soon_threadsafe(_set, future)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def refuse_in(loop: asyncio.AbstractEventLoop | None) -> None:
    """Refuse to block the event loop of the client that must deliver the record. A blocking client has its own loop."""
    here = running_loop()
    if here is not None and here is loop:
        raise LocalProtocolError(
            "result() would wait for ever: the outcome of this record is not known yet, and the client learns it in "
            "the thread that runs callbacks and coroutines; await the delivery, or call result() once done() is true"
        )
