"""A stream's place in each partition, as Spark keeps it in the checkpoint, and whether the log still has that place.

These functions decide; they read no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening.identity import BatchMark, cut_before, epoch_at
from kafkacodec.spark.errors import LostOffsets
from kafkacodec.spark.reading.options import TopicPartition

__all__ = [
    "Loss",
    "Observed",
    "Position",
    "advance",
    "check",
    "deleted_before",
    "dump",
    "parse",
    "resume",
    "share",
    "starts",
    "stays",
    "vanished",
]

# topic -> partition (as text) -> the next offset to read, or an object with the fields of `Position`. A topic's id
# stands beside its partitions, once: Spark waits 40 ms whenever it sends more than 64 KiB of offsets to a source.
Offsets = dict[str, dict[str, "int | str | dict[str, int | str | None]"]]

TOPIC_ID = "topicId"
"""The key of a topic's id, beside its partitions and in those of another id."""


@dataclass(frozen=True)
class Position:
    """How far a partition has been read.

    Attributes:
        offset (int): the next offset to read.
        topic_id (str | None): the topic's id; None if unknown.
        leader_epoch (int | None): the leader epoch of the offset before; None if unknown.
        crc (int | None): the checksum of the batch that has the offset before; None if unknown.
        start (int | None): where the micro-batch that ends here starts, if that is not where another one ended: the
            query or the partition is new, or offsets were lost.
    """

    offset: int
    topic_id: str | None = None
    leader_epoch: int | None = None
    crc: int | None = None
    start: int | None = None


class Observed(NamedTuple):
    """A partition's log as it is now.

    Attributes:
        start_offset (int): the log start offset.
        end_offset (int): the log end offset.
        readable_to (int): where reading ends: the log end, the high watermark or the last stable offset.
        topic_id (str | None): the topic's id; None if unknown.
        epochs (tuple[LeaderEpoch, ...]): the leader epochs; empty if unknown.
    """

    start_offset: int
    end_offset: int
    readable_to: int
    topic_id: str | None = None
    epochs: tuple[LeaderEpoch, ...] = ()


class Loss(NamedTuple):
    """Offsets that can no longer be read.

    Attributes:
        what (str): what happened, with ``{name}`` for the partition.
        go_on (str): where reading continues.
    """

    what: str
    go_on: str

    def error(self, key: TopicPartition) -> LostOffsets:
        """The error: what happened to which offsets, and how to continue."""
        return LostOffsets(self.what.format(name=f"{key[0]}-{key[1]}"), self.go_on)

    def warning(self, key: TopicPartition) -> str:
        """The same as a warning, if reading continues."""
        return f"{self.what.format(name=f'{key[0]}-{key[1]}')}; reading continues {self.go_on}"


_WRITTEN_AGAIN = "was truncated and written again in the same leader epoch, at an earlier offset that is unknown"

_KEYS = {"leader_epoch": "leaderEpoch", "crc": "crc", "start": "from"}


def parse(offsets: Offsets) -> dict[TopicPartition, Position]:
    """The positions in a checkpoint; those of earlier versions are plain offsets, or have an id each.

    Raises:
        KafkaCodecError: it has another form.
    """
    found = {}
    try:
        for topic, partitions in offsets.items():
            of_topic = partitions.get(TOPIC_ID)
            for number, value in partitions.items():
                if number == TOPIC_ID:
                    continue
                fields: Any = {"offset": value} if isinstance(value, int) else value
                known = {name: fields[key] for name, key in _KEYS.items() if key in fields}
                found[topic, int(number)] = Position(int(fields["offset"]), fields.get(TOPIC_ID, of_topic), **known)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise KafkaCodecError(f"the checkpoint has offsets of another format: {str(offsets)[:200]}") from None
    return found


def dump(positions: Mapping[TopicPartition, Position]) -> Offsets:
    """The positions for a checkpoint. The same positions give the same JSON, by which Spark sees that none is new."""
    offsets: Offsets = {}
    for topic, number in sorted(positions):
        position = positions[topic, number]
        partitions = offsets.get(topic)
        if partitions is None:
            partitions = offsets[topic] = {} if position.topic_id is None else {TOPIC_ID: position.topic_id}
        known = {key: getattr(position, name) for name, key in _KEYS.items()}
        more: dict[str, int | str | None] = {key: value for key, value in known.items() if value is not None}
        if position.topic_id != partitions.get(TOPIC_ID):
            more[TOPIC_ID] = position.topic_id
        partitions[str(number)] = {"offset": position.offset, **more} if more else position.offset
    return offsets


def resume(position: Position | None, log: Observed, batch: BatchMark | None = None) -> tuple[int, Loss | None]:
    """The offset at which reading continues, and what was lost if that is not the position.

    Args:
        position: None for a new partition.
        log: the partition's log.
        batch: the batch that now has the offset before the position; None if unknown.
    """
    if position is None:
        return log.start_offset, None
    offset = position.offset
    if position.topic_id and log.topic_id and position.topic_id != log.topic_id:
        what = f"the topic of {{name}}, which was read up to offset {offset}, was deleted and created again"
        return log.start_offset, Loss(what, f"with the new topic from offset {log.start_offset}")
    cut = _cut(position.leader_epoch, offset, log)
    if cut is not None:
        cut = max(cut, log.start_offset)
        return cut, Loss(f"{{name}}, which was read up to offset {offset}, was truncated at offset {cut}", _at(cut))
    if offset < log.start_offset:
        return log.start_offset, _deleted(offset, log.start_offset)
    if batch is not None and _is_another(position, batch):
        first = max(batch.base_offset, log.start_offset)
        return first, Loss(f"{{name}}, which was read up to offset {offset}, {_WRITTEN_AGAIN}", _at(first))
    return offset, None


