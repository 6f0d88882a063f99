"""The network of one client, which runs machines over connections to brokers.

All methods are called in the thread of the event loop that created it. After each answer from which something follows,
each failure and `Network.wake` every machine is polled, its sends are routed to brokers, and a timer is set for the
next deadline.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, Answer, Machine, Place, Prepare, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.held_up import HeldUpCalls
from kafkacodec.client.core.metrics import Metrics
from kafkacodec.client.core.retrying import Call, first_error
from kafkacodec.client.driver.line import Line
from kafkacodec.client.driver.node import Flight, Node
from kafkacodec.client.driver.nodes import SLOW_MS
from kafkacodec.client.driver.traffic import Traffic
from kafkacodec.client.options import ClientSettings
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import ClientClosed, RemoteProtocolError
from kafkacodec.net.addresses import addresses
from kafkacodec.net.loop import LoopEnd, epoll_of
from kafkacodec.net.timers import DeadlineTimer

if TYPE_CHECKING:
    from kafkacodec.messages import Message

__all__ = ["Network"]


class _Owner(NamedTuple):
    """The callbacks of a machine's owner."""

    changed: Callable[[], None] | None = None
    broke: Callable[[Exception], None] | None = None


class Network:
    """Connections to the brokers of a cluster, and the machines that use them.

    Args:
        settings: the client's.

    Attributes:
        cluster: the cluster's metadata, itself a machine.
        metrics: the client's metrics, which machines update.
        answered_at: when a broker last answered, in ms of `now`; -infinity before that.
        stopped: whether it is closed, or its event loop has ended: nothing is sent or started any more.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        try:
            self.loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(
                "no event loop of asyncio runs here: kafkacodec.client is for threads, such as those of "
                "trio.to_thread.run_sync, and kafkacodec.client.aio for asyncio"
            ) from None
        # What asyncio's own method calls, without that method; other loops have other clocks.
        plain = getattr(type(self.loop), "time", None) is asyncio.BaseEventLoop.time
        self._seconds = time.monotonic if plain else self.loop.time
        self.metrics = Metrics()
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self.cluster = Cluster(
            addresses(settings.bootstrap_servers),
            max_age_ms=settings.metadata_max_age_ms,
            max_idle_ms=settings.metadata_max_idle_ms,
            backoff=self.retry_backoff(),
            auto_create=settings.allow_auto_create_topics,
            silence_ms=settings.default_api_timeout_ms,
            absent_ms=settings.bootstrap_timeout_ms,
        )
        self.answered_at = -math.inf
        self.closed = self.stopped = False
        self._ended = asyncio.Event()  # set once the connections have ended too
        self._process = os.getpid()
        self._machines: dict[Machine, _Owner] = {self.cluster: _Owner()}
        self._traffic = Traffic(
            settings,
            self.cluster,
            self.metrics,
            clock=self.now,
            runs=self._machines.__contains__,
            landed=self._landed,
            wake=self.wake,
        )
        self._calls: HeldUpCalls | None = None  # once one waits
        self._timer = DeadlineTimer(self.loop, self.wake)
        self._woken = self._calling = False
        self._soon: set[Machine] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop_end = LoopEnd(self._loop_ends)

    @property
    def is_own_process(self) -> bool:
        """Whether this process created the network, rather than being forked from it."""
        return os.getpid() == self._process

    def now(self) -> float:
        """The time of the loop's clock, in ms."""
        return self._seconds() * 1000

    def retry_backoff(self) -> Backoff:
        """The waits between attempts, from the client's options."""
        return self._backoff

    def add(
        self,
        machine: Machine,
        changed: Callable[[], None] | None = None,
        broke: Callable[[Exception], None] | None = None,
    ) -> None:
        """Start to run a machine.

        Args:
            machine: decides what to send.
            changed: called after each call of the machine.
            broke: called once if the machine raises, or with ClientClosed if the network is closed. The machine is then
                removed and gets no answers. RemoteProtocolError is an exception to this: a machine raises it in
                `answered` for an impossible response, and gets it back in `failed`. If an unexpected response makes
                the machine fail otherwise, `broke` gets RemoteProtocolError with that exception as its cause.

        Raises:
            ClientClosed: as for `check`.
        """
        self._begin(machine, changed, broke)
        self.wake()

    def _begin(
        self, machine: Machine, changed: Callable[[], None] | None, broke: Callable[[Exception], None] | None
    ) -> None:
        self.check()
        self._machines[machine] = _Owner(changed, broke)

    def remove(self, machine: Machine) -> None:
        """Stop running a machine: its waiting requests are not sent, and it gets no answers to those in flight."""
        self._machines.pop(machine, None)

    def wake(self) -> None:
        """Poll all machines soon."""
        if not self._woken and not self.stopped:
            self._woken = True
            self.loop.call_soon(self._run)

    def wake_soon(self) -> None:
        """As `wake`, for any thread."""
        if self.is_own_process:
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self.wake)

    def poll_soon(self, machine: Machine) -> None:
        """`poll` a machine in a callback of the loop, once for all calls of this before that."""
        if not self._woken and not self.stopped and machine not in self._soon:
            self._soon.add(machine)
            self.loop.call_soon(self._poll_now, machine)

    def _poll_now(self, machine: Machine) -> None:
        self._soon.discard(machine)
        self.poll(machine)

    def poll(self, machine: Machine) -> None:
        """Poll one machine now, since only it has something new.

        All are polled soon if its requests cannot be written at once, if it needs metadata, or if this is called by a
        machine.
        """
        owner = self._machines.get(machine)
        if owner is None or self._woken or self.stopped:
            return
        if self._calling:
            self.wake()
            return
        now = self.now()
        self._calling = True
        try:
            sends = machine.poll(now)
        except Exception as error:
            self._break(machine, error)
            return
        finally:
            self._calling = False
        if owner.changed is not None:
            owner.changed()
        first, complete = now + SLOW_MS, not self.cluster.asks
        for send in sends:
            flight = self._traffic.submit(send, machine, now)
            complete = self._traffic.write(flight, now) and complete
            first = min(first, flight.deadline)
        if complete:
            at = machine.next_deadline()
            self._timer.set(first if at is None or at > first else max(at, now))
        else:
            self.wake()

    def line(self, number: int) -> Line | None:
        """The connection to a broker, for threads that use it past the loop; None if they may not."""
        node, epoll = self._traffic.free_node(number), epoll_of(self.loop)
        fd = None if node.link is None else node.link.fileno()
        return None if fd is None or node.link is None or epoll is None else Line(self, node, node.link, fd, epoll)

    def adopt(
        self, node: Node, send: Send, machine: Machine, number: int, sent_at: float, size: int, rest: bytes | None
    ) -> None:
        """Wait for the answer to a request of `size` bytes that was written past the loop, but for `rest`."""
        flight = self._traffic.adopt(node, send, machine, number, sent_at, size, rest)
        self._timer.set(min(sent_at + SLOW_MS, flight.deadline))

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in a task, which is cancelled when the event loop ends."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def waiting(self, limit_ms: float = math.inf) -> AbstractContextManager[None]:
        """Around the wait of a call, which lasts `limit_ms` at most: what holds it up for long is logged."""
        if self._calls is None:
            self._calls = HeldUpCalls(self.cluster.hindrances, self.now)
            self.add(self._calls)
        return self._calls.waiting(limit_ms)

    async def run(self, machine: Machine, done: Callable[[], bool], limit_ms: float = math.inf) -> None:
        """Run a machine until it is done, for a call that waits `limit_ms` at most.

        Raises its errors, and ClientClosed if the network is closed first.
        """
        finished: asyncio.Future[None] = self.loop.create_future()

        def changed() -> None:
            if done() and not finished.done():
                finished.set_result(None)

        def broke(error: Exception) -> None:
            if not finished.done():
                finished.set_exception(error)

        self._begin(machine, changed, broke)
        self.poll(machine)
        try:
            with self.waiting(limit_ms):
                await finished
        finally:
            self.remove(machine)

    async def call(
        self,
        request: Message | Prepare,
        to: Place = ANY,
        *,
        timeout_ms: float | None = None,
        error_of: Callable[[Any], int] = first_error,
    ) -> Any:
        """Send a request, retry it while its errors are temporary, and return the response.

        Args:
            request: the message, or a function that makes it for a broker's versions.
            to: its destination.
            timeout_ms: the limit for all attempts together. Default: ``default_api_timeout_ms``.
            error_of: returns the error code of a response that decides about another attempt; 0 for none. Default: the
                response's ``error_code``, if it has one. The caller reads codes that are not temporary.

        Raises:
            DeadlineExceeded: no answer in time; its cause is the last failure.
            AuthenticationFailed, RemoteProtocolError, UnsupportedVersion, EncodeError: at once.
            BrokerError: the coordinator cannot be found.
            ClientClosed: the client is closed, or is closed during the call.
        """
        self.check()
        limit_ms = self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        machine = Call(
            request,
            to,
            cluster=self.cluster,
            deadline=self.now() + limit_ms,
            attempt_ms=self.settings.request_timeout_ms,
            backoff=self.retry_backoff(),
            error_of=error_of,
        )
        await self.run(machine, lambda: machine.done, limit_ms)
        if machine.error is not None:
            raise machine.error
        assert machine.answer is not None
        return machine.answer.message

    def check(self) -> None:
        """Raise ClientClosed if the client is closed, or is used from another loop or process."""
        if self.closed:
            raise ClientClosed("the client is closed")
        if not self.is_own_process:
            raise ClientClosed("the client belongs to the process that this one was forked from: make a new one")
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is not self.loop:
            raise ClientClosed("the client belongs to another event loop: make and use it in the same one")

    async def close(self) -> None:
        """Close all connections. Unanswered requests fail with ClientClosed.

        Closing twice does nothing; a close in progress is waited for.
        """
        if self.closed:
            await self._ended.wait()
            return
        reason = self._end()
        try:
            await self._traffic.close(reason)
        finally:
            self._ended.set()
            self._tell_owners(reason)

    def abort(self) -> None:
        """Like `close`, without waiting for the sockets."""
        if not self.closed:
            reason = self._end()
            self._traffic.abort(reason)
            self._ended.set()
            self._tell_owners(reason)

    def _end(self) -> ClientClosed:
        self.closed = self.stopped = True
        self._timer.cancel()
        self._loop_end.cancel()
        return ClientClosed("the client was closed")

    async def _loop_ends(self) -> None:
        """End what the loop would leave behind. The client counts as open: nobody has closed it."""
        self.stopped = True
        self._timer.cancel()
        tasks = [*self._tasks, *self._traffic.abort(ClientClosed("the client's event loop has ended"))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tell_owners(self, reason: Exception) -> None:
        owners = list(self._machines.values())
        self._machines.clear()
        for owner in owners:
            if owner.broke is not None:
                owner.broke(reason)

    def _run(self) -> None:
        self._woken = False
        if self.stopped:
            return
        now = self.now()
        for machine, owner in list(self._machines.items()):
            self._calling = True
            try:
                for send in machine.poll(now):
                    self._traffic.submit(send, machine, now)
            except Exception as error:
                self._break(machine, error)
                continue
            finally:
                self._calling = False
            if owner.changed is not None:
                owner.changed()
        self._traffic.step(now)
        self._set_timer(now)

    def _landed(self, flight: Flight, outcome: Answer | Exception) -> None:
        """Pass a machine its answer or failure."""
        machine, now = flight.machine, self.now()
        owner = self._machines.get(machine)
        if isinstance(outcome, Answer):
            self.answered_at = now
        if owner is not None:
            inside, self._calling = self._calling, True
            try:
                if isinstance(outcome, Answer):
                    _answer(machine, flight, outcome, now)
                else:
                    machine.failed(flight.send, outcome, now)
            except Exception as error:
                self._break(machine, error)
                owner = None
            finally:
                self._calling = inside
        if not flight.send.settles or (flight.node is not None and flight.node.waiting):
            self.wake()
        elif owner is not None and owner.changed is not None:
            owner.changed()

    def _break(self, machine: Machine, error: Exception) -> None:
        """Remove a machine that raised, since its state is unknown."""
        owner = self._machines.pop(machine, None)
        if owner is not None and owner.broke is not None:
            owner.broke(error)
            return
        context = {"message": f"{type(machine).__name__} of a Kafka client failed", "exception": error}
        self.loop.call_exception_handler(context)

    def _set_timer(self, now: float) -> None:
        first = self._traffic.next_deadline(now)
        for machine in self._machines:
            at = machine.next_deadline()
            if at is not None and at < first:
                first = at
        if first < math.inf:
            self._timer.set(max(first, now))


def _answer(machine: Machine, flight: Flight, answer: Answer, now: float) -> None:
    try:
        machine.answered(flight.send, answer, now)
    except RemoteProtocolError as error:
        machine.failed(flight.send, error, now)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Well-formed, but not an answer to this request: entries are missing, null or belong to other requests.
        name = type(answer.message).__name__
        raise RemoteProtocolError(f"broker {answer.node}: this {name} cannot be right: {error!r}") from error
