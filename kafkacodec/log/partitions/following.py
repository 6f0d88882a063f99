"""Reading a partition while it grows."""

from __future__ import annotations

import os
from contextlib import suppress

from kafkacodec.arguments import IsolationLevel, int64
from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.opening import is_url
from kafkacodec.log.partitions.inside import relisted
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.shown import repr_of
from kafkacodec.signatures import suggests_options

__all__ = ["Follower", "Growth"]


class Growth(NamedTuple):
    """The changes of a partition.

    Attributes:
        partition (Partition): the partition as it is now.
        start_offset, end_offset (int): the new records are between these; equal if there are none.
        notice (str | None): a sentence about records that were truncated or deleted before they were read.
    """

    partition: Partition
    start_offset: int
    end_offset: int
    notice: str | None = None


class Follower:
    """Where reading a growing partition continues.

    New segments are found, and so are records that another process appends; a batch counts once it is complete. Only
    sizes and times of files are read while nothing changes.

    Args:
        partition: the partition, or some of its segments, of which only the growth is then seen.
        next_offset: the first offset to read; by default the start of the log.
        isolation_level: with ``"read_committed"``, records count once their transaction has ended.

    Attributes:
        next_offset (int): the first offset that was not returned by `poll`. It may be set back to read again.

    Raises:
        ValueError: the partition is in an object store.
    """

    @suggests_options
    def __init__(
        self,
        partition: Partition,
        next_offset: int | None = None,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> None:
        if not isinstance(partition, Partition):
            raise TypeError(f"partition must be a kafkacodec.log.Partition, not {type(partition).__name__}")
        if is_url(partition.path):
            raise ValueError(f"{partition.path}: logs in object stores cannot be followed; read them again")
        self.partition = partition
        self.next_offset = partition.start_offset() if next_offset is None else int64(next_offset, "next_offset")
        self.isolation_level = isolation_level
        self._files: frozenset[tuple[str, int, int]] | None = None

    def __repr__(self) -> str:
        return repr_of(self, self.partition.path, f"offset {self.next_offset}")

    def poll(self) -> Growth | None:
        """The changes since the last call; None if there are none.

        Raises:
            FileNotFoundError: the partition's directory, or the last of its segments, was deleted.
            DecodeError: nothing can be read at `next_offset`, and the bytes there are not the start of a batch.
            OSError, DecodeError: as the methods of `Partition`.
        """
        files = self._listed()
        if files == self._files:
            return None
        now = relisted(self.partition)
        start = now.start_offset()
        end = now.last_stable_offset() if self.isolation_level == "read_committed" else now.end_offset()
        growth = grown(now, self.next_offset, start, end)
        if growth.start_offset == growth.end_offset:
            _check_end(now)
        self._files = files
        self.next_offset = growth.end_offset
        return growth

    def again(self, next_offset: int) -> None:
        """Continue at an earlier offset, even if nothing changes: records after it could not be read yet."""
        self.next_offset = next_offset
        self._files = None

    def _listed(self) -> frozenset[tuple[str, int, int]]:
        """Names, sizes and times of the files."""
        found = set()
        names = [segment.path for segment in self.partition.segments]
        if self.partition.has_all:
            names = [entry.path for entry in os.scandir(self.partition.path)]
        for name in names:
            with suppress(FileNotFoundError):  # deleted meanwhile
                status = os.stat(name)
                found.add((name, status.st_size, status.st_mtime_ns))
        if not found:
            raise FileNotFoundError(2, "the segments were deleted", self.partition.path)
        return frozenset(found)


def _check_end(partition: Partition) -> None:
    """Raise DecodeError if damage, not an incomplete batch, follows the last complete one."""
    if partition.segments:
        last = partition.segments[-1]
        end, _ = last._end(after_damage=True)
        last.scan(columns=["position"], verify_crc=False, start_position=end, max_batches=1)


def grown(partition: Partition, next_offset: int, start_offset: int, end_offset: int) -> Growth:
    """The part to read of a log from `start_offset` to `end_offset` that was read up to `next_offset`."""
    if end_offset < next_offset:
        notice = f"the log was truncated to offset {end_offset}; reading continues there (it was at {next_offset})"
        return Growth(partition, end_offset, end_offset, notice)
    if start_offset > next_offset:
        notice = f"offsets {next_offset} to {start_offset - 1} were deleted before they were read"
        return Growth(partition, start_offset, end_offset, notice)
    return Growth(partition, next_offset, end_offset)
