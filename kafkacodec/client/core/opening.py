"""What is said on a new connection before the first request: the versions of the broker."""

from __future__ import annotations

from typing import Any

from kafkacodec.client.core.calls import Versions
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import ConnectionFailed, UnsupportedVersion
from kafkacodec.protocol.connection import Connection, VersionsAgreed
from kafkacodec.protocol.versions import supported_ranges

__all__ = ["Opening"]


class Opening:
    """The opening of one connection, without I/O: frames and a clock go in, bytes come out.

    Attributes:
        connection: for the requests after the opening.
        ready: whether the opening is done.
        versions: those that both sides have, when it is.
    """

    def __init__(self, settings: ClientSettings, name: str) -> None:
        self.name = name
        self.ready = False
        self.versions: Versions = {}
        # The driver limits what is in flight.
        self.connection = Connection(
            "client", client_id=settings.client_id, max_frame_size=settings.receive_message_max_bytes
        )

    def start(self, now: float) -> bytes:
        """The first bytes to send."""
        return self.connection.negotiate()[1]

    def receive(self, frame: Any, now: float) -> bytes:
        """Take a frame; returns bytes to send. Raises RemoteProtocolError, UnsupportedVersion."""
        for event in self.connection.receive_frame(frame):
            if isinstance(event, VersionsAgreed):
                self.versions = _common(event.ranges)
                if not self.versions:
                    raise UnsupportedVersion(f"{self.name} has no API in common with this client")
                self.ready = True
                return b""
        return self.connection.negotiate()[1]

    def lost(self) -> Exception:
        """The error for a connection that ends before it is ready."""
        return ConnectionFailed(f"{self.name}: the broker closed the connection before it was ready")


def _common(theirs: Versions) -> Versions:
    found = {}
    for key, ours in supported_ranges().items():
        if key in theirs:
            common = range(max(ours.start, theirs[key].start), min(ours.stop, theirs[key].stop))
            if common:
                found[key] = common
    return found
