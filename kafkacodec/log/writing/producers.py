"""The state of a partition's producers, as a broker keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from kafkacodec.datatypes import dataclass
from kafkacodec.log.formats.checkpoints import ProducerSnapshot, encode_producer_snapshot
from kafkacodec.log.reading.markers import Marker

_MAX_INT32 = 2**31 - 1


@dataclass(slots=True)
class Producer:
    """The state of a producer: the fields of a snapshot's entry, without those of its open transaction."""

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
        fields = attrgetter(*Producer.__slots__)
        entries = [
            (number, *fields(entry), open_transactions.get(number, -1)) for number, entry in sorted(self.known.items())
        ]
        return encode_producer_snapshot(entries)

    def _entry(self, producer: int, epoch: int) -> Producer:
        """The entry of a producer; a new epoch resets the state of its batches."""
        entry = self.known.get(producer)
        if entry is None:
            entry = self.known[producer] = Producer()
        if entry.producer_epoch != epoch:
            entry.producer_epoch = epoch
            entry.last_sequence, entry.last_offset, entry.offset_delta = -1, -1, 0
        return entry


def _last_sequence(first: int, delta: int) -> int:
    """The sequence of a batch's last record; after 2^31-1 comes 0."""
    return -1 if first < 0 else (first + delta) & _MAX_INT32
