"""Compaction of a growing log: of each key the newest record stays (`org.apache.kafka.storage.internals.log.Cleaner`).

Segments are read, cleaned into new ones under temporary names, and swapped in by renames, which opening the log
finishes after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import CrcMismatch
from kafkacodec.log.growing._batches import BatchHead
from kafkacodec.log.growing._compact import choose, keep, newest_offsets, with_records
from kafkacodec.log.growing.aborted import Aborted
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.segment import GrowingSegment
from kafkacodec.log.growing.settings import LogConfig
from kafkacodec.log.growing.swapping import Replacement
from kafkacodec.records._crc import crc32c
from kafkacodec.records.broker_batches import empty_batch
from kafkacodec.records.compression import compress, decompress

__all__ = ["Cleaned", "Cleaning", "Dirt", "Stopped", "clean", "dirt"]

_Heads: TypeAlias = Callable[[GrowingSegment], Iterator[BatchHead]]

_HEADER, _CRC_AT, _CRC_FROM = 61, 17, 21
_LARGEST_BATCH = 1 << 31
_MAX_INT32 = 2**31 - 1
MOST_KEYS = 5_000_000
"""The number of keys in memory at a time, as in a broker's buffer of 128 MiB; a later pass cleans the rest."""


class Cleaned(NamedTuple):
    """The result of a pass.

    Attributes:
        end_offset (int): the start of the next pass; earlier records are clean.
        bytes_before, bytes_after (int): of the cleaned segments.
    """

    end_offset: int
    bytes_before: int
    bytes_after: int


class Dirt(NamedTuple):
    """The work of a pass.

    Attributes:
        clean_bytes (int): before the end of the last pass.
        dirty_bytes (int): after it, of cleanable segments.
        since (int): the time of the first of those, ms since 1970; -1 if there are none, or it is unknown.
    """

    clean_bytes: int
    dirty_bytes: int
    since: int


class Stopped(Exception):
    """A pass was stopped by `Cleaning.stop`."""


class _Transactions:
    """Batches of aborted transactions, and markers of transactions without batches.

    Args:
        aborted: the aborted transactions of the log.
    """

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        self._waiting = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._running: dict[int, tuple[Aborted, bool]] = {}
        self._committed: set[int] = set()
        self.kept: list[Aborted] = []

    def is_aborted(self, head: BatchHead) -> bool:
        """Whether a batch of records is of an aborted transaction."""
        self._begin(head.last_offset)
        if not head.is_transactional:
            return False
        running = self._running.get(head.producer_id)
        if running is None:
            self._committed.add(head.producer_id)
            return False
        self._running[head.producer_id] = (running[0], True)
        return True

    def is_empty(self, head: BatchHead) -> bool:
        """Whether a marker ends a transaction of which no batch was there."""
        self._begin(head.last_offset)
        running = self._running.get(head.producer_id)
        if running is not None and running[0].last_offset == head.last_offset:
            del self._running[head.producer_id]
            if running[1]:
                self.kept.append(running[0])
            return not running[1]
        if head.producer_id in self._committed:
            self._committed.discard(head.producer_id)
            return False
        return True

    def _begin(self, offset: int) -> None:
        while self._waiting and self._waiting[-1].first_offset <= offset:
            entry = self._waiting.pop()
            self._running[entry.producer_id] = (entry, False)


