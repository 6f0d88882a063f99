"""What a stream saw of each partition, kept while its files look the same: an idle trigger opens none of them.

A broker appends to the last segment only. Whatever else it does to a log, it creates, renames or deletes files, which
changes the time of the directory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.log import Partition
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import identity_of, is_url
from kafkacodec.log.opening.checkpoints import known_offsets
from kafkacodec.log.opening.identity import BatchMark
from kafkacodec.log.partitions.inside import segments_between
from kafkacodec.log.partitions.listings import Listings
from kafkacodec.spark.reading.checkpoint import Observed
from kafkacodec.spark.reading.observing import batch_before, key_of

__all__ = ["Found", "Sights"]

Found = tuple[Partition, Observed]
"""A partition as it was listed, and its log."""


class _Look(NamedTuple):
    """What the system says of a partition's files; equal if nothing that a stream asks for has changed."""

    listed: int
    files: tuple[FileIdentity | None, ...]
    log_start_offset: int
    high_watermark: int | None


@dataclass
class _Sight:
    look: _Look
    found: Found | None = None
    batches: dict[int, BatchMark | None] = field(default_factory=dict)


class Sights:
    """What was found out about partitions, by their paths; `listings` are those that list them."""

    def __init__(self, listings: Listings) -> None:
        self._listings = listings
        self._sights: dict[str, _Sight] = {}
        self._watermarks: dict[str, Mapping[tuple[str, int], int]] = {}  # by log directory

    def observe(self, partition: Partition, offset: int | None, observe: Callable[[Partition], Found]) -> Found:
        """What `observe` says of a partition, or said before, if its files have not changed since.

        Args:
            partition: as it is listed now.
            offset: where it is read next, so that a change of the batch before counts.
            observe: asked for other partitions.
        """
        look = self._look(partition, offset)
        sight = self._sights.get(partition.path)
        if sight is not None and sight.found is not None and sight.look == look:
            return sight.found
        self._sights.pop(partition.path, None)
        found = observe(partition)
        if look is not None:
            self._sights[partition.path] = _Sight(look, found)
        return found

    def batch_before(self, partition: Partition, offset: int) -> BatchMark | None:
        """As `observing.batch_before`, after `observe` has looked at the partition with this offset."""
        sight = self._sights.get(partition.path)
        if sight is None:
            return batch_before(partition, offset)
        if offset not in sight.batches:
            sight.batches = {offset: batch_before(partition, offset)}
        return sight.batches[offset]

    def begin(self, partitions: Iterable[Partition]) -> None:
        """Forget all other partitions, and read the high watermarks again when they are needed."""
        paths = {partition.path for partition in partitions}
        self._sights = {path: sight for path, sight in self._sights.items() if path in paths}
        self._watermarks.clear()

    def _look(self, partition: Partition, offset: int | None) -> _Look | None:
        """How the files look; None if they may change and look the same, since they have just changed."""
        if partition.state != "current" or is_url(partition.path):
            return None
        listed = self._listings.settled(partition)
        if listed is None:
            return None
        now = time.time_ns()
        segments = partition.segments[-1:]
        if offset is not None:
            segments = [*segments, *segments_between(partition, offset - 1, offset)]
        files = [_identity(path) for path in dict.fromkeys(segment.path for segment in segments)]
        if not all(file is None or file.is_settled(now) for file in files):
            return None
        return _Look(listed, tuple(files), partition.log_start_offset, self._high_watermark(partition))

    def _high_watermark(self, partition: Partition) -> int | None:
        """As `Partition.high_watermark`, which looks at the checkpoint of all partitions once for each."""
        log_dir = os.path.dirname(partition.path)
        if log_dir not in self._watermarks:
            self._watermarks[log_dir] = known_offsets(log_dir, layout.HIGH_WATERMARK_CHECKPOINT)
        return self._watermarks[log_dir].get(key_of(partition))


def _identity(path: str) -> FileIdentity | None:
    try:
        return identity_of(path)
    except FileNotFoundError:
        return None
