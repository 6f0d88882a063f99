"""Receiving the rest of large messages past the event loop, which would be woken for each piece of them."""

from __future__ import annotations

import asyncio
from typing import Any

from kafkacodec.net._receiving import receive_soon
from kafkacodec.net.loop import is_private
from kafkacodec.net.writing import plain_socket

__all__ = ["RestReceiver"]


class RestReceiver:
    """Receives more for a protocol that has just received something through its transport.

    Each wake of a loop costs as much as receiving some 100 KiB. Only loops of `LoopThread` may wait here, for some
    2 ms: others have more to do.

    Args:
        transport: of a connected socket, perhaps with TLS, on the running loop.
    """

    __slots__ = ("_socket",)

    def __init__(self, transport: Any) -> None:
        self._socket = plain_socket(transport) if is_private(asyncio.get_running_loop()) else None

    def receive(self, room: memoryview) -> int:
        """Receive what comes soon; returns how many bytes of the room were filled. The transport finds an end itself.

        Raises:
            OSError: the connection is broken.
        """
        return 0 if self._socket is None else receive_soon(self._socket.fileno(), room)
