"""A connection to a broker in this process, on which requests are sent by hand."""

from __future__ import annotations

import socket
from contextlib import contextmanager

from kafkacodec import messages, protocol


class Wire:
    """A connection that asks and waits for the answer."""

    def __init__(self, broker):
        host, _, port = broker.bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.kept, self.sent = b"", 0

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

    def frame(self):
        while not protocol.split_frames(self.kept)[0]:
            more = self.socket.recv(1 << 20)
            if not more:
                return None
            self.kept += more
        frame = bytes(protocol.split_frames(self.kept)[0][0])
        self.kept = self.kept[len(frame) :]
        return frame

    def is_silent(self):
        """Whether nothing comes in a moment; a fault would be found often, never where there is none."""
        self.socket.settimeout(0.05)
        try:
            return not self.socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(30)


@contextmanager
def wire_to(broker):
    wire = Wire(broker)
    try:
        yield wire
    finally:
        wire.socket.close()