class _Pass:
    """Cleans segments of one log, in order."""

    def __init__(
        self, log: PartitionLog, heads: _Heads, newest: dict[bytes, int], end_offset: int, transactions: _Transactions,
        now: int,
    ) -> None:  # fmt: skip
        self._log, self._heads, self._newest, self._end = log, heads, newest, end_offset
        self._transactions, self._now = transactions, now

    def clean(self, group: Sequence[GrowingSegment]) -> Replacement:
        """Write the cleaned form of consecutive segments; its files have temporary names."""
        made = self._log.replacement(group[0].base_offset)
        try:
            for segment in group:
                for head in self._heads(segment):
                    batch = self._batch(segment, head)
                    if batch is not None:
                        made.add(batch)
            made.finish(self._transactions.kept)
        except BaseException:
            made.discard()
            raise
        self._transactions.kept = []
        return made

    def _batch(self, segment: GrowingSegment, head: BatchHead) -> bytes | bytearray | None:
        """Return the remaining part of a batch; None: nothing."""
        if head.magic < 2:
            return segment.range(head.position, head.size).read()
        passed = head.has_horizon and head.base_timestamp <= self._now
        needs_horizon = False
        batch, records = _read(segment, head)
        if head.is_control:
            is_empty = self._transactions.is_empty(head)
            kept = 0 if is_empty and passed else head.count
            chosen = bytearray(b"\1" * kept)
            needs_horizon = is_empty and not head.has_horizon
        elif self._transactions.is_aborted(head):
            kept, chosen = 0, bytearray()
        else:
            chosen, kept, deletes = choose(
                records, head.base_offset, head.count, self._newest, self._end, keep_deletes=not passed
            )
            needs_horizon = deletes and not head.has_horizon
        if not kept:
            return self._empty(head) if self._is_last_of_producer(head) else None
        if kept == head.count and not needs_horizon:
            return batch
        horizon = head.base_timestamp if head.has_horizon else None
        horizon = self._now + self._log.config.delete_retention_ms if needs_horizon else horizon
        left, base, most = keep(records, chosen, head.base_timestamp, horizon)
        most = head.max_timestamp if head.timestamp_type else most
        packed = compress(head.codec, left) if head.codec else left
        return with_records(batch, packed, kept, base, most, horizon is not None)

    def _is_last_of_producer(self, head: BatchHead) -> bool:
        """Whether this is the last batch with a producer's sequence."""
        producer = self._log.producers.get(head.producer_id) if head.producer_id >= 0 else None
        if producer is None:
            return False
        if producer.last_offset >= 0:
            return head.last_offset == producer.last_offset
        return head.is_control and head.producer_epoch == producer.producer_epoch

    @staticmethod
    def _empty(head: BatchHead) -> bytes:
        return empty_batch(
            head.base_offset,
            head.last_offset,
            producer_id=head.producer_id,
            producer_epoch=head.producer_epoch,
            base_sequence=head.base_sequence,
            is_transactional=head.is_transactional,
            is_control=head.is_control,
            timestamp=head.max_timestamp,
            timestamp_type=head.timestamp_type,
            partition_leader_epoch=head.leader_epoch,
        )


class Cleaning:
    """A pass over a log in steps: call `swap` as long as `work` returns True.

    `work` may run in another thread while the log is appended to and read, but not while segments are removed from it;
    everything else is for the log's one caller.

    Args:
        log: its active segment, and the parts that open transactions may change, stay unchanged.
        start_offset: the end of the last pass; 0 for none.
        now: the time in ms since 1970.

    Attributes:
        result (Cleaned): the result so far.
    """

    def __init__(self, log: PartitionLog, start_offset: int, now: int) -> None:
        self._log, self._start, self._now = log, max(start_offset, log.start_offset), now
        self._segments = _cleanable(log, now)
        self._ends = {segment.base_offset: log.segment_end(segment.base_offset) for segment in self._segments}
        end = self._ends[self._segments[-1].base_offset] if self._segments else 0
        self._segments = self._segments if end > start_offset else []
        self._aborted = [entry for segment in log.segments for entry in segment.aborted.entries]
        self._groups: Iterator[list[GrowingSegment]] | None = None
        self._made: tuple[list[GrowingSegment], Replacement] | None = None
        self._stopped = False
        self.result = Cleaned(end, 0, 0)

    def work(self) -> bool:
        """Write the cleaned form of the next segments under temporary names; False if all are clean.

        Raises:
            Stopped: by `stop`.
            DecodeError: a batch is damaged. Segments that are not swapped in yet stay unchanged.
            OSError: likewise.
        """
        if self._groups is None:
            self._groups = self._begin()
        group = next(self._groups, None)
        if group is None:
            return False
        self._made = group, self._pass.clean(group)
        return True

    def swap(self) -> None:
        """Replace the old segments with the written ones. Raises OSError, as `PartitionLog.replace` does."""
        if self._made is not None:
            (group, made), self._made = self._made, None
            before = sum(segment.size for segment in group)
            after = self._log.replace(group, made).size
            end, cleaned, left = self.result
            self.result = Cleaned(end, cleaned + before, left + after)

    def stop(self) -> None:
        """End `work` soon."""
        self._stopped = True

    def _begin(self) -> Iterator[list[GrowingSegment]]:
        if not self._segments:
            return iter(())
        newest, end = _newest(self._segments, self._heads, self._start, self.result.end_offset)
        self.result = self.result._replace(end_offset=end)
        self._pass = _Pass(self._log, self._heads, newest, end, _Transactions(self._aborted), self._now)
        segments = [segment for segment in self._segments if segment.base_offset < end]
        return _groups(segments, self._log.config, self._ends.__getitem__)

    def _heads(self, segment: GrowingSegment) -> Iterator[BatchHead]:
        for head in segment.heads():
            if self._stopped:
                raise Stopped
            yield head


