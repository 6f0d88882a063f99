"""One connection to a broker: a socket, its opening, and answers in the order of the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.authentication import Authentication, Exchange, Request
from kafkacodec.client.core.foreign import foreign_protocol
from kafkacodec.client.core.opening import OPENING_FRAME_BYTES, SILENCE_MS, Opening, renewal_time
from kafkacodec.errors import ConnectionFailed, DecodeError, KafkaCodecError, LimitExceeded, RemoteProtocolError
from kafkacodec.net.frames import Frame, FrameBuffers, FrameReader
from kafkacodec.net.receiving import RestReceiver
from kafkacodec.net.tls import tls_error
from kafkacodec.net.writing import PieceWriter, plain_socket
from kafkacodec.protocol.connection import ResponseReceived

if TYPE_CHECKING:
    from kafkacodec.client.core.calls import Versions
    from kafkacodec.messages import Message

__all__ = ["Link"]


class Link(asyncio.BufferedProtocol):
    """A connection. The loop passes it the received bytes; it reports answers and its end to its owner.

    Args:
        name: the broker's name for errors.
        opening: the exchange before the first request.
        reader: splits the bytes into frames.
        clock: the time in ms.
        opened: called when requests may be sent, initially and after each renewal.
        answered: called with each response and its frame.
        ended: called once, with the reason; no answers follow.
        expiring: called when it is time to call `renew`, before the session expires.
        drained: called when the output buffer is empty again after it was full.

    Attributes:
        ready: whether requests may be sent.
        draining: whether the output buffer is full; sending more would only use memory.
    """

    def __init__(
        self,
        name: str,
        opening: Opening,
        buffers: FrameBuffers,
        max_frame_size: int,
        *,
        clock: Callable[[], float],
        opened: Callable[[], None],
        answered: Callable[[ResponseReceived, Frame], None],
        ended: Callable[[Exception], None],
        expiring: Callable[[], None],
        drained: Callable[[], None],
    ) -> None:
        self.name = name
        self.opening = opening
        self.ready = self.draining = False
        self._drained = drained
        self._expiring = expiring
        self._timer: asyncio.TimerHandle | None = None  # of the opening, the session or its renewal
        self._used = False  # whether a request was answered
        self._renewal: Authentication | None = None
        self._renewal_id = -1  # the correlation id of the renewal's request
        self._max_frame_size = max_frame_size
        self._reader = FrameReader(buffers, min(OPENING_FRAME_BYTES, max_frame_size))
        self._clock, self._opened, self._answered, self._ended = clock, opened, answered, ended
        self._transport: Any = None
        self._writer: Any = None  # comes with the transport
        self._rest: Any = None  # as well
        self._over = False

    @property
    def versions(self) -> Versions:
        """The common API versions."""
        return self.opening.versions

    @property
    def in_flight(self) -> int:
        """The number of unanswered requests."""
        return self.opening.connection.pending

    @property
    def is_free(self) -> bool:
        """Whether requests may be sent, and nothing is being sent or received."""
        unsent = self.draining or self._transport.get_write_buffer_size()
        return self.ready and not unsent and not self.in_flight and self._reader.is_empty

    def fileno(self) -> int | None:
        """The file descriptor of the socket; None with TLS."""
        found = plain_socket(self._transport)
        return None if found is None else found.fileno()

    def adopt(self, number: int, message: Message, version: int, rest: bytes | None) -> None:
        """Expect the answer to a request that was written past the loop, but for `rest`."""
        self.opening.connection.adopt(number, message, version)
        if rest is not None:
            self._writer.write([rest])

    def send(self, message: Message, version: int) -> tuple[int, int, bool]:
        """Write a request; return its correlation id, its size, and whether it will be answered.

        A Produce request with acks=0 will not.

        Raises:
            EncodeError, UnsupportedVersion: nothing is written.
        """
        connection = self.opening.connection
        correlation_id, pieces = connection.send_request_pieces(message, version)
        size = len(pieces[0])
        if len(pieces) == 1 and not self.draining:
            self._transport.write(pieces[0])
        else:
            size = sum(map(len, pieces))
            self._writer.write(pieces)
        return correlation_id, size, connection.expects(correlation_id)

    def renew(self, exchange: Exchange, limit_ms: float) -> None:
        """Authenticate again, within a limit that starts once earlier requests are answered. Others wait."""
        if self._over:
            return
        self.ready = False
        self._limit_renewal(limit_ms)
        self._renewal = renewal = Authentication(exchange, self.versions)
        self._step(lambda: self._ask(renewal.start()))

    def _limit_renewal(self, limit_ms: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(limit_ms / 1000, self._renewal_late, limit_ms)

    def _renewal_late(self, limit_ms: float) -> None:
        if self.in_flight > 1:  # brokers answer in order, and joining a group may take minutes
            self._limit_renewal(limit_ms)
        else:
            self.close(ConnectionFailed(f"{self.name}: not authenticated again within {limit_ms} ms"))

    def close(self, reason: Exception) -> None:
        """Close the connection at once."""
        if self._over:
            return
        self._over = True
        self.ready = False
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._reader.drop()
        if self._writer is not None:
            self._writer.drop()
        self._ended(reason)

    # Called by the loop

    def connection_made(self, transport: Any) -> None:
        """The socket is connected, and TLS if it is used."""
        self._transport = transport
        self._writer, self._rest = PieceWriter(transport), RestReceiver(transport)
        if self._over:
            transport.abort()
            return
        transport.set_write_buffer_limits(high=1, low=0)
        self._step(self._start)

    def pause_writing(self) -> None:
        """The output buffer is full."""
        self.draining = self._writer.paused = True

    def resume_writing(self) -> None:
        """The output buffer has room again."""
        if self._writer.resumed():
            self.draining = False
            self._drained()

    def get_buffer(self, sizehint: int) -> memoryview:
        """The memory for the next bytes."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes received into that memory."""
        try:
            self._take(nbytes)
            if self._reader.missing:
                self._take(self._received_soon())
        except KafkaCodecError as error:
            self._end(error)

    def _received_soon(self) -> int:
        """The number of bytes that follow soon, in the reader's memory."""
        try:
            count: int = self._rest.receive(self._reader.buffer())
        except OSError as error:
            self.connection_lost(error)
            return 0
        return count

    def eof_received(self) -> bool:
        """The broker has closed its side."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self.close(self._named(tls_error(exc) or self._lost(exc)))

    def _lost(self, exc: Exception | None) -> ConnectionFailed:
        if not self.opening.ready:
            return self.opening.lost()
        if not self._used and self.in_flight and (exc is None or isinstance(exc, ConnectionResetError)):
            hint = "" if self.opening.has_logged_in else ": its listener may need SASL (security_protocol)"
            text = f"the broker closed the connection at the first request{hint}"
            return ConnectionFailed(text, closed_unanswered=True)
        if exc is not None:
            return ConnectionFailed(f"the connection ended: {exc}")
        return ConnectionFailed("the broker closed the connection")

    def _step(self, step: Callable[[], None]) -> None:
        """Run a step; an error of the broker ends the connection."""
        try:
            step()
        except KafkaCodecError as error:
            self._end(error)

    def _end(self, error: KafkaCodecError) -> None:
        """Close the connection for an error of the broker."""
        if isinstance(error, DecodeError):
            reason = foreign_protocol(self._reader.head())
            if reason is None and isinstance(error, LimitExceeded):
                reason = f"{error.reason}, which is receive_message_max_bytes"
            self.close(RemoteProtocolError(f"{self.name}: {reason or error}"))
        else:
            self.close(self._named(error))

    def _named(self, error: KafkaCodecError) -> KafkaCodecError:
        """The error with the broker's name before its text."""
        if isinstance(error, (ConnectionFailed, RemoteProtocolError)):
            error.args = (f"{self.name}: {error}",)
        return error

    def _start(self) -> None:
        self._write(self.opening.start(self._clock()))
        self._check_ready()
        self._await_frame()

    def _await_frame(self) -> None:
        """Notify the opening if the broker stays silent."""
        if not self.ready and not self._over:
            self._timer = asyncio.get_running_loop().call_later(SILENCE_MS / 1000, self._silent)

    def _silent(self) -> None:
        self._step(lambda: self._write(self.opening.silent()))
        self._await_frame()

    def _take(self, nbytes: int) -> None:
        for frame in self._reader.received(nbytes):
            if self._over:
                return
            if self.opening.ready:
                for event in self.opening.connection.receive_frame(frame.view):
                    if self._renewal is None and isinstance(event, ResponseReceived):
                        self._used = True
                        self._answered(event, frame)
                    else:
                        self._received(event, frame)
                continue
            self._write(self.opening.receive(frame.view, self._clock()))
            self._check_ready()

    def _received(self, event: Any, frame: Frame) -> None:
        if not isinstance(event, ResponseReceived):
            return
        if self._renewal is not None and event.correlation_id == self._renewal_id:
            self._ask(self._renewal.answered(event.message))
            frame.release()
        else:
            self._used = True
            self._answered(event, frame)

    def _ask(self, request: Request | None) -> None:
        """Send the next request of a renewal; None when it is complete."""
        if request is not None:
            self._renewal_id, data = self.opening.connection.send_request(*request)
            self._write(data)
        elif self._renewal is not None:
            renew_at = renewal_time(self._clock(), self._renewal.session_lifetime_ms)
            self._renewal = None
            self._begin(renew_at)

    def _check_ready(self) -> None:
        if self.opening.ready and not self.ready:
            self._reader.max_frame_size = self._max_frame_size
            self._begin(self.opening.renew_at)

    def _begin(self, renew_at: float | None) -> None:
        """Accept requests until the session must be renewed."""
        self.ready = True
        if self._timer is not None:
            self._timer.cancel()
        if renew_at is not None:
            delay = max(0.0, renew_at - self._clock()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._expiring)
        self._opened()

    def _write(self, data: bytes) -> None:
        if data:
            self._writer.write([data])
