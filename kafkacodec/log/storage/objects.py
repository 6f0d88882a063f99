"""Objects of an object store as files: read in ranges, into a buffer that has memory only for what was read."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from kafkacodec.datatypes import dataclass
from kafkacodec.errors import LimitExceeded
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.storage import hdfs, stores
from kafkacodec.log.storage.access import S3Access
from kafkacodec.log.storage.calls import Callers
from kafkacodec.log.storage.fetched import FetchedFile
from kafkacodec.log.storage.forks import check_process
from kafkacodec.log.storage.paths import full_path

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "SCHEMES",
    "ObjectEntry",
    "ObjectFile",
    "check_url",
    "files_below",
    "identity_of",
    "list_objects",
    "read_object",
    "remove_objects",
    "upload",
]

FIRST_WINDOW = 64 << 10
"""How many bytes are asked for if it is not known how many are needed."""

PART_BYTES = 16 << 20
"""The largest request in bytes; larger ranges are asked for in parallel."""

_REQUESTS = 4  # at a time
_TRIES = 3  # to read a small object that others replace


class OpenObject(Protocol):
    """An object that was opened: all its bytes are of the time when that happened."""

    identity: FileIdentity

    def fetch(self, start: int, end: int) -> Buffer:
        """The bytes in [start, end). Raises as `ObjectFile`."""


@dataclass(frozen=True)
class ObjectEntry:
    """An entry of a listing, as `storage.Entry`."""

    name: str
    path: str
    directory: bool

    def is_dir(self) -> bool:
        """Whether there are objects below it."""
        return self.directory

    def is_file(self) -> bool:
        """Whether it is an object."""
        return not self.directory


class Store(Protocol):
    """The interface of a store's module."""

    def open_object(self, url: str) -> OpenObject:
        """Open an object. Raises as `storage.open_file`."""

    def identity_of(self, url: str) -> FileIdentity:
        """The identity of an object. Raises as `storage.open_file`."""

    def names_below(self, url: str) -> list[tuple[str, bool]]:
        """The names directly below a URL, each with whether it is a directory. Raises as `storage.entries`."""

    def files_below(self, url: str, access: S3Access) -> Iterator[str]:
        """The paths of all objects below a URL, relative to it; none if there is no such directory. Raises OSError."""

    def upload(self, path: str, url: str, access: S3Access) -> None:
        """Write an object, which appears when it is complete. Raises OSError."""

    def remove(self, url: str, access: S3Access) -> None:
        """Remove an object. Raises OSError."""


_STORES: dict[str, Store] = {**dict.fromkeys(stores.SCHEMES, stores), **dict.fromkeys(hdfs.SCHEMES, hdfs)}

SCHEMES = tuple(_STORES)


def _store_of(url: str) -> Store:
    scheme = url.partition("://")[0]
    if scheme not in _STORES:
        raise ValueError(f"{url}: unknown scheme {scheme!r}; use one of {', '.join(SCHEMES)}")
    return _STORES[scheme]


def check_url(url: str) -> None:
    """Raise ValueError if a URL has an unknown scheme or no bucket."""
    if _store_of(url) is stores:
        stores.parts_of(url)


def identity_of(url: str) -> FileIdentity:
    """The identity of an object. Raises as `storage.open_file`."""
    return _store_of(url).identity_of(url)


def list_objects(url: str) -> list[ObjectEntry]:
    """The objects and directories directly below a URL. Raises as `storage.entries`."""
    base = full_path(url)
    return [ObjectEntry(name, os.path.join(base, name), below) for name, below in _store_of(url).names_below(url)]


def files_below(url: str, access: S3Access) -> Iterator[str]:
    """The paths of all objects below a URL, relative to it; none if there is no such directory. Raises OSError."""
    return _store_of(url).files_below(url.rstrip("/"), access)


def upload(path: str, url: str, access: S3Access) -> None:
    """Make an object of a file of this machine; it appears when it is complete.

    Raises:
        OSError: as `storage.open_file`; the object does not appear then.
    """
    _store_of(url).upload(path, url, access)


