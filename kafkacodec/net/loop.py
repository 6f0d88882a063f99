"""A private event loop on its own thread, for blocking clients."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import select
import selectors
import socket
import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from kafkacodec.errors import ClientClosed, LocalProtocolError
from kafkacodec.tracebacks import is_for_user

__all__ = ["LoopCall", "LoopEnd", "LoopThread", "Sleeper", "epoll_of", "is_private", "new_loop", "tell_sleeper"]

T = TypeVar("T")
_log = logging.getLogger("kafkacodec.client")


_private: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()


def is_private(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether it is the loop of a `LoopThread`, in which nothing of the application runs."""
    return loop in _private


def new_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop, uvloop's if it is installed."""
    try:
        import uvloop  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return _Loop()
    made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return made


class Sleeper(Protocol):
    """What is told when a loop sleeps, so that other threads may do what the loop would have to be woken for.

    Attributes:
        offered: whether it wants to be told.
    """

    offered: bool

    def fall_asleep(self, timeout: float | None) -> None:
        """The loop runs nothing until events come, or this time has passed, in seconds."""

    def wake_up(self) -> None:
        """The loop goes on."""


class _Selector(selectors.DefaultSelector):
    """Waits for the events of a loop.

    Attributes:
        sleeper: told of each wait.
    """

    sleeper: Sleeper | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        sleeper = self.sleeper
        if sleeper is None or not sleeper.offered:
            return super().select(timeout)
        sleeper.fall_asleep(timeout)
        try:
            return super().select(timeout)
        finally:
            sleeper.wake_up()


def epoll_of(loop: asyncio.AbstractEventLoop) -> int | None:
    """The file descriptor of what a loop of `LoopThread` waits in; None if that is nothing that others may use."""
    selector = loop.selector if isinstance(loop, _Loop) else None
    return selector.fileno() if hasattr(select, "epoll") and selector is not None else None


def tell_sleeper(loop: asyncio.AbstractEventLoop, sleeper: Sleeper) -> None:
    """Tell it when the loop, of which `epoll_of` knows, sleeps."""
    assert isinstance(loop, _Loop)
    loop.selector.sleeper = sleeper


class _Loop(asyncio.SelectorEventLoop):
    """asyncio's loop, with a bell that other threads ring at less cost than `call_soon_threadsafe`.

    It handles no signals.

    Attributes:
        bell: called in the loop's thread after `ring`.
        selector: what it waits in.
    """

    _ssock: socket.socket
    _csock: socket.socket | None

    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)
        self.bell: Callable[[], object] | None = None
        self._rung = False

    def time(self) -> float:
        """The time in seconds, by the system: time limits go on where tests stop Python's clock, as with freezegun."""
        return time.clock_gettime(time.CLOCK_MONOTONIC)

    def ring(self) -> None:
        """Have the bell called soon, once for all calls of this before that. For any thread."""
        if self._rung:
            return
        self._rung = True
        try:
            if self._csock is not None:
                self._csock.send(b"\0")
        except OSError:  # it is closed, or so much is to be read that the loop wakes anyway
            pass
        except BaseException:  # a signal handler's
            self._rung = False
            raise

    def _read_from_self(self) -> None:
        # asyncio reads again until there is nothing. What is left, if so many threads have woken it, wakes it again.
        try:  # noqa: SIM105  # suppress() would call three functions more
            self._ssock.recv(4096)
        except (InterruptedError, BlockingIOError):
            pass
        if self._rung and self.bell is not None:
            self._rung = False
            self.bell()


