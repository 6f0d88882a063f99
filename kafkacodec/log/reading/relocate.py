"""Opening a range's file: the one that the range was planned from, or the files that hold its offsets now.

Between planning and reading, the log cleaner may replace segments, and a broker delete them, truncate the log, or
delete its topic and create it again. Positions in a file then mean nothing, but a record keeps its offset, whatever
file it is in. A file that is open stays readable after it was deleted or replaced.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TypeVar

from kafkacodec.datatypes import replace
from kafkacodec.errors import MissingOffsets, Truncated
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.opening import StoredFile, is_url, open_file
from kafkacodec.log.opening.identity import LogIdentity, cut_before, epoch_at, identify
from kafkacodec.log.opening.listing import SegmentFile, segment_files
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.segments.extent import Extent

R = TypeVar("R", bound=Extent)
"""A range; the parts that are found of it have the same class."""

MAX_TRIES = 100
"""How often a file may be gone between listing and opening before the error is raised."""

PAUSE_SECONDS = 0.02
"""The pause before the next try; a broker's renames take less."""

_NO_END = (1 << 63) - 1


def locate(piece: R) -> Iterator[tuple[R, StoredFile] | MissingOffsets]:
    """The range with its open file, or, if the file has changed, the parts of it that other files have now.

    Yields:
        A part with its open file, which the caller closes, in the order of offsets; `MissingOffsets` for offsets that
        are gone for another reason than compaction. Nothing for an empty range whose file is gone.

    Raises:
        OSError: a file cannot be read.
    """
    if piece.log is None or piece.identity is None or piece.base_offset is None:
        yield piece, open_file(piece.path)
        return
    try:
        file = open_file(piece.path)
    except FileNotFoundError:
        file = None
    if file is not None and file.identity == piece.identity:
        yield piece, file
    elif piece.size_in_bytes:
        if file is not None:
            file.close()
        yield from find(piece)
    elif file is not None:  # only its end matters
        yield replace(piece, replaced=not _may_be_same(file.identity, piece.identity)), file


def find(piece: R) -> Iterator[tuple[R, StoredFile] | MissingOffsets]:
    """As `locate`, for a range whose file is known to have changed."""
    directory = os.path.dirname(piece.path) or os.curdir
    now = identify(directory, piece.topic, piece.partition)
    position, end = piece.offsets
    readable, reason = _readable(piece.log, now, position, end)
    tries = 0
    while position < readable:
        files = _list(directory)
        if files is None:
            yield _missing(piece, position, end, "the partition's directory no longer exists")
            return
        start = max(files[0].base_offset if files else readable, _deleted_to(piece.log, now))
        if position < start:
            why = f"the log now begins at offset {start}" if files else "the partition no longer has segments"
            yield _missing(piece, position, min(start, readable), why)
            position = start
            continue
        try:
            part, file, stop = _part(piece, files, position, readable)
        except (FileNotFoundError, Truncated):
            tries += 1
            if tries > MAX_TRIES:
                raise
            time.sleep(PAUSE_SECONDS)
            continue
        if part.following is None and stop < readable and tries < MAX_TRIES and _list(directory) != files:
            tries += 1  # it is no longer the last segment
            file.close()
            continue
        yield part, file
        position = stop
        if part.following is None:
            if position < readable < _NO_END:
                yield _missing(piece, position, readable, f"the log now ends at offset {position}")
            break
    if reason is not None:
        yield _missing(piece, readable, end, reason)


def _list(directory: str) -> Sequence[SegmentFile] | None:
    """The segments; None if there is no such directory."""
    try:
        return segment_files(directory)
    except FileNotFoundError:
        return None


def _readable(then: LogIdentity | None, now: LogIdentity, first: int, end: int) -> tuple[int, str | None]:
    """The offset up to which the log is still the planned one, and what happened to the rest."""
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


def _part(piece: R, files: Sequence[SegmentFile], position: int, end: int) -> tuple[R, StoredFile, int]:
    """The part of a range from an offset on that one segment holds, its open file, and the offset after it."""
    holder = bisect_right(files, position, key=lambda file: file.base_offset) - 1
    base, path = files[holder]
    following = files[holder + 1].base_offset if holder + 1 < len(files) else None
    file = open_file(path)
    try:
        lookup = Lookup(file, base)
        stop = end if following is None else min(end, following)
        if following is None:
            last = lookup.end_after_damage()[1]
            stop = max(position, min(stop, base if last is None else last + 1))
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
            replaced=_took_the_place(file, base, piece),
            misplaced=lookup.is_out_of_order,
        )
    except BaseException:
        file.close()
        raise
    return part, file, stop


def _took_the_place(file: StoredFile, base_offset: int, piece: Extent) -> bool:
    """Whether the file may have replaced the planned one, so that the cleaner may have removed what it does not have.

    The cleaner makes a new file for several segments, and works on no objects: an older segment is only the one before.
    """
    then = piece.identity
    if then is not None and base_offset != piece.base_offset:
        return not is_url(file.path) and file.identity.ctime_ns >= then.ctime_ns
    return not _may_be_same(file.identity, then)


def _may_be_same(now: FileIdentity, then: FileIdentity | None) -> bool:
    """Whether a file may be the planned one, with more batches; the number of a deleted file may be given again."""
    return then is not None and now.inode == then.inode and now.size >= then.size


def _missing(piece: Extent, first: int, end: int, why: str) -> MissingOffsets:
    what = f"offset {first}" if end - first == 1 else f"offsets {first} to {end - 1}"
    reason = f"{what} can no longer be read: {why}"
    return MissingOffsets(reason, path=os.path.dirname(piece.path), first_offset=first, end_offset=end)
