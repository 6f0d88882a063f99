"""From a span of a partition to ranges of its segment files; most files are not opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Protocol

from kafkacodec.datatypes import NamedTuple, replace
from kafkacodec.errors import DecodeError
from kafkacodec.log.files.pool import in_threads
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import fault_of, identity_of
from kafkacodec.log.opening.identity import LogIdentity
from kafkacodec.log.opening.listing import SettledDirectory, may_overlap
from kafkacodec.log.order.continuity import Surroundings
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.partitions.spans import segments_to_read
from kafkacodec.log.reading.cuts import Limits
from kafkacodec.log.reading.ranges import SegmentRange
from kafkacodec.log.reading.transactions import Transactions
from kafkacodec.log.segments.kinds import kind_of

__all__ = ["Portion", "end_of", "least", "log_end", "offset_in_portion", "plan_ranges", "ranges_in_turn"]


class Log(Protocol):
    """The log to plan for: a `Partition`."""

    path: str
    _listed: SettledDirectory | None

    @property
    def segments(self) -> Sequence[Segment]:
        """Its segments, by offset."""

    def end_offset(self) -> int:
        """The log end offset."""

    def _identity(self) -> LogIdentity:
        """The identity of this log."""

    def _portions(self, start_offset: int | None, end_offset: int | None) -> Iterable[Portion]:
        """The directories that the offsets of a span are read from, in order."""

    def _surroundings(self, segment: Segment) -> Surroundings:
        """The required end of a segment's batches."""

    def _segments_between(self, start_offset: int | None, end_offset: int | None) -> list[Segment]:
        """The segments that may have records between two offsets."""

    def _transactions(self, start_offset: int | None, end_offset: int | None, *, committed: bool) -> Transactions:
        """The transactions that matter for a span; see `scan_transactions`."""


class Portion(NamedTuple):
    """A part of a span that is read from one directory.

    Attributes:
        partition (Log): the directory.
        first_offset (int | None): the first offset; None: no bound.
        end_offset (int | None): the offset to stop before; None: no bound.
        following (int | None): where the portion after it begins, which is read from another directory. None: the last.
    """

    partition: Log
    first_offset: int | None
    end_offset: int | None
    following: int | None = None


def plan_ranges(
    partition: Log,
    first: int | None,
    end: int | None,
    limits: Limits,
    *,
    committed: bool,
    threads: int | None,
) -> list[SegmentRange]:
    """The ranges of a span in order; see `Partition.ranges`.

    Args:
        partition: what to read.
        first, end: the first offset and the one to stop before; None: no bound.
        limits: how large the ranges may be.
        committed: exclude the records of aborted transactions, and stop at the first open one.
        threads: how many files to open at a time.
    """
    return list(_planned(partition, first, end, limits, committed=committed, threads=threads, in_turn=False))


def offset_in_portion(portion: Portion, timestamp: int, threads: int | None) -> int | None:
    """The first offset of a portion whose record is at or after a time (ms since 1970); None if there is none."""
    partition, first, end, _ = portion

    def search(segment: Segment) -> int | None:
        until, following = end_of(partition, segment), partition._surroundings(segment).following
        found = segment._offset_of_timestamp(timestamp, first or 0, following if until is None else None)
        return None if found is None or (until is not None and found >= until) else found

    for offset in in_threads(search, _to_read(partition, first, end), threads, chunk=4):
        if offset is not None and (end is None or offset < end):
            return offset
    return None


def ranges_in_turn(partition: Log, first: int | None, end: int | None, *, committed: bool) -> Iterator[SegmentRange]:
    """The same without limits, each planned when it is its turn; the last segment is read to its present end.

    All are planned at once where a file that takes another's place might go unnoticed: in a directory that had just
    changed when it was listed, of named files, of objects, and of several replicas.
    """
    return _planned(partition, first, end, Limits(), committed=committed, threads=1, in_turn=True)


def _planned(
    partition: Log,
    first: int | None,
    end: int | None,
    limits: Limits,
    *,
    committed: bool,
    threads: int | None,
    in_turn: bool,
) -> Iterator[SegmentRange]:
    portions = list(partition._portions(first, end))
    logs = {portion.partition.path: portion.partition._identity() for portion in portions}
    partition.segments  # noqa: B018  # listed before
    directory = partition._listed if in_turn and len(portions) == 1 else None
    stop, transactions = end, None
    if committed:
        transactions = partition._transactions(first, end, committed=False)
        stop = least(end, transactions.last_stable_offset)
    for portion in partition._portions(first, stop):
        ranges = _ranges(portion, limits, transactions, threads, logs, directory)
        yield from _ended(portion, ranges)
    if stop is not None and stop != end:
        # After the last stable offset, look only for gaps: a transaction whose marker is lost there seems open.
        after = stop if first is None else max(first, stop)
        for portion in partition._portions(after, end):
            yield from _ended(portion, list(_ends(portion, logs)))


