"""Choice of the uploads that make a partition's log: leaders may upload the same offsets, and some were truncated
later.

A broker looks up an offset by its leader epoch in the log as it is now (KIP-405, `RemoteLogMetadataCache`), and takes
the upload that begins nearest before it. Here the log is what the newest upload belongs to: that of the highest leader
epoch, then of the highest offset. Its leader epochs go back to the start of the log. Other uploads are compared:

- one whose records were all written under other leader epochs than the log has at their offsets is of a log that was
  truncated;
- one whose offsets another has too, of a later leader or in a larger segment, is not needed;
- one whose end was truncated is read up to the cut, or to where the next one begins if that is before it;
- of others that overlap, each is read up to where the next one begins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.tiered.manifest import Manifest

__all__ = ["Reading", "in_the_log"]


class Reading(NamedTuple):
    """The part of the log that an upload has: its offsets before `end`."""

    upload: Manifest
    end: int

    @property
    def is_cut(self) -> bool:
        """Whether the upload has more, of a log that was truncated at `end`."""
        return self.end <= self.upload.end_offset


def in_the_log(uploads: Sequence[Manifest], history: Callable[[Manifest], Sequence[LeaderEpoch]]) -> list[Reading]:
    """The parts of the uploads to read, by offset: each begins and ends after the one before.

    Args:
        uploads: those of a partition.
        history: the leader epochs of the log at the time of an upload; called for the newest.
    """
    if not uploads:
        return []
    by_age = sorted(uploads, key=_age, reverse=True)
    newest = by_age[0]
    lineage = _Lineage(history(newest), newest.start_offset)
    if lineage.agrees_to(newest) <= newest.end_offset:  # damaged
        lineage = _Lineage(newest.leader_epochs, newest.start_offset)
    usable = []
    for upload in by_age:
        end = lineage.agrees_to(upload)
        if end > upload.start_offset:
            usable.append(Reading(upload, end))
            lineage.extend(upload)
    # By start, the longest first; of equal ones one that is whole; the newest is first already.
    usable.sort(key=lambda part: (part.upload.start_offset, -part.end, part.is_cut))
    found: list[Reading] = []  # the first is last
    for part in reversed(usable):
        # Without those that are within it.
        found[bisect_left(found, -part.end, key=lambda other: -other.end) :] = [part]
    return found[::-1]


def _age(upload: Manifest) -> tuple[int, int, int, str]:
    """By which the newest upload is the largest."""
    return upload.leader_epochs[-1].epoch, upload.end_offset, upload.uploaded_ms, upload.segment_id


class _Lineage:
    """The leader epochs of the log, known from the offset `start` or the first of the epochs on."""

    def __init__(self, epochs: Sequence[LeaderEpoch], start: int) -> None:
        self._epochs = list(epochs)
        self._first = min(start, self._epochs[0].start_offset)

    def agrees_to(self, upload: Manifest) -> int:
        """The offset after the last one before which the upload's leader epochs are those of the log."""
        start, stop = upload.start_offset, upload.end_offset + 1
        if upload.leader_epochs[-1].epoch > self._epochs[0].epoch and stop <= self._first:
            return start  # of a later leader than the log has after it
        known = max(start, self._first)
        changes = {known, *_starts(upload.leader_epochs, known, stop), *_starts(self._epochs, known, stop)}
        for offset in sorted(changes):
            if _epoch_at(upload.leader_epochs, offset) != _epoch_at(self._epochs, offset):
                return offset
        return stop

    def extend(self, upload: Manifest) -> None:
        """Go back to the start of an upload that agrees."""
        if upload.start_offset < self._first:
            earlier = [epoch for epoch in upload.leader_epochs if epoch.start_offset < self._first]
            last = earlier[-1].epoch
            self._epochs = earlier + [epoch for epoch in self._epochs if epoch.epoch > last]
            self._first = upload.start_offset


def _starts(epochs: Sequence[LeaderEpoch], start: int, stop: int) -> list[int]:
    """The start offsets of leader epochs in [start, stop)."""
    first, last = (bisect_left(epochs, offset, key=lambda epoch: epoch.start_offset) for offset in (start, stop))
    return [epoch.start_offset for epoch in epochs[first:last]]


def _epoch_at(epochs: Sequence[LeaderEpoch], offset: int) -> int:
    """The leader epoch of an offset; of several that begin there, the last wrote it."""
    return epochs[max(bisect_right(epochs, offset, key=lambda epoch: epoch.start_offset) - 1, 0)].epoch
