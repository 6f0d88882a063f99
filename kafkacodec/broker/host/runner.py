"""Runs a service: executes its effects in the order append, durable, replies, and calls it when something is due."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from kafkacodec.broker.host.flushing import Flusher
from kafkacodec.net.service import CLOSE, Append, Effect, Service
from kafkacodec.net.timers import DeadlineTimer

if TYPE_CHECKING:
    from kafkacodec.broker.host.sessions import Call, Session

__all__ = ["Runner", "Store"]

_log = logging.getLogger("kafkacodec.broker")


class Store(Protocol):
    """The logs of a service's effects."""

    def append(self, log: Any, data: Any) -> Any:
        """Append data to a log; `Service.appended` gets the result. Raises OSError, KafkaCodecError."""

    def must_flush(self, log: Any) -> bool:
        """Whether appends to a log count as done only when the disk has them."""

    def flushing(self, log: Any) -> Any:
        """Return the work that makes a log's current contents durable; another thread calls its `sync()`. Raises
        OSError.
        """

    def flushed(self, log: Any, flushing: Any) -> None:
        """Note that the work is done."""


class Runner:
    """One service with its clock.

    Args:
        service: decides.
        store: appends.
        loop: the event loop for everything except flushing.

    The service's clock shows milliseconds since 1970, follows the loop's clock and never goes back.
    """

    def __init__(self, service: Service, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self._service, self._store, self._loop = service, store, loop
        self.flusher = Flusher(loop, store)
        self._time = loop.time
        self._ahead = time.time() * 1000 - loop.time() * 1000  # of the loop's clock
        self._timer = DeadlineTimer(loop, self._due)
        self._closed = False
        self._failing: set[Any] = set()  # the logs that the disk refuses, as was logged

    @property
    def now(self) -> float:
        """Return the time of the service, in milliseconds since 1970."""
        return self._time() * 1000 + self._ahead

    def receive(self, call: Call) -> None:
        """Pass a request to the service."""
        try:
            now = self._time() * 1000 + self._ahead
            self.run(self._service.receive(call.request, call.session, call, now))
        except Exception:
            _log.exception("a request of %s failed; closing its connection", call.session.peer)
            call.answer(CLOSE)

    def disconnected(self, session: Session) -> None:
        """Tell the service that a session ended."""
        if not self._closed:
            self._guarded(self._service.disconnected, session, self.now)

    def run(self, effect: Effect) -> None:
        """Execute an effect and those that follow from it."""
        effects = [effect]
        for one in effects:  # which grow meanwhile
            if one.others:
                effects += one.others
            if one.appends or one.written:
                self._carry_out(one, effects)
            else:
                for reply in one.replies:
                    reply.to.answer(reply.response)
        self._set_timer()

    def flush(self, logs: Iterable[Hashable], then: Callable[[Exception | None], None]) -> None:
        """Flush logs to the disk, then call `then` with the error, or None."""
        self.flusher.flush(logs, then)

    async def close(self) -> None:
        """Stop the timer, and wait for running flushes."""
        await self.flusher.close()
        self._closed = True
        self._timer.cancel()

    def _carry_out(self, effect: Effect, waiting: list[Effect]) -> None:
        done: list[tuple[Append, Any]] = []
        flushed: list[Hashable] = []
        for append in effect.appends:
            log = append.log
            try:
                done.append((append, self._store.append(log, append.data)))
                if self._failing:
                    self._failing.discard(log)
            except Exception as error:
                self._failed(append, error, effect, waiting)
                effect = Effect((), ())
                continue
            # Appends that need no flush also wait for earlier appends to their log, to keep the order.
            if append.durability == "flushed" or log in self.flusher.asked or self._store.must_flush(log):
                flushed.append(log)
        if effect.written:
            flushed += [log for log in effect.written if log in self.flusher.asked or self._store.must_flush(log)]
        if flushed:
            self._flush(flushed, done, effect)
        else:
            self._done(done, effect, waiting)

    def _done(self, done: list[tuple[Append, Any]], effect: Effect, waiting: list[Effect]) -> None:
        for append, result in done:
            if append.token is not None:
                now = self._time() * 1000 + self._ahead
                waiting.append(self._service.appended(append.token, result, now))
        for reply in effect.replies:
            reply.to.answer(reply.response)

    def _failed(self, append: Append, error: Exception, effect: Effect, waiting: list[Effect]) -> None:
        if not isinstance(error, OSError):
            _log.error("%s could not be appended to", _name_of(append.log), exc_info=error)
        elif append.log not in self._failing:
            self._failing.add(append.log)
            _log.error("%s could not be appended to: %s", _name_of(append.log), error)
        if append.token is not None:
            waiting.append(self._service.not_appended(append.token, error, self.now))
            return
        for to, _ in effect.replies:
            to.answer(CLOSE)

    def _flush(self, logs: list[Hashable], done: list[tuple[Append, Any]], effect: Effect) -> None:
        def flushed(error: Exception | None) -> None:
            waiting: list[Effect] = []
            if error is None:
                self._done(done, effect, waiting)
            else:
                for append, _ in done:
                    self._failed(append, error, effect, waiting)
                for to, response in effect.lost():
                    to.answer(response)
            for one in waiting:
                self.run(one)
            self._set_timer()

        self.flusher.flush(logs, flushed)

    def _due(self) -> None:
        if not self._closed:
            self._guarded(self._service.tick, self.now)

    def _guarded(self, call: Any, *arguments: Any) -> None:
        try:
            self.run(call(*arguments))
        except Exception:
            _log.exception("the service failed")

    def _set_timer(self) -> None:
        deadline = self._service.next_deadline()
        if deadline is not None:
            self._timer.set(deadline - self._ahead)


def _name_of(log: Hashable) -> str:
    """A log in messages: orders-0."""
    return "-".join(map(str, log)) if isinstance(log, tuple) else str(log)