def _ranges(
    portion: Portion,
    limits: Limits,
    transactions: Transactions | None,
    threads: int | None,
    logs: Mapping[str, LogIdentity],
    directory: SettledDirectory | None,
) -> Iterator[SegmentRange]:
    """The ranges of a portion; with the state of its directory, each is planned when it is its turn."""
    partition, first, stop, _ = portion

    def cut(segment: Segment) -> list[SegmentRange]:
        try:
            pieces = segment_ranges(partition, segment, first, stop, limits)
            if transactions is None:
                return pieces
            following = partition._surroundings(segment).following
            last = None if following is None else max(following - 1, segment.last_offset() or 0)
        except (DecodeError, OSError) as error:
            if fault_of(segment.path, error) is None:
                raise
            # It cannot be read, which who reads the range finds again.
            last, until = None, least(stop, end_of(partition, segment))
            pieces = [partition._surroundings(segment).place(segment._whole(first, until))]
        return pieces if transactions is None else [transactions.exclude_aborted(piece, last) for piece in pieces]

    def cut_in_turn(listed: SettledDirectory, segment: Segment) -> list[SegmentRange]:
        if not kind_of(segment.path).has_batches:  # nothing replaces it
            return cut(segment)
        with suppress(FileNotFoundError):
            pieces = cut(segment)
            if listed.still_has(segment.path):
                return pieces
        piece = partition._surroundings(segment).place(segment._replaced(first, stop, listed.known_at))
        return [piece if transactions is None else transactions.exclude_aborted(piece)]

    segments = _to_read(partition, first, stop)
    each: Iterable[list[SegmentRange]]
    if directory is None:
        each = last = list(in_threads(cut, segments, threads))
    else:
        last = [cut(segment) for segment in segments[-1:]]
        each = chain((cut_in_turn(directory, segment) for segment in segments[:-1]), last)
    log, ends = logs[partition.path], last[-1] if last else []
    if ends and ends[-1].following is None and ends[-1].size_in_bytes and ends[-1].kind.has_batches:
        log = log._replace(end_offset=_log_end(partition))
    for pieces in each:
        yield from (replace(piece, log=log) for piece in pieces)


def _to_read(partition: Log, start_offset: int | None, end_offset: int | None) -> Sequence[Segment]:
    named = partition._segments_between(start_offset, end_offset)
    return segments_to_read(named, partition.segments, start_offset, end_offset)


def _log_end(partition: Log) -> int | None:
    """The log end offset; None if the segment that tells it cannot be read."""
    try:
        return partition.end_offset()
    except (DecodeError, OSError) as error:
        if fault_of(partition.segments[-1].path, error) is None:
            raise
        return None


def _ends(portion: Portion, logs: Mapping[str, LogIdentity]) -> Iterator[SegmentRange]:
    """Empty ranges at the ends of a portion's segments, which find offsets that are missing there."""
    partition, first, end, _ = portion
    for segment in partition._segments_between(first, end):
        piece = partition._surroundings(segment).place(segment._nothing_to_read(first, end))
        yield replace(piece, log=logs[partition.path])


def _ended(portion: Portion, ranges: Iterable[SegmentRange]) -> Iterator[SegmentRange]:
    """The ranges of a portion, whose last one finds offsets that are missing before the next portion."""
    if portion.following is None:
        yield from ranges
        return
    segments, pieces = portion.partition.segments, list(ranges)
    if not pieces and segments:
        pieces = [segments[-1]._nothing_to_read(portion.first_offset, portion.end_offset)]
    if pieces and pieces[-1].following is None:  # the directory's log ends there
        pieces[-1] = replace(pieces[-1], following=portion.following)
    yield from pieces


def segment_ranges(
    partition: Log, segment: Segment, first: int | None, stop: int | None, limits: Limits
) -> list[SegmentRange]:
    """The ranges of one segment. One in the middle that needs no cut is not opened: its name has the offsets."""
    around = partition._surroundings(segment)
    base, following = segment.base_offset, around.following
    swapped = segment.path.endswith(layout.SWAP_SUFFIXES)
    until = least(stop, end_of(partition, segment))
    if base is not None and following is not None and kind_of(segment.path).has_batches and not swapped:
        inside = (first is None or first <= base) and (stop is None or following <= stop)
        if inside and following - base <= (limits.fewest_offsets or following):
            identity = identity_of(segment.path)
            most = limits.bytes or identity.size
            # With more offsets than bytes, it was compacted, or compresses well: its headers show which.
            if 0 < identity.size <= most and (limits.records is None or following - base <= identity.size):
                return [segment._whole(first, until, identity, following)]
    pieces = segment.ranges(
        max_bytes=limits.bytes,
        max_offsets=limits.offsets,
        max_records=limits.records,
        start_offset=first,
        end_offset=until,
    )
    if len(pieces) > 1 and following is not None and not may_overlap(segment.path) and not pieces[0].misplaced:
        misplaced = max(piece.last_offset or 0 for piece in pieces) >= following
        misplaced |= (segment.last_offset() or 0) >= following
        pieces = [replace(piece, misplaced=misplaced) for piece in pieces]
    if following is not None or around.flushed is not None:
        # Even without anything to read, the empty range finds offsets that are missing.
        pieces.append(around.place(pieces.pop() if pieces else segment._nothing_to_read(first, until)))
    return pieces


def log_end(segments: Sequence[Segment], flushed: int = 0) -> int:
    """The offset after the last complete batch.

    Earlier segments are opened if the last one has another's content, or ends before `flushed`, the recovery point.
    """
    end, misnamed = 0, False
    for segment in reversed(segments):
        last, base = segment.last_offset(), segment.base_offset
        end = max(end, base or 0 if last is None else last + 1)
        misnamed = misnamed or (last is not None and last < (base or 0))
        unknown = last is None and (base is None or segment.size_in_bytes > 0)
        if not misnamed and end >= flushed and not unknown:
            break
    return end


def end_of(partition: Log, segment: Segment) -> int | None:
    """The offset before which a segment is read, if it may have those of the next ones too; None: to its end."""
    return partition._surroundings(segment).following if may_overlap(segment.path) else None


def least(a: int | None, b: int | None) -> int | None:
    """The smaller of two bounds; None is no bound."""
    return b if a is None else a if b is None else min(a, b)
