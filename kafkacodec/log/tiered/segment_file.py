"""Uploaded segments as open files: finding the chunks with the wanted bytes, and restoring the original bytes."""

from __future__ import annotations

import mmap
from types import TracebackType

from kafkacodec.errors import CorruptRecord, DecodeError, LimitExceeded, Truncated
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.storage import places
from kafkacodec.log.storage.fetched import FetchedFile
from kafkacodec.log.storage.interfaces import StoredFile
from kafkacodec.log.tiered.chunks import MAX_STORED_CHUNK_BYTES, Chunk, inflate
from kafkacodec.log.tiered.keys import TAG_AND_NONCE, data_key, decrypt
from kafkacodec.log.tiered.manifest import MANIFEST_SUFFIX, Manifest, Part

__all__ = ["StandIn", "UploadedFile", "open_segment", "read_part"]

_INDEXES_SUFFIX = ".indexes"


def open_segment(manifest: Manifest, path: str) -> StoredFile:
    """Open a segment; its object itself if that has the segment's bytes as they are.

    Raises:
        OSError: there is no such object, it cannot be read, or it is encrypted and there is no key for it.
        Truncated, CorruptRecord: the object does not have the bytes that the manifest says.
    """
    stored = places.open_file(path)
    try:
        expected = manifest.chunks.stored_size
        if stored.size != expected:
            kind = Truncated if stored.size < expected else CorruptRecord
            text = f"the object has {stored.size} bytes, its manifest says {expected}"
            raise kind(text, position=min(stored.size, expected), path=path)
        if manifest.encryption is None and not manifest.compressed and manifest.chunks.size == expected:
            return stored
        return UploadedFile(stored, manifest)
    except BaseException:
        stored.close()
        raise


def read_part(manifest: Manifest, part: Part, path: str, limit: int) -> bytes:
    """The bytes of an index, as a broker has them.

    Args:
        manifest: that of the segment.
        part: where it is in the object of the segment's indexes.
        path: the index file's path, for errors.
        limit: how many bytes to read at most.

    Raises:
        LimitExceeded: there are more.
        Truncated, CorruptRecord: the object ends before it, or it cannot be decrypted.
        OSError: the object is missing or cannot be read, or there is no key for it.
    """
    if part.size > limit + TAG_AND_NONCE:
        raise LimitExceeded(f"the index has {part.size} bytes, the limit is {limit}", position=limit, path=path)
    if not part.size:
        return b""
    source = manifest.path.removesuffix(MANIFEST_SUFFIX) + _INDEXES_SUFFIX
    with places.open_file(source) as file:
        data = file.read(part.position, part.size)
        if len(data) < part.size:
            text = f"the object ends at {file.size}, inside an index of {part.size} bytes"
            raise Truncated(text, position=part.position, path=source)
    if manifest.encryption is None:
        return data
    try:
        return decrypt(data, data_key(manifest.encryption, source), manifest.encryption.aad)
    except DecodeError as error:
        raise type(error)(error.reason, position=part.position, path=source) from None


