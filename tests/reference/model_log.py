"""A partition's log as lists of batches, with the checks that Kafka's UnifiedLog and ProducerStateManager make."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import crc32c

from kafkacodec.errors import (
    CORRUPT_MESSAGE,
    INVALID_PRODUCER_EPOCH,
    INVALID_RECORD,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from tests.reference.records import HEADER, Batch, read

__all__ = ["Appended", "Log", "Stored", "control_batch"]

KEPT = 5  # the batches of a producer that a broker can recognize when they come again
TRANSACTIONAL, CONTROL = 0x10, 0x20


class Stored(NamedTuple):
    """A batch in a log."""

    base: int
    last: int
    epoch: int
    data: bytes
    header: Batch


class Appended(NamedTuple):
    """What became of a batch: an error code, or the offset that it got or had already."""

    code: int
    base: int = -1
    duplicate: bool = False


@dataclass
class Producer:
    """What a partition knows of a producer: its epoch and its last batches, as first and last sequence and offset."""

    epoch: int
    recent: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=KEPT))


class Log:
    """The log of one partition, the same on all replicas.

    Attributes:
        batches: what it holds.
        start, end: its first offset, and the one after its last.
        epochs: each leader epoch that wrote something, with the offset of its first batch.
        producers: by producer id.
        open: the first offset of each open transaction, by producer id.
        aborted: producer id, first offset and the offset of the marker of each aborted transaction.
        refuses_unknown: whether a producer that is not known has to begin with sequence 0, as before Kafka 2.5.
    """

    def __init__(self) -> None:
        self.refuses_unknown = False
        self.batches: list[Stored] = []
        self.start = self.end = 0
        self.epochs: list[tuple[int, int]] = []
        self.producers: dict[int, Producer] = {}
        self.open: dict[int, int] = {}
        self.aborted: list[tuple[int, int, int]] = []

    @property
    def stable(self) -> int:
        """The last stable offset: what follows belongs to transactions that may still be aborted."""
        return min([self.end, *self.open.values()])

    @property
    def records(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value of every record from the first offset on, without control records."""
        return self._records(set())

    @property
    def committed(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """The same without records of aborted and of open transactions."""
        hidden = set()
        for stored in self.batches:
            producer = stored.header.producer_id
            if stored.header.attributes & TRANSACTIONAL:
                ended = [a for a in self.aborted if a[0] == producer and a[1] <= stored.base < a[2]]
                if ended or stored.base >= self.open.get(producer, self.end):
                    hidden.add(stored.base)
        return self._records(hidden)

    def _records(self, hidden: set[int]) -> list[tuple[int, bytes | None, bytes | None]]:
        found = []
        for stored in self.batches:
            if not stored.header.attributes & CONTROL and stored.base not in hidden:
                ((_, records),) = read(stored.data)
                found += [(offset, key, value) for offset, _, _, key, value, _ in records if offset >= self.start]
        return found

    # Writing

    def append(self, data: bytes, epoch: int) -> Appended:
        """Append one batch of format 2, after the checks of its checksum, its producer and its sequence."""
        try:
            parsed = read(data)
        except Exception:
            return Appended(CORRUPT_MESSAGE)
        if len(parsed) != 1 or parsed[0][0].length + 12 != len(data):
            return Appended(INVALID_RECORD)  # brokers take exactly one batch
        header = parsed[0][0]
        if header.attributes & CONTROL or not header.count or header.count != header.last_offset_delta + 1:
            return Appended(INVALID_RECORD)
        if header.producer_id >= 0 and (known := self._check(header)) is not None:
            return known
        return Appended(0, self._store(data, epoch))

    def _check(self, header: Batch) -> Appended | None:
        """The answer if the batch is not to be stored."""
        known = self.producers.get(header.producer_id)
        if known is None:  # forgotten producers may go on (KIP-360)
            return Appended(UNKNOWN_PRODUCER_ID) if header.base_sequence and self.refuses_unknown else None
        if header.producer_epoch < known.epoch:
            return Appended(INVALID_PRODUCER_EPOCH)
        first, last = header.base_sequence, _sequence(header.base_sequence, header.count - 1)
        if header.producer_epoch > known.epoch:
            return None if first == 0 else Appended(OUT_OF_ORDER_SEQUENCE_NUMBER)
        for sequence, until, base in known.recent:
            if (sequence, until) == (first, last):
                return Appended(0, base, duplicate=True)
        # After a marker of this epoch and nothing else, there is no last sequence.
        expected = _sequence(known.recent[-1][1], 1) if known.recent else 0
        return None if first == expected else Appended(OUT_OF_ORDER_SEQUENCE_NUMBER)

    def has(self, data: bytes) -> bool:
        """Whether a batch of a producer was appended, and is known to have been."""
        header = Batch(*HEADER.unpack_from(data))
        known = self.producers.get(header.producer_id)
        return known is not None and any(first == header.base_sequence for first, _, _ in known.recent)

    def append_marker(self, producer_id: int, producer_epoch: int, *, commit: bool, epoch: int) -> None:
        """End a transaction of a producer, as the coordinator has it done."""
        self._store(control_batch(producer_id, producer_epoch, commit=commit), epoch)

    def _store(self, data: bytes, epoch: int) -> int:
        base = self.end
        data = struct.pack(">q", base) + data[8:12] + struct.pack(">i", epoch) + data[16:]
        header = Batch(*HEADER.unpack_from(data))
        self._take(Stored(base, base + header.last_offset_delta, epoch, data, header))
        return base

    def _take(self, stored: Stored) -> None:
        header = stored.header
        if not self.epochs or self.epochs[-1][0] < stored.epoch:
            self.epochs.append((stored.epoch, stored.base))
        self.batches.append(stored)
        self.end = stored.last + 1
        if header.producer_id < 0:
            return
        known = self.producers.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch:
            known = self.producers[header.producer_id] = Producer(header.producer_epoch)
        if header.attributes & CONTROL:
            first = self.open.pop(header.producer_id, None)
            ((_, ((_, _, _, key, _, _),)),) = read(stored.data)
            if first is not None and key[2:4] == b"\0\0":
                self.aborted.append((header.producer_id, first, stored.base))
            return
        known.recent.append((header.base_sequence, _sequence(header.base_sequence, header.count - 1), stored.base))
        if header.attributes & TRANSACTIONAL:
            self.open.setdefault(header.producer_id, stored.base)

    # Losing

    def truncate(self, offset: int) -> None:
        """Lose the batches that reach `offset`, as an unclean election does; producers are known from what is left."""
        lost = [stored for stored in self.batches if stored.last >= offset]
        fresh = Log()
        fresh.refuses_unknown = self.refuses_unknown
        for stored in self.batches[: len(self.batches) - len(lost)]:
            fresh._take(stored)
        fresh.end = lost[0].base if lost else self.end
        fresh.start = min(self.start, fresh.end)
        vars(self).update(vars(fresh))

    def delete_before(self, offset: int) -> None:
        """Lose the records before `offset`, as retention and DeleteRecords do; producers stay known."""
        self.start = min(max(offset, self.start), self.end)
        self.batches = [stored for stored in self.batches if stored.last >= self.start]
        self.epochs = [
            (epoch, max(first, self.start))
            for (epoch, first), after in zip(self.epochs, [*self.epochs[1:], None], strict=False)
            if after is None or after[1] > self.start
        ]

    def compact(self) -> set[int]:
        """Lose the batches of which no record is the last committed one of its key; returns the offsets that are gone.

        Markers, the last batch before `stable` and what comes later stay. Brokers also take single records of a batch.
        """
        stable = [stored for stored in self.batches if stored.last < self.stable]
        kept = set({key: offset for offset, key, _ in self.committed if offset < self.stable}.values())
        lost = {
            stored.base: range(stored.base, stored.last + 1)
            for stored in stable[:-1]
            if not stored.header.attributes & CONTROL and kept.isdisjoint(range(stored.base, stored.last + 1))
        }
        self.batches = [stored for stored in self.batches if stored.base not in lost]
        return {offset for offsets in lost.values() for offset in offsets}

    # Reading

    def read(self, offset: int, limit: int, until: int, *, whole_first: bool) -> bytes:
        """The bytes from the batch with `offset` on and before `until`, cut at `limit` in the middle of a batch."""
        data = b"".join(stored.data for stored in self.batches if stored.last >= offset and stored.base < until)
        if data and whole_first:
            limit = max(limit, struct.unpack_from(">i", data, 8)[0] + 12)
        return data[:limit]

    def aborted_between(self, offset: int, until: int) -> list[tuple[int, int]]:
        """Producer id and first offset of the aborted transactions that have something in a range."""
        return [(producer, first) for producer, first, last in self.aborted if last >= offset and first < until]

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` and the offset after its last record; -1 and -1 if it is unknown."""
        if self.epochs and epoch == self.epochs[-1][0]:
            return epoch, self.end
        after = [first for known, first in self.epochs if known > epoch]
        before = [known for known, _ in self.epochs if known <= epoch]
        if not after:
            return -1, -1
        return (before[-1] if before else epoch), after[0]

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of an offset; -1 if none is known."""
        return max((epoch for epoch, first in self.epochs if first <= offset), default=-1)

    def at_time(self, timestamp: int) -> tuple[int, int] | None:
        """Offset and timestamp of the first record that is not earlier."""
        for stored in self.batches:
            if stored.header.max_timestamp >= timestamp:
                ((_, records),) = read(stored.data)
                for offset, at, *_ in records:
                    if at is not None and at >= timestamp and offset >= self.start:
                        return offset, at
        return None

    def latest_time(self) -> tuple[int, int] | None:
        """Offset and timestamp of the record with the largest timestamp."""
        times = [
            (at, -offset) for stored in self.batches for offset, at, *_ in read(stored.data)[0][1] if at is not None
        ]
        if not times:
            return None
        at, offset = max(times)
        return -offset, at


def _sequence(base: int, added: int) -> int:
    """A sequence number so many records later; 0 follows the largest."""
    return (base + added) % (1 << 31)


def control_batch(producer_id: int, producer_epoch: int, *, commit: bool) -> bytes:
    """A batch with the marker of a transaction's end."""
    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0)
    record = b"\0\0\0" + bytes([len(key) * 2]) + key + bytes([len(value) * 2]) + value + b"\0"
    body = struct.pack(
        ">hiqqqhii", TRANSACTIONAL | CONTROL, 0, 0, 0, producer_id, producer_epoch, -1, 1
    ) + bytes([len(record) * 2]) + record  # fmt: skip
    return struct.pack(">qiibI", 0, len(body) + 9, -1, 2, crc32c.crc32c(body)) + body
