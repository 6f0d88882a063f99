"""Batches that the name of their segment excludes, and that are in the segment whose name includes them, too."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import full_path, open_file, optional
from kafkacodec.log.opening.listing import may_overlap, segment_files
from kafkacodec.log.order.placement import NONE, Batches, Bounds, Flags, Ints
from kafkacodec.log.segments.walk import Damage, walk_over_damage

__all__ = ["copies_among"]


def copies_among(path: str, batches: Batches, base: Ints, bounds: Bounds) -> Flags:
    """Which batches are outside the bounds, while the segment that they should be in has intact ones with such offsets.

    Args:
        path: the segment.
        batches: the intact ones in it.
        base: their right base offsets; `NONE` if unknown.
        bounds: those of its name and the next one's.
    """
    last = base + batches.span - 1
    least, most = bounds.first or 0, bounds.end
    outside = (base != NONE) & ((base < least) | (False if most is None else last >= most))
    found: Flags = np.zeros(len(base), np.bool_)
    name = layout.parse_file_name(os.path.basename(path))
    if name is None or may_overlap(path) or not outside.any():
        return found
    with optional(path):
        files = segment_files(os.path.dirname(full_path(path)))
        holder = np.searchsorted([file.base_offset for file in files], base, "right") - 1
        for at in np.unique(holder[outside & (holder >= 0)]).tolist():
            if files[at].base_offset != name.base_offset:
                rows = np.flatnonzero(outside & (holder == at))
                found[rows] = _has(files[at].path, base[rows], last[rows])
    return found


def _has(path: str, base: Ints, last: Ints) -> Flags:
    """Whether intact batches of a segment have offsets of each of some ranges."""
    found: Flags = np.zeros(len(base), np.bool_)
    with suppress(OSError, KafkaCodecError), open_file(path) as file:
        columns = ("base_offset", "last_offset", "magic", "crc_ok")
        for headers in walk_over_damage(file, verify_crc=True, columns=columns):
            if isinstance(headers, Damage) or not len(headers):
                continue
            intact = headers.filter(headers["crc_ok"])
            order = np.argsort(intact["last_offset"], kind="stable")
            ends = intact["last_offset"][order]
            starts = np.where(intact["magic"] >= 2, intact["base_offset"], intact["last_offset"])[order]
            at = np.searchsorted(ends, base)
            there = at < len(ends)
            at[~there] = 0
            found |= there & (starts[at] <= last) if len(ends) else there
    return found