def remove_objects(urls: Iterable[str], access: S3Access) -> None:
    """Remove objects. Raises OSError."""
    for url in urls:
        _store_of(url).remove(url, access)


def read_object(url: str, limit: int) -> bytes:
    """The bytes of a small object, of the new one if it is replaced meanwhile. Raises as `storage.read_file`."""
    for _ in range(_TRIES):
        try:
            return _read_object(url, limit)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
    return _read_object(url, limit)


def _read_object(url: str, limit: int) -> bytes:
    with ObjectFile(url) as file:
        if file.size > limit:
            raise LimitExceeded(f"the object has {file.size} bytes, the limit is {limit}", position=limit, path=url)
        return file.read(0, file.size)


@cache
def _callers() -> Callers:
    return Callers(_REQUESTS)


class ObjectFile(FetchedFile):
    """An object that is open for reading, with the attributes and methods of `storage.StoredFile`.

    Ranges that were read stay in memory until `drop_before`. All bytes are those that the object had when it was
    opened.

    Raises:
        OSError: missing, no access, replaced since it was opened (ESTALE), or the store did not answer; `filename` has
            the URL.
    """

    def __init__(self, path: str) -> None:
        self._object = _store_of(path).open_object(path)
        super().__init__(path, self._object.identity)
        self._parts: list[tuple[int, int, Future[None]]] = []  # by position, without overlaps

    @property
    def window(self) -> int | None:
        """How many bytes to ask for at first."""
        return FIRST_WINDOW

    def close(self) -> None:
        """Stop requests that have not begun and release the memory with its last user."""
        for _, _, part in self._parts:
            part.cancel()
        self._parts = []
        super().close()

    def view(self, start: int = 0, end: int | None = None) -> mmap.mmap | bytes:
        """A buffer of `size` bytes of which those in [start, end) are the object's."""
        check_process()
        stop = self.size if end is None else min(end, self.size)
        self.ahead(start, stop)
        for part in [part for begin, finish, part in self._parts if begin < stop and finish > start]:
            try:
                part.result()
            finally:
                del part  # its error refers to this frame
        return self._memory

    def ahead(self, start: int, end: int) -> None:
        """Start requests for ranges that were not requested yet."""
        position, stop, missing = max(start, 0), min(end, self.size), []
        for begin, finish, _ in self._parts:
            if finish > position and begin < stop:
                missing.append((position, begin))
                position = finish
        missing.append((position, stop))
        for first, last in missing:
            for begin in range(first, last, PART_BYTES):
                finish = min(begin + PART_BYTES, last)
                part = _callers().ask(partial(self._fetch, self._memory, begin, finish))
                self._parts.append((begin, finish, part))
        self._parts.sort(key=lambda part: part[:2])

    def _fetch(self, memory: Any, start: int, end: int) -> None:
        data = memoryview(self._object.fetch(start, end))
        if len(data) != end - start:
            raise OSError(errno.EIO, f"the object store sent {len(data)} bytes instead of {end - start}", self.path)
        memory[start:end] = data

    def drop_before(self, position: int) -> None:
        """Release the memory of the ranges that end before `position`, in whole pages."""
        kept = [part for part in self._parts if part[1] > position or not part[2].done()]
        gone = min((part[0] for part in kept), default=position) // mmap.PAGESIZE * mmap.PAGESIZE
        if gone > 0 and isinstance(self._memory, mmap.mmap) and len(kept) < len(self._parts):
            # A part that ends in a page that stays is still there, but is asked for again.
            self._memory.madvise(mmap.MADV_DONTNEED, 0, gone)
            self._parts = kept

    def check_size(self) -> None:
        """Nothing to check: every answer has the bytes that were there when it was opened."""

    def has_grown(self) -> bool:
        """Whether the object was replaced by a larger one."""
        return identity_of(self.path).size > self.size
