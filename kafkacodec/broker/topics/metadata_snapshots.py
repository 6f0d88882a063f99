"""Snapshots of the metadata, after which their records leave the log (KIP-630)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from kafkacodec.log.formats import layout

if TYPE_CHECKING:
    from kafkacodec.broker.topics.compaction import Background
    from kafkacodec.broker.topics.partition import Partition
    from kafkacodec.log.growing.log import PartitionLog
    from kafkacodec.log.growing.segment import GrowingSegment

__all__ = ["MetadataSnapshots"]

_log = logging.getLogger("kafkacodec.broker")


class MetadataSnapshots:
    """Makes one snapshot at a time: long work on the thread, changes of the log in the loop.

    Args:
        partition: of the metadata.
        background: the thread.
        every_bytes: the size of the log that triggers a snapshot.
    """

    def __init__(self, partition: Partition, background: Background, every_bytes: int) -> None:
        self._partition, self._background = partition, background
        self._every = self._allowed = every_bytes
        self._running = False

    def due(self) -> None:
        """Start a snapshot if the log has become long. Raises OSError."""
        log = self._partition.log
        if self._running or log.size_in_bytes <= self._allowed:
            return
        self._allowed = log.size_in_bytes + self._every  # if there cannot be one
        end = self._partition.high_watermark
        log.roll(end)
        segments = [segment for segment in log.segments if segment.base_offset < end]
        self._running = True
        self._background.run(partial(_write, log.path, segments, end, log.epoch_at(end - 1)), partial(self._made, end))

    def _made(self, end: int, made: bool, problem: Exception | None) -> None:
        self._running = False
        if problem is not None or not made:
            _log.error("the metadata cannot be written to a snapshot: %s", problem or "it has records of unknown types")
            return
        log = self._partition.log
        try:
            log.delete_before(end)
            log.retention()
            _remove_older(log, end)
        except OSError:
            _log.exception("the metadata before the snapshot at offset %d cannot be removed", end)
        self._allowed = self._every
        _log.info("wrote a snapshot of the metadata up to offset %d", end)


def _write(path: str, segments: list[GrowingSegment], end: int, epoch: int) -> bool:
    """Write a snapshot of the newest one and of segments; False if there can be none. Raises DecodeError, OSError."""
    from kafkacodec.log.files.publishing import replace_file  # what few brokers live long enough to need
    from kafkacodec.log.state.metadata_snapshot import encode_metadata_snapshot

    before = layout.newest_metadata_snapshot(os.listdir(path))
    data = encode_metadata_snapshot(_pieces(path, segments, before), epoch)
    if data is not None:
        replace_file(os.path.join(path, layout.metadata_snapshot_name(end, epoch)), data)
    return data is not None


def _pieces(path: str, segments: list[GrowingSegment], before: tuple[str, int] | None) -> Iterator[bytes]:
    """A snapshot, and the batches after it."""
    begin = 0
    if before is not None:
        name, begin = before
        with open(os.path.join(path, name), "rb") as file:
            yield file.read()
    for segment in segments:
        first = segment.find(begin)
        if first is not None:
            yield segment.range(first.position, segment.size - first.position).read()


def _remove_older(log: PartitionLog, end: int) -> None:
    """Remove the snapshots before the one at an offset, except the directory's format records."""
    for name in os.listdir(log.path):
        is_older = layout.METADATA_SNAPSHOT.fullmatch(name) is not None and int(name.partition("-")[0]) < end
        if is_older and name != layout.FORMATTED_SNAPSHOT:
            os.unlink(os.path.join(log.path, name))
