"""Joining what tasks have written to a partition: many tasks leave many small segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log import LogWriter, Partition
from kafkacodec.log.opening import open_file

__all__ = ["JOIN_AT_MOST", "StagedSegment", "is_small", "join_small"]

_SMALL = 4 << 20

JOIN_AT_MOST = 1 << 30
"""Bytes that are copied for it in one write: the driver does this alone."""


def is_small(size: int, segment_bytes: int) -> bool:
    """Whether a segment of `size` bytes is joined with its neighbours, where segments may have `segment_bytes`."""
    return size < min(_SMALL, segment_bytes // 2)


class StagedSegment(NamedTuple):
    """A segment in a staging directory, with its final offsets: its ``.log`` file, first offset and size in bytes."""

    path: str
    base_offset: int
    size: int


def join_small(
    target: LogWriter, staged: Iterable[StagedSegment], directory: str, segment_bytes: int
) -> list[StagedSegment]:
    """Join neighbours that are small.

    Args:
        target: the partition that they will belong to.
        staged: its new segments in order, already with their final offsets.
        directory: where to write the joined ones.
        segment_bytes: the maximum size of a segment.

    Returns:
        The segments to publish, in order.

    Raises:
        DecodeError, OSError: a segment cannot be read or written.
    """
    joined: list[StagedSegment] = []
    for small, run in groupby(staged, key=lambda segment: is_small(segment.size, segment_bytes)):
        segments = list(run)
        if small and len(segments) > 1:
            joined += _join(target, segments, os.path.join(directory, str(segments[0].base_offset)), segment_bytes)
        else:
            joined += segments
    return joined


def _join(
    target: LogWriter, segments: list[StagedSegment], directory: str, segment_bytes: int
) -> Iterator[StagedSegment]:
    topic, _, number = os.path.basename(target.path).rpartition("-")
    with LogWriter(
        directory,
        topic,
        int(number),
        start_offset=segments[0].base_offset,
        segment_bytes=segment_bytes,
        leader_epoch=target.leader_epoch,
        sync=False,
    ) as writer:
        for segment in segments:
            with open_file(segment.path) as file:
                writer.write_batches(file.view(), verify_crc=False)
    for made in Partition(writer.path).segments:
        yield StagedSegment(made.path, made.base_offset or 0, made.size_in_bytes)
