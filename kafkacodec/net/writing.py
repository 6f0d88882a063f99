"""Writing large messages without copying them: straight to the socket, as far as it takes them at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["PieceWriter", "plain_socket"]

_COPIED_BYTES: Final = 1 << 16  # what a transport gets at once, and may copy
_MOST_PIECES: Final = 64  # of one call; every system takes as many


def plain_socket(transport: Any) -> Any:
    """The socket of an asyncio transport, for use past it; None with TLS."""
    return None if transport.get_extra_info("ssl_object") is not None else transport.get_extra_info("socket")


class PieceWriter:
    """Writes pieces in order through an asyncio transport, and past it while it has nothing left to write.

    The transport must pause its protocol when it has something left to write, and resume it when all is written. The
    protocol calls `resumed` then, and `write` only while it is not paused. Pieces must not change until they are
    written.

    Args:
        transport: of a connected socket, perhaps with TLS.

    Attributes:
        paused: whether the transport has paused the protocol; the protocol sets it.
    """

    def __init__(self, transport: Any) -> None:
        self.paused = False
        self._transport = transport
        self._left: deque[memoryview] = deque()
        self._socket = plain_socket(transport)

    def write(self, pieces: Iterable[Buffer]) -> None:
        """Write pieces, now or as soon as the socket takes them."""
        if self._socket is None:
            self._transport.write(b"".join(pieces))
            return
        for piece in pieces:
            self._left.append(memoryview(piece).cast("B"))
        self._push()

    def resumed(self) -> bool:
        """Go on writing, as the transport has written everything; returns whether nothing is left."""
        self.paused = False
        if self._left:
            self._push()
        return not self.paused

    def drop(self) -> None:
        """Forget what is not written, as the connection has ended."""
        self._left.clear()

    def _push(self) -> None:
        """Write what is left, until the transport has to wait for the socket. It then gets a part, since it waits for
        the socket only if it has something to write."""
        past = True
        while self._left and not self.paused:
            if self._transport.is_closing():
                self._left.clear()
            elif past and not self._transport.get_write_buffer_size():
                self._forget(self._written())
                past = False
            else:
                part = self._left[0][:_COPIED_BYTES]
                self._forget(len(part))
                self._transport.write(part)
                past = True

    def _written(self) -> int:
        """Write past the transport; returns how many bytes. It finds out itself if the connection is broken."""
        assert self._socket is not None
        try:
            return os.writev(self._socket.fileno(), [*self._left][:_MOST_PIECES])
        except OSError:
            return 0

    def _forget(self, count: int) -> None:
        """Take so many bytes from what is left."""
        left = self._left
        if len(left) <= _MOST_PIECES and count == sum(map(len, left)):
            left.clear()
            return
        while left and count >= len(left[0]):
            count -= len(left.popleft())
        if left and count:
            left[0] = left[0][count:]
