"""One partition as its leader knows it: its log, its producers, and what of it may be read."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacodec.broker.topics._head import Appended
from kafkacodec.broker.topics.sequences import Batch, Sequences
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
_LAST = (1 << 31) - 1
_LONGEST = (1 << 63) - 1
_TAIL_BYTES = 8 << 20  # in which a producer's batches that it may send again are looked for after a start


class Piece(NamedTuple):
    """Batches that were read, and the aborted transactions in them: producer id and first offset."""

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
    """What is before an offset goes."""

    before: int


class Synced(NamedTuple):
    """Nothing more: what is in the log counts as appended once it is on the disk."""


class Flush(NamedTuple):
    """What makes a partition durable as it was."""

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
        failed: the disk did not take what the system had taken: what of the log is safe is known after a restart only.
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

    # Flushing

    @property
    def must_flush(self) -> bool:
        """Whether so much is not on the disk that the newest records count only when they are (`flush.messages`)."""
        most = self.config.flush_messages
        return most < _LONGEST and self.log.end_offset - self.log.recovery_point >= most

    def flushing(self) -> Flush:
        """What makes durable what is in the log now. Raises OSError."""
        return Flush(self, self.log.flushing())

    def flushed(self, flush: Flush) -> None:
        """It is on the disk."""
        self.log.flushed(flush.flushing)

    # Appending

    def append(self, data: bytearray | memoryview) -> Appended:
        """Append batches as they are. Raises OSError: nothing was appended."""
        return Appended(NONE, self._append(data))

    def _append(self, data: bytearray | memoryview) -> int:
        """The first offset of what was appended."""
        if self.failed:
            raise OSError(errno.EIO, "the log could not be flushed: start the broker anew", self.log.path)
        return self.log.append(data, leader_epoch=self.leader_epoch).base_offset

    def copy(self, data: bytes, leader_epoch: int, start: int) -> None:
        """Append batches of another replica as they are, and let the log start where the other one does.

        Args:
            data: whole batches of one leader epoch.
            leader_epoch: theirs.
            start: where the other log starts.

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
        """Remove what is from an offset on, which another replica does not have. Raises OSError."""
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

    def beginning(self, batch: Produced, now: float) -> None:
        """A batch begins a transaction of its producer here, if it is verified."""
        self._sequences.beginning(batch.producer_id, batch.producer_epoch, batch.base_sequence, now)

    def expire(self, now: float) -> None:
        """Forget the sequences of producers that the log has forgotten."""
        self._sequences.expire(now - self.log.config.producer_id_expiration_ms)

    def delete_before(self, offset: int) -> None:
        """Move the start of the log. Raises OSError."""
        self.log.delete_before(offset)

    # Reading

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool, committed: bool) -> Piece:
        """Batches from the one that has an offset on, up to the end of its segment.

        Args:
            offset: between the start and the end.
            max_bytes: the piece ends here, also within a batch.
            at_least_one: the first batch is whole even if it is larger.
            committed: only what is before the last stable offset, with the aborted transactions in it.
        """
        upto = self.last_stable_offset if committed else None
        if max_bytes <= 0 and not at_least_one:
            return Piece(memoryview(b""), ())
        found = self.log.read(offset, max_bytes, upto=upto, at_least_one=at_least_one)
        return Piece(found.view(), self.log.aborted_in(found, offset) if committed else ())

    def offsets_before(self, time: int, most: int, now: float) -> list[int]:
        """The first offsets of segments that were last written before a time in ms, and the end; newest first.

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
        """The error for a client that takes this for the leader's epoch; -1 if it does not say."""
        if epoch < 0 or epoch == self.leader_epoch:
            return int(NONE)
        newer = epoch > self.leader_epoch
        return int(UNKNOWN_LEADER_EPOCH if newer else FENCED_LEADER_EPOCH)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of a record, or the present one at the end."""
        found = self.log.epoch_at(offset)
        return self.leader_epoch if found < 0 else found

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The newest epoch that is not above `epoch`, and where it ends; -1 and -1 if unknown."""
        return self.log.epoch_end(epoch)
