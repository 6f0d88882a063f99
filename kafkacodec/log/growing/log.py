"""One partition's log: appended to, read, rolled, cut and recovered as by its broker."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from kafkacodec.errors import EncodeError
from kafkacodec.log.growing import times
from kafkacodec.log.growing._batches import AppendInfo, BatchHead, assign_offsets
from kafkacodec.log.growing.aborted import aborted_between
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.epochs import LogEpochs
from kafkacodec.log.growing.flushing import Flushing, Unflushed
from kafkacodec.log.growing.loading import (
    Loss,
    find_segments,
    load_producers,
    recover,
    remove_leftovers,
    remove_snapshots,
)
from kafkacodec.log.growing.producers import LogProducers, snapshot_path
from kafkacodec.log.growing.retention import SetAside, num_expired
from kafkacodec.log.growing.segment import GrowingSegment, Range
from kafkacodec.log.growing.settings import LogConfig, now_ms
from kafkacodec.log.growing.swapping import Replacement
from kafkacodec.log.growing.times import Found
from kafkacodec.log.writing.producers import Producer

__all__ = ["AppendInfo", "Flushing", "Found", "PartitionLog"]

_MAX_INT32 = 2**31 - 1
_NOTHING = Range(None, 0, 0, -1, None)


class PartitionLog:
    """The log in a partition's directory. It has one caller at a time, and the directory one log.

    Args:
        path: the directory; created if it is missing.
        config: may be replaced at any time.
        start_offset: the start of the log, from ``log-start-offset-checkpoint``; 0 if it has no entry.
        recovery_point: the end of the flushed records, from ``recovery-point-offset-checkpoint``.
        clean: whether the log was closed cleanly, so that it needs no check.
        clock: the time in ms since 1970.
        disk: changes the files.

    Attributes:
        path (str): the directory.
        config (LogConfig): see above.
        start_offset (int): the first readable offset.
        end_offset (int): the offset of the next record.
        recovery_point (int): the end of the flushed records.
        loss (Loss | None): the part removed at opening, after the last complete batch.

    Raises:
        OSError: a file cannot be read or written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        config: LogConfig | None = None,
        *,
        start_offset: int = 0,
        recovery_point: int = 0,
        clean: bool = False,
        clock: Callable[[], int] = now_ms,
        disk: Disk | None = None,
    ) -> None:
        self.path, self.config = os.fspath(path), config or LogConfig()
        self._clock, self._disk = clock, disk or Disk()
        os.makedirs(self.path, exist_ok=True)
        remove_leftovers(self.path, self._disk)
        self._epochs = LogEpochs(self.path, self._disk)
        self._producers = LogProducers(self.path, self._disk)
        self._segments = find_segments(self.path, self.config.index_interval_bytes, self._disk, clock())
        self.loss: Loss | None = None
        changed: int | None = None
        if not self._segments:
            self._segments = [self._new_segment(start_offset)]
        elif not clean or not all(segment.load_indexes() for segment in self._segments):
            changed, self.loss = recover(self._segments, 0 if clean else recovery_point, self._epochs)
        self._bases = [segment.base_offset for segment in self._segments]
        active = self._active
        active.resume()
        self.end_offset = active.end_offset()
        self.start_offset = max(start_offset, self._bases[0])
        self.recovery_point = min(recovery_point, self.end_offset)
        self._epochs.truncate(self.end_offset)
        self._unflushed = Unflushed(self.path, self._disk, self._epochs)
        for segment in self._segments:
            if segment.base_offset >= self.recovery_point or segment is active:
                self._unflushed.add(segment)
        self._set_aside = SetAside(self._disk)
        load_producers(self._producers, self._segments, self.end_offset if changed is None else changed, changed)
        remove_snapshots(self.path, self._segments, self.end_offset, self._disk)
        self._producers.expire(clock() - self.config.producer_id_expiration_ms)

    @property
    def _active(self) -> GrowingSegment:
        return self._segments[-1]

    @property
    def first_offset(self) -> int:
        """The offset in the name of the first segment; records from there on to `start_offset` are deleted."""
        return self._bases[0]

    @property
    def producers(self) -> Mapping[int, Producer]:
        """The state of each producer by its id: its epoch and its last batch."""
        return self._producers.producers.known

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """The first offset of each open transaction by producer id, oldest first."""
        return self._producers.open

    @property
    def has_sealed_unflushed(self) -> bool:
        """Whether there are unflushed segments besides the active one."""
        return self._unflushed.has_sealed

    @property
    def size_in_bytes(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self._segments)

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the end of the log."""
        return max(next(iter(self._producers.open.values()), self.end_offset), self.start_offset)

    def append(
        self, batches: bytearray | memoryview, *, leader_epoch: int, base_offset: int | None = None
    ) -> AppendInfo:
        """Append record batches, whose base offsets and leader epochs are written into their headers first.

        Args:
            batches: whole batches of magic 2 in a writable buffer; only their structure is checked.
            leader_epoch: the present one.
            base_offset: of the first batch; by default the end of the log, below which it must not be.

        Raises:
            DecodeError: not whole batches of magic 2. Nothing was appended.
            EncodeError: no batch, or offsets that a log cannot have. Nothing was appended.
            OSError: the disk is full, for example. Nothing was appended, and the log is as before.
        """
        first = self.end_offset if base_offset is None else base_offset
        if first < self.end_offset:
            raise EncodeError(f"the batches begin at offset {first}, below the end {self.end_offset}", path=self.path)
        heads = assign_offsets(batches, first, leader_epoch)
        if not heads:
            raise EncodeError("there is no batch to append", path=self.path)
        last, size = heads[-1].last_offset, len(batches)
        timestamp = heads[0].max_timestamp if len(heads) == 1 else max(head.max_timestamp for head in heads)
        active = self._segments[-1]
        if self._must_roll(active, size, timestamp, last):
            active = self.roll(first)
        if leader_epoch > self._epochs.latest:
            self._epochs.assign(leader_epoch, first)
        position = active.append(batches, heads)
        self.end_offset = last + 1
        for head in heads:
            if head.producer_id >= 0:
                self._follow(active, batches, head)
        return AppendInfo(first, last, timestamp, position, size)

    def last_heads(self, nbytes: int) -> Iterator[BatchHead]:
        """Return the heads of the batches in the last `count` bytes, and of a few before them, in order."""
        begins: list[tuple[GrowingSegment, int]] = []
        for segment in reversed(self._segments):
            position = segment.indexes.begin_before(max(0, segment.size - nbytes))
            begins.append((segment, position))
            nbytes -= segment.size - position
            if nbytes <= 0:
                break
        for segment, position in reversed(begins):
            yield from segment.heads(position)

    def _follow(self, active: GrowingSegment, batches: bytearray | memoryview, head: BatchHead) -> None:
        def batch() -> bytes:
            return bytes(memoryview(batches)[head.position : head.position + head.size])

        aborted = self._producers.take(head, batch)
        if aborted is not None:
            active.aborted.add(aborted)

    def _must_roll(self, active: GrowingSegment, size: int, timestamp: int, last: int) -> bool:
        config, held = self.config, active.size
        if last - active.base_offset > _MAX_INT32 or active.indexes.is_full(config.segment_index_bytes):
            return True
        if not held:
            return False
        if held + size > config.segment_bytes:
            return True
        began = active.first_timestamp
        waited = timestamp - began if began >= 0 else self._clock() - active.created
        return waited > config.segment_ms

    def roll(self, base_offset: int | None = None) -> GrowingSegment:
        """Start a new segment, unless the last one is empty, and write a snapshot of the producers.

        Args:
            base_offset: the offset in its name; by default the end of the log.

        Raises:
            OSError: a file cannot be written. The last segment is still the active one.
        """
        base = self.end_offset if base_offset is None else base_offset
        active = self._active
        if active.base_offset == base:
            return active
        self._producers.write_snapshot(base)
        active.seal()
        segment = self._new_segment(base)
        if active.size:
            active.release()
        else:
            with suppress(OSError):  # one without batches does no harm
                active.remove()
                self._unflushed.discard(active)
                self._segments.pop(), self._bases.pop()
        self._segments.append(segment)
        self._bases.append(base)
        self._unflushed.add(segment)
        return segment

    def read(self, offset: int, max_bytes: int, *, upto: int | None = None, at_least_one: bool = True) -> Range:
        """Return the batches of one segment from the one with an offset on.

        Args:
            offset: between `start_offset` and `end_offset`.
            max_bytes: the range ends here, also within a batch.
            upto: only batches before this offset, which is the end of one; by default all.
            at_least_one: the first batch is whole even if it is larger than `max_bytes`.

        Raises:
            IndexError: there is no such offset.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise IndexError(f"offset {offset} is not between {self.start_offset} and {self.end_offset}")
        end = self.end_offset if upto is None else min(upto, self.end_offset)
        at = max(bisect_right(self._bases, offset) - 1, 0)
        for i in range(at, len(self._segments)):
            segment = self._segments[i]
            head = segment.find(offset)
            if head is None:
                continue
            stop = segment.size
            if end <= head.base_offset:
                break
            if end < self.segment_end(segment.base_offset):
                limit = segment.find(end)
                stop = segment.size if limit is None else limit.position
            count = min(max_bytes, stop - head.position)
            if at_least_one:
                count = max(count, min(head.size, stop - head.position))
            return segment.range(head.position, count)
        return _NOTHING

    def written(self) -> list[tuple[int, int]]:
        """The first offset of each segment, and when it was last written to, in ms since 1970. Raises OSError."""
        return [(segment.base_offset, os.stat(segment.path).st_mtime_ns // 1_000_000) for segment in self._segments]

    def offset_for_timestamp(self, timestamp: int) -> Found | None:
        """Return the first readable record at or after a time in ms; None if there is none."""
        return times.first_at(self._segments, timestamp, self.start_offset)

    def max_timestamp(self) -> Found | None:
        """The first record with the greatest timestamp, markers too; None if there is no timestamp."""
        return times.first_of_greatest(self._segments)

    def aborted_in(self, read: Range, offset: int) -> list[tuple[int, int]]:
        """Return the aborted transactions for a reader of a range: producer id and first offset of each.

        Args:
            read: from `read`.
            offset: the requested offset.
        """
        at = bisect_right(self._bases, read.base_offset) - 1
        if read.file is None or at < 0:
            return []
        upper = self._segments[at].indexes.offset_at(read.position + read.count)
        upper = self.segment_end(offset) if upper is None else upper
        return aborted_between([segment.aborted for segment in self._segments[at:]], offset, upper)

    def segment_end(self, offset: int) -> int:
        """Return the end offset of the segment with an offset."""
        at = bisect_right(self._bases, offset)
        return self._bases[at] if at < len(self._bases) else self.end_offset

    @property
    def leader_epoch(self) -> int:
        """The newest leader epoch, -1 for none."""
        return self._epochs.latest

    def begin_epoch(self, epoch: int) -> None:
        """Start a leader epoch at the end of the log; an older one changes nothing. Raises OSError."""
        self._epochs.assign(epoch, self.end_offset)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of an offset, -1 if unknown."""
        return self._epochs.at(offset)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return the newest leader epoch not above `epoch`, and its end offset; -1 and -1 if unknown."""
        return self._epochs.end(epoch, self.end_offset)

    def truncate(self, offset: int) -> int:
        """Remove the batches from the one with an offset on, and epochs without records.

        Returns:
            The end of the log: `offset`, or the first offset of its batch, which also limits the start of the log.

        Raises:
            OSError: a file cannot be changed. Some segments at the end may be gone.
        """
        if offset >= self.end_offset:
            self._epochs.truncate(self.end_offset)  # an epoch without records may not be that of the next ones
            return self.end_offset
        offset = max(offset, self.start_offset)
        while len(self._segments) > 1 and self._bases[-1] >= offset:
            last = self._active
            last.remove()
            self._segments.pop(), self._bases.pop()
            self._unflushed.discard(last)
            self.end_offset = last.base_offset
        active = self._active
        head = active.find(offset)
        if head is not None:
            active.truncate(head.position)
            self.end_offset = max(active.end_offset(), active.base_offset)
        self._unflushed.add(active)
        self.start_offset = min(self.start_offset, self.end_offset)
        active.aborted.truncate(self.end_offset)
        self._epochs.truncate(self.end_offset)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        remove_snapshots(self.path, self._segments, self.end_offset, self._disk)
        load_producers(self._producers, self._segments, self.end_offset, None)
        return self.end_offset

    def delete_before(self, offset: int) -> None:
        """Records before an offset can no longer be read; `retention` removes the segments.

        Raises:
            IndexError: it is after the end of the log.
            OSError: the leader epochs cannot be written.
        """
        if offset > self.end_offset:
            raise IndexError(f"offset {offset} is after the end {self.end_offset}")
        if offset > self.start_offset:
            self._epochs.begin(offset)
            self.start_offset = offset

    def replacement(self, base_offset: int) -> Replacement:
        """New files for the segment of this name, to be filled and given to `replace`. Raises OSError."""
        return Replacement(self.path, base_offset, self.config.index_interval_bytes, self._disk)

    def replace(self, group: Sequence[GrowingSegment], made: Replacement) -> GrowingSegment:
        """Replace consecutive segments, without the active one, with a new segment.

        Raises:
            OSError: a file cannot be renamed. The log on the disk is sound, but this object must be opened again.
        """
        first = self._segments.index(group[0])
        made.commit()
        due = self._clock() + self.config.file_delete_delay_ms
        for segment in reversed(group):
            beside = [] if segment is group[0] else [snapshot_path(self.path, segment.base_offset)]
            self._set_aside.add(due, segment.set_aside(*beside))
            self._unflushed.discard(segment)
        made.publish()
        (new,) = find_segments(
            self.path, self.config.index_interval_bytes, self._disk, self._clock(), only=group[0].base_offset
        )
        self._segments[first : first + len(group)] = [new]
        self._bases[first : first + len(group)] = [new.base_offset]
        return new

    @property
    def segments(self) -> list[GrowingSegment]:
        """The segments, in order; the last one is the active one."""
        return list(self._segments)

    def retention(self, now: int | None = None) -> list[str]:
        """Set aside the segments that are too old, beyond the size limit, or before the start of the log.

        Args:
            now: the time in ms since 1970; by default that of the clock.

        Returns:
            The new paths of their files; `purge` removes them.

        Raises:
            OSError: a file cannot be renamed, or the disk has no room for the segment that follows the active one;
                the segments before it are set aside.
        """
        now = self._clock() if now is None else now
        self._producers.expire(now - self.config.producer_id_expiration_ms)
        count = num_expired(self._segments, self.start_offset, self.config, now)
        also_active = count == len(self._segments)
        renamed = []
        for _ in range(count - also_active):
            renamed += self._set_oldest_aside(now)
        if also_active:  # last, since a new segment needs room, which the others may have to make
            self.roll()
            renamed += self._set_oldest_aside(now)
        with suppress(OSError):  # no room: epochs from before the start do no harm, and a later call cuts them off
            self._epochs.begin(self.start_offset)
        return renamed

    def _set_oldest_aside(self, now: int) -> list[str]:
        segment = self._segments[0]
        files = segment.set_aside(snapshot_path(self.path, segment.base_offset))
        self._set_aside.add(now + self.config.file_delete_delay_ms, files)
        del self._segments[0], self._bases[0]
        self._unflushed.discard(segment)
        self.start_offset = max(self.start_offset, self._bases[0])
        return files

    def purge(self, now: int | None = None, *, everything: bool = False) -> None:
        """Remove files set aside long enough ago (`file.delete.delay.ms`), or all. Raises OSError."""
        self._set_aside.purge(None if everything else self._clock() if now is None else now)

    def flush(self) -> int:
        """Wait until everything is on the disk; the end offset, which is the recovery point then. Raises OSError."""
        flushing = self.flushing()
        flushing.sync()
        return self.flushed(flushing)

    def flushing(self) -> Flushing:
        """Return the files to sync for the log's current contents; pass it to `flushed` afterwards.

        Its `sync` may run in another thread, while this log is appended to.

        Raises:
            OSError: index entries or epochs cannot be written.
        """
        return self._unflushed.begin(self.end_offset)

    def flushed(self, flushing: Flushing) -> int:
        """Note that the result of `flushing` is on the disk; return the new recovery point."""
        self._unflushed.end(flushing)
        self.recovery_point = max(self.recovery_point, min(flushing.end_offset, self.end_offset))
        return self.recovery_point

    def close(self) -> None:
        """Flush, and leave the files as a broker does that stops in good order. Raises OSError."""
        self._producers.write_snapshot(self.end_offset)
        self._active.seal()
        self.flush()
        for segment in self._segments:
            segment.release()

    def _new_segment(self, base_offset: int) -> GrowingSegment:
        return GrowingSegment.create(
            self.path, base_offset, self.config.index_interval_bytes, self._disk, self._clock()
        )
