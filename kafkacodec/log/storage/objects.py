"""Objects of an object store as files: read in ranges, into a buffer that has memory only for what was read."""

from __future__ import annotations

import errno
import hashlib
import mmap
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, Self

from kafkacodec.errors import LimitExceeded
from kafkacodec.log.files import FileIdentity
from kafkacodec.log.storage.stores import REPLACED, check_process, errors_of, place_of

__all__ = ["ObjectEntry", "ObjectFile", "list_objects", "read_object", "state_of"]

FIRST_WINDOW = 64 << 10
"""How many bytes are asked for if it is not known how many are needed."""

PART_BYTES = 16 << 20
"""The largest request in bytes; larger ranges are asked for in parallel."""

_REQUESTS = 4  # at a time


class ObjectState(NamedTuple):
    """What a store tells about an object: its identity, and its ETag, if it has one."""

    identity: FileIdentity
    tag: str | None


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


def state_of(url: str) -> ObjectState:
    """The state of an object. Raises as `storage.open_file`."""
    import obstore

    store, key = place_of(url)
    if not key:
        raise IsADirectoryError(21, "a bucket, not an object", url)
    with errors_of(url):
        found = obstore.head(store, key)
    return _state(found)


def _state(found: Any) -> ObjectState:
    changed: datetime = found["last_modified"]
    changed_ns = int(changed.timestamp()) * 1_000_000_000
    tag: str | None = found["e_tag"]
    number = 0 if tag is None else int.from_bytes(hashlib.blake2b(tag.encode(), digest_size=8).digest(), "big") >> 1
    return ObjectState(FileIdentity(number, found["size"], changed_ns, changed_ns), tag)


def list_objects(url: str) -> list[ObjectEntry]:
    """The objects and common prefixes directly below a URL. Raises as `storage.entries`."""
    import obstore

    store, key = place_of(url)
    with errors_of(url):
        found = obstore.list_with_delimiter(store, f"{key}/" if key else None)
    base = url.rstrip("/")
    names = [(str(prefix).rstrip("/"), True) for prefix in found["common_prefixes"]]
    names += [(entry["path"], False) for entry in found["objects"]]
    listed = [ObjectEntry(name := path.rpartition("/")[2], f"{base}/{name}", below) for path, below in names]
    if not listed:
        raise FileNotFoundError(2, "there are no objects below this URL", url)
    return listed


def read_object(url: str, limit: int) -> bytes:
    """The bytes of a small object. Raises as `storage.read_file`."""
    with ObjectFile(url) as file:
        if file.size > limit:
            raise LimitExceeded(f"the object has {file.size} bytes, the limit is {limit}", position=limit, path=url)
        return file.read(0, file.size)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_REQUESTS, thread_name_prefix="kafkacodec-objects")


class ObjectFile:
    """An object that is open for reading, with the attributes and methods of `storage.StoredFile`.

    Ranges that were read stay in memory until `drop_before`. Each request names the ETag that the object had when it
    was opened, so that all bytes are of the same object.

    Raises:
        OSError: missing, no access, replaced meanwhile (ESTALE), or the store did not answer; `filename` has the URL.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.shortened = False
        self.identity, self._tag = state_of(path)
        self.settled = self.identity.is_settled(time.time_ns())
        self.size = self.identity.size
        self._store, self._key = place_of(path)
        self._memory: mmap.mmap | bytes = b""
        if self.size:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
            self._memory = mmap.mmap(-1, self.size, flags=flags)
        self._parts: list[tuple[int, int, Future[None]]] = []  # by position, without overlaps

    @property
    def window(self) -> int | None:
        """How many bytes to ask for at first."""
        return FIRST_WINDOW

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop requests that have not begun and release the memory with its last user."""
        for _, _, part in self._parts:
            part.cancel()
        self._parts = []
        self._memory = b""

    def view(self, start: int = 0, end: int | None = None) -> mmap.mmap | bytes:
        """A buffer of `size` bytes of which those in [start, end) are the object's."""
        check_process()
        stop = self.size if end is None else min(end, self.size)
        self.ahead(start, stop)
        for begin, finish, part in self._parts:
            if begin < stop and finish > start:
                with errors_of(self.path):
                    part.result()
        return self._memory

    def read(self, position: int, size: int) -> bytes:
        """A copy of some bytes."""
        return self.view(position, position + size)[position : position + size]

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill a buffer with the bytes from `position` on; returns their number."""
        data = self.read(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def ahead(self, start: int, end: int) -> None:
        """Start requests for what was not asked for yet."""
        position, stop, missing = max(start, 0), min(end, self.size), []
        for begin, finish, _ in self._parts:
            if finish > position and begin < stop:
                missing.append((position, begin))
                position = finish
        missing.append((position, stop))
        for first, last in missing:
            for begin in range(first, last, PART_BYTES):
                finish = min(begin + PART_BYTES, last)
                self._parts.append((begin, finish, _pool().submit(self._fetch, self._memory, begin, finish)))
        self._parts.sort(key=lambda part: part[:2])

    def _fetch(self, memory: Any, start: int, end: int) -> None:
        import obstore

        wanted: Any = {"range": (start, end)}
        if self._tag is not None:
            wanted["if_match"] = self._tag
        answer = obstore.get(self._store, self._key, options=wanted)
        # Not every server that offers an interface of these stores heeds the condition.
        if self._tag not in (None, answer.meta["e_tag"]):
            raise OSError(errno.ESTALE, REPLACED, self.path)
        data = answer.bytes()
        if len(data) != end - start:
            raise OSError(5, f"the object store sent {len(data)} bytes instead of {end - start}", self.path)
        memory[start:end] = memoryview(data)

    def drop_before(self, position: int) -> None:
        """Release the memory of the ranges that end before `position`, in whole pages."""
        kept = [part for part in self._parts if part[1] > position or not part[2].done()]
        gone = min((part[0] for part in kept), default=position) // mmap.PAGESIZE * mmap.PAGESIZE
        if gone > 0 and isinstance(self._memory, mmap.mmap) and len(kept) < len(self._parts):
            # A part that ends in a page that stays is still there, but is asked for again.
            self._memory.madvise(mmap.MADV_DONTNEED, 0, gone)
            self._parts = kept

    def check_size(self) -> None:
        """Nothing to check: every request names the ETag."""

    def has_grown(self) -> bool:
        """Whether the object was replaced by a larger one."""
        return state_of(self.path).identity.size > self.size
