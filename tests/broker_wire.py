"""Connections to a broker, on which requests are sent by hand."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager, suppress

from kafkacodec import messages, protocol


class Connection:
    """A connection on which bytes are written and frames are received.

    Args:
        server: host and port.
        seconds: how long a frame may take.
    """

    def __init__(self, server: str, seconds: float = 30) -> None:
        host, _, port = server.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.seconds, self.kept = seconds, b""

    def write(self, data: bytes) -> None:
        """Send bytes; that the other side has closed is seen by `frame`."""
        with suppress(ConnectionError):
            self.socket.sendall(data)

    def frame(self, seconds: float | None = None) -> bytes | None:
        """The next frame with its size; None if the connection ends. Raises TimeoutError."""
        end = time.monotonic() + (self.seconds if seconds is None else seconds)
        while not (frames := protocol.split_frames(self.kept)[0]):
            self.socket.settimeout(max(0.001, end - time.monotonic()))
            try:
                more = self.socket.recv(1 << 20)
            except ConnectionError:
                more = b""
            if not more:
                return None
            self.kept += more
        frame = bytes(frames[0])
        self.kept = self.kept[len(frame) :]
        return frame

    def is_silent(self) -> bool:
        """Whether nothing comes in a moment; a fault would be found often, never where there is none."""
        try:
            return self.frame(0.05) is None
        except TimeoutError:
            return True

    def close(self) -> None:
        """End it."""
        self.socket.close()


class Wire(Connection):
    """A connection to a broker in this process, that asks and waits for the answer."""

    def __init__(self, broker):
        super().__init__(broker.bootstrap_servers)
        self.sent = 0

    def send(self, api, version, **fields):
        request = getattr(messages, f"{api}Request").from_dict(fields)
        self.sent += 1
        self.socket.sendall(protocol.encode_request(request, version, self.sent, "me"))
        return request.api_key, version

    def receive(self, sent):
        """The answer to what was sent; None if the connection ends."""
        frame = self.frame()
        return None if frame is None else protocol.decode_response(frame, *sent)[1]

    def ask(self, api, version, **fields):
        return self.receive(self.send(api, version, **fields))


@contextmanager
def wire_to(broker):
    wire = Wire(broker)
    try:
        yield wire
    finally:
        wire.close()