class UploadedFile(FetchedFile):
    """A segment that was uploaded in transformed chunks, with the attributes and methods of `StoredFile`.

    Chunks are read from the object when one of their bytes is wanted, and stay in memory until `drop_before`.

    Raises (all methods that return bytes):
        CorruptRecord, LimitExceeded: a chunk is not what was uploaded; with the object's path and the chunk's position.
    """

    def __init__(self, stored: StoredFile, manifest: Manifest) -> None:
        super().__init__(stored.path, stored.identity._replace(size=manifest.chunks.size))
        self._stored, self._manifest, self._chunks = stored, manifest, manifest.chunks
        self._key = None if manifest.encryption is None else data_key(manifest.encryption, stored.path)
        self._there: set[int] = set()  # the chunks in memory

    @property
    def window(self) -> int | None:
        """One chunk: fewer bytes cost as much."""
        return self._chunks.chunk_size

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forget()
        self._stored.__exit__(kind, error, trace)

    def close(self) -> None:
        """Close the object and release the memory with its last user."""
        self._forget()
        self._stored.close()

    def _forget(self) -> None:
        self._there = set()
        super().close()

    def view(self, start: int = 0, end: int | None = None) -> mmap.mmap | bytes:
        """A buffer of `size` bytes of which those in [start, end) are the segment's."""
        wanted = self._chunks.between(start, self.size if end is None else end)
        self._ask(wanted)
        for number in wanted:
            if number not in self._there:
                chunk = self._chunks.chunk(number)
                # The buffer may have users, but not of these bytes.
                memoryview(self._memory)[chunk.start : chunk.end] = self._original(chunk)
                self._there.add(number)
        return self._memory

    def _original(self, chunk: Chunk) -> bytes:
        """The bytes that a chunk had before the upload."""
        size, stored_size = chunk.end - chunk.start, chunk.stored_end - chunk.stored_start
        if stored_size > MAX_STORED_CHUNK_BYTES:
            text = f"chunk {chunk.number} of the object has {stored_size} bytes, the limit is {MAX_STORED_CHUNK_BYTES}"
            raise LimitExceeded(text, position=chunk.stored_start, path=self.path)
        data = self._stored.read(chunk.stored_start, stored_size)
        try:
            if self._manifest.encryption is not None and self._key is not None:
                data = decrypt(data, self._key, self._manifest.encryption.aad)
            if self._manifest.compressed:
                data = inflate(data, size)
            if len(data) != size:
                raise CorruptRecord(f"it has {len(data)} bytes, not {size}", position=0)
        except DecodeError as error:
            text = f"chunk {chunk.number} of the object (bytes {chunk.start} to {chunk.end} of the segment)"
            raise type(error)(f"{text}: {error.reason}", position=chunk.stored_start, path=self.path) from None
        return data

    def _ask(self, wanted: range) -> None:
        """Start to fetch the chunks that are not in memory. A manifest may tell of far too many to make a list."""
        first = next((number for number in wanted if number not in self._there), None)
        if first is not None:
            last = next(number for number in reversed(wanted) if number not in self._there)
            self._stored.ahead(self._chunks.chunk(first).stored_start, self._chunks.chunk(last).stored_end)

    def ahead(self, start: int, end: int) -> None:
        """Start to fetch the chunks with these bytes."""
        self._ask(self._chunks.between(start, end))

    def drop_before(self, position: int) -> None:
        """Release the memory of the chunks that end before `position`, in whole pages."""
        kept = self._chunks.between(position, self.size)
        first = kept.start if kept else self._chunks.count
        gone = first * self._chunks.chunk_size // mmap.PAGESIZE * mmap.PAGESIZE
        if first and gone and isinstance(self._memory, mmap.mmap) and any(number < first for number in self._there):
            self._memory.madvise(mmap.MADV_DONTNEED, 0, gone)
            # A chunk that ends in a page that stays is still there in part, and is read again if it is wanted.
            self._there = {number for number in self._there if number >= first}
        if kept:
            self._stored.drop_before(self._chunks.chunk(first).stored_start)

    def check_size(self) -> None:
        """Raise if bytes that the object had when it was opened are gone."""
        self._stored.check_size()

    def has_grown(self) -> bool:
        """No: a segment is uploaded when it is complete."""
        return False


class StandIn(FetchedFile):
    """A segment without bytes, which stands for one that was not uploaded: see `layout.is_stand_in`."""

    def __init__(self, path: str) -> None:
        super().__init__(path, FileIdentity(0, 0, 0, 0))

    @property
    def window(self) -> int | None:
        """Nothing is fetched."""
        return None

    def view(self, start: int = 0, end: int | None = None) -> bytes:
        """No bytes."""
        return b""

    def ahead(self, start: int, end: int) -> None:
        """Nothing to fetch."""

    def drop_before(self, position: int) -> None:
        """Nothing to release."""

    def check_size(self) -> None:
        """It is never shortened."""

    def has_grown(self) -> bool:
        """It never grows."""
        return False
