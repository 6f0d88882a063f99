"""Files whose bytes are fetched on demand, into a buffer that has memory only for the fetched ones."""

from __future__ import annotations

import errno
import mmap
import time
from types import TracebackType
from typing import Self

from kafkacodec.log.files.access import FileIdentity

__all__ = ["FetchedFile"]


class FetchedFile:
    """The common part of such files; a subclass adds `view`, which fetches.

    Args:
        path: the file.
        identity: that of the open file, with its size.

    Raises:
        OSError: the file is larger than the address space.
    """

    def __init__(self, path: str, identity: FileIdentity) -> None:
        self.path = path
        self.identity = identity
        self.size = identity.size
        self.settled = identity.is_settled(time.time_ns())
        self.shortened = False
        self._memory: mmap.mmap | bytes = b""
        if self.size:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
            try:
                self._memory = mmap.mmap(-1, self.size, flags=flags)
            except (OSError, OverflowError):
                raise OSError(errno.ENOMEM, f"no address space for {self.size} bytes", path) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the memory with its last user."""
        self._memory = b""

    def view(self, start: int = 0, end: int | None = None) -> mmap.mmap | bytes:
        """A buffer of `size` bytes of which those in [start, end) are the file's."""
        raise NotImplementedError

    def read(self, position: int, size: int) -> bytes:
        """A copy of some bytes."""
        return self.view(position, position + size)[position : position + size]

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill a buffer with the bytes from `position` on; returns their number."""
        end = position + len(buffer)
        data = memoryview(self.view(position, end))[position:end]
        buffer[: len(data)] = data
        return len(data)
