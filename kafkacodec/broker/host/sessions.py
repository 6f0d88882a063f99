"""Sessions: a connection's bytes, the order of its answers, and back-pressure."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from kafkacodec.errors import KafkaCodecError
from kafkacodec.net.service import CLOSE, NO_ANSWER, Codec, FilePart

if TYPE_CHECKING:
    from kafkacodec.broker.host.limits import Limits, Load

__all__ = ["Acceptor", "Call", "Session"]

_log = logging.getLogger("kafkacodec.broker")
_JOINED_BYTES = 1 << 17  # copying this many bytes is faster than a second system call


class Acceptor(Protocol):
    """Accepts sessions and counts their bytes in flight: `kafkacodec.broker.host.listener`."""

    name: str
    codec: Callable[[], Codec]
    limits: Limits
    load: Load
    time: Callable[[], float]  # of the loop, in seconds

    @property
    def receive(self) -> Callable[[Call], None]:
        """Passes a request to the service."""

    def add(self, session: Session) -> None:
        """Note that a session is open."""

    def remove(self, session: Session) -> None:
        """Forget a session."""

    def paused(self, session: Session) -> None:
        """Note that a session does not read."""

    def relieved(self) -> None:
        """Resume sessions that stopped reading because of others."""


class Call:
    """A request that waits for its answer, and for the answers to those before it.

    Attributes:
        session: of the request.
        request: the result of the codec.
        size: its bytes of memory.
        rest: the pause in ms after the answer before the session starts another request; infinite closes the session.
    """

    __slots__ = ("pieces", "ready", "request", "rest", "session", "size")

    def __init__(self, session: Session, request: Any, size: int) -> None:
        self.session, self.request, self.size = session, request, size
        self.ready = False
        self.rest = 0.0
        self.pieces: Sequence[bytes | memoryview | FilePart] = ()

    def answer(self, response: Any) -> None:
        """Set the response, once: a message for the codec, or a fate. It leaves in its turn."""
        if not self.ready:
            self.session.answered(self, response)


class Session(asyncio.BufferedProtocol):
    """A connection of a client.

    Attributes:
        listener: that accepted it.
        peer: the client's address as text.
        host: the client's host.
        state: of the service for this connection.
        lacks_memory: whether a request that begins waits for memory.
    """

    def __init__(self, listener: Acceptor) -> None:
        self.listener = listener
        self.peer = self.host = ""
        self.state: Any = None
        self.lacks_memory = False
        self.last = 0.0  # time of the last received bytes, in seconds
        self._unsent = 0  # bytes that the client had not taken at the last look
        self._codec: Codec = listener.codec()
        self._load, self._most_pending = listener.load, listener.limits.max_pending
        self._time, self._receive = listener.time, listener.receive
        self._transport: Any = None
        self._pending: deque[Call] = deque()
        # Those of them without a sent answer, if answers may be out of order.
        self._answered: deque[Call] | None = None if self._codec.in_order else deque()
        self._later: deque[Any] = deque()  # received requests that have not started
        self._corked = self._full = self._paused = self._rests = self._ending = self._ended = False
        self._last = False  # the client sends no more

    @property
    def reached_at(self) -> str:
        """The address of this machine that the client has connected to; empty if it is not known."""
        name = self._transport and self._transport.get_extra_info("sockname")
        return str(name[0]).removeprefix("::ffff:") if isinstance(name, tuple) else ""

    # Called by asyncio

    def connection_made(self, transport: Any) -> None:
        """Start."""
        self._transport = transport
        name = transport.get_extra_info("peername")
        self.host = str(name[0]) if isinstance(name, tuple) else ""
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "a client"
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(self.listener.limits.max_unsent_bytes)
        self.last = self._time()
        self.listener.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return memory for received bytes."""
        return self._codec.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take received bytes."""
        self.last = self._time()
        self._load.received += nbytes
        if not self._ending:
            self._take(nbytes)
            self._begin()

    def _take(self, nbytes: int) -> None:
        """Take bytes, or those before them that had to wait for memory."""
        try:
            requests = self._codec.received(nbytes)
            self._later.extend(requests)
            self.lacks_memory = self._codec.waits
            if requests and self._load.stopped:
                self.listener.relieved()
        except KafkaCodecError as error:
            self._load.notes.say(f"{self.listener.name}: {error}; closing its connection", self.peer)
            self._later.extend(getattr(error, "events", ()))
            self._later.append(CLOSE)
        except MemoryError:  # of this process, or of what the system lets it have
            reason = "there is no memory for a request that begins"
            self._load.notes.say(f"{self.listener.name}: {reason}; closing its connection", self.peer)
            self._later.append(CLOSE)

    def eof_received(self) -> bool:
        """Close when the client stops sending, or after the answers to what it has sent."""
        more = bool(self._pending or self._later) and self._transport.get_extra_info("sslcontext") is None
        self._last = self._codec.answers_last and more
        return self._last

    def pause_writing(self) -> None:
        """Stop reading from a client that does not take its answers."""
        self._full = True
        self._set_reading()

    def resume_writing(self) -> None:
        """Resume reading."""
        self._full = False
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and drop waiting requests."""
        if self._ended:
            return
        self._ended = self._ending = True
        self._codec.drop()
        if self._load.stopped:
            self.listener.relieved()
        for call in self._pending:
            self._freed(call.size)
            self._codec.release(call.request)
            call.ready = True
        self._pending.clear()
        self._answered = None
        self._later.clear()
        self.listener.remove(self)

    # Called by the host

    def answered(self, call: Call, response: Any) -> None:
        """Take the answer to a request, unless the connection ends."""
        if self._ending:
            return
        call.ready = True
        if response is CLOSE:
            call.rest = inf
        else:
            try:
                if response is not NO_ANSWER:
                    call.pieces = self._codec.response(call.request, response)
                call.rest = self._codec.rest(call.request)
            except Exception:
                _log.exception("an answer to %s could not be encoded; closing its connection", self.peer)
                call.rest = inf
        if self._answered is not None:
            self._answered.append(call)
        if not self._corked and (self._answered or (self._pending and self._pending[0] is call)):
            self._send()
            self._begin()

    def resume(self) -> None:
        """Continue after others have freed memory."""
        if self.lacks_memory and not self._ending:
            self._take(0)
        self._begin()

    def close(self) -> None:
        """Close after the client has taken written answers; waiting requests get none."""
        self._ending = True
        if self._transport is not None and not self._ended:
            self._transport.close()

    def expire(self) -> None:
        """Close an idle connection; at once, if the client has taken nothing of its answers since the last call."""
        unsent, before = self._transport.get_write_buffer_size(), self._unsent
        self._unsent = unsent
        if not unsent:
            self.close()
        elif unsent == before:
            self.abort()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None and not self._ended:
            self._transport.abort()

    @property
    def certificate(self) -> Mapping[str, Any]:
        """Return the client's certificate as `ssl.SSLSocket.getpeercert` does; empty if it has none."""
        tls = self._transport.get_extra_info("ssl_object")
        return {} if tls is None else tls.getpeercert() or {}

    @property
    def waits(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self._pending) and not self._ending

    # Inside

    def _has_room(self) -> bool:
        if self._full or self._rests or len(self._pending) >= self._most_pending:
            return False
        return self._load.nbytes < self._load.most

    def _may_begin(self) -> bool:
        pending = self._pending
        if pending and not pending[-1].ready and not self._codec.settled(pending[-1].request):
            return False
        return self._has_room()

    def _freed(self, nbytes: int) -> None:
        """Subtract the memory of a finished request, so that others may continue."""
        load = self._load
        before = load.nbytes
        load.nbytes = after = before - nbytes
        if after < load.most <= before:
            self.listener.relieved()

    def _begin(self) -> None:
        """Start received requests, as far as there is room."""
        if self._corked:
            return
        self._corked = True
        later = self._later
        try:
            while later and not self._ending:
                if not self._may_begin():
                    self._send()
                    if not self._may_begin():
                        break
                self._start(later.popleft())
            self._send()  # answers that came meanwhile leave together
        finally:
            self._corked = False
        if self._last and not self._pending and not later:
            self.close()
        self._set_reading()

    def _start(self, request: Any) -> None:
        """Start a request, or close the connection in its turn."""
        load, size = self._load, getattr(request, "nbytes", 0)
        call = Call(self, request, size)
        self._pending.append(call)
        load.nbytes += size
        load.requests += 1
        if request is CLOSE:
            self._later.clear()
            call.answer(CLOSE)
        else:
            self._receive(call)
        if call.rest:
            self._send()

    def _send(self) -> None:
        """Send the answers that are next in order, together if they are small."""
        due = self._pending if self._answered is None else self._answered
        if not due or not due[0].ready:
            return
        sent: list[Call] = []
        rest = 0.0
        while rest != inf:
            call = due.popleft()
            if due is self._answered:
                self._pending.remove(call)
            sent.append(call)
            if call.rest:
                rest = call.rest
                self._rest(rest)
            if not due or not due[0].ready:
                break
        if not self._ended:
            self._write(call.pieces if len(sent) == 1 else [piece for one in sent for piece in one.pieces])
        for call in sent:  # after writing: the memory of a request may be part of its answer
            if call.request is not CLOSE:
                self._codec.release(call.request)
            self._freed(call.size)
        if rest == inf or ((self._later or self._pending) and self._transport.is_closing()):
            self.close()

    def _rest(self, milliseconds: float) -> None:
        """Start no more requests for a while, or never."""
        self._rests = True
        if milliseconds != inf:
            asyncio.get_running_loop().call_later(milliseconds / 1000, self._go_on)

    def _go_on(self) -> None:
        self._rests = False
        if not self._ended:
            self._begin()

    def _write(self, pieces: Sequence[Any]) -> None:
        if len(pieces) == 1:
            self._load.sent += len(pieces[0])
            self._transport.write(pieces[0])
            return
        if not pieces:
            return
        size = sum(map(len, pieces))
        self._load.sent += size
        if size <= _JOINED_BYTES:
            self._transport.write(b"".join(pieces))
        else:
            for piece in pieces:
                if self._transport.is_closing():  # the client has gone: asyncio would log each further piece
                    break
                if type(piece) is FilePart:
                    self._send_file(piece)
                else:
                    self._transport.write(piece)

    def _send_file(self, part: FilePart) -> None:
        """Let the system send from a file as much as the client takes at once, unless other bytes wait."""
        sent = 0
        if not self._transport.get_write_buffer_size():
            sock = self._transport.get_extra_info("socket")
            with suppress(OSError):  # the transport notices that the client has gone
                sent = os.sendfile(sock.fileno(), part.file.fileno(), part.position, part.count)
        if sent < part.count:
            self._transport.write(part.view()[sent:])

    def _set_reading(self) -> None:
        """Read only while there is room, and no request that has to wait for others."""
        pause = bool(self._later or self.lacks_memory) or not self._has_room()
        if pause and not self._ending:
            self.listener.paused(self)
        if pause == self._paused or self._ending or self._last:
            return
        self._paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
