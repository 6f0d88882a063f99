"""Logs of a read-only data directory of a dead broker, served without changing a byte.

A `FrozenLog` has the interface of a `PartitionLog`, over `kafkacodec.log.Partition`. Its segments may have any format
of record batches; it leaves other bytes, such as a torn end, where they are and does not serve them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.epochs import LogEpochs
from kafkacodec.log.growing.settings import LogConfig
from kafkacodec.log.growing.times import Found
from kafkacodec.log.opening import open_file
from kafkacodec.log.partitions.inside import end_of
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.records.decode import decode
from kafkacodec.records.headers import scan

if TYPE_CHECKING:
    from kafkacodec.log.partitions.segment import Segment
    from kafkacodec.log.reading.transactions import Transactions
    from kafkacodec.log.storage.interfaces import StoredFile
    from kafkacodec.records.columns import BatchHeaders

__all__ = ["FrozenAppend", "FrozenLog", "FrozenRange"]

_LOOKED_AT = 64  # bytes by which a preallocated end is known
_LONGEST = (1 << 63) - 1
_HEADS = ("position", "size_in_bytes", "magic", "last_offset")


class FrozenRange(NamedTuple):
    """Batches of one format in a segment.

    Attributes:
        data: a view of the mapped file; the last batch may be partial.
        end_offset: after the last complete batch, -1 without one.
    """

    data: memoryview = memoryview(b"")
    end_offset: int = -1

    def view(self) -> memoryview:
        """The bytes without a copy."""
        return self.data

    def read(self) -> bytes:
        """A copy of the bytes."""
        return bytes(self.data)


class FrozenAppend(NamedTuple):
    """The result of an append that is not stored."""

    base_offset: int


class FrozenLog:
    """The read-only log of a partition.

    Args:
        path: the directory; None: there is none, and the log is empty.
        config: of the topic.
        forgets: accept appends without storing them, for coordinators, which have their state in memory.

    Attributes:
        path (str): the directory, or "".
        config (LogConfig): see above.
        start_offset, end_offset (int): of the served part.
        producers, open_transactions: empty, since nobody produces.

    Raises:
        OSError, DecodeError: a file cannot be read.
    """

    def __init__(self, path: str | None, config: LogConfig | None = None, *, forgets: bool = False) -> None:
        self.path, self.config, self._forgets = path or "", config or LogConfig(), forgets
        self._partition = None if path is None else Partition(path)
        self._segments: list[Segment] = [] if self._partition is None else list(self._partition.segments)
        self.start_offset = 0 if self._partition is None else self._partition.start_offset()
        self.end_offset = self._served_end()
        for segment in self._segments:
            with open_file(segment.path):  # else readers would come to one that cannot be read, and no further
                pass
        self._epochs = LogEpochs(self.path, Disk())
        self._files: dict[str, StoredFile] = {}
        self.producers: Mapping[int, Any] = {}
        self.open_transactions: Mapping[int, int] = {}

    def _served_end(self) -> int:
        """The offset after the last served record."""
        for segment in reversed(self._segments):
            last = end_of(segment)[1]
            if last is not None or segment.base_offset is not None:
                return max(self.start_offset, segment.base_offset or 0 if last is None else last + 1)
        return self.start_offset

    # Questions

    @property
    def recovery_point(self) -> int:
        """All is on the disk."""
        return self.end_offset

    @property
    def leader_epoch(self) -> int:
        """The newest leader epoch, -1 for none."""
        return self._epochs.latest

    @property
    def size_in_bytes(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size_in_bytes for segment in self._segments)

    @cached_property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the end."""
        stable = None if self._partition is None else self._partition.last_stable_offset()
        return self.end_offset if stable is None else max(min(stable, self.end_offset), self.start_offset)

    @cached_property
    def _transactions(self) -> Transactions | None:
        return None if self._partition is None else self._partition.transactions()

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of an offset, -1 if unknown."""
        return self._epochs.at(offset)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return the newest leader epoch not above `epoch`, and its end offset; -1 and -1 if unknown."""
        return self._epochs.end(epoch, self.end_offset)

    def written(self) -> list[tuple[int, int]]:
        """The first offset of each segment, and when it was last written to, in ms since 1970."""
        return [
            (segment.base_offset or 0, os.stat(segment.path).st_mtime_ns // 1_000_000) for segment in self._segments
        ]

    def read(self, offset: int, max_bytes: int, *, upto: int | None = None, at_least_one: bool = True) -> FrozenRange:
        """As `PartitionLog.read`, but ends where the format of the batches changes, since some clients cannot read
        further.

        Raises:
            IndexError: there is no such offset.
            OSError, DecodeError: the segment cannot be read.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise IndexError(f"offset {offset} is not between {self.start_offset} and {self.end_offset}")
        end = self.end_offset if upto is None else upto
        for segment in self._from(offset):
            start, stop = segment.position_of_offset(offset), segment.end_position()
            if start < stop:
                return self._range(segment, start, stop, end, max_bytes, at_least_one)
        return FrozenRange()

    def unserved(self) -> Iterator[tuple[str, int, int]]:
        """Yield file, position and number of the bytes after the complete batches of segments, if they are not zeros.

        Raises:
            OSError, DecodeError: a segment cannot be read.
        """
        for segment in self._segments:
            start, size = segment.end_position(), segment.size_in_bytes
            if start < size and any(self._mapped(segment)[start : start + _LOOKED_AT]):
                yield segment.path, start, size - start

    def offset_for_timestamp(self, timestamp: int) -> Found | None:
        """Return the first readable record at or after a time in ms; None if there is none."""
        offset = None if self._partition is None else self._partition.offset_of_timestamp(timestamp)
        if offset is None:
            return None
        return self._record(self.read(offset, 0), lambda rows: rows["offset"] >= offset)

    def max_timestamp(self) -> Found | None:
        """The first record with the greatest timestamp; None if there is no timestamp."""
        best: tuple[Any, Segment, int] | None = None
        for segment in self._segments:
            heads = segment.scan(columns=("position", "max_timestamp"), verify_crc=False, on_error="stop")
            times = heads["max_timestamp"]
            if not len(heads) or np.isnat(times).all():
                continue
            at = int(np.nanargmax(np.where(np.isnat(times), np.int64(-1), times.astype(np.int64))))
            if best is None or times[at] > best[0]:
                best = times[at], segment, int(heads["position"][at])
        if best is None:
            return None
        time, segment, position = best
        found = self._range(segment, position, segment.end_position(), _LONGEST, 0, at_least_one=True)
        return self._record(found, lambda rows: rows["timestamp"] == time)

    def aborted_in(self, read: FrozenRange, offset: int) -> list[tuple[int, int]]:
        """Return the aborted transactions for a reader of a range: producer id and first offset of each."""
        known = self._transactions
        if known is None or read.end_offset < 0:
            return []
        rows = known.aborted
        rows = rows[(rows["last_offset"] >= offset) & (rows["first_offset"] < read.end_offset)]
        return [(int(row["producer_id"]), int(row["first_offset"])) for row in np.sort(rows, order="first_offset")]

    # What changes nothing

    def begin_epoch(self, epoch: int) -> None:
        """Do nothing: there is no new leader."""

    def append(self, batches: Any, *, leader_epoch: int) -> FrozenAppend:
        """Write nothing. Raises OSError, unless the log forgets appends."""
        if not self._forgets:
            self._refuse()
        return FrozenAppend(self.end_offset)

    def delete_before(self, offset: int) -> None:
        """Raises OSError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OSError(errno.EROFS, "the directory is served read-only", self.path)

    # Inside

    def _from(self, offset: int) -> list[Segment]:
        """Return the segments that may have an offset or later ones."""
        bases = [segment.base_offset or 0 for segment in self._segments]
        at = max(int(np.searchsorted(bases, offset, "right")) - 1, 0) if bases else 0
        return self._segments[at:]

    def _mapped(self, segment: Segment) -> memoryview:
        if segment.path not in self._files:
            self._files[segment.path] = open_file(segment.path)
        return memoryview(self._files[segment.path].view())

    def _range(
        self, segment: Segment, start: int, stop: int, end_offset: int, max_bytes: int, at_least_one: bool
    ) -> FrozenRange:
        data = self._mapped(segment)[start:stop]
        heads = _heads(data[:max_bytes])
        whole = bool(len(heads))
        if not whole:
            heads = _heads(data, 1)
        if not len(heads) or int(heads["last_offset"][0]) >= end_offset:
            return FrozenRange()
        if not whole:
            size = int(heads["size_in_bytes"][0])
            return FrozenRange(data[: size if at_least_one else max_bytes], int(heads["last_offset"][0]) + 1)
        count = min(max_bytes, len(data))
        others = np.flatnonzero((heads["magic"] != heads["magic"][0]) | (heads["last_offset"] >= end_offset))
        last = len(heads) - 1
        if len(others):
            count, last = int(heads["position"][others[0]]), int(others[0]) - 1
        elif heads.consumed < len(data):
            following = _heads(data[heads.consumed :], 1)
            same = len(following) and following["magic"][0] == heads["magic"][0]
            if not same or int(following["last_offset"][0]) >= end_offset:
                count = heads.consumed
        return FrozenRange(data[:count], int(heads["last_offset"][last]) + 1)

    def _record(self, found: FrozenRange, wanted: Any) -> Found | None:
        """Return the first matching record of a range."""
        rows = decode(found.data, columns=("offset", "timestamp"), include_control=True)
        at = np.flatnonzero(wanted(rows))
        if not len(at):
            return None
        offset, time = int(rows["offset"][at[0]]), rows["timestamp"][at[0]]
        return Found(-1 if np.isnat(time) else int(time.astype(np.int64)), offset, self.epoch_at(offset))


def _heads(data: memoryview, most: int | None = None) -> BatchHeaders:
    return scan(data, columns=_HEADS, verify_crc=False, on_error="stop", max_batches=most)
