"""Fewer wake-ups for large frames: the system tells of received bytes when there are many, and not of each segment."""

from __future__ import annotations

import socket
import sys
from typing import Any, Final

__all__ = ["Readiness"]

_MOST_BYTES: Final = 1 << 19  # more would only make the system keep more
_LEAST_BYTES: Final = 1 << 16  # fewer are soon there


class Readiness:
    """How many bytes a socket must have received before its event loop is told.

    With TLS, and elsewhere than on Linux, it is always one.

    Args:
        transport: of the socket.

    Attributes:
        least: the number.
    """

    def __init__(self, transport: Any) -> None:
        self.least = 1
        plain = sys.platform == "linux" and transport.get_extra_info("ssl_object") is None
        self._socket = transport.get_extra_info("socket") if plain else None

    def missing(self, size: int) -> None:
        """Note how many bytes are certain to come next; 0 if that is not known. The end is told whatever is missing."""
        least = min(size, _MOST_BYTES) if size >= _LEAST_BYTES else 1
        if least != self.least and self._socket is not None:
            try:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
            except OSError:  # it is closed
                return
            self.least = least
