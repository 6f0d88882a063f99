"""Receiving frames without copies: small ones through one buffer, large ones straight into their own memory.

The memory of large frames is reused after `Frame.release`, which saves the page faults of fresh memory.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from kafkacodec._core._buffer import fresh
from kafkacodec.protocol.frames import SIZE_BYTES, frame_size

__all__ = ["Frame", "FrameBuffers", "FrameReader"]

_SCRATCH_BYTES: Final = 1 << 16
_ROUND_BYTES: Final = 1 << 16
_KEPT_BUFFERS: Final = 8
_size_at: Final = Struct(">i").unpack_from


class Frame:
    """A complete frame with its size field, as a view of the memory that it was received in."""

    __slots__ = ("_buffers", "_memory", "view")

    def __init__(self, view: memoryview, memory: memoryview | None = None, buffers: FrameBuffers | None = None) -> None:
        self.view = view
        self._memory, self._buffers = memory, buffers

    @property
    def nbytes(self) -> int:
        """The size in bytes of the memory that the frame keeps."""
        return len(self.view) if self._memory is None else len(self._memory)

    def release(self) -> None:
        """Return the memory for later frames. Views decoded from it must no longer be used."""
        memory, buffers, self._memory, self._buffers = self._memory, self._buffers, None, None
        if memory is not None and buffers is not None:
            self.view = memoryview(b"")
            buffers.give(memory)


class FrameBuffers:
    """Memory for large frames: released memory, up to `kept_bytes`, is reused if it fits.

    Args:
        kept_bytes: see above.
        most_begun: the bytes of frames that are being received, beyond which no other begins; None for any number.

    Attributes:
        begun: the bytes of memory of frames that are being received.
    """

    def __init__(self, kept_bytes: int = 64 << 20, most_begun: int | None = None) -> None:
        self._kept_bytes, self._most_begun = kept_bytes, most_begun
        self._free: list[memoryview] = []
        self.begun = 0

    @property
    def is_full(self) -> bool:
        """Whether no other frame may begin."""
        return self._most_begun is not None and self.begun >= self._most_begun

    def take(self, size: int) -> memoryview:
        """Return memory of at least `size` bytes, and at most twice that."""
        fitting = [m for m in self._free if size <= len(m) <= 2 * size + _ROUND_BYTES]
        if fitting:
            best = min(fitting, key=len)
            self._free = [m for m in self._free if m is not best]
            return best
        rounded = -(-size // _ROUND_BYTES) * _ROUND_BYTES
        return fresh(rounded)

    def give(self, memory: memoryview) -> None:
        """Keep memory for reuse, instead of the oldest kept memory."""
        if len(memory) > self._kept_bytes:
            return
        self._free.append(memory)
        while len(self._free) > _KEPT_BUFFERS or sum(map(len, self._free)) > self._kept_bytes:
            del self._free[0]


class FrameReader:
    """Splits what a socket receives into frames.

    Receive into `buffer`, then call `received`. No more than one incomplete frame is kept.

    Args:
        buffers: memory for large frames; several readers may share it.
        max_frame_size: the largest frame accepted, in bytes, without its size field. It may be changed.

    Attributes:
        before (list[Frame]): the complete frames before one whose size was refused.
        waits (bool): a large frame waits for memory: receive nothing, and call ``received(0)`` later.
    """

    def __init__(self, buffers: FrameBuffers, max_frame_size: int) -> None:
        self.max_frame_size = max_frame_size
        self._buffers = buffers
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._kept = 0  # bytes at the start of the scratch buffer
        self._at = 0  # the start of a frame whose size was refused
        self._large: memoryview | None = None
        self._size = self._have = 0  # of the large frame
        self.before: list[Frame] = []
        self.waits = False

    def buffer(self) -> memoryview:
        """The memory for the next received bytes."""
        if self._large is not None:
            return self._large[self._have : self._size]
        return self._scratch[self._kept :]

    @property
    def missing(self) -> int:
        """The bytes of a large frame that are still to come; 0 without one."""
        return 0 if self._large is None else self._size - self._have

    @property
    def is_empty(self) -> bool:
        """Whether no part of a frame was received."""
        return self._large is None and not self._kept

    def received(self, count: int) -> list[Frame]:
        """Take `count` bytes in `buffer`; returns the frames that are now complete.

        Raises:
            DecodeError, LimitExceeded: a frame size is negative or over the limit; nothing is allocated for it.
        """
        if self._large is None:
            return self._split(self._kept + count)
        self._have += count
        if self._have < self._size:
            return []
        memory, self._large = self._large, None
        self._buffers.begun -= len(memory)
        return [Frame(memory[: self._size], memory, self._buffers)]

    def drop(self) -> None:
        """Free the memory of an incomplete frame that will not be completed."""
        if self._large is not None:
            self._buffers.begun -= len(self._large)
        self._large = None
        self._kept = 0

    def head(self) -> bytes:
        """The first bytes of the frame whose size was refused."""
        return bytes(self._scratch[self._at : self._at + SIZE_BYTES])

    def _split(self, end: int) -> list[Frame]:
        frames: list[Frame] = []
        at, scratch, most = 0, self._scratch, self.max_frame_size
        self.waits = False
        while end - at >= SIZE_BYTES:
            size = _size_at(scratch, at)[0]
            if not 0 <= size <= most:
                self._at, self.before = at, frames
                frame_size(scratch, at, max_size=most)  # raises
            after = at + SIZE_BYTES + size
            if after > end:
                size += SIZE_BYTES
                self.waits = size > _SCRATCH_BYTES and self._buffers.is_full
                if size > _SCRATCH_BYTES and not self.waits:
                    self._begin_large(scratch[at:end], size)
                    at = end
                break
            frames.append(Frame(memoryview(bytearray(scratch[at:after]))))
            at = after
        self._kept = end - at
        if at and self._kept:
            scratch[: self._kept] = bytes(scratch[at:end])
        return frames

    def _begin_large(self, start: memoryview, size: int) -> None:
        self._large = self._buffers.take(size)
        self._buffers.begun += len(self._large)
        self._large[: len(start)] = start
        self._size, self._have = size, len(start)