class LoopEnd:
    """Something to do when the running event loop ends: in `shutdown_asyncgens`, which asyncio.run calls too.

    An ending loop still runs timers and callbacks. Tasks that they start then would never end.

    Args:
        last: called and awaited once, in the loop.
    """

    def __init__(self, last: Callable[[], Awaitable[None]]) -> None:
        self._last: Callable[[], Awaitable[None]] | None = last
        self._waiting = self._wait()
        _at_once(self._waiting.__anext__())  # from now on the loop ends this generator

    def cancel(self) -> None:
        """Do nothing at the end. For code in the loop."""
        self._last = None
        with contextlib.suppress(RuntimeError):  # it is called at this moment
            _at_once(self._waiting.aclose())

    async def _wait(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            if self._last is not None:
                await self._last()


def _at_once(step: Awaitable[None]) -> None:
    """Run a coroutine that does not wait."""
    with contextlib.suppress(StopIteration):
        step.__await__().send(None)


class LoopCall(Generic[T]):
    """A coroutine created and run in a loop's thread, for one other thread that waits for it.

    Args:
        make: creates the coroutine, in the loop's thread.
        loop: the loop.
        running: the calls that have begun and not ended; those left when the loop ends are cancelled.

    Attributes:
        done: whether it has ended.
        problem: the exception that it ended with, until `result` raises that.
        told: called in the loop's thread when it ends; set it before, or look at `done` afterwards.
    """

    def __init__(
        self, make: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop, running: set[LoopCall[Any]]
    ) -> None:
        self.done = False
        self.problem: BaseException | None = None
        self.told: Callable[[], object] | None = None
        self._make, self._loop, self._running = make, loop, running
        self._given_up = False
        self._task: asyncio.Task[None] | None = None
        self._value: T
        self._ended = threading.Lock()  # held until the end: cheaper than a condition
        self._ended.acquire()

    def begin(self) -> None:
        """Create and start the coroutine, unless its caller has given up. Runs in the loop's thread."""
        if not self._given_up:
            self._running.add(self)
            self._task = self._loop.create_task(self._run())

    def result(self, timeout: float | None) -> T:
        """Wait for the result, once. Raises TimeoutError, and what the coroutine raises."""
        if not self._ended.acquire(timeout=-1 if timeout is None else max(0.0, min(timeout, threading.TIMEOUT_MAX))):
            raise TimeoutError
        problem, self.problem = self.problem, None
        try:
            if problem is not None:
                raise problem
            return self._value
        finally:
            problem = None  # whose traceback has this frame

    def give_up(self) -> None:
        """Cancel the coroutine, as nothing waits for it any longer. Runs in any thread."""
        self._given_up = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._cancel)

    def end(self, problem: BaseException | None) -> None:
        """Tell that the coroutine has ended. Runs in the loop's thread."""
        self._running.discard(self)
        self.problem, self.done = problem, True
        self._ended.release()
        if self.told is not None:
            self.told()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            self._value = await self._make()
        except asyncio.CancelledError:
            self.end(concurrent.futures.CancelledError())
        except BaseException as error:  # the caller gets SystemExit and KeyboardInterrupt too
            self.end(error)
        else:
            self.end(None)


