"""One partition at its leader: its log, its producers, and its visible end."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafkacodec.broker.topics._head import Appended
from kafkacodec.broker.topics.sequences import Batch, Sequences
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import FENCED_LEADER_EPOCH, NONE, UNKNOWN_LEADER_EPOCH
from kafkacodec.log.growing._batches import batch_heads
from kafkacodec.records.broker_batches import control_batch

if TYPE_CHECKING:
    from kafkacodec.broker.topics._head import Produced
    from kafkacodec.broker.topics.configs import TopicConfig
    from kafkacodec.log.growing.flushing import Flushing
    from kafkacodec.log.growing.log import PartitionLog

__all__ = ["Appended", "Cut", "EndMarker", "Flush", "Partition", "Piece", "Synced"]

_LATEST, _EARLIEST = -1, -2
_NO_EPOCH = -1
_LAST = (1 << 31) - 1
_LONGEST = (1 << 63) - 1
_TAIL_BYTES = 8 << 20  # to search for a producer's repeatable batches after a start


class Piece(NamedTuple):
    """Batches of a read, and the aborted transactions in them: producer id and first offset."""

    records: memoryview
    aborted: Sequence[tuple[int, int]]


class EndMarker(NamedTuple):
    """The end of a transaction, which is written as a control batch."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    timestamp: int

    def batch(self) -> bytearray:
        """The control batch."""
        return bytearray(
            control_batch(
                "commit" if self.committed else "abort", offset=0, producer_id=self.producer_id,
                producer_epoch=self.producer_epoch, coordinator_epoch=self.coordinator_epoch, timestamp=self.timestamp,
            )
        )  # fmt: skip


class Cut(NamedTuple):
    """Remove records before an offset."""

    before: int


class Synced(NamedTuple):
    """Append nothing; the log's current contents count as appended once they are on the disk."""


class Flush(NamedTuple):
    """The work that makes a partition's contents durable."""

    partition: Partition
    flushing: Flushing

    def sync(self) -> None:
        """Wait for the disk; also in another thread. Raises OSError: nothing more is appended to the partition."""
        try:
            self.flushing.sync()
        except OSError:
            self.partition.failed = True
            raise


