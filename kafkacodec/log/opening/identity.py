"""The identity of a partition's log: topic id and leader epochs show whether it was recreated or truncated.

Only a replica that follows a new leader, or that has lost its end and leads again, truncates a log. In both cases
records after the cut have a higher leader epoch (KIP-101).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.opening import full_path, optional
from kafkacodec.log.opening.checkpoints import known_offsets, read_leader_epochs, read_topic_id


class LogIdentity(NamedTuple):
    """A partition's log at one time.

    Attributes:
        topic_id (uuid.UUID | None): from ``partition.metadata`` (KIP-516); None if unknown.
        epochs (tuple[LeaderEpoch, ...]): from ``leader-epoch-checkpoint``; empty if unknown.
        start_offset (int): from ``log-start-offset-checkpoint``; 0 if it has no entry.
        end_offset (int | None): the log end offset; None if unknown.
    """

    topic_id: uuid.UUID | None = None
    epochs: tuple[LeaderEpoch, ...] = ()
    start_offset: int = 0
    end_offset: int | None = None


class BatchMark(NamedTuple):
    """The identity of a batch.

    Attributes:
        base_offset, last_offset (int): its offsets.
        crc (int): its checksum.
        whole (bool): whether the log cleaner has not changed it: it has all its records, and no delete horizon
            (KIP-534).
    """

    base_offset: int
    last_offset: int
    crc: int
    whole: bool


def identify(directory: str, topic: str | None, partition: int | None) -> LogIdentity:
    """Return the identity of the log in a directory; missing or unreadable parts are unknown.

    Raises:
        OSError: an object store does not answer.
    """
    topic_id: uuid.UUID | None = None
    epochs: tuple[LeaderEpoch, ...] = ()
    with optional(directory):
        topic_id = read_topic_id(os.path.join(directory, layout.PARTITION_METADATA))
    with optional(directory):
        epochs = tuple(read_leader_epochs(os.path.join(directory, layout.LEADER_EPOCH_CHECKPOINT)))
    starts = known_offsets(os.path.dirname(full_path(directory)), layout.LOG_START_CHECKPOINT)
    start = starts.get((topic or "", -1 if partition is None else partition), 0)
    return LogIdentity(topic_id, epochs, start)


def epoch_at(epochs: Sequence[LeaderEpoch], offset: int) -> int | None:
    """Return the leader epoch of an offset; None if unknown."""
    return next((epoch.epoch for epoch in reversed(epochs) if epoch.start_offset <= offset), None)


def end_of_epoch(epochs: Sequence[LeaderEpoch], epoch: int) -> int | None:
    """The first offset of the epochs after this one; None if there are none."""
    return next((later.start_offset for later in epochs if later.epoch > epoch), None)


def cut_before(then: int | None, epochs: Sequence[LeaderEpoch], end_offset: int) -> int | None:
    """Return where a log was truncated, if it was truncated and written again before `end_offset`.

    Args:
        then: the former leader epoch of the offset before `end_offset`; None if unknown.
        epochs: the current leader epochs of the log.
    """
    now = epoch_at(epochs, end_offset - 1)
    if then is None or now is None or now <= then:
        return None
    return end_of_epoch(epochs, then)
