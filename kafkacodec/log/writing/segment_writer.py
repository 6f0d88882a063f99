"""Writing one segment: batches and indexes under temporary names, visible only when all of them are on disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafkacodec.arguments import require_int
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import EncodeError
from kafkacodec.log.files import publishing
from kafkacodec.log.files.access import naming
from kafkacodec.log.files.locks import PartitionLock
from kafkacodec.log.files.publishing import temporary_name, write_file
from kafkacodec.log.formats import layout
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.writing.index_entries import NO_TIMESTAMP, IndexEntries
from kafkacodec.records.encode import EncodedBatch
from kafkacodec.shown import counted, repr_of
from kafkacodec.signatures import suggests_options

DEFAULT_INDEX_INTERVAL = 4096
"""Bytes between two index entries: `log.index.interval.bytes` of a broker."""

MAX_INDEX_ENTRIES = 10 * 1024 * 1024 // layout.TIME_INDEX_ENTRY.itemsize
"""The number of entries in the smaller index of a broker with the default `log.index.size.max.bytes`."""

MAX_BASE_OFFSET = 2**63 - 2
"""The largest offset that a record can have: the one after it must have 64 bits, too."""

# Runs of batches are larger and bypass the buffer.
_BUFFER_BYTES = 1 << 17
_MAX_INT32 = 2**31 - 1

# The order of the commit: the indexes become visible before the segment.
COMMIT_ORDER = (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX, layout.LOG_SUFFIX)
_UNFINISHED_SUFFIX = ".tmp"
_UNFINISHED = re.compile(
    r"(?:[0-9]{20}\.(?P<suffix>log|index|timeindex|txnindex|snapshot)|partition\.metadata|leader-epoch-checkpoint)"
    rf"\.(?P<token>{publishing.TOKEN}){re.escape(_UNFINISHED_SUFFIX)}"
)


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Consecutive record batches in `data`, with lists of the values that the indexes need of each."""

    data: bytes | memoryview
    sizes: list[int]
    base_offsets: list[int]
    last_offsets: list[int]
    max_timestamps: list[int]
    counts: list[int]

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(cls, batches: Sequence[EncodedBatch]) -> BatchRun:
        """A run of single batches, at least one."""
        data, base_offsets, last_offsets, max_timestamps, counts = map(list, zip(*batches, strict=True))
        joined = data[0] if len(data) == 1 else b"".join(data)
        return cls(joined, list(map(len, data)), base_offsets, last_offsets, max_timestamps, counts)

    def split(self, count: int) -> tuple[BatchRun, BatchRun]:
        """The first `count` batches, and the others."""
        at = sum(self.sizes[:count])
        view = memoryview(self.data)
        lists = (self.sizes, self.base_offsets, self.last_offsets, self.max_timestamps, self.counts)
        first, rest = [values[:count] for values in lists], [values[count:] for values in lists]
        return BatchRun(view[:at], *first), BatchRun(view[at:], *rest)


@dataclass(frozen=True)
class PendingSegment:
    """A complete segment on disk, under temporary names that readers ignore.

    It can be pickled, so that one process may write it and another commit it. `remove_unfinished` would remove it: keep
    pending segments in a separate directory until they are committed.

    Attributes:
        directory (str): the directory of its files.
        token (str): the part of its files' names that identifies the writer.
        base_offset, last_offset (int): its first and last offset.
        max_timestamp (int): the largest timestamp, -1 for none.
        size_in_bytes (int): the size of the ``.log`` file.
        num_records (int): the number of its records.
        beside (tuple[str, ...]): names of further files that belong to it.
    """

    directory: str
    token: str
    base_offset: int
    last_offset: int
    max_timestamp: int
    size_in_bytes: int
    num_records: int
    beside: tuple[str, ...] = ()

    @suggests_options
    def commit(self, directory: str | None = None, *, sync: bool = True) -> str:
        """Rename the files to their final names, in `directory` if it is given (on the same file system).

        The ``.log`` file comes last: until then there is no segment, afterwards a complete one.

        Returns:
            The path of the ``.log`` file.

        Raises:
            FileExistsError: a segment with records exists. It stays, and so do the files of this one.
            OSError: a file cannot be renamed; there is no segment then. Or, if `filename` is the directory, its names
                cannot be synced to disk; the segment is in place.
        """
        directory = self.directory if directory is None else directory
        path = os.path.join(directory, layout.file_name(self.base_offset, layout.LOG_SUFFIX))
        publish_files((self._temporary(name), os.path.join(directory, name)) for name in self._names())
        if sync:
            publishing.sync_names(directory, os.path.basename(path))
        return path

    def discard(self) -> None:
        """Remove the files that exist."""
        for name in self._names():
            publishing.remove(self._temporary(name))

    def _temporary(self, name: str) -> str:
        return temporary_name(os.path.join(self.directory, name), self.token)

    def _names(self) -> Iterator[str]:
        """The names of all files, in the order of the commit."""
        yield from self.beside
        for suffix in COMMIT_ORDER:
            yield layout.file_name(self.base_offset, suffix)


