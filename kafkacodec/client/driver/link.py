"""One connection to a broker: a socket, its opening, and the answers that come in the order of the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.opening import Opening
from kafkacodec.client.driver.frames import Frame, FrameBuffers, FrameReader
from kafkacodec.errors import ConnectionFailed, DecodeError, KafkaCodecError, RemoteProtocolError
from kafkacodec.protocol.connection import ResponseReceived

if TYPE_CHECKING:
    from kafkacodec.client.core.calls import Versions
    from kafkacodec.messages import Message

__all__ = ["Link"]


class Link(asyncio.BufferedProtocol):
    """A connection. The loop calls it with what the socket receives; its owner gets answers and the end.

    Args:
        name: the broker, for errors.
        opening: what is said before the first request.
        reader: splits the bytes into frames.
        clock: the time in ms.
        opened: called when requests may be sent.
        answered: called with each response and its frame.
        ended: called once, with the reason; no request gets an answer after it.
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
    ) -> None:
        self.name = name
        self.opening = opening
        self.ready = False
        self._reader = FrameReader(buffers, max_frame_size)
        self._clock, self._opened, self._answered, self._ended = clock, opened, answered, ended
        self._transport: Any = None
        self._over = False

    @property
    def versions(self) -> Versions:
        """The versions that both sides have."""
        return self.opening.versions

    @property
    def in_flight(self) -> int:
        """The number of requests that wait for their answers."""
        return self.opening.connection.pending

    def send(self, message: Message, version: int) -> tuple[int, int]:
        """Write a request; returns its correlation id and size. Raises EncodeError, UnsupportedVersion."""
        correlation_id, data = self.opening.connection.send_request(message, version)
        self._transport.write(data)
        return correlation_id, len(data)

    def expects(self, correlation_id: int) -> bool:
        """Whether a request gets an answer: a Produce request with acks=0 gets none."""
        return self.opening.connection.expects(correlation_id)

    def close(self, reason: Exception) -> None:
        """End the connection at once."""
        if self._over:
            return
        self._over = True
        self.ready = False
        if self._transport is not None:
            self._transport.abort()
        self._ended(reason)

    # Called by the loop

    def connection_made(self, transport: Any) -> None:
        """The socket, and TLS where it is used, are connected."""
        self._transport = transport
        if self._over:
            transport.abort()
            return
        self._step(lambda: self._write(self.opening.start(self._clock())))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the loop puts the next bytes."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """The loop has put bytes there."""
        self._step(lambda: self._take(nbytes))

    def eof_received(self) -> bool:
        """The broker has closed its side."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        if self.ready:
            reason = f"the connection ended: {exc}" if exc else "the broker closed the connection"
            self.close(ConnectionFailed(f"{self.name}: {reason}"))
        else:
            self.close(self.opening.lost())

    def _step(self, step: Callable[[], None]) -> None:
        """Do a step; a fault of the broker ends the connection."""
        try:
            step()
        except DecodeError as error:
            self.close(RemoteProtocolError(f"{self.name}: {error}"))
        except RemoteProtocolError as error:
            self.close(RemoteProtocolError(f"{self.name}: {error}"))
        except KafkaCodecError as error:
            self.close(error)

    def _take(self, nbytes: int) -> None:
        for frame in self._reader.received(nbytes):
            if self._over:
                return
            if self.opening.ready:
                for event in self.opening.connection.receive_frame(frame.view):
                    if isinstance(event, ResponseReceived):
                        self._answered(event, frame)
                continue
            self._write(self.opening.receive(frame.view, self._clock()))
            self._check_ready()

    def _check_ready(self) -> None:
        if self.opening.ready and not self.ready:
            self.ready = True
            self._opened()

    def _write(self, data: bytes) -> None:
        if data:
            self._transport.write(data)
