"""Logs without any segment, although other files name offsets that they had.

A broker gives a partition's directory a segment when it creates it, and always leaves the last one. A directory without
one has lost it, which does no harm only if nothing shows that it had records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import Entry, entries, full_path, optional
from kafkacodec.log.opening.checkpoints import known_offsets, read_leader_epochs
from kafkacodec.log.opening.indexes import index_of
from kafkacodec.log.opening.listing import SegmentFile

__all__ = ["LostLog", "lost_log"]

_INDEXES = (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX)
_MEANINGS = {
    layout.RECOVERY_POINT_CHECKPOINT: "the recovery point",
    layout.HIGH_WATERMARK_CHECKPOINT: "the high watermark",
}


class LostLog(NamedTuple):
    """Offsets of a log without segments.

    Attributes:
        first_offset, end_offset (int): the first one, and the one after the last.
        evidence (str): what names the last one, as a clause.
    """

    first_offset: int
    end_offset: int
    evidence: str

    def stand_in(self, directory: str) -> SegmentFile:
        """The segment without bytes that stands for those of the partition's directory."""
        return SegmentFile(self.first_offset, os.path.join(directory, layout.log_stand_in(self.first_offset)))


def lost_log(directory: str, topic: str, partition: int) -> LostLog | None:
    """The offsets that a log without segments had; None if nothing shows that it had some.

    Args:
        directory: that of the partition, which need not exist.
        topic, partition: the topic and the partition's number.

    Raises:
        OSError: an object store does not answer.
    """
    log_dir = os.path.dirname(full_path(directory))
    found: Sequence[Entry] = ()
    with optional(directory):
        if not _has_unfinished_writes(log_dir):
            found = entries(directory)
    names = [name for name in (layout.parse_file_name(entry.name) for entry in found) if name is not None]
    bases = [name.base_offset for name in names if name.suffix in _INDEXES]
    ends = list(_from_checkpoints(directory, topic, partition))
    with optional(directory):
        epochs = read_leader_epochs(os.path.join(directory, layout.LEADER_EPOCH_CHECKPOINT))
        bases += [epoch.start_offset for epoch in epochs]
        ends += [(epoch.start_offset, f"leader epoch {epoch.epoch} begins at {epoch.start_offset}") for epoch in epochs]
    for name in names:
        ends += _from_index(directory, name)
    starts = known_offsets(log_dir, layout.LOG_START_CHECKPOINT)
    first = max(starts.get((topic, partition), 0), min(bases, default=0))
    end, evidence = max(ends, key=lambda known: known[0], default=(0, ""))
    return LostLog(first, end, evidence) if first < end else None


def _has_unfinished_writes(log_dir: str) -> bool:
    """Whether a job that writes to a log directory has not ended: it publishes indexes before their segment."""
    return any(entry.name == layout.WRITE_STATE or layout.is_staging(entry.name) for entry in entries(log_dir))


def _from_checkpoints(directory: str, topic: str, partition: int) -> Iterator[tuple[int, str]]:
    """The offsets in the checkpoints of the log directory, each with what it shows."""
    log_dir = os.path.dirname(full_path(directory))
    for name, meaning in _MEANINGS.items():
        offset = known_offsets(log_dir, name).get((topic, partition))
        if offset is not None:
            yield offset, f"{meaning} is {offset}"


def _from_index(directory: str, name: layout.FileName) -> Iterator[tuple[int, str]]:
    """The offset before which an index, or a snapshot of producers, shows that there were others."""
    base, file = name.base_offset, layout.file_name(name.base_offset, name.suffix)
    if name.segment_id is None and name.suffix == layout.PRODUCER_SNAPSHOT_SUFFIX:
        yield base, f"the snapshot {file} exists"
    if name.segment_id is None and name.suffix in _INDEXES:
        yield base, f"the index {file} exists"
        with optional(directory):
            offsets = index_of(os.path.join(directory, layout.file_name(base, layout.LOG_SUFFIX)), name.suffix)[
                "offset"
            ]
            if len(offsets):
                yield int(offsets[-1]) + 1, f"the index {file} reaches offset {int(offsets[-1])}"