class SegmentWriter(publishing.Committing):
    """Writes one segment of a partition: the batches, and the entries of ``.index`` and ``.timeindex`` that a broker
    would write for them (`org.apache.kafka.storage.internals.log.LogSegment.append`).

    Nothing is visible under a segment's name before `commit`, and no segment with records is replaced; `LogWriter`
    ensures that there is one writer at a time. As a context manager it commits at the end, and removes its files on an
    exception.

    Args:
        directory: the partition's directory, or one on the same file system to commit from.
        base_offset: the offset that names the segment; no record may have a smaller one.
        index_interval_bytes: an index entry is due after this many bytes.
        sync: wait until the bytes are on the disk (fsync) before the names change.

    Attributes:
        size_in_bytes (int): the number of bytes of batches so far.
        next_offset (int): the smallest offset that the next batch may have.
        num_records (int): the number of records so far.
        first_timestamp (int): the largest timestamp of the first batch, -1 for none.
        max_timestamp (int): the largest timestamp so far, -1 for none.

    Raises:
        ValueError, TypeError: an argument is out of range, or not an integer.
        OSError: for example, the directory is missing or not writable, the disk is full; `filename` names the file.
    """

    @suggests_options
    def __init__(
        self,
        directory: str | os.PathLike[str],
        base_offset: int,
        *,
        index_interval_bytes: int = DEFAULT_INDEX_INTERVAL,
        sync: bool = True,
    ) -> None:
        require_int("base_offset", base_offset, 0, MAX_BASE_OFFSET)
        require_int("index_interval_bytes", index_interval_bytes, 0, 2**31 - 1)
        self.directory = os.fspath(directory)
        self.base_offset = self.next_offset = base_offset
        self.num_records = 0
        self.first_timestamp = NO_TIMESTAMP
        self._sync = sync
        self._entries = IndexEntries(base_offset, index_interval_bytes)
        self._token = publishing.new_token()
        self._path = self._temporary(layout.LOG_SUFFIX)
        self._name = os.path.join(self.directory, layout.file_name(base_offset, layout.LOG_SUFFIX))
        self._beside: tuple[str, ...] = ()
        with naming(self._name, self._path):
            self._file = publishing.create(self._path, buffering=_BUFFER_BYTES)
        # Held while this process lives: `remove_unfinished` removes files that are not locked.
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __repr__(self) -> str:
        return repr_of(self, self._name, counted(self.num_records, "record"))

    @property
    def size_in_bytes(self) -> int:
        """See the class."""
        return self._entries.size_in_bytes

    @property
    def max_timestamp(self) -> int:
        """See the class."""
        return self._entries.max_timestamp

    def room(self, run: BatchRun) -> int:
        """The number of first batches that fit here: the indexes have 31 bits for offsets and positions."""
        entries = MAX_INDEX_ENTRIES - 1 - self._entries.count
        if (
            len(run) <= entries
            and run.last_offsets[-1] - self.base_offset <= _MAX_INT32
            and self.size_in_bytes + len(run.data) <= _MAX_INT32
        ):
            return len(run)
        size, count = self.size_in_bytes, 0
        for batch_size, last in zip(run.sizes[: max(0, entries)], run.last_offsets, strict=False):
            size += batch_size
            if size > _MAX_INT32 or last - self.base_offset > _MAX_INT32:
                break
            count += 1
        return count

    def append(self, batch: EncodedBatch) -> None:
        """Append one batch. Raises as `append_run` does."""
        self.append_run(BatchRun.of([batch]))

    def append_run(self, run: BatchRun) -> None:
        """Append batches.

        Raises:
            EncodeError: offsets are below `next_offset`, or not all batches fit (see `room`).
            OSError: writing failed. The files are then removed.
        """
        if run.base_offsets[0] < self.next_offset:
            reason = f"a batch begins at offset {run.base_offsets[0]}, below the next offset {self.next_offset}"
            raise EncodeError(reason, path=self._name)
        room = self.room(run)
        if room < len(run):
            reason = f"the batch at offset {run.base_offsets[room]} does not fit in the segment"
            raise EncodeError(reason, path=self._name)
        try:
            with naming(self._name, self._path):
                self._file.write(run.data)
        except BaseException:  # a part may have been written
            self.discard()
            raise
        if self.size_in_bytes == 0:
            self.first_timestamp = run.max_timestamps[0]
        self._entries.add(run.sizes, run.last_offsets, run.max_timestamps)
        self.num_records += sum(run.counts)
        self.next_offset = run.last_offsets[-1] + 1

    def batches(self) -> Segment:
        """The batches written so far, read under the temporary name."""
        with naming(self._name, self._path):
            self._file.flush()
        return Segment(self._path)

    def finish(self, beside: Mapping[str, bytes] | None = None) -> PendingSegment:
        """Write the indexes and wait for the disk. The segment is then complete, but not visible.

        Args:
            beside: further files by name, which become visible before the segment: its transaction index, the producer
                snapshot at its end.

        Raises:
            OSError: writing failed. The files are then removed.
        """
        try:
            self._entries.finish()
            for name, data in (beside or {}).items():
                self._beside += (name,)
                self._write(name, data)
            offsets, times = self._entries.take()
            self._write(layout.file_name(self.base_offset, layout.OFFSET_INDEX_SUFFIX), offsets)
            self._write(layout.file_name(self.base_offset, layout.TIME_INDEX_SUFFIX), times)
            with naming(self._name, self._path):
                self._file.flush()
                if self._sync:
                    os.fsync(self._file.fileno())
                self._file.close()
        except BaseException:
            self.discard()
            raise
        return self._pending()

    def commit(self, beside: Mapping[str, bytes] | None = None) -> str:
        """Finish the segment and make it visible; returns its path.

        Arguments and errors as in `finish` and `PendingSegment.commit`.
        """
        pending = self.finish(beside)
        try:
            return pending.commit(sync=self._sync)
        except BaseException:
            pending.discard()
            raise

    def discard(self) -> None:
        """Remove everything that was written."""
        with contextlib.suppress(OSError):  # the rest of the buffer may not fit on the disk
            self._file.close()
        self._pending().discard()

    def _pending(self) -> PendingSegment:
        return PendingSegment(
            self.directory,
            self._token,
            self.base_offset,
            self.next_offset - 1,
            self.max_timestamp,
            self.size_in_bytes,
            self.num_records,
            self._beside,
        )

    def _temporary(self, suffix: str) -> str:
        return temporary_name(os.path.join(self.directory, layout.file_name(self.base_offset, suffix)), self._token)

    def _write(self, name: str, data: bytes) -> None:
        path = os.path.join(self.directory, name)
        temporary = temporary_name(path, self._token)
        with naming(path, temporary):
            write_file(temporary, data, sync=self._sync)


