"""The driver's view of a partition's log: its bounds, its identity, and the offsets that the files of planned tasks
cover.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkacodec.log import Partition, SegmentRange
from kafkacodec.log.opening.identity import BatchMark, LogIdentity
from kafkacodec.log.partitions.each_once import steadily
from kafkacodec.log.partitions.inside import batch_at, identity_of_log, readable_end_offset, relisted, unless_unreadable
from kafkacodec.spark.reading.checkpoint import Observed
from kafkacodec.spark.reading.options import ReadOptions, TopicPartition
from kafkacodec.spark.reading.planning import readable_end

__all__ = ["MAX_TRIES", "batch_before", "covered", "key_of", "observe", "topic_id"]

MAX_TRIES = 10
"""How often a partition is looked at, or a micro-batch planned, again if leaders change meanwhile."""


def observe(partition: Partition, options: ReadOptions) -> tuple[Partition, Observed]:
    """A partition as it is now, and its log."""
    identity = identity_of_log(partition)
    for _ in range(MAX_TRIES):
        end = readable_end_offset(partition) if options.permissive else partition.end_offset()
        readable, start = min(end, readable_end(partition, options)), partition.start_offset()
        again = identity_of_log(partition)
        if again == identity:
            break
        identity, partition = again, relisted(partition)  # a new leader: the end may be that of the log before
    return partition, Observed(start, end, readable, topic_id(identity), identity.epochs)


def covered(tasks: Iterable[Sequence[SegmentRange]]) -> dict[TopicPartition, tuple[int, int]]:
    """The offsets of each partition for which the tasks have files, whether or not there are records."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    for piece in (piece for task in tasks for piece in task):
        begin, end = max(piece.base_offset or 0, piece.start_offset or 0), piece.offsets[1]
        key = key_of(piece)
        first, last = found.get(key, (begin, end))
        found[key] = min(first, begin), max(last, end)
    return found


def key_of(place: Partition | SegmentRange) -> TopicPartition:
    """The topic and number of a partition or of the partition of a range."""
    return place.topic or "", -1 if place.partition is None else place.partition


def topic_id(identity: LogIdentity) -> str | None:
    """The topic's id as text; None if unknown."""
    return None if identity.topic_id is None else str(identity.topic_id)


def batch_before(partition: Partition, offset: int) -> BatchMark | None:
    """The batch that has the offset before this one; None if it is unknown, as in a segment that cannot be read."""
    found = None
    if offset:
        with unless_unreadable(partition):
            found = steadily(partition, lambda now: batch_at(now, offset - 1))
    return found
