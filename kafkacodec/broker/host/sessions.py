"""Sessions: one connection's bytes, the order of its answers, and who must wait."""

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
from kafkacodec.net.service import CLOSE, Codec, Fate, FilePart

if TYPE_CHECKING:
    from kafkacodec.broker.host.limits import Limits, Load

__all__ = ["Acceptor", "Call", "Session"]

_log = logging.getLogger("kafkacodec.broker")
_JOINED_BYTES = 1 << 17  # a copy of so many takes less time than a second call of the system


class Acceptor(Protocol):
    """What accepted a session, and counts what all sessions have in flight: `kafkacodec.broker.host.listener`."""

    name: str
    codec: Callable[[], Codec]
    limits: Limits
    load: Load

    def now(self) -> float:
        """The time of the loop, in milliseconds."""

    def add(self, session: Session) -> bool:
        """Take a session; False if there are too many."""

    def remove(self, session: Session) -> None:
        """Forget a session."""

    def receive(self, call: Call) -> None:
        """Give a request to the service."""

    def paused(self, session: Session) -> None:
        """Note that a session reads nothing."""

    def relieved(self) -> None:
        """Let sessions go on that stopped reading because of others."""


class Call:
    """A request that waits for its answer, and for the answers to those before it.

    Attributes:
        session: where it came from.
        request: what the codec made of it.
        size: the bytes of memory that count for it.
        rest: for how many ms nothing more of the session is begun after the answer; it is closed if that is infinite.
    """

    __slots__ = ("pieces", "ready", "request", "rest", "session", "size")

    def __init__(self, session: Session, request: Any, size: int) -> None:
        self.session, self.request, self.size = session, request, size
        self.ready = False
        self.rest = 0.0
        self.pieces: Sequence[bytes | memoryview | FilePart] | Fate = []

    def answer(self, response: Any) -> None:
        """Give the response, once: a message for the codec, or a fate. It is sent when it is its turn."""
        if not self.ready:
            self.session.answered(self, response)


