"""Listed segments of partitions, kept for a reader that looks at the same directories repeatedly."""

from __future__ import annotations

import time

from kafkacodec.log.files.access import SETTLED_SECONDS
from kafkacodec.log.opening import changed_ns
from kafkacodec.log.partitions.inside import listed
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.segment import Segment

__all__ = ["Listings"]


class Listings:
    """Listings of partitions' directories, kept while their modification times stay the same.

    Appending to a segment does not change that time; creating, renaming and deleting files does. A directory that
    changed so recently that its time may not show a later change is listed each time.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, list[Segment]]] = {}

    def restore(self, partition: Partition) -> Partition:
        """The partition with its segments as they are now; lists the directory only if it has changed.

        Raises:
            OSError: the directory cannot be listed.
        """
        path = partition.path
        changed = changed_ns(path)
        known = self._known.get(path)
        if known is not None and known[0] == changed:
            partition.segments = known[1]
            return partition
        self._known.pop(path, None)
        segments = partition.segments = listed(partition)
        if time.time_ns() - changed >= SETTLED_SECONDS * 1e9:
            self._known[path] = changed, segments
        return partition

    def has_segments(self, path: str) -> bool:
        """Whether a partition's directory had segments when it was listed."""
        return bool(self._known.get(path, (0, []))[1])

    def settled(self, partition: Partition) -> int | None:
        """The time of the last change of the directory that the partition's segments are from, in ns since 1970.

        None if they were not restored by this object, or a later change may have gone unnoticed.
        """
        changed, segments = self._known.get(partition.path, (None, None))
        return changed if segments is not None and partition.segments is segments else None

    def keep(self, partitions: list[Partition]) -> None:
        """Forget all other partitions."""
        paths = {partition.path for partition in partitions}
        self._known = {path: known for path, known in self._known.items() if path in paths}