def clean(log: PartitionLog, start_offset: int, now: int) -> Cleaned | None:
    """Clean a log once.

    Args:
        log, start_offset, now: as for `Cleaning`.

    Returns:
        The result; None if there is nothing to clean.

    Raises:
        DecodeError, OSError: as `Cleaning.work` and `Cleaning.swap`.
    """
    cleaning = Cleaning(log, start_offset, now)
    found = False
    while cleaning.work():
        found = True
        cleaning.swap()
    return cleaning.result if found else None


def dirt(log: PartitionLog, start_offset: int, now: int) -> Dirt:
    """Return the work of a pass (`org.apache.kafka.storage.internals.log.LogToClean`).

    Args:
        log, start_offset, now: as for `Cleaning`.
    """
    cleaned = [segment for segment in log.segments if log.segment_end(segment.base_offset) <= start_offset]
    dirty = [s for s in _cleanable(log, now) if s.size and log.segment_end(s.base_offset) > start_offset]
    since = dirty[0].first_timestamp if dirty else -1
    return Dirt(sum(segment.size for segment in cleaned), sum(segment.size for segment in dirty), since)


def _cleanable(log: PartitionLog, now: int) -> list[GrowingSegment]:
    """Return the cleanable segments: complete, stable, and old enough."""
    found = []
    for segment in log.segments[:-1]:
        if log.segment_end(segment.base_offset) > log.last_stable_offset:
            break
        if log.config.min_compaction_lag_ms and segment.max_timestamp > now - log.config.min_compaction_lag_ms:
            break
        found.append(segment)
    return found


def _newest(
    segments: Sequence[GrowingSegment], heads: _Heads, start_offset: int, end_offset: int
) -> tuple[dict[bytes, int], int]:
    """Return the newest offset of each key from an offset on, and the end of the search, at a batch."""
    newest: dict[bytes, int] = {}
    transactions = _Transactions([entry for segment in segments for entry in segment.aborted.entries])
    for segment in segments:
        for head in heads(segment):
            if head.is_control:
                transactions.is_empty(head)
            elif not transactions.is_aborted(head) and head.last_offset >= start_offset and head.magic >= 2:
                if len(newest) >= MOST_KEYS:
                    return newest, head.base_offset
                _, records = _read(segment, head)
                newest_offsets(records, head.base_offset, head.count, start_offset, newest)
    return newest, end_offset


def _groups(
    segments: Sequence[GrowingSegment], config: LogConfig, end: Callable[[int], int]
) -> Iterator[list[GrowingSegment]]:
    """Yield groups of segments that together fit into one."""
    group: list[GrowingSegment] = []
    for segment in segments:
        size = sum(s.size for s in group) + segment.size
        if group and (size > config.segment_bytes or end(segment.base_offset) - group[0].base_offset > _MAX_INT32):
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _read(segment: GrowingSegment, head: BatchHead) -> tuple[bytes, bytes | memoryview]:
    """A batch, and its records decompressed. A wrong checksum is an error: cleaning would write a right one."""
    batch = segment.range(head.position, head.size).read()
    if crc32c(memoryview(batch)[_CRC_FROM:]) != int.from_bytes(batch[_CRC_AT : _CRC_AT + 4], "big"):
        raise CrcMismatch("the checksum of a batch is wrong", position=head.position, path=segment.path)
    records = memoryview(batch)[_HEADER:]
    return batch, decompress(head.codec, records, limit=_LARGEST_BATCH) if head.codec else records
