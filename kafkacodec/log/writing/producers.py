"""The state of a partition's producers as a broker keeps it, and the files that it keeps it in.

A broker that starts after a clean shutdown trusts these files, and rebuilds a transaction index only if it recovers a
segment: without them even read_committed consumers get the records of aborted transactions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import ProducerSnapshot, encode_producer_snapshot
from kafkacodec.log.formats.indexes import encode_transaction_index
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.reading.transactions import Marker, TransactionIndex, TransactionTracker
from kafkacodec.records.columns import BatchHeaders

_ENTRY = layout.PRODUCER_SNAPSHOT_ENTRY.newbyteorder("=")
_MAX_INT32 = 2**31 - 1


@dataclass(slots=True)
class Producer:
    """What is known of a producer: the fields of a snapshot's entry, without those of its open transaction."""

    producer_epoch: int = -1
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    timestamp: int = -1
    coordinator_epoch: int = -1


class Producers:
    """The producers of a log, as its batches come
    (`org.apache.kafka.storage.internals.log.ProducerStateManager`, `ProducerAppendInfo`).

    Attributes:
        known (dict[int, Producer]): by producer id.
    """

    def __init__(self, snapshot: ProducerSnapshot | None = None) -> None:
        self.known: dict[int, Producer] = {}
        if snapshot is not None:
            columns = [snapshot[name].tolist() for name in ("producer_id", *Producer.__slots__)]
            self.known = {number: Producer(*fields) for number, *fields in zip(*columns, strict=True)}

    def batch(self, producer: int, epoch: int, sequence: int, first: int, last: int, timestamp: int) -> None:
        """A batch of records: its base sequence, offsets and largest timestamp."""
        entry = self._entry(producer, epoch)
        entry.last_sequence = _last_sequence(sequence, last - first)
        entry.last_offset, entry.offset_delta, entry.timestamp = last, last - first, timestamp

    def marker(self, producer: int, epoch: int, marker: Marker | None, timestamp: int) -> None:
        """A control batch; without its contents only the epoch counts."""
        entry = self._entry(producer, epoch)
        if marker is not None:
            entry.coordinator_epoch, entry.timestamp = marker.coordinator_epoch, timestamp

    def snapshot(self, open_transactions: Mapping[int, int]) -> bytes:
        """The bytes of a ``.snapshot`` file; `open_transactions` are first offsets by producer id."""
        entries = np.zeros(len(self.known), _ENTRY)
        numbers = sorted(self.known)
        entries["producer_id"] = numbers
        for name in Producer.__slots__:
            entries[name] = [getattr(self.known[number], name) for number in numbers]
        entries["current_txn_first_offset"] = [open_transactions.get(number, -1) for number in numbers]
        return encode_producer_snapshot(entries)

    def _entry(self, producer: int, epoch: int) -> Producer:
        """The entry of a producer; a new epoch resets what is known of its batches."""
        entry = self.known.get(producer)
        if entry is None:
            entry = self.known[producer] = Producer()
        if entry.producer_epoch != epoch:
            entry.producer_epoch = epoch
            entry.last_sequence, entry.last_offset, entry.offset_delta = -1, -1, 0
        return entry


class ProducerState(TransactionTracker):
    """Follows producers through the batches of a log, oldest first.

    Args:
        directory: the partition's directory; reading begins at its newest producer snapshot.
        segments: the existing segments.
        end_offset: the offset after their last record.
    """

    def __init__(self, directory: str, segments: Sequence[Segment], end_offset: int) -> None:
        super().__init__()
        self._producers = Producers()
        self.read_log(directory, segments, end_offset, None)

    def resume(self, snapshot: ProducerSnapshot) -> None:
        """Start from a producer snapshot."""
        super().resume(snapshot)
        self._producers = Producers(snapshot)

    def feed(self, headers: BatchHeaders, markers: Mapping[int, Marker], index: TransactionIndex | None = None) -> None:
        """Take the next batches; arguments as in `TransactionTracker.feed`."""
        super().feed(headers, markers, index)
        rows = np.flatnonzero((headers["magic"] == 2) & (headers["producer_id"] >= 0))
        names = ("producer_id", "producer_epoch", "base_sequence", "base_offset", "last_offset", "is_control")
        columns = [headers[name][rows].tolist() for name in names]
        times = np.maximum(headers["max_timestamp"][rows].astype(np.int64), -1).tolist()  # null is the smallest number
        for producer, epoch, sequence, first, last, control, time in zip(*columns, times, strict=True):
            if control:
                self._producers.marker(producer, epoch, markers.get(first), time)
            else:
                self._producers.batch(producer, epoch, sequence, first, last, time)

    @staticmethod
    def marker_rows(headers: BatchHeaders) -> npt.NDArray[np.intp]:
        """Which batches are markers that `feed` needs."""
        of_producers = headers["is_transactional"] | (headers["producer_id"] >= 0)
        return np.flatnonzero(of_producers & headers["is_control"] & (headers["magic"] == 2))

    def files_at(self, base_offset: int, end_offset: int) -> dict[str, bytes]:
        """A segment's files, by name: the producer snapshot at its end, and a transaction index if any was aborted.

        Empty if there are no producers.
        """
        if not self._producers.known:
            return {}
        files = {layout.file_name(end_offset, layout.PRODUCER_SNAPSHOT_SUFFIX): self._producers.snapshot(self.open)}
        entries = self.result(since=base_offset).index_entries(base_offset, end_offset)
        if len(entries):
            files[layout.file_name(base_offset, layout.TRANSACTION_INDEX_SUFFIX)] = encode_transaction_index(entries)
        return files


def _last_sequence(first: int, delta: int) -> int:
    """The sequence of a batch's last record; after 2^31-1 comes 0."""
    return -1 if first < 0 else (first + delta) & _MAX_INT32
