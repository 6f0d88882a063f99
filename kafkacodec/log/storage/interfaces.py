"""Interfaces of open files and directory entries, wherever they are stored."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from kafkacodec.log.files.access import FileIdentity

if TYPE_CHECKING:
    from typing_extensions import Buffer

    class SliceableBuffer(Buffer, Protocol):
        """A buffer whose slices are bytes."""

        def __getitem__(self, part: slice, /) -> bytes: ...


__all__ = ["Entry", "StoredFile"]


class StoredFile(Protocol):
    """An open file, read-only: `MappedFile` for one of this machine, `objects.ObjectFile` for an object.

    Attributes:
        path (str): its path or URL.
        size (int): the number of bytes when it was opened.
        identity (FileIdentity): that of the open file; an object's has a number made from its ETag.
        settled (bool): whether any later change shows in the identity.
        shortened (bool): whether `check_size` found that it was shortened.
        window (int | None): how many bytes to ask for at first if it is not known how many are needed; None: asking
            for all of them costs nothing.
    """

    path: str
    size: int
    identity: FileIdentity
    settled: bool
    shortened: bool

    @property
    def window(self) -> int | None:
        """See above."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def close(self) -> None:
        """Close it without checking its size."""

    def view(self, start: int = 0, end: int | None = None) -> SliceableBuffer:
        """A buffer of `size` bytes of which those in [start, end) are the file's; others may be zeros.

        Raises:
            OSError: they cannot be read; `filename` names the file.
        """

    def read(self, position: int, size: int) -> bytes:
        """A copy of `size` bytes, fewer at the end of the file. Raises as `view`."""

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill a buffer with the bytes from `position` on; returns their number. Raises as `view`."""

    def ahead(self, start: int, end: int) -> None:
        """Start to fetch bytes that will be needed soon."""

    def drop_before(self, position: int) -> None:
        """Release the memory of the bytes before `position`; they can be read again."""

    def check_size(self) -> None:
        """Raise if bytes that the file had when it was opened are gone."""

    def has_grown(self) -> bool:
        """Whether the file has more bytes than when it was opened."""


class Entry(Protocol):
    """An entry of a directory, as `os.DirEntry`."""

    @property
    def name(self) -> str:
        """The name in the directory."""

    @property
    def path(self) -> str:
        """The path or URL."""

    def is_dir(self) -> bool:
        """Whether it is a directory: for objects, a common prefix."""

    def is_file(self) -> bool:
        """Whether it is a regular file or an object."""
