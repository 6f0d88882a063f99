"""Choice of the replica to read each offset from, so that the replicas make one log. Decides; reads no files.

A leader epoch has one leader, so a leader epoch and an offset together name one record, whatever replica it is in
(KIP-101). The replica with the newest epoch, and of those the longest, has the log that the others would follow.
Records that another replica has after the point where they part were never in that log, or would be truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening.identity import end_of_epoch

__all__ = ["MergedLog", "Part", "Replica", "agreed_end", "merge"]

Span = tuple[int, int]
"""A first offset, and the one after the last."""


class Replica(NamedTuple):
    """The known facts about one replica.

    Attributes:
        start_offset, end_offset (int): its first offset, and the one after its last.
        epochs (tuple[LeaderEpoch, ...]): in order; empty if unknown.
        high_watermark (int | None): None if unknown.
        missing (tuple[Span, ...]): offsets in between that it has lost; those removed by compaction do not count.
        cleaned_to (int): where the log cleaner continues; 0 if it never cleaned this replica.
    """

    start_offset: int
    end_offset: int
    epochs: tuple[LeaderEpoch, ...] = ()
    high_watermark: int | None = None
    missing: tuple[Span, ...] = ()
    cleaned_to: int = 0


class Part(NamedTuple):
    """Offsets to read from one replica.

    Attributes:
        replica (int): its place among the arguments of `merge`.
        first_offset, end_offset (int): the first offset, and the one after the last.
    """

    replica: int
    first_offset: int
    end_offset: int


class MergedLog(NamedTuple):
    """The log that replicas have together.

    Attributes:
        leader (int): the replica that the others would follow.
        parts (tuple[Part, ...]): by offset, one after another, without gaps between them; at least one.
        epochs (tuple[LeaderEpoch, ...]): of all parts.
        high_watermark (int | None): the largest one known of the log that was chosen.
    """

    leader: int
    parts: tuple[Part, ...]
    epochs: tuple[LeaderEpoch, ...]
    high_watermark: int | None


def merge(replicas: Sequence[Replica]) -> MergedLog:
    """Choose, for every offset, the replica to read it from.

    The replica that the others would follow is read as far as it goes; the others add offsets that it has lost, or that
    were deleted at its start, as far as they hold the same log. Where the cleaner worked at its start nothing is added
    before it: values would come back whose tombstones are gone. Offsets that no replica has are in the part of one
    whose reader finds that they are missing.
    """
    order = sorted(range(len(replicas)), key=lambda i: (_last_epoch(replicas[i]), replicas[i].end_offset), reverse=True)
    leader = replicas[order[0]]
    epochs, end, start = leader.epochs, leader.end_offset, leader.start_offset
    closed = leader.cleaned_to > start
    marks = [] if leader.high_watermark is None else [min(leader.high_watermark, end)]
    usable = [Part(order[0], start, end)]
    for i in order[1:]:
        other = replicas[i]
        agreed = agreed_end(other.epochs, other.end_offset, epochs, end)
        if other.high_watermark is not None:
            marks.append(min(other.high_watermark, agreed))
        first = max(other.start_offset, start) if closed else other.start_offset
        if first < agreed:
            usable.append(Part(i, first, agreed))
            if first < start:
                epochs = _joined(other.epochs, epochs, start)
            closed = closed or (first < start and other.cleaned_to > first)
            start = min(start, first)
    parts = _choose(usable, [replicas[part.replica].missing for part in usable], end)
    return MergedLog(order[0], tuple(parts), epochs, max(marks, default=None))


def agreed_end(
    epochs: Sequence[LeaderEpoch], end_offset: int, others: Sequence[LeaderEpoch], other_end_offset: int
) -> int:
    """The offset up to which two replicas hold the same log, as far as they have it.

    It is where the newest epoch that both have ends in one of them. Where epochs are unknown, replicas are taken as
    equal.
    """
    shortest = min(end_offset, other_end_offset)
    if not epochs or not others:
        return shortest
    common = {e.epoch for e in epochs} & {e.epoch for e in others}
    if not common:  # one begins after the other's last epoch
        return min(shortest, max(epochs[0], others[0]).start_offset)
    newest = max(common)
    ends = end_of_epoch(epochs, newest), end_of_epoch(others, newest)
    return min([shortest, *(end for end in ends if end is not None)])


def _last_epoch(replica: Replica) -> int:
    return replica.epochs[-1].epoch if replica.epochs else -1


def _joined(older: Sequence[LeaderEpoch], epochs: Sequence[LeaderEpoch], start_offset: int) -> tuple[LeaderEpoch, ...]:
    """The epochs of a log that begins with another replica's offsets, up to `start_offset`."""
    before = [e for e in older if e.start_offset < start_offset]
    return (*before, *(e for e in epochs if not before or e.epoch > before[-1].epoch))


def _choose(usable: Sequence[Part], missing: Sequence[Sequence[Span]], end: int) -> Iterator[Part]:
    """For every offset before the end the first of the parts that has it.

    Args:
        usable: a part of each replica, the best one first.
        missing: what each of them has lost.
        end: where the log ends.
    """
    held = [
        list(_without((part.first_offset, part.end_offset), lost)) for part, lost in zip(usable, missing, strict=True)
    ]
    starts = min(part.first_offset for part in usable)
    cuts = sorted({starts, end, *(at for spans in held for span in spans for at in span)})
    next_span = [0] * len(held)
    current: Part | None = None
    for first, stop in pairwise(cuts):
        chosen = None
        for i, spans in enumerate(held):
            while next_span[i] < len(spans) and spans[next_span[i]][1] <= first:
                next_span[i] += 1
            if chosen is None and next_span[i] < len(spans) and spans[next_span[i]][0] <= first:
                chosen = i
        if chosen is None:  # lost everywhere
            chosen = next((i for i, p in enumerate(usable) if p.first_offset <= first < p.end_offset), None)
        replica = usable[chosen].replica if chosen is not None else current.replica if current else usable[0].replica
        if current is not None and current.replica == replica:
            current = current._replace(end_offset=stop)
            continue
        if current is not None:
            yield current
        current = Part(replica, first, stop)
    yield current or usable[0]


def _without(span: Span, missing: Sequence[Span]) -> Iterator[Span]:
    """The parts of a span outside of the missing ones."""
    first, end = span
    for lost_first, lost_end in sorted(missing):
        if first < min(lost_first, end):
            yield first, min(lost_first, end)
        first = max(first, lost_end)
    if first < end:
        yield first, end
