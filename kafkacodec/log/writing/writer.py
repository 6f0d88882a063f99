"""Writing a partition's directory as a broker expects it: segments, indexes, leader epochs, partition metadata."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import shutil
import uuid
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from kafkacodec.arguments import refuse_unknown, require_int
from kafkacodec.errors import CorruptRecord, CrcMismatch, DecodeError, EncodeError
from kafkacodec.log.files import publishing
from kafkacodec.log.files.access import exists, is_directory, sync_path
from kafkacodec.log.files.locks import LOCK_FILE, PartitionLock
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch, encode_leader_epochs, encode_partition_metadata
from kafkacodec.log.opening import check_local, identity_of
from kafkacodec.log.opening.checkpoints import read_topic_id
from kafkacodec.log.opening.listing import directory_name, ending_files
from kafkacodec.log.partitions.inside import end_of
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.writing.producer_state import ProducerState
from kafkacodec.log.writing.segment_writer import DEFAULT_INDEX_INTERVAL, BatchRun, SegmentWriter, remove_leftovers
from kafkacodec.records.encode import BatchOptions, EncodedBatch, EncodePlan, iter_encoded
from kafkacodec.records.headers import scan
from kafkacodec.shown import repr_of
from kafkacodec.signatures import shows_options, suggests_options

if TYPE_CHECKING:
    from typing_extensions import Buffer

DEFAULT_SEGMENT_BYTES = 1 << 30

_MAX_INT32 = 2**31 - 1
_RUN_BYTES = 1 << 18
_NOTHING = BatchRun(b"", [], [], [], [], [])


class LogWriter(publishing.Committing):
    """Writes records to a partition of a log directory, in segments.

    Segments become visible one by one, complete: at any moment the directory has a valid log of all committed segments.
    A killed writer leaves only temporary files, which the next one removes. No segment is ever replaced. As a context
    manager, the writer commits the last segment at the end, and discards it on an exception; a partition that it
    created, and committed nothing to, is then removed.

    There is one writer of a partition at a time, and none while a broker runs on the log directory: a lock, in the file
    ``.lock`` that brokers use too, is taken when the writer is created and when it writes again after a `commit`, and
    released by `commit`, by `discard` and when the process ends. It does not block writers of other partitions.

    With batches of idempotent or transactional producers, transaction indexes and producer snapshots are written as by
    a broker, which finds aborted and open transactions from them when it starts. For a broker in KRaft mode the topic
    must exist, and `topic_id` must be its id.

    Args:
        log_dir: the log directory (`log.dirs` of a broker); created if missing.
        topic, partition: the partition to write; its directory is ``topic-partition``.
        append: continue a partition that has records. Without it such a partition is refused.
        start_offset: the first offset of a new partition.
        segment_bytes: the maximum size of a segment, in bytes (`segment.bytes`).
        segment_ms: a segment ends before a batch that is this much later than its first one, in ms (`segment.ms`);
            None: no limit.
        index_interval_bytes: an index entry is added after this number of bytes (`index.interval.bytes`).
        leader_epoch: the leader epoch of the batches; None: the last one of the partition, or 0.
        topic_id: the topic's id (KIP-516). None: that of the partition, or of the topic's other partitions in
            `log_dir`, or a random one.
        sync: wait for the disk (fsync) before anything becomes visible.
        wait: the time to wait for another writer of the partition to finish, in seconds.

    Attributes:
        path (str): the partition's directory.
        next_offset (int): the offset of the next record.
        topic_id (uuid.UUID): the topic's id.
        leader_epoch (int): the leader epoch.

    Raises:
        ValueError: an invalid topic name, a number out of range, a topic id or leader epoch that contradicts the
            partition's.
        TypeError: an argument of a wrong type.
        BlockingIOError: another writer has the partition, or a broker the log directory; the message says which.
        FileExistsError: the partition has records and `append` is not set.
        CorruptRecord: the existing log does not end with a complete batch.
        OSError: the destination cannot be written; `filename` names it.
    """

    @suggests_options
    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        topic: str,
        partition: int,
        *,
        append: bool = False,
        start_offset: int = 0,
        segment_bytes: int = DEFAULT_SEGMENT_BYTES,
        segment_ms: int | None = None,
        index_interval_bytes: int = DEFAULT_INDEX_INTERVAL,
        leader_epoch: int | None = None,
        topic_id: uuid.UUID | None = None,
        sync: bool = True,
        wait: float = 0.0,
    ) -> None:
        layout.check_topic(topic)
        require_int("partition", partition, 0, _MAX_INT32)
        require_int("start_offset", start_offset, 0, 2**63 - 2)
        require_int("segment_bytes", segment_bytes, 1, _MAX_INT32)
        require_int("segment_ms", 0 if segment_ms is None else segment_ms, 0, 2**63 - 1)
        require_int("index_interval_bytes", index_interval_bytes, 0, _MAX_INT32)
        require_int("leader_epoch", 0 if leader_epoch is None else leader_epoch, 0, _MAX_INT32)
        if topic_id is not None and not isinstance(topic_id, uuid.UUID):
            raise TypeError(f"topic_id must be a uuid.UUID, not {type(topic_id).__name__}")
        log_dir = os.fspath(log_dir)
        check_local(log_dir)
        self.path = os.path.join(log_dir, f"{topic}-{partition}")
        self._segment_bytes, self._segment_ms = segment_bytes, segment_ms
        self._index_interval, self._sync = index_interval_bytes, sync
        self._segment: SegmentWriter | None = None
        self._has_producers = False
        self._producers: ProducerState | None = None
        self._prepared = self._made = False
        self._seen = 0  # the directory's last modification that this writer knows of
        self._created = False  # the partition, by this writer
        self._new_log_dir = None if os.path.isdir(log_dir) else log_dir
        os.makedirs(log_dir, exist_ok=True)
        self._lock = PartitionLock(log_dir, os.path.basename(self.path))
        self._lock.acquire(wait)
        try:
            if exists(self.path) and not is_directory(self.path):
                raise NotADirectoryError(errno.ENOTDIR, "the path of the partition is not a directory", self.path)
            existing = is_directory(self.path)
            names = os.listdir(self.path) if existing else []
            self.next_offset = self._end_of(names, append, start_offset)
            self._epochs = Partition(self.path).leader_epochs if existing else []
            self.leader_epoch = self._continued_epoch(self._epochs, leader_epoch)
            self.topic_id = self._continued_topic_id(log_dir, topic, topic_id)
            if existing and self._lock.exclusive:
                remove_leftovers(self.path, names)
                _remove_beyond(self.path, names, self.next_offset)
        except BaseException:
            self._lock.release()
            raise

    def __repr__(self) -> str:
        return repr_of(self, self.path, f"offset {self.next_offset}")

    def __del__(self) -> None:
        segment = getattr(self, "_segment", None)
        if segment is not None:
            lost = f"the records from offset {segment.base_offset} on were not committed, and are lost"
            text = f"{self!r}: {lost}; use `with`, or call commit() at the end"
            warnings.warn(text, ResourceWarning, stacklevel=2)

    @shows_options(BatchOptions, EncodePlan)
    def write(self, records: Any, **options: Unpack[BatchOptions]) -> int:
        """Encode records and write them.

        Records without an offset column continue at `next_offset`; their memory is bounded by one chunk of the input.

        Args:
            records: as in `kafkacodec.encode`.
            codec (str), level (int | None), batch_bytes (int), timestamp_type (int): as in `kafkacodec.encode`.

        Returns:
            The number of records written.

        Raises:
            EncodeError: as `kafkacodec.encode`; or an offset below `next_offset`. Records written before stay.
            ValueError, TypeError: an invalid option.
            OSError: a segment cannot be written; the records since the last commit are then discarded.
        """
        refuse_unknown(options, BatchOptions.__annotations__)
        batches = iter_encoded(
            records, base_offset=self.next_offset, partition_leader_epoch=self.leader_epoch, **options
        )
        return sum(self._append(run) for run in _runs(batches))

    @suggests_options
    def write_batches(self, data: Buffer, *, verify_crc: bool = True) -> int:
        """Write record batches unchanged: those of another log, of `kafkacodec.encode` or `control_batch`.

        Args:
            data: complete batches.
            verify_crc: verify their checksums; not needed for batches that were just encoded.

        Returns:
            The number of records written.

        Raises:
            DecodeError: a damaged batch.
            EncodeError: a batch of magic 0 or 1, a partial batch at the end, or an offset below `next_offset`.
            OSError: a segment cannot be written; the records since the last commit are then discarded.
        """
        headers = scan(data, verify_crc=verify_crc)
        if headers.consumed != memoryview(data).nbytes:
            raise EncodeError(f"trailing partial batch of {memoryview(data).nbytes - headers.consumed} bytes")
        if not len(headers):
            return 0
        for position in headers["position"][~headers["crc_ok"]] if verify_crc else ():
            raise CrcMismatch("the checksum of a batch is wrong", position=int(position))
        if (headers["magic"] < 2).any():
            raise EncodeError("batches of magic 0 and 1 cannot be written")
        self._has_producers = self._has_producers or bool((headers["producer_id"] >= 0).any())
        # Null is the smallest number in numpy.
        timestamps = np.maximum(headers["max_timestamp"].astype(np.int64), -1).tolist()
        sizes, bases, lasts, counts = (
            headers[name].tolist() for name in ("size_in_bytes", "base_offset", "last_offset", "count")
        )
        return self._append(BatchRun(memoryview(data).cast("B"), sizes, bases, lasts, timestamps, counts))

    def commit(self) -> None:
        """Make everything that was written visible, and release the lock. Later records begin a new segment.

        Raises:
            OSError: a file cannot be written or renamed; the records since the last commit are then discarded. Or, if
                `filename` is the directory, its names cannot be synced to disk; the records are in place, but may be
                lost in a power failure.
            FileExistsError: another process has added a segment of the same name; the records since the last commit are
                discarded.
        """
        if self._segment is not None or not self._prepared:
            try:
                self.prepare()
                self._commit_segment()
            except BaseException:
                self.discard()
                raise
            self._made = False
        self._let_go()

    def discard(self) -> None:
        """Discard everything since the last commit, and release the lock.

        Committed segments stay. If there are none, a directory that this writer created is removed.
        """
        segment, self._segment = self._segment, None
        if segment is not None:
            self.next_offset = segment.base_offset
            segment.discard()
        if self._made and self._lock.exclusive:
            self._remove_directory()
        self._let_go()

    def withdraw(self) -> None:
        """Discard everything that this writer wrote, and release the lock.

        Of a partition that it created, committed segments are removed too; in any other they stay. So is a log
        directory that it created, if there is nothing else in it.
        """
        segment, self._segment = self._segment, None
        if segment is not None:
            self.next_offset = segment.base_offset
            segment.discard()
        if self._created:
            with contextlib.suppress(OSError):  # another writer has continued the partition
                self._hold()
                if self._lock.exclusive:
                    shutil.rmtree(self.path)
                    self._created = self._made = self._prepared = False
        self._let_go()
        if self._new_log_dir is not None:
            with contextlib.suppress(OSError):
                if os.listdir(self._new_log_dir) == [LOCK_FILE]:
                    os.unlink(os.path.join(self._new_log_dir, LOCK_FILE))
                os.rmdir(self._new_log_dir)

    def prepare(self) -> None:
        """Take the lock, and create the partition's directory with its metadata and leader epochs, unless done before.

        Writing calls this.

        Raises:
            BlockingIOError, FileExistsError: another writer has the partition, or has continued it since this writer
                released the lock.
            OSError: a file cannot be written; `filename` names it.
        """
        self._hold()
        if self._prepared:
            return
        if not is_directory(self.path):
            os.mkdir(self.path)
            self._made = self._created = True
            if self._sync:
                sync_path(os.path.dirname(self.path) or os.curdir)
        metadata = os.path.join(self.path, layout.PARTITION_METADATA)
        if not exists(metadata):
            publishing.replace_file(metadata, encode_partition_metadata(self.topic_id), sync=self._sync)
        if not self._epochs or self._epochs[-1].epoch < self.leader_epoch:
            epochs = [*self._epochs, LeaderEpoch(self.leader_epoch, self.next_offset)]
            path = os.path.join(self.path, layout.LEADER_EPOCH_CHECKPOINT)
            publishing.replace_file(path, encode_leader_epochs(epochs), sync=self._sync)
        self._prepared = True

    def _commit_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is None:
            return
        # The new producer state is valid only when the segment is visible.
        producers, self._producers = self._producers, None
        try:
            if self._has_producers and producers is None:
                producers = ProducerState(self.path, Partition(self.path).segments, segment.base_offset)
            files = {}
            if producers is not None:
                producers.read_segment(segment.batches())
                files = producers.files_at(segment.base_offset, segment.next_offset)
            segment.finish(files).commit(sync=False)
        except BaseException:
            self.next_offset = segment.base_offset
            segment.discard()
            raise
        self._producers, self._made = producers, False
        if self._sync:
            publishing.sync_names(self.path, f"the segment at offset {segment.base_offset}")

    def _hold(self) -> None:
        """Take the lock; raise if the partition was changed since it was released."""
        if self._lock.held:
            return
        self._lock.acquire()
        if not is_directory(self.path):
            self._prepared = False
        elif os.stat(self.path).st_mtime_ns != self._seen:
            end = self._end_of(os.listdir(self.path), append=True, start_offset=self.next_offset)
            if end != self.next_offset:
                self._lock.release()
                reason = f"another writer has continued the partition to offset {end}: use a new LogWriter"
                raise FileExistsError(errno.EEXIST, reason, self.path)

    def _let_go(self) -> None:
        with contextlib.suppress(OSError):
            self._seen = os.stat(self.path).st_mtime_ns
        self._lock.release()

    def _remove_directory(self) -> None:
        own = (layout.PARTITION_METADATA, layout.LEADER_EPOCH_CHECKPOINT)
        with contextlib.suppress(OSError):
            if set(os.listdir(self.path)) <= set(own):  # else another process has put something there
                for name in own:
                    publishing.remove(os.path.join(self.path, name))
                os.rmdir(self.path)
        self._made = self._prepared = False

    def _append(self, run: BatchRun) -> int:
        """Write batches to the segment, and to new ones when it is full or too old."""
        following = self.next_offset
        for base, last in zip(run.base_offsets, run.last_offsets, strict=True):
            if base < following:
                raise EncodeError(f"a record has offset {base}, below the next offset {following}", path=self.path)
            following = last + 1
        count = sum(run.counts)
        while len(run):
            fitting = self._fitting(run)
            try:
                if self._segment is not None and fitting == 0:
                    self._commit_segment()
                if self._segment is None:
                    self._segment = self._new_segment(run.base_offsets[0])
                    fitting = max(1, self._fitting(run))
                part, run = (run, _NOTHING) if fitting == len(run) else run.split(fitting)
                self._segment.append_run(part)
            except BaseException as error:
                if not isinstance(error, EncodeError) or self._segment is None or not self._segment.size_in_bytes:
                    self.discard()
                raise
            self.next_offset = part.last_offsets[-1] + 1
        return count

    def _new_segment(self, base_offset: int) -> SegmentWriter:
        self.prepare()
        return SegmentWriter(self.path, base_offset, index_interval_bytes=self._index_interval, sync=self._sync)

    def _fitting(self, run: BatchRun) -> int:
        """The number of first batches that belong in the open segment."""
        segment = self._segment
        if segment is None:
            return 0
        room = segment.room(run)
        if self._segment_ms is None and segment.size_in_bytes + len(run.data) <= self._segment_bytes:
            return room
        size, count = segment.size_in_bytes, 0
        first = segment.first_timestamp if size else run.max_timestamps[0]
        for batch_size, timestamp in zip(run.sizes[:room], run.max_timestamps, strict=False):
            size += batch_size
            too_old = self._segment_ms is not None and first >= 0 and timestamp - first > self._segment_ms
            if size > self._segment_bytes or too_old:
                break
            count += 1
        return count

    def _end_of(self, names: list[str], append: bool, start_offset: int) -> int:
        """The next offset; raises if the partition cannot be continued. Looks at its last segments only."""
        files = ending_files(self.path, names) if names else ()
        if not files or not identity_of(files[0].path).size:
            return max([start_offset, *(file.base_offset for file in files)])
        if not append:
            raise FileExistsError(errno.EEXIST, "the partition has records; append=True adds to them", self.path)
        (segment,) = Partition(self.path, segments=[files[0].path]).segments
        with contextlib.suppress(DecodeError):
            end, last = end_of(segment)
            if end == segment.size_in_bytes and last is not None:
                return last + 1 if len(files) == 1 else files[-1].base_offset
        raise CorruptRecord("the log does not end with a complete batch and cannot be continued", path=segment.path)

    def _continued_epoch(self, epochs: list[LeaderEpoch], wanted: int | None) -> int:
        last = epochs[-1].epoch if epochs else 0
        if wanted is not None and epochs and wanted < last:
            raise ValueError(f"{self.path}: leader_epoch is {wanted}, but the partition has {last}")
        return last if wanted is None else wanted

    def _continued_topic_id(self, log_dir: str, topic: str, wanted: uuid.UUID | None) -> uuid.UUID:
        own = os.path.join(self.path, layout.PARTITION_METADATA)
        for path in (own, *_metadata_of_topic(log_dir, topic)):
            if not exists(path):
                continue
            found = read_topic_id(path)
            if wanted is not None and wanted != found:
                raise ValueError(f"{path}: topic_id is {wanted}, but the topic has {found}")
            return found
        return wanted or uuid.uuid4()


def _runs(batches: Iterable[EncodedBatch]) -> Iterator[BatchRun]:
    """Batches joined to runs, so that each costs little."""
    waiting: list[EncodedBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += len(batch.data)
        if size >= _RUN_BYTES:
            yield BatchRun.of(waiting)
            waiting, size = [], 0
    if waiting:
        yield BatchRun.of(waiting)


def _remove_beyond(directory: str, names: Iterable[str], end_offset: int) -> None:
    """Remove indexes and snapshots of segments that a killed writer did not publish."""
    first = {layout.PRODUCER_SNAPSHOT_SUFFIX: end_offset + 1, layout.TRANSACTION_INDEX_SUFFIX: end_offset}
    first |= {layout.OFFSET_INDEX_SUFFIX: end_offset, layout.TIME_INDEX_SUFFIX: end_offset}
    least = f"{end_offset:020d}"  # names of segments begin so
    found = [(os.path.join(directory, name), layout.parse_file_name(name)) for name in names if name >= least]
    # A broker keeps indexes of the empty segment at the end.
    segments = {name.base_offset for _, name in found if name is not None and name.suffix == layout.LOG_SUFFIX}
    for path, name in found:
        if name is None or name.base_offset < first.get(name.suffix, math.inf):
            continue
        if name.suffix == layout.PRODUCER_SNAPSHOT_SUFFIX or name.base_offset not in segments:
            os.unlink(path)


def _metadata_of_topic(log_dir: str, topic: str) -> Iterator[str]:
    """The metadata files of the topic's partitions."""
    with os.scandir(log_dir) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(f"{topic}-")]
    for path in found:
        name = directory_name(path)
        if name is not None and name.state == "current" and name.topic == topic:
            yield os.path.join(path, layout.PARTITION_METADATA)