def remove_unfinished(directory: str | os.PathLike[str]) -> list[str]:
    """Remove files that killed writers left in a partition's directory; files of running writers stay.

    Returns:
        The removed paths; none while another writer has the partition.

    Raises:
        OSError: the directory cannot be listed, or the lock file cannot be opened.
    """
    place = os.path.abspath(directory)
    lock = PartitionLock(os.path.dirname(place), os.path.basename(place))
    try:
        lock.acquire()
    except BlockingIOError:
        return []
    try:
        return remove_leftovers(os.fspath(directory), os.listdir(directory))
    finally:
        lock.release()


def remove_leftovers(directory: str, names: Sequence[str]) -> list[str]:
    """As `remove_unfinished`, of these names, for a caller that has locked the partition."""
    if not layout.any_ends_with(names, [_UNFINISHED_SUFFIX]):
        return []
    matches = [match for name in names if name.endswith(_UNFINISHED_SUFFIX) and (match := _UNFINISHED.fullmatch(name))]
    found = sorted((os.path.join(directory, match[0]), match) for match in matches)
    # A `SegmentWriter` without a `LogWriter` has locked its segment, not the partition.
    alive = {match["token"] for path, match in found if match["suffix"] == "log" and _is_locked(path)}
    removed = [path for path, match in found if match["token"] not in alive]
    for path in removed:
        publishing.remove(path)
    return removed


def _is_locked(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # locked, or no permission
        return True
    return False


def publish_files(moves: Iterable[tuple[str, str]]) -> None:
    """Rename the files of segments to their final names, all of them or none.

    Args:
        moves: the temporary and the final name of each; a segment after its other files.

    Raises:
        FileExistsError: a segment with records exists. It stays, and so do its other files.
        OSError: a file cannot be renamed.
    """
    moves = list(moves)
    for _, target in moves:
        if target.endswith(layout.LOG_SUFFIX):
            _make_way(target)
    done: list[str] = []
    try:
        for source, target in moves:
            # An index without a segment is a leftover; which writer was first is decided by the segment's name.
            publishing.publish(source, target, replace=not target.endswith(layout.LOG_SUFFIX))
            done.append(target)
    except BaseException:
        for target in reversed(done):  # the segment first, so that it is never without its indexes
            publishing.remove(target)
        raise


def _make_way(path: str) -> None:
    """Remove the empty segment that a broker leaves in a new partition."""
    try:
        size = os.lstat(path).st_size
    except FileNotFoundError:
        return
    if size:
        raise FileExistsError(errno.EEXIST, "a segment with records already exists", path)
    os.unlink(path)
