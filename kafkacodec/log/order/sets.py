"""The first offsets of compressed message sets of magic 1: their headers have the last one, the others are inside."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.opening import StoredFile
from kafkacodec.log.order.gap_evidence import knows_base
from kafkacodec.log.order.placement import Flags, Ints
from kafkacodec.log.segments.walk import Damage, first_batches, walk_over_damage
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.decode import iter_columns

__all__ = ["Sets", "are_sets", "is_misplaced_set", "records_in", "sets_in_order", "sets_of"]

_ANY_LAST = (1 << 62).to_bytes(8, "big")
"""A last offset with which every set can be read: inside are smaller ones, which count from the first."""


class Sets(NamedTuple):
    """The compressed sets of magic 1 among some batches, without those that cannot be decompressed.

    Attributes:
        rows: which of the batches they are.
        base: the first offset of each, if the last one in its header is right; negative if it is too small.
        records: the number of records of each.
    """

    rows: Ints
    base: Ints
    records: Ints


def are_sets(headers: BatchHeaders) -> Flags:
    """Which batches are compressed sets of magic 1."""
    found: Flags = headers["magic"] == 1
    return found & ~knows_base(headers) if found.any() else found


def sets_of(file: StoredFile, headers: BatchHeaders) -> Sets:
    """The sets among batches of a segment. Decompresses them, one run after another."""
    rows = np.flatnonzero(are_sets(headers))
    if not len(rows):
        return Sets(rows, rows, rows)
    starts, ends = headers["position"], headers["position"] + headers["size_in_bytes"]
    found: list[npt.NDArray[np.int64]] = []
    for run in np.split(rows, np.flatnonzero(starts[rows[1:]] != ends[rows[:-1]]) + 1):
        start = int(starts[run[0]])
        data = bytearray(file.read(start, int(ends[run[-1]]) - start))
        file.check_size()
        for at in (starts[run] - start).tolist():
            data[at : at + 8] = _ANY_LAST
        found += _spans(data, start)
    position, span, count = np.concatenate(found, axis=1) if found else np.zeros((3, 0), np.int64)
    # A set may be in several chunks.
    position, at, inverse = np.unique(position, return_index=True, return_inverse=True)
    total = np.bincount(inverse, count, len(position)).astype(np.int64)
    if len(position) < len(rows):
        rows = rows[np.isin(starts[rows], position)]
    last = headers["last_offset"][rows]
    # Those of a producer end with 0 instead, and begin with it.
    return Sets(rows, np.where(last == 0, 0, last - span[at] + 1), total)


def _spans(data: bytearray, start: int) -> Iterator[npt.NDArray[np.int64]]:
    """Position, number of offsets and of records of sets that end with `_ANY_LAST`; three rows for each chunk."""
    for chunk in iter_columns(data, columns=("offset", "batch_position"), include_control=True, on_error="skip"):
        position = chunk["batch_position"]
        at = np.flatnonzero(np.diff(position, prepend=-1))
        yield np.array([start + position[at], (1 << 62) + 1 - chunk["offset"][at], np.diff(at, append=len(chunk))])


def records_in(file: StoredFile, position: int, size: int) -> int:
    """The number of records of an intact batch, decompressed if it is a set."""
    chunks = iter_columns(file.read(position, size), columns=("offset",), include_control=True, on_error="skip")
    return sum(map(len, chunks))


def is_misplaced_set(file: StoredFile, position: int) -> bool:
    """Whether a batch is a set whose only fault is a last offset that is too small for the offsets inside."""
    batch = first_batches(file, position, verify_crc=True)
    if not len(batch) or not batch["crc_ok"][0] or not are_sets(batch)[0]:
        return False
    base = sets_of(file, batch).base
    return len(base) == 1 and int(base[0]) < 0


def sets_in_order(file: StoredFile, start: int, end: int, before: int = -1) -> bool:
    """Whether the sets in file[start, end) begin after the batches before them end.

    Args:
        file: the segment.
        start, end: the positions of a batch and of one after it, in bytes.
        before: the last offset before `start`; -1: not known.
    """
    for headers in walk_over_damage(file, start, end):
        if isinstance(headers, Damage) or not len(headers):
            continue
        found, last = sets_of(file, headers), headers["last_offset"]
        if (found.base <= np.append(before, last[:-1])[found.rows]).any():
            return False
        before = int(last[-1])
    return True
