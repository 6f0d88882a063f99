"""A partition with several replicas, read as one log; `replicas` decides which offsets come from which replica."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kafkacodec.errors import KafkaCodecError, MissingOffsets
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening import StoredFile, open_file
from kafkacodec.log.opening.identity import BatchMark, LogIdentity
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.planning import Portion, end_of, least
from kafkacodec.log.partitions.replicas import Part, Replica, merge
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.reading.transactions import Transactions, TransactionTracker
from kafkacodec.log.segments.walk import Damage, first_batches, walk, walk_over_damage
from kafkacodec.shown import repr_of

__all__ = ["MergedPartition", "observe"]

NO_EPOCH = -1


class MergedPartition(Partition):
    """Replicas of one partition, copied from several brokers, read as the log that the cluster would keep (KIP-101).

    `path` and all that does not concern reading records are those of the replica that the others would follow.

    Args:
        replicas: the directories of the replicas, at least one; copies may be from different times.
        threads: how many files to open at a time, where there are many; None: the number of processors.

    Attributes:
        replicas (tuple[Partition, ...]): as given.
        parts (tuple[Part, ...]): the offsets that are read from each replica.

    Raises:
        DecodeError, OSError: a replica cannot be read.
    """

    def __init__(self, replicas: Sequence[Partition], *, threads: int | None = 1) -> None:
        self.replicas = tuple(replicas)
        self._threads = threads
        self._merged = merge([observe(replica, threads=threads) for replica in replicas])
        self.parts = self._merged.parts
        leader = self.replicas[self._merged.leader]
        self._leader = leader, leader._identity()
        super().__init__(
            leader.path,
            topic=leader.topic,
            partition=leader.partition,
            state=leader.state,
            log_start_offset=max(replica.log_start_offset for replica in self.replicas),
        )
        self.segments = leader.segments

    def __repr__(self) -> str:
        return repr_of(self, *(replica.path for replica in self.replicas))

    @property
    def high_watermark(self) -> int | None:
        """The largest high watermark of the replicas, as far as they hold the log that is read; None if unknown."""
        return self._merged.high_watermark

    def start_offset(self) -> int:
        """The first offset of the log."""
        return max(self.parts[0].first_offset, self.log_start_offset)

    def end_offset(self) -> int:
        """The log end offset."""
        return self.parts[-1].end_offset

    def _identity(self) -> LogIdentity:
        """As `Partition._identity`, with the leader epochs of all parts while the leader has the same as before."""
        leader, then = self._leader
        now = leader._identity()
        epochs = self._merged.epochs if now.epochs == then.epochs else now.epochs
        return now._replace(epochs=epochs, start_offset=max(now.start_offset, self.log_start_offset))

    def _relisted(self) -> MergedPartition:
        """The same partition as its directories are now."""
        return MergedPartition([replica._relisted() for replica in self.replicas], threads=self._threads)

    def _batch_at(self, offset: int) -> BatchMark | None:
        """As `Partition._batch_at`, in the replica that the offset is read from."""
        for part, _, _ in self._between(offset, offset + 1):
            return self.replicas[part.replica]._batch_at(offset)
        return None

    def transactions(self, start_offset: int | None = None, end_offset: int | None = None) -> Transactions:
        """The aborted and open transactions that matter for a span of the log."""
        return self._transactions(start_offset, end_offset, committed=True)

    def _transactions(self, start_offset: int | None, end_offset: int | None, *, committed: bool) -> Transactions:
        tracker = TransactionTracker(committed)
        begin = None
        for part, first, _ in self._between(start_offset, None):
            begin = tracker.resume_before(self.replicas[part.replica].path, first)
            break
        for part, first, end in self._between(begin, None):
            replica = self.replicas[part.replica]
            for segment in replica._segments_between(first, end):
                tracker.read_segment(segment, first, least(end, end_of(replica, segment)), end_offset)
                if end_offset is not None and tracker.decided(end_offset):
                    return tracker.result()
        return tracker.result()

    def _portions(self, start_offset: int | None, end_offset: int | None) -> Iterator[Portion]:
        """The replicas that the offsets of a span are read from, in order."""
        for part, first, end in self._between(start_offset, end_offset):
            if part is self.parts[-1]:
                yield Portion(self.replicas[part.replica], first, end_offset)
            else:
                yield Portion(self.replicas[part.replica], first, end, following=part.end_offset)

    def _between(self, start_offset: int | None, end_offset: int | None) -> Iterator[tuple[Part, int, int]]:
        """The parts that have offsets in a span, and these offsets."""
        for part in self.parts:
            first = part.first_offset if start_offset is None else max(part.first_offset, start_offset)
            end = part.end_offset if end_offset is None else min(part.end_offset, end_offset)
            if first < end:
                yield part, first, end


def observe(partition: Partition, *, threads: int | None = 1) -> Replica:
    """The state of a replica, from its files. Opens every segment to find missing offsets between them.

    Segments that have been looked at before and have not changed are not opened again.

    Raises:
        DecodeError, OSError: they cannot be read.
    """
    end = partition.end_offset()
    missing = [error for error in partition.breaks(threads=threads) if isinstance(error, MissingOffsets)]
    return Replica(
        partition.start_offset(),
        end,
        tuple(epoch for epoch in _epochs(partition) if epoch.start_offset <= end),
        partition.high_watermark,
        tuple((gap.first_offset, gap.end_offset) for gap in missing),
        partition.cleaned_to,
    )


def _epochs(partition: Partition) -> list[LeaderEpoch]:
    """The leader epochs from the checkpoint, and later ones from the batches: a copy of it may be older, or missing."""
    try:
        known = partition.leader_epochs
    except (OSError, KafkaCodecError):
        known = []
    newest = known[-1].epoch if known else NO_EPOCH
    later: list[LeaderEpoch] = []
    for segment in reversed(partition.segments):
        with open_file(segment.path) as file:
            batch = first_batches(file, 0)
            if not len(batch):
                continue
            if not later and _last_epoch(file, segment) <= newest:
                break
            first = int(batch["partition_leader_epoch"][0])
            if later and first == later[0].epoch:  # and no other in between
                later[0] = LeaderEpoch(first, int(batch["base_offset"][0]))
            else:
                found = _epochs_after(file, newest)
                later = found + [epoch for epoch in later if not found or epoch.epoch > found[-1].epoch]
        if first <= newest:
            break
    return [*known, *later]


def _last_epoch(file: StoredFile, segment: Segment) -> int:
    """The leader epoch of a segment's last batch."""
    lookup = Lookup(file, segment.base_offset)
    last = lookup.end_after_damage()[1]
    epoch = NO_EPOCH
    for headers in walk(file, 0 if last is None else lookup.start_for_offset(last)):
        epoch = max(epoch, int(headers["partition_leader_epoch"].max(initial=NO_EPOCH)))
    return epoch


def _epochs_after(file: StoredFile, newest: int) -> list[LeaderEpoch]:
    """The leader epochs of a segment's batches that are later than one."""
    found: list[LeaderEpoch] = []
    for headers in walk_over_damage(file):
        if isinstance(headers, Damage):
            continue
        epochs = headers["partition_leader_epoch"]
        for i in np.flatnonzero(np.diff(epochs, prepend=NO_EPOCH) > 0):
            if epochs[i] > (found[-1].epoch if found else newest):
                found.append(LeaderEpoch(int(epochs[i]), int(headers["base_offset"][i])))
    return found
