"""The producers of a growing log and their open and aborted transactions, with snapshots."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from kafkacodec.errors import KafkaCodecError
from kafkacodec.internal_records import ControlType
from kafkacodec.log.formats import layout
from kafkacodec.log.growing._batches import BatchHead
from kafkacodec.log.growing.aborted import Aborted
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.opening.checkpoints import read_producer_snapshot
from kafkacodec.log.reading.markers import Marker, marker_of
from kafkacodec.log.writing.producers import Producers

__all__ = ["LogProducers", "snapshot_offsets", "snapshot_path"]


class LogProducers:
    """Follows the batches of one log.

    Args:
        directory: the partition's.
        disk: writes the snapshots.

    Attributes:
        producers (Producers): by id.
        open (dict[int, int]): the first offset of each open transaction by producer id, oldest first.
        snapshot_offset (int): the offset of the newest snapshot, 0 for none.
    """

    def __init__(self, directory: str, disk: Disk) -> None:
        self._directory, self._disk = directory, disk
        self.producers = Producers()
        self.open: dict[int, int] = {}
        self.snapshot_offset = 0

    def resume(self, offset: int) -> int:
        """Load the newest readable snapshot at or before an offset.

        Returns:
            The offset from which to add batches; 0 without a snapshot.
        """
        self.producers, self.open, self.snapshot_offset = Producers(), {}, 0
        for candidate in sorted(snapshot_offsets(self._directory), reverse=True):
            if candidate > offset:
                continue
            with suppress(OSError, KafkaCodecError):
                snapshot = read_producer_snapshot(snapshot_path(self._directory, candidate))
                self.producers, self.snapshot_offset = Producers(snapshot), candidate
                firsts = zip(*(snapshot[n].tolist() for n in ("current_txn_first_offset", "producer_id")), strict=True)
                self.open = {producer: first for first, producer in sorted(firsts) if first >= 0}
                return candidate
        return 0

    def take(self, head: BatchHead, batch: Callable[[], bytes]) -> Aborted | None:
        """The next batch of a producer.

        Args:
            head: its head, with a producer id.
            batch: its bytes, which are only needed of markers.

        Returns:
            The transaction that it aborts, for the transaction index.
        """
        producer, first, timestamp = head.producer_id, head.base_offset, max(head.max_timestamp, -1)
        if not head.is_control:
            self.producers.batch(producer, head.producer_epoch, head.base_sequence, first, head.last_offset, timestamp)
            if head.is_transactional:
                self.open.setdefault(producer, first)
            return None
        marker = marker_of(batch())
        self.producers.marker(producer, head.producer_epoch, marker, timestamp)
        return self._end(producer, head.last_offset, marker)

    def expire(self, before: int) -> None:
        """Forget producers whose last batch has a timestamp before this one (ms), unless they have a transaction."""
        known = self.producers.known
        for producer in [n for n, entry in known.items() if entry.timestamp < before and n not in self.open]:
            del known[producer]

    def write_snapshot(self, offset: int) -> None:
        """Write the snapshot at an offset if it is newer than the last one. Raises OSError."""
        if offset > self.snapshot_offset:
            data = self.producers.snapshot(self.open)
            self._disk.replace(snapshot_path(self._directory, offset), data, sync=False)
            self.snapshot_offset = offset

    def _end(self, producer: int, offset: int, marker: Marker | None) -> Aborted | None:
        first = self.open.pop(producer, None)
        if first is None or marker is None or marker.kind != ControlType.ABORT:
            return None
        return Aborted(producer, first, offset, next(iter(self.open.values()), offset + 1))


def snapshot_path(directory: str, offset: int) -> str:
    """The path of the snapshot at an offset."""
    return os.path.join(directory, layout.file_name(offset, layout.PRODUCER_SNAPSHOT_SUFFIX))


def snapshot_offsets(directory: str) -> list[int]:
    """The offsets of all snapshots in a directory."""
    names = [layout.parse_file_name(name) for name in os.listdir(directory)]
    return [name.base_offset for name in names if name is not None and name.suffix == layout.PRODUCER_SNAPSHOT_SUFFIX]
