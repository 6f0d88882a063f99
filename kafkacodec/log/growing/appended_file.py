"""A file that is appended to and read at the same time."""

from __future__ import annotations

from contextlib import suppress

from kafkacodec.log.files._mapping import Mapping
from kafkacodec.log.growing.disk import Disk, OpenFile

__all__ = ["AppendedFile"]

_LEAST_MAPPED = 1 << 20


class AppendedFile:
    """A file of a partition's directory.

    Args:
        path: its name.
        disk: changes the files.

    Attributes:
        path (str): its name.
        size (int): its bytes.
    """

    def __init__(self, path: str, disk: Disk) -> None:
        self.path, self._disk = path, disk
        self.size = 0
        self._file: OpenFile | None = None
        self._mapping: Mapping | None = None
        self._untidy = False

    @property
    def file(self) -> OpenFile:
        """Return the open file. Another thread may close it in this object, but not for the caller."""
        file = self._file
        if file is None:
            file = self._file = self._disk.open(self.path)
            self._disk.keep(self)
        return file

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write bytes at the end; returns their position. Raises OSError: the file is as before."""
        position = self.size
        if self._untidy:
            self._tidy()
        try:
            self._disk.write(self.file, data, position)
        except BaseException:
            self._untidy = True
            with suppress(OSError):  # tried again before the next ones
                self._tidy()
            raise
        self.size = position + len(data)
        return position

    def mapped(self) -> Mapping:
        """Return the mapped file, with at least its current bytes."""
        mapping = self._mapping
        if mapping is None or len(mapping) < self.size:
            # More than there is yet, so that it need not be mapped for each append.
            size = _LEAST_MAPPED
            while size < self.size:
                size *= 2
            file = self.file
            mapping = self._mapping = Mapping(file.fileno(), size)
        return mapping

    def cut(self, position: int) -> None:
        """Remove the bytes from a position on. Raises OSError: nothing has changed."""
        if position < self.size:
            self._disk.truncate(self.file, position)
            self.size = position
            self._mapping = None

    def release(self) -> None:
        """Release the file and its memory; the next use opens it again."""
        self._file = self._mapping = None

    def _tidy(self) -> None:
        """Remove the rest of a failed write."""
        self._disk.truncate(self.file, self.size)
        self._untidy = False
