"""Evidence from the files around a gap between segments, read only if there is a gap."""

from __future__ import annotations

import os
from bisect import bisect_left
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import StoredFile, changed_ns, entries, full_path, open_file, optional
from kafkacodec.log.opening.checkpoints import known_offsets
from kafkacodec.log.opening.indexes import index_of
from kafkacodec.log.opening.lost import lost_log
from kafkacodec.log.order.continuity import Evidence, Gap
from kafkacodec.log.segments.walk import walk
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.decode import iter_columns

Flags = npt.NDArray[np.bool_]

_INDEXES = (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX)

# Names of a segment's file while a broker cleans or deletes it: its indexes may exist a moment longer.
_IN_CHANGE = tuple(f"{layout.LOG_SUFFIX}.{word}" for word in ("deleted", "swap", "cleaned"))

_DELETED = f"{layout.LOG_SUFFIX}.deleted"

_ZEROS = bytes(1 << 20)


def gather(
    file: StoredFile,
    gap: Gap,
    end_position: int,
    topic: str | None,
    partition: int | None,
    *,
    has_batches: bool,
    replaced: bool = False,
) -> Evidence:
    """Collect the evidence about a gap after the segment in `file`, whose complete batches end at `end_position`."""
    directory = os.path.dirname(full_path(file.path))
    if layout.stands_for_log(file.path):
        lost = None if topic is None or partition is None else lost_log(directory, topic, partition)
        return Evidence(without_segments="" if lost is None else lost.evidence)
    listing = _list(directory)
    name = layout.parse_file_name(os.path.basename(file.path))
    base_offset = gap.first_offset if name is None else name.base_offset
    after = bisect_left(listing.segments, gap.end_offset)
    following = listing.segments[after] if after < len(listing.segments) else None
    return Evidence(
        bytes_left=0 if unused(file, end_position) else file.size - end_position,
        indexed_to=_indexed_to(file.path, gap.end_offset) if has_batches else None,
        orphans=listing.orphans_between(gap.first_offset, gap.end_offset),
        cleaned_to=_cleaned_to(os.path.dirname(directory), topic, partition),
        removed=has_batches and (_removed(file) or _removed_in(directory, following)),
        topic=topic,
        old=not has_batches,
        # Only the cleaner leaves files to be deleted in a gap, or beside a segment: retention deletes from the start.
        replaced=replaced or listing.deleted_between(base_offset, gap.end_offset),
    )


class _Listing(NamedTuple):
    """The base offsets of a directory's segments, indexes without a segment, and segments to be deleted."""

    segments: list[int]
    orphans: list[layout.FileName]
    deleted: list[int]

    def deleted_between(self, first: int, end: int) -> bool:
        """Whether segments with a base offset in [first, end) are about to be deleted."""
        return bisect_left(self.deleted, first) < bisect_left(self.deleted, end)

    def orphans_between(self, first: int, end: int) -> tuple[str, ...]:
        inside = self.orphans[bisect_left(self.orphans, (first,)) : bisect_left(self.orphans, (end,))]
        return tuple(layout.file_name(name.base_offset, name.suffix) for name in inside)


def _list(directory: str) -> _Listing:
    found = _Listing([], [], [])
    with optional(directory):
        found = _listed(directory, changed_ns(directory))
    return found


@lru_cache(maxsize=4)
def _listed(directory: str, mtime: int) -> _Listing:
    """Cached for the next gap: a directory may have as many gaps as segments."""
    names = [name for name in (layout.parse_file_name(entry.name) for entry in entries(directory)) if name is not None]
    segments = {name.base_offset for name in names if name.suffix == layout.LOG_SUFFIX}
    known = segments | {name.base_offset for name in names if name.suffix in _IN_CHANGE}
    orphans = [name for name in names if name.suffix in _INDEXES and name.base_offset not in known]
    deleted = sorted({name.base_offset for name in names if name.suffix == _DELETED})
    return _Listing(sorted(segments), sorted(orphans, key=lambda name: (name.base_offset, name.suffix)), deleted)


