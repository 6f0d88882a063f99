"""The batches of a whole segment that a reader leaves out since their offsets are wrong, found from its headers."""

from __future__ import annotations

from kafkacodec.log.formats import layout
from kafkacodec.log.opening import StoredFile
from kafkacodec.log.opening.listing import may_overlap
from kafkacodec.log.order.continuity import Surroundings
from kafkacodec.log.order.corrections import ORDER_COLUMNS, Corrections, bounds_beside, corrections_of, first_offsets
from kafkacodec.log.order.placement import OFFSETS_OF_SEGMENT, Bounds, in_order
from kafkacodec.log.order.sets import sets_in_order
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.segments.walk import Damage, walk_over_damage

__all__ = ["misplaced_in"]


def misplaced_in(
    file: StoredFile, base_offset: int | None, around: Surroundings, *, sets: bool = False
) -> Corrections | None:
    """The wrong offsets of a segment; None if its batches are in order, or its name has no offset.

    Reads about 60 bytes a batch, and all of a segment whose batches are not in order.

    Args:
        file: the segment.
        base_offset: the offset in its name.
        around: what follows it.
        sets: decompress sets of magic 1 too, whose headers do not have their first offsets.
    """
    if base_offset is None or _is_in_order(file, base_offset, around, sets):
        return None
    return corrections_of(file, bounds_beside(file.path, around.flushed)) or None


def _is_in_order(file: StoredFile, base_offset: int, around: Surroundings, sets: bool) -> bool:
    most = base_offset + OFFSETS_OF_SEGMENT
    if around.following is not None and not may_overlap(file.path):
        most = around.following
    bounds, before, end, old = Bounds(base_offset, most), base_offset - 1, 0, False
    for headers in walk_over_damage(file, columns=(*ORDER_COLUMNS, "position")):
        if isinstance(headers, Damage) or not len(headers):
            continue
        if not in_order(first_offsets(headers), headers["last_offset"], bounds, before):
            return False
        before, end = int(headers["last_offset"][-1]), headers.consumed
        old = old or bool((headers["magic"] == 1).any())
    is_last = around.following is None and not layout.is_upload(file.path)
    if is_last and Lookup(file, base_offset).wrong_last() is not None:
        return False
    return not (sets and old) or sets_in_order(file, 0, end, base_offset - 1)