def _refuse_greenlets(name: str) -> None:
    """Raise LocalProtocolError if a thread would be a greenlet: the first wait would end, or stop, all of them."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and any(map(monkey.is_module_patched, ("threading", "select"))):
        raise LocalProtocolError(
            f"{name} needs a thread and a selector, which gevent has replaced: "
            "call monkey.patch_all(thread=False, select=False)"
        )


class LoopThread:
    """Runs coroutines for threads that wait for them.

    The thread is a daemon and ends with `close` or with the interpreter. A process forked from this one does not have
    the thread: every call raises ClientClosed there.

    Attributes:
        before_waiting: called by `run` in the thread that will wait; raises if it must not wait.
        bell: called in the loop's thread after `ring`; set it once.

    Raises:
        LocalProtocolError: gevent has replaced what threads need.
    """

    def __init__(self, name: str) -> None:
        _refuse_greenlets(name)
        self.loop = new_loop()
        _private.add(self.loop)
        self._name = name
        self._process = os.getpid()
        self._closed = False
        self.before_waiting: Callable[[], None] = lambda: None
        self.bell: Callable[[], object] = lambda: None
        self._rung = False  # of another loop than `_Loop`
        self._lock = threading.RLock()  # work scheduled under it before the close runs or is cancelled
        self._begun: set[LoopCall[Any]] = set()
        self._ending: LoopCall[None] | None = None
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, make: Callable[[], Coroutine[Any, Any, T]], timeout: float | None = None) -> T:
        """Run a coroutine in the loop and wait for its result.

        Args:
            make: creates the coroutine in the loop's thread, so that an interrupt of the caller never leaves one that
                nothing runs. It is cancelled if the wait ends by `timeout` or an exception such as KeyboardInterrupt.
            timeout: the limit in seconds; None waits for as long as it takes.

        Raises:
            TimeoutError: no result in time.
            ClientClosed: the loop has ended, or this is another process.
            RuntimeError: called from the loop's own thread, which would wait for itself.
        """
        call = LoopCall(make, self.loop, self._begun)
        try:
            self.check()  # in a forked process the lock's owner may be gone
            with self._lock:
                self.check()
                self.before_waiting()
                if threading.current_thread() is self._thread:
                    raise RuntimeError(f"a callback of {self._name} waits for {self._name}: use another thread")
                self.loop.call_soon_threadsafe(call.begin)
            return self._result(call, timeout)
        except concurrent.futures.CancelledError:
            raise ClientClosed(f"{self._name} was closed meanwhile") from None
        except BaseException:
            call.give_up()
            raise

    def soon(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the loop's thread, from any thread, without waiting. Raises ClientClosed like `run`."""
        self.check()
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            raise ClientClosed(f"{self._name} is closed") from None

    def ring(self) -> None:
        """Have the `bell` called soon, once for all calls of this before that. For any thread. Raises ClientClosed like
        `run`.
        """
        if self._closed or os.getpid() != self._process:
            self.check()  # raises
        if isinstance(self.loop, _Loop):
            self.loop.bell = self.bell
            self.loop.ring()
        elif not self._rung:
            self._rung = True
            self.soon(self._ringing)

    def _ringing(self) -> None:
        self._rung = False
        self.bell()

    def check(self) -> None:
        """Raise ClientClosed if the loop has ended, or if this process was forked from the loop's."""
        if os.getpid() != self._process:
            raise ClientClosed(f"{self._name} belongs to the parent of this forked process: create a new one")
        if self._closed:
            raise ClientClosed(f"{self._name} is closed")

    @property
    def ends(self) -> bool:
        """Whether it was closed, `end` was called, or this is another process."""
        return self._closed or self._ending is not None or os.getpid() != self._process

    def end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a last coroutine, then end the loop and its thread. If it is already ending, wait for that.

        In a callback in the loop's own thread, which cannot wait, this returns at once, and errors of the coroutine are
        logged. In a process forked from this one it does nothing.

        Args:
            last: creates the coroutine, which is cancelled if the wait ends by an exception such as KeyboardInterrupt.

        Raises:
            What the coroutine raises.
        """
        if os.getpid() != self._process:
            self._closed = True
            return
        waits, first = threading.current_thread() is not self._thread, False
        call = LoopCall(partial(self._end, last), self.loop, self._begun)
        try:
            with self._lock:
                first = self._ending is None and not self._closed
                if first:
                    self.loop.call_soon_threadsafe(call.begin)
                    self._ending = call
            if not waits:
                if first:
                    call.told = partial(self._log_failure, call)
                return
            if first:
                self._result(call, None)
        except concurrent.futures.CancelledError:
            raise ClientClosed(f"{self._name} was closed meanwhile") from None
        except BaseException:
            call.give_up()
            if first:  # the coroutine may not have started, and so not end the loop
                self.close()
            raise
        finally:
            if waits and (self._ending is not None or self._closed):
                self._thread.join()

    def _result(self, call: LoopCall[T], timeout: float | None) -> T:
        """Wait for the result of a coroutine in the loop. Raises errors for the user as if they occurred here."""
        try:
            return call.result(timeout)
        except Exception as error:
            if is_for_user(error):
                raise error.with_traceback(None) from error.__cause__
            raise

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await last()
        finally:
            self.close()

    def _log_failure(self, ended: LoopCall[None]) -> None:
        problem = ended.problem
        if problem is not None and not isinstance(problem, concurrent.futures.CancelledError):
            _log.error("%s was not closed properly", self._name, exc_info=problem)

    def close(self) -> None:
        """End the loop and its thread, and cancel what still runs in it. Closing twice does nothing."""
        if os.getpid() != self._process:
            self._closed = True
            return
        with self._lock:
            if not self._closed:
                self._closed = True
                self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            while True:
                try:
                    self.loop.run_forever()
                except (SystemExit, KeyboardInterrupt) as error:  # of the application: others still wait here
                    _log.exception("a callback of %s raised %s", self._name, type(error).__name__)
                if self._closed:
                    break
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            with contextlib.suppress(Exception):
                self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
                self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            for call in tuple(self._begun):  # cancelled before their first step
                call.end(concurrent.futures.CancelledError())
            self.loop.close()