def last_orphan_between(directory: str, first: int, last: int) -> int | None:
    """The largest offset from `first` to `last` in the name of an index without a segment."""
    found = [name.base_offset for name in _list(directory).orphans if first <= name.base_offset <= last]
    return max(found, default=None)


def unused(file: StoredFile, position: int) -> bool:
    """Whether all bytes from a position on are zeros, as in a preallocated file."""
    for start in range(position, file.size, len(_ZEROS)):
        piece = file.read(start, len(_ZEROS))
        if piece != _ZEROS[: len(piece)]:
            return False
    return True


def _indexed_to(path: str, end_offset: int) -> int | None:
    """The last offset in the index files of a segment, whose offsets end at `end_offset`: larger ones are wrong."""
    last: list[int] = []
    for suffix in _INDEXES:
        with optional(path):
            offsets = index_of(path, suffix)["offset"]
            last += offsets[offsets < end_offset][-1:].tolist()
    return max(last, default=None)


def _cleaned_to(log_dir: str, topic: str | None, partition: int | None) -> int | None:
    cleaned = known_offsets(log_dir, layout.CLEANER_CHECKPOINT)
    return cleaned.get((topic or "", -1 if partition is None else partition))


def _removed_in(directory: str, base_offset: int | None) -> bool:
    found = False
    if base_offset is not None:
        path = os.path.join(directory, layout.file_name(base_offset, layout.LOG_SUFFIX))
        with optional(path), open_file(path) as file:
            found = _removed(file)
    return found


def _removed(file: StoredFile) -> bool:
    """Whether offsets are missing inside a segment: between its batches, in them, or before its first one.

    Neither truncating nor deleting files leaves such gaps.
    """
    name = layout.parse_file_name(os.path.basename(file.path))
    last = None if name is None else name.base_offset - 1
    compressed_sets = False
    for headers in walk(file, verify_crc=True):
        sound = np.logical_and.accumulate(headers["crc_ok"])
        if len(headers) and (sound & ((jumps(headers, last) > 0) | _holes(headers))).any():
            return True
        if not sound.all() or not len(headers):
            break
        last = int(headers["last_offset"][-1])
        compressed_sets = compressed_sets or bool((~knows_base(headers)).any())
    return compressed_sets and _misses_records(file)


def knows_base(headers: BatchHeaders) -> Flags:
    """Which batches have a known first offset: a compressed message set has only its last one."""
    modern: Flags = headers["magic"] >= 2
    if modern.all():
        return modern
    names = headers.buffers("codec")
    known: Flags = modern | (names["data"][names["offsets"][:-1]] == ord("n"))
    return known


def first_offset_in(file: StoredFile, position: int, size: int) -> int | None:
    """The offset of the first record of the batch in file[position, position + size); None if it cannot be decoded."""
    data = file.read(position, size)
    for chunk in iter_columns(data, columns=("offset",), include_control=True, on_error="stop", max_rows=1):
        file.check_size()
        if len(chunk):
            return int(chunk["offset"][0])
    return None


def jumps(headers: BatchHeaders, last_offset: int | None) -> npt.NDArray[np.int64]:
    """The number of offsets missing before each batch, if known; `last_offset` is the last one before all batches."""
    base = np.where(headers["magic"] >= 2, headers["base_offset"], headers["last_offset"])
    before = np.empty(len(base), np.int64)
    before[0] = base[0] - 1 if last_offset is None else last_offset
    before[1:] = headers["last_offset"][:-1]
    return np.where(knows_base(headers), base - before - 1, 0)


def _holes(headers: BatchHeaders) -> Flags:
    """Which batches have fewer records than offsets."""
    span = headers["last_offset"] - headers["base_offset"] + 1
    found: Flags = (headers["magic"] >= 2) & (headers["count"] != span)
    return found


def _misses_records(file: StoredFile) -> bool:
    """As `_removed`, by the offsets of the records in compressed sets of old messages."""
    last = None
    for chunk in iter_columns(file.view(), columns=("offset",), include_control=True, on_error="stop"):
        offsets = chunk["offset"] if last is None else np.concatenate([[last], chunk["offset"]])
        if (np.diff(offsets) > 1).any():
            return True
        last = int(offsets[-1]) if len(offsets) else None
    return False