def deleted_before(first: int | None, log_start_offset: int) -> Loss | None:
    """What was deleted of a log that is to be read from an offset; None stands for its start."""
    return None if first is None or first >= log_start_offset else _deleted(first, log_start_offset)


def check(
    first: int, end: Position, log: Observed | None, batch: BatchMark | None = None
) -> tuple[int, int, Loss | None]:
    """Which offsets of [first, end) the log still has, and what happened to the others.

    Args:
        first: where a micro-batch starts.
        end: where it ends, as it was when the micro-batch was planned.
        log: None if the partition no longer exists.
        batch: the batch that now has the last offset; None if unknown.
    """
    planned = f"offsets {first} to {end.offset - 1} of {{name}} cannot be read"
    if log is None:
        return first, first, Loss(f"{planned}: the partition was deleted", "without them")
    if end.topic_id and log.topic_id and end.topic_id != log.topic_id:
        what = f"{planned}: the topic was deleted and created again"
        return first, first, Loss(what, "with the new topic")
    cut = _cut(end.leader_epoch, end.offset, log)
    if cut is not None:
        return first, max(first, cut), _truncated(max(first, cut), end.offset)._replace(go_on=_at(cut))
    if first < log.start_offset:
        start = min(log.start_offset, end.offset)
        return start, end.offset, _deleted(first, start)
    if batch is not None and _is_another(end, batch):
        cut = max(first, batch.base_offset)
        return (
            first,
            cut,
            Loss(f"offsets {cut} to {end.offset - 1} of {{name}} cannot be read: the log {_WRITTEN_AGAIN}", _at(cut)),
        )
    return first, end.offset, None


def vanished(
    spans: Mapping[TopicPartition, tuple[int, int]], covered: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, Loss]:
    """What was deleted or truncated after `check`, while the tasks of a micro-batch were planned.

    Args:
        spans: the first offset to read and the one to stop before.
        covered: likewise, what there are files of; no entry if there are none.
    """
    losses = {}
    for key, (first, stop) in spans.items():
        begin, end = covered.get(key, (stop, stop))
        if begin > first:
            losses[key] = _deleted(first, min(begin, stop))
        elif end < stop:
            losses[key] = _truncated(end, stop)
    return losses


def _deleted(first: int, start: int) -> Loss:
    return Loss(f"offsets {first} to {start - 1} of {{name}} were deleted before they were read", _at(start))


def _truncated(cut: int, end: int) -> Loss:
    return Loss(
        f"offsets {cut} to {end - 1} of {{name}} cannot be read: the log was truncated at offset {cut}", _at(cut)
    )


def stays(position: Position | None, first: int, end: int) -> bool:
    """Whether a micro-batch that reads [first, end) leaves the position as it is."""
    return position is not None and first == end == position.offset


def advance(position: Position | None, first: int, end: int, log: Observed, batch: BatchMark | None = None) -> Position:
    """The position after a micro-batch that reads [first, end); the same one if nothing changes.

    Args:
        position: the one before; None for a new partition.
        first, end: what is read.
        log: the partition's log.
        batch: the batch that has the last offset; None if unknown.
    """
    if position is not None and stays(position, first, end):
        return position
    topic_id = log.topic_id or (position.topic_id if position is not None else None)
    # Where a query starts is kept, since Spark asks again for it if the first micro-batch is repeated.
    goes_on = position is not None and first == position.offset != position.start
    crc = None if batch is None else batch.crc
    return Position(end, topic_id, epoch_at(log.epochs, end - 1), crc, None if goes_on else first)


def starts(
    before: Mapping[TopicPartition, Position], after: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, int]:
    """The first offset of each partition that has offsets to be read between two checkpoints."""
    wanted = {}
    for key, end in after.items():
        old = before.get(key)
        first = end.start if end.start is not None else 0 if old is None else old.offset
        if end != old and first < end.offset:
            wanted[key] = first
    return wanted


def share(available: Mapping[TopicPartition, int], most: int) -> dict[TopicPartition, int]:
    """At most `most` offsets in total, shared among the partitions in proportion to what each has."""
    total, left = sum(available.values()), most
    if total <= most:
        return dict(available)
    shares = {}
    for key, count in sorted(available.items(), key=lambda item: (-item[1], item[0])):  # the longest wait first
        shares[key] = min(count, max(1, count * most // total), left)
        left -= shares[key]
    return shares


def _cut(epoch: int | None, end_offset: int, log: Observed) -> int | None:
    """Where the log was truncated, if it was truncated before `end_offset`."""
    cut = cut_before(epoch, log.epochs, end_offset)
    if cut is None and log.end_offset >= end_offset:
        return None
    return min(log.end_offset, end_offset if cut is None else cut)


def _is_another(position: Position, batch: BatchMark) -> bool:
    """Whether the batch before the position is not the one that was read; one that the cleaner changed may be."""
    return position.crc is not None and batch.whole and batch.crc != position.crc


def _at(offset: int) -> str:
    return f"at offset {offset}"