class Partition:
    """A partition.

    Args:
        topic: the topic's name.
        topic_id: its id.
        number: the partition's number.
        log: its log.
        leader_epoch: of this broker.
        config: of the topic; it may be replaced.

    Attributes:
        failed: a flush failed, so only a restart can find the safe part of the log.
    """

    def __init__(
        self, topic: str, topic_id: uuid.UUID, number: int, log: PartitionLog, leader_epoch: int, config: TopicConfig
    ) -> None:
        self.key = (topic, number)
        self.topic_id, self.log, self.leader_epoch, self.config = topic_id, log, leader_epoch, config
        self._sequences = Sequences(log.producers, self._newest)
        self.failed = False

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self.log.start_offset

    @property
    def high_watermark(self) -> int:
        """The offset of the next record: there is no other replica."""
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the end."""
        return self.log.last_stable_offset

    @property
    def size(self) -> int:
        """The bytes of the log."""
        return self.log.size_in_bytes

    def is_open(self, producer_id: int) -> bool:
        """Whether a producer has an open transaction here."""
        return producer_id in self.log.open_transactions

    def continues(self, batch: Produced) -> bool:
        """Whether a batch belongs to the open transaction of its producer, by the epoch."""
        number = batch.producer_id
        return self.is_open(number) and self.log.producers[number].producer_epoch == batch.producer_epoch

    def is_fenced(self, batch: Produced) -> bool:
        """Whether a batch has an older epoch than its producer has here."""
        known = self.log.producers.get(batch.producer_id)
        return known is not None and batch.producer_epoch < known.producer_epoch

    # Flushing

    @property
    def must_flush(self) -> bool:
        """Whether there are so many unflushed records that the newest count only when they are on the disk
        (`flush.messages`).
        """
        most = self.config.flush_messages
        return most < _LONGEST and self.log.end_offset - self.log.recovery_point >= most

    def flushing(self) -> Flush:
        """Return the work that makes the log's current contents durable. Raises OSError."""
        return Flush(self, self.log.flushing())

    def flushed(self, flush: Flush) -> None:
        """It is on the disk."""
        self.log.flushed(flush.flushing)

    # Appending

    def append(self, data: bytearray | memoryview) -> Appended:
        """Append batches unchanged. Raises OSError: nothing was appended."""
        return Appended(NONE, self._append(data))

    def end(self, marker: EndMarker) -> Appended:
        """End a transaction. Raises OSError: as before."""
        found = self.append(marker.batch())
        self._sequences.ended(marker.producer_id, marker.producer_epoch)
        return found

    def _append(self, data: bytearray | memoryview) -> int:
        """Append, and return the first offset."""
        if self.failed:
            raise OSError(errno.EIO, "the log could not be flushed: start the broker anew", self.log.path)
        return self.log.append(data, leader_epoch=self.leader_epoch).base_offset

    def copy(self, data: bytes, leader_epoch: int, start: int) -> None:
        """Append batches of another replica unchanged, and let the log start at the other's start.

        Args:
            data: whole batches of one leader epoch.
            leader_epoch: of the batches.
            start: the start of the other log.

        Raises:
            DecodeError, EncodeError: not whole batches, or below the end. Those before are appended.
            OSError: from the file system. As before.
        """
        if self.failed:
            raise OSError(errno.EIO, "the log could not be flushed: start the broker anew", self.log.path)
        batches = memoryview(bytearray(data))
        for head in batch_heads(batches, 0, len(batches), len(batches)):
            one = batches[head.position : head.position + head.size]
            self.log.append(one, leader_epoch=leader_epoch, base_offset=head.base_offset)
        if start > self.log.start_offset:
            self.log.delete_before(min(start, self.log.end_offset))

    def truncate(self, offset: int) -> None:
        """Remove records from an offset on, which another replica lacks. Raises OSError."""
        self.log.truncate(offset)
        self._sequences = Sequences(self.log.producers, self._newest)

    def produce(self, batch: Produced) -> Appended:
        """Append a batch of a client, unless its producer's sequence is wrong. Raises OSError."""
        if batch.producer_id < 0:
            return Appended(NONE, self._append(batch.data), batch.append_time)
        verdict = self._sequences.verdict(batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.count)
        if isinstance(verdict, Batch):  # it is there already
            return Appended(NONE, verdict.base_offset, verdict.timestamp)
        if verdict:
            return Appended(verdict)
        base = self._append(batch.data)
        if batch.is_transactional:
            self._sequences.began(batch.producer_id)
        last = (batch.base_sequence + batch.count - 1) & _LAST
        self._sequences.appended(
            batch.producer_id,
            Batch(batch.producer_epoch, batch.base_sequence, last, base, base + batch.count - 1, batch.max_timestamp),
        )
        return Appended(NONE, base, batch.append_time)

    def _newest(self) -> Iterator[tuple[int, Batch]]:
        """The newest batches of producers, with their ids."""
        for head in self.log.last_heads(_TAIL_BYTES):
            if head.producer_id >= 0 and head.base_sequence >= 0:
                first, last = head.base_offset, head.last_offset
                sequence = (head.base_sequence + last - first) & _LAST
                yield (
                    head.producer_id,
                    Batch(head.producer_epoch, head.base_sequence, sequence, first, last, head.max_timestamp),
                )

    def beginning(self, batch: Produced, now: float, *, adds: bool) -> None:
        """Note that a batch will start a transaction of its producer here, if it is verified; `adds` says that it also
        adds the partition to the transaction.
        """
        self._sequences.beginning(batch.producer_id, batch.producer_epoch, batch.base_sequence, now, adds=adds)

    def expire(self, now: float) -> None:
        """Forget sequences of expired producers."""
        self._sequences.expire(now - self.log.config.producer_id_expiration_ms)

    def delete_before(self, offset: int) -> None:
        """Move the start of the log. Raises OSError."""
        self.log.delete_before(offset)

    # Reading

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool, committed: bool) -> Piece:
        """Return batches from the one with an offset on, up to the end of its segment.

        Args:
            offset: between the start and the end.
            max_bytes: the piece ends here, also within a batch.
            at_least_one: the first batch is whole even if it is larger.
            committed: whether to stop at the last stable offset, and return the aborted transactions.
        """
        upto = self.last_stable_offset if committed else None
        if max_bytes <= 0 and not at_least_one:
            return Piece(memoryview(b""), ())
        found = self.log.read(offset, max_bytes, upto=upto, at_least_one=at_least_one)
        return Piece(found.view(), self.log.aborted_in(found, offset) if committed else ())

    def offsets_before(self, time: int, most: int, now: float) -> list[int]:
        """Return the first offsets of segments last written before a time in ms, and the end; newest first.

        -1 means all, -2 the start only.
        """
        found = [(max(base, self.start_offset), written) for base, written in self.log.written()]
        if found and self.log.end_offset > found[-1][0]:
            found.append((self.log.end_offset, int(now)))
        if time == _EARLIEST:
            found = found[:1]
        elif time != _LATEST:
            found = [one for one in found if one[1] <= time]
        return list(dict.fromkeys(offset for offset, _ in reversed(found)))[:most]

    def first_at(self, time: int) -> tuple[int, int] | None:
        """Offset and time of the first record at or after a time in ms."""
        found = self.log.offset_for_timestamp(time)
        return None if found is None else (found.offset, found.timestamp)

    def latest_time(self) -> tuple[int, int] | None:
        """Offset and time of the first record with the greatest time."""
        found = self.log.max_timestamp()
        return None if found is None else (found.offset, found.timestamp)

    # Epochs

    def epoch_error(self, epoch: int) -> int:
        """Return the error for a client's leader epoch; -1 is no epoch."""
        if epoch in (_NO_EPOCH, self.leader_epoch):
            return int(NONE)
        newer = epoch > self.leader_epoch
        return int(UNKNOWN_LEADER_EPOCH if newer else FENCED_LEADER_EPOCH)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of a record, or the present one at the end."""
        found = self.log.epoch_at(offset)
        return self.leader_epoch if found < 0 else found

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the newest epoch not above `epoch`, and its end; -1 and -1 if unknown."""
        return self.log.epoch_end(epoch)
