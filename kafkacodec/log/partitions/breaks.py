"""A check that the batches of a segment begin and end where its neighbours require."""

from __future__ import annotations

import time

from kafkacodec.errors import DecodeError
from kafkacodec.log.order.continuity import Surroundings
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.reading.ends import misplaced_ends

__all__ = ["breaks_around"]


def breaks_around(segment: Segment, around: Surroundings, wanted: tuple[int | None, int | None]) -> list[DecodeError]:
    """The errors of a segment's first and last batch among its neighbours.

    A file without errors is not opened again while it and its neighbours stay the same.

    Args:
        segment: the segment.
        around: its neighbours.
        wanted: the first offset that may count as missing, and the one after the last; None: no bound.

    Raises:
        OSError: the segment cannot be read.
    """
    now = time.time_ns()
    piece = around.place(segment._nothing_to_read(*wanted))
    if segment._in_place == (piece.identity, around):
        return []
    found = misplaced_ends(piece)
    if not found and wanted == (None, None) and piece.identity is not None and piece.identity.is_settled(now):
        segment._in_place = piece.identity, around
    return found
