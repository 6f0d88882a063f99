"""How many bytes a socket must have received before it wakes the event loop: more than one while a large frame comes.

Each wake costs more than receiving some 100 KiB.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from typing import Any, Final

__all__ = ["LowWater"]

_LEAST: Final = 256 << 10  # what is still to come: for less, the loop is woken at once
_MOST: Final = 1 << 20  # at a time, so that receiving goes on while the rest is sent
_FIRST_LINUX: Final = 5, 10
"""Linux wakes waiters before that many bytes if the socket has no room for them: since 4.18, and whatever the size of
packets since 5.7. Others do not, and what pretends to be Linux has older numbers."""


def _is_safe() -> bool:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release) if sys.platform == "linux" else None
    return found is not None and (int(found[1]), int(found[2])) >= _FIRST_LINUX


class LowWater:
    """The least number of received bytes that wakes the loop, for the socket of an asyncio transport.

    It stays at one with TLS, whose records have other sizes, and on systems that may not wake the loop at all.

    Args:
        transport: of a connected socket, perhaps with TLS.
    """

    __slots__ = ("_least", "_socket")

    def __init__(self, transport: Any) -> None:
        usable = transport.get_extra_info("ssl_object") is None and _is_safe()
        self._socket = transport.get_extra_info("socket") if usable else None
        self._least = 1

    def expect(self, missing: int) -> None:
        """So many bytes of a frame are still to come; 0 if it is not known how many."""
        least = min(missing, _MOST) if missing >= _LEAST else 1
        if least == self._least or self._socket is None:
            return
        self._least = least
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
        except (OSError, TypeError):  # closed, or one of a loop that has no such option
            self._socket = None