class Session(asyncio.BufferedProtocol):
    """A connection of a client.

    Attributes:
        listener: where it was accepted.
        peer: the client's address as text.
        host: the client's host.
        state: for the service: whatever it keeps of this connection.
    """

    def __init__(self, listener: Acceptor) -> None:
        self.listener = listener
        self.peer = self.host = ""
        self.state: Any = None
        self.last = 0.0  # when something was received, in ms
        self._codec: Codec = listener.codec()
        self._limits, self._load = listener.limits, listener.load
        self._transport: Any = None
        self._pending: deque[Call] = deque()
        # Those of them whose answers have not left, where answers need not keep the order of the requests.
        self._answered: deque[Call] | None = None if self._codec.in_order else deque()
        self._later: deque[Any] = deque()  # requests that were received and are not begun
        self._corked = self._full = self._paused = self._rests = self._ending = self._ended = False

    # What asyncio calls

    def connection_made(self, transport: Any) -> None:
        """Begin: refuse what is too much."""
        self._transport = transport
        name = transport.get_extra_info("peername")
        self.host = str(name[0]) if isinstance(name, tuple) else ""
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "a client"
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(self._limits.max_unsent_bytes)
        self.last = self.listener.now()
        if not self.listener.add(self):
            _log.warning("%s was refused: there are %d connections", self.peer, self._limits.max_connections)
            self._ended = True
            transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Memory for received bytes."""
        return self._codec.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take received bytes."""
        self.last = self.listener.now()
        self._load.received += nbytes
        if self._ending:
            return
        try:
            self._later.extend(self._codec.received(nbytes))
        except KafkaCodecError as error:
            _log.info("%s: %s; its connection is closed", self.peer, error)
            self._later.extend(getattr(error, "events", ()))
            self._later.append(CLOSE)
        self._begin()

    def eof_received(self) -> bool:
        """Close once the client has sent all, as brokers do."""
        return False

    def pause_writing(self) -> None:
        """Read nothing from a client that takes no answers."""
        self._full = True
        self._set_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._full = False
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """End: what waits is dropped."""
        if self._ended:
            return
        self._ended = self._ending = True
        self._codec.drop()
        for call in self._pending:
            self._freed(call.size)
            self._codec.release(call.request)
            call.ready = True
        self._pending.clear()
        self._answered = None
        self._later.clear()
        self.listener.remove(self)

    # What the host calls

    def answered(self, call: Call, response: Any) -> None:
        """Take the answer to one of its requests."""
        if self._ended:
            return
        call.ready = True
        if isinstance(response, Fate):
            call.pieces = response
        else:
            try:
                call.pieces = self._codec.response(call.request, response)
                call.rest = self._codec.rest(call.request)
            except Exception:
                _log.exception("an answer to %s could not be encoded; its connection is closed", self.peer)
                call.pieces = CLOSE
        if self._answered is not None:
            self._answered.append(call)
        if not self._corked and (self._answered or (self._pending and self._pending[0] is call)):
            self._send()
            self._begin()

    def resume(self) -> None:
        """Go on after others have freed memory."""
        self._begin()

    def close(self) -> None:
        """Close after what is written has been taken; what waits for an answer gets none."""
        self._ending = True
        if self._transport is not None and not self._ended:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None and not self._ended:
            self._transport.abort()

    @property
    def certificate(self) -> Mapping[str, Any]:
        """The client's certificate as `ssl.SSLSocket.getpeercert` has it; empty if it has shown none."""
        tls = self._transport.get_extra_info("ssl_object")
        return {} if tls is None else tls.getpeercert() or {}

    @property
    def waits(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self._pending)

    # Inside

    def _may_begin(self) -> bool:
        if self._full or self._rests or len(self._pending) >= self._limits.max_pending:
            return False
        return self._load.nbytes < self._load.most

    def _freed(self, nbytes: int) -> None:
        """Count off the memory of a request that is done; others may go on."""
        load = self._load
        before = load.nbytes
        load.nbytes = after = before - nbytes
        if after < load.most <= before:
            self.listener.relieved()

    def _begin(self) -> None:
        """Begin requests that were received, as far as there is room."""
        if self._corked:
            return
        self._corked = True
        load = self._load
        try:
            begins = self._may_begin()
            while self._later and not self._ending and begins:
                request = self._later.popleft()
                size = 0 if request is CLOSE else getattr(request, "nbytes", 0)
                call = Call(self, request, size)
                self._pending.append(call)
                load.nbytes += size
                load.requests += 1
                if request is CLOSE:
                    call.answer(CLOSE)
                    self._later.clear()
                else:
                    self.listener.receive(call)
                begins = self._may_begin()
                if call.rest or call.pieces is CLOSE or not begins:
                    self._send()
                    begins = self._may_begin()
            self._send()  # what was answered meanwhile leaves together
        finally:
            self._corked = False
        self._set_reading()

    def _send(self) -> None:
        """Send the answers whose turn it is, together if they are small."""
        due = self._pending if self._answered is None else self._answered
        if not due or not due[0].ready:
            return
        out: list[bytes | memoryview | FilePart] = []
        sent: list[Call] = []
        ends = False
        while not ends:
            call = due.popleft()
            if due is self._answered:
                self._pending.remove(call)
            ends = call.pieces is CLOSE or call.rest == inf
            if not isinstance(call.pieces, Fate):
                out += call.pieces
            sent.append(call)
            if call.rest and not ends:
                self._rest(call.rest)
            if not due or not due[0].ready:
                break
        if out and not self._ended:
            self._write(out)
        for call in sent:  # after writing: the memory of a request may be part of its answer
            if call.request is not CLOSE:
                self._codec.release(call.request)
            self._freed(call.size)
        if ends:
            self.close()

    def _rest(self, milliseconds: float) -> None:
        """Begin nothing more for a while."""
        self._rests = True
        asyncio.get_running_loop().call_later(milliseconds / 1000, self._go_on)

    def _go_on(self) -> None:
        self._rests = False
        if not self._ended:
            self._begin()

    def _write(self, pieces: list[Any]) -> None:
        if len(pieces) == 1:
            self._load.sent += len(pieces[0])
            self._transport.write(pieces[0])
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
        """Let the system send from a file what the client takes at once, unless other bytes wait to be written."""
        sent = 0
        if not self._transport.get_write_buffer_size():
            sock = self._transport.get_extra_info("socket")
            with suppress(OSError):  # a client that has gone is noticed by the transport
                sent = os.sendfile(sock.fileno(), part.file.fileno(), part.position, part.count)
        if sent < part.count:
            self._transport.write(part.view()[sent:])

    def _set_reading(self) -> None:
        """Read only while what is read can begin."""
        pause = bool(self._later) or not self._may_begin()
        if pause == self._paused or self._ending:
            return
        self._paused = pause
        if pause:
            self._transport.pause_reading()
            self.listener.paused(self)
        else:
            self._transport.resume_reading()
