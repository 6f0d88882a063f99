"""Opening a range's file: the one that the range was planned from, or the files that hold its offsets now.

Between planning and reading, the log cleaner may replace segments, and a broker delete them, truncate the log, or
delete its topic and create it again. Positions in a file then mean nothing, but a record keeps its offset, whatever
file it is in. A file that is open stays readable after it was deleted or replaced.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kafkacodec.errors import MissingOffsets
from kafkacodec.log import layout
from kafkacodec.log.files import MappedFile
from kafkacodec.log.identity import LogIdentity, cut_before, epoch_at, identify
from kafkacodec.log.listing import segment_paths
from kafkacodec.log.lookup import Lookup

if TYPE_CHECKING:
    from kafkacodec.log.ranges import SegmentRange

MAX_TRIES = 100
"""How often a file may be gone between listing and opening before the error is raised."""

PAUSE_SECONDS = 0.02
"""The pause before the next try; a broker's renames take less."""

_NO_END = (1 << 63) - 1


def locate(piece: SegmentRange) -> Iterator[tuple[SegmentRange, MappedFile] | MissingOffsets]:
    """The range with its open file, or, if the file has changed, the parts of it that other files have now.

    Yields:
        A part with its open file, which the caller closes, in the order of offsets; `MissingOffsets` for offsets that
        are gone for another reason than compaction. Nothing for an empty range whose file is gone.

    Raises:
        OSError: a file cannot be read.
    """
    if piece.log is None or piece.identity is None or piece.base_offset is None:
        yield piece, MappedFile(piece.path)
        return
    try:
        file = MappedFile(piece.path)
    except FileNotFoundError:
        file = None
    if file is not None and file.identity == piece.identity:
        yield piece, file
    elif piece.size_in_bytes:
        if file is not None:
            file.close()
        yield from find(piece)
    elif file is not None:  # only its end matters
        yield replace(piece, replaced=file.identity.inode != piece.identity.inode), file


def find(piece: SegmentRange) -> Iterator[tuple[SegmentRange, MappedFile] | MissingOffsets]:
    """As `locate`, for a range whose file is known to have changed."""
    directory = os.path.dirname(piece.path) or os.curdir
    now = identify(directory, piece.topic, piece.partition)
    position, end = piece.offsets
    readable, reason = _readable(piece.log, now, position, end)
    tries = 0
    while position < readable:
        try:
            paths = segment_paths(directory)
        except FileNotFoundError:
            yield _missing(piece, position, end, "the partition's directory no longer exists")
            return
        start = max(_base(paths[0]) if paths else readable, _deleted_to(piece.log, now))
        if position < start:
            why = f"the log now begins at offset {start}" if paths else "the partition no longer has segments"
            yield _missing(piece, position, min(start, readable), why)
            position = start
            continue
        try:
            part, file, stop = _part(piece, paths, position, readable)
        except FileNotFoundError:
            tries += 1
            if tries > MAX_TRIES:
                raise
            time.sleep(PAUSE_SECONDS)
            continue
        yield part, file
        position = stop
        if part.following is None:
            if position < readable < _NO_END:
                yield _missing(piece, position, readable, f"the log now ends at offset {position}")
            break
    if reason is not None:
        yield _missing(piece, readable, end, reason)


def _readable(then: LogIdentity | None, now: LogIdentity, first: int, end: int) -> tuple[int, str | None]:
    """Up to which offset the log is still the planned one, and what happened to the rest."""
    if then is None:
        return end, None
    if then.topic_id and now.topic_id and then.topic_id != now.topic_id:
        return first, "the topic was deleted and created again"
    cut = cut_before(epoch_at(then.epochs, end - 1), now.epochs, end)
    if cut is None:
        return end, None
    return max(first, cut), f"the log was truncated at offset {cut} and written again"


def _deleted_to(then: LogIdentity | None, now: LogIdentity) -> int:
    """The log start offset, if it moved: who plans to read deleted records does so on purpose."""
    return now.start_offset if then is None or now.start_offset > then.start_offset else 0


def _part(piece: SegmentRange, paths: list[str], position: int, end: int) -> tuple[SegmentRange, MappedFile, int]:
    """The part of a range from an offset on that one segment holds, its open file, and the offset after it."""
    bases = [_base(path) for path in paths]
    holder = bisect_right(bases, position) - 1
    following = bases[holder + 1] if holder + 1 < len(bases) else None
    file = MappedFile(paths[holder])
    try:
        lookup = Lookup(file, bases[holder])
        stop = end if following is None else min(end, following)
        if following is None:
            last = lookup.end()[1]
            stop = max(position, min(stop, bases[holder] if last is None else last + 1))
        part = replace(
            piece,
            path=file.path,
            start_position=lookup.position_of_offset(position),
            end_position=lookup.end_of_offsets(stop),
            first_offset=position,
            last_offset=None,
            start_offset=position,
            end_offset=stop,
            following=following,
            flushed=None,
            identity=file.identity,
            replaced=piece.identity is None or file.identity.inode != piece.identity.inode,
        )
    except BaseException:
        file.close()
        raise
    return part, file, stop


def _base(path: str) -> int:
    name = layout.parse_file_name(os.path.basename(path))
    assert name is not None  # of a listing
    return name.base_offset


def _missing(piece: SegmentRange, first: int, end: int, why: str) -> MissingOffsets:
    what = f"offset {first}" if end - first == 1 else f"offsets {first} to {end - 1}"
    reason = f"{what} can no longer be read: {why}"
    return MissingOffsets(reason, path=os.path.dirname(piece.path), first_offset=first, end_offset=end)
