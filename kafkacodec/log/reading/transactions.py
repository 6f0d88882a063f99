"""The aborted and the open transactions of a partition: the basis of ``read_committed``.

The control batches in the log decide: a transaction is everything that a producer wrote up to its commit or abort
marker. Only batch headers and markers are read. The transaction index, if it exists, is compared with them, and used
if markers were lost to damage. A batch belongs to one producer, so an aborted one is skipped before it is decompressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kafkacodec.datatypes import NamedTuple, dataclass, field, replace
from kafkacodec.errors import CorruptIndex, CorruptRecord, DecodeError, KafkaCodecError
from kafkacodec.internal_records import ControlType
from kafkacodec.log.files.access import note, reason_of
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import ProducerSnapshot
from kafkacodec.log.opening import entries, fault_of, open_file
from kafkacodec.log.opening.checkpoints import read_producer_snapshot
from kafkacodec.log.opening.indexes import read_transaction_index
from kafkacodec.log.opening.listing import may_overlap
from kafkacodec.log.reading._transactions import COMPRESSED, OpenTransactions
from kafkacodec.log.reading.lookup import Lookup
from kafkacodec.log.reading.markers import marker_of
from kafkacodec.log.segments.extent import Extent
from kafkacodec.log.segments.kinds import kind_of
from kafkacodec.log.segments.walk import Damage, walk_over_damage
from kafkacodec.named_rows import KnownRows
from kafkacodec.records.columns import BatchHeaders

if TYPE_CHECKING:
    from typing_extensions import Buffer

ABORTED = np.dtype([("producer_id", "i8"), ("first_offset", "i8"), ("last_offset", "i8")])

FINISHED = ABORTED

R = TypeVar("R", bound=Extent)


class SegmentFile(Protocol):
    """The required methods of a segment, which `kafkacodec.log.Segment` has."""

    path: str
    base_offset: int | None

    @property
    def size_in_bytes(self) -> int:
        """The file's current size."""


_NO_END = int(np.iinfo(np.int64).max)


@dataclass(repr=False)
class Transactions(KnownRows):
    """The transactions that matter for reading a span of a log.

    Its table, in notebooks and of `to_arrow` and its siblings, has a row for each: `producer_id`, `first_offset`,
    `last_offset` (null while it is open), and `state`: ``committed``, ``aborted`` or ``open``.

    Attributes:
        aborted (numpy.ndarray): structured int64 fields producer_id, first_offset, last_offset (of the abort marker),
            by producer and offset.
        open (dict[int, int]): the first offset of each unfinished transaction, by producer id.
        finished (numpy.ndarray): the same fields, for every transaction that ended, by its end.
        problems (list[DecodeError]): differences between transaction index and log, and damage that may hide markers.
    """

    aborted: npt.NDArray[np.void]
    open: dict[int, int]
    finished: npt.NDArray[np.void]
    problems: list[DecodeError] = field(default_factory=list)

    @property
    def last_stable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if none is open."""
        return min(self.open.values(), default=None)

    def _columns(self) -> Mapping[str, Any]:
        return {"producer_id": int, "first_offset": int, "last_offset": int | None, "state": str}

    def _rows(self) -> Iterator[dict[str, Any]]:
        aborted = set(self.aborted.tolist())
        for row in self.finished.tolist():
            state = "aborted" if row in aborted else "committed"
            yield dict(zip(self._columns(), (*row, state), strict=True))
        for producer, first in sorted(self.open.items(), key=lambda item: item[1]):
            yield dict(zip(self._columns(), (producer, first, None, "open"), strict=True))

    def index_entries(self, start_offset: int, end_offset: int) -> npt.NDArray[np.void]:
        """The entries of a transaction index for the markers in [start_offset, end_offset), as a broker writes them.

        An entry's last stable offset is the first offset of the oldest transaction that was open after the marker, or
        the offset after the marker.
        """
        wanted = self.aborted[self.aborted["first_offset"] < self.aborted["last_offset"]]
        wanted = wanted[(wanted["last_offset"] >= start_offset) & (wanted["last_offset"] < end_offset)]
        wanted = wanted[np.argsort(wanted["last_offset"])]
        entries = np.zeros(len(wanted), layout.TRANSACTION_INDEX_ENTRY.native)
        for name in ABORTED.names or ():
            entries[name] = wanted[name]
        entries["last_stable_offset"] = self._stable_after(wanted["last_offset"])
        return entries

    def _stable_after(self, markers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The last stable offset after each of the markers."""
        never = np.iinfo(np.int64).max
        # For each finished transaction, the smallest first offset of it and those that ended later.
        oldest = np.append(np.minimum.accumulate(self.finished["first_offset"][::-1])[::-1], never)
        running = oldest[np.searchsorted(self.finished["last_offset"], markers, "right")]
        running = np.minimum(running, min(self.open.values(), default=never))
        return np.where(running < markers, running, markers + 1)

    def exclude_aborted(self, piece: R, last_offset: int | None = None) -> R:
        """The range without the records of aborted transactions.

        `last_offset` is the last offset of its batches if the range has none itself. Without either, all later
        transactions may be in it.
        """
        last = last_offset if piece.last_offset is None else piece.last_offset
        last = np.iinfo(np.int64).max if last is None else last
        order, ends, begins = self._by_end
        start, stop = int(np.searchsorted(ends, piece.first_offset)), int(np.searchsorted(begins, last, "right"))
        near = np.sort(order[start:stop])
        return replace(piece, aborted=tuple(self.aborted[near[self.aborted[near]["first_offset"] <= last]].tolist()))

    @cached_property
    def _by_end(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The order of the aborted transactions by end, their ends, and the smallest first offset from each on."""
        order = np.argsort(self.aborted["last_offset"], kind="stable")
        begins = np.minimum.accumulate(self.aborted["first_offset"][order][::-1])[::-1]
        return order, self.aborted["last_offset"][order], begins


def scan_transactions(
    directory: str,
    segments: Sequence[SegmentFile],
    start_offset: int | None,
    end_offset: int | None,
    *,
    committed: bool = True,
) -> Transactions:
    """Find the transactions that decide about the records in [start_offset, end_offset).

    Reading begins at the newest producer snapshot at or before `start_offset`, else at the first segment, and ends when
    every transaction that began before `end_offset` is decided, else at the end of the log. Without `committed` it
    takes less time, and `finished` has only transactions that were not committed.
    """
    tracker = TransactionTracker(committed)
    tracker.read_log(directory, segments, start_offset, end_offset)
    return tracker.result()


class _Marker(NamedTuple):
    """What `OpenTransactions.follow` says of the marker of a transaction that has ended."""

    kind: int
    position: int
    size_in_bytes: int


class TransactionTracker:
    """Follows transactions through the batches of a log, oldest first; without `committed`, keeps none of those."""

    columns: tuple[str, ...] = ("position", "base_offset", "last_offset")
    """Of batch headers: those that `feed` needs."""

    def __init__(self, committed: bool = True) -> None:
        self._committed = committed
        self._open = OpenTransactions({}, committed)
        self.aborted: list[npt.NDArray[np.void]] = []
        self.finished: list[npt.NDArray[np.void]] = []
        self.problems: list[DecodeError] = []
        self.next_offset = 0
        self.damaged_from: int | None = None  # markers may be missing from this offset on

    @property
    def open(self) -> dict[int, int]:
        """The first offset of each open transaction, by producer id."""
        return self._open.first_offsets()

    def resume(self, snapshot: ProducerSnapshot) -> None:
        """Start from a producer snapshot."""
        running = snapshot.entries[snapshot["current_txn_first_offset"] >= 0]
        self._open = OpenTransactions(
            dict(zip(running["producer_id"].tolist(), running["current_txn_first_offset"].tolist(), strict=True)),
            self._committed,
        )
        self.next_offset = snapshot.offset

    def resume_before(self, directory: str, offset: int | None) -> int | None:
        """Start from the newest producer snapshot at or before an offset; returns its offset, None if there is none."""
        snapshot = _snapshot_before(directory, offset)
        if snapshot is None:
            return None
        self.resume(snapshot)
        return snapshot.offset

    def decided(self, end_offset: int) -> bool:
        """Whether all transactions with records before an offset are decided."""
        return self.next_offset >= end_offset and all(first >= end_offset for first in self.open.values())

    def result(self, since: int = 0) -> Transactions:
        """The transactions found so far; only those that ended at or after an offset."""
        aborted = _joined(_ended_since(self.aborted, since))
        order = np.lexsort((aborted["first_offset"], aborted["producer_id"]))
        finished = _joined(_ended_since(self.finished, since))
        ends = finished["last_offset"]
        if (ends[1:] < ends[:-1]).any():
            finished = finished[np.argsort(ends)]
        return Transactions(aborted[order], self.open, finished, self.problems)

    def read_log(
        self, directory: str, segments: Sequence[SegmentFile], start_offset: int | None, end_offset: int | None
    ) -> None:
        """Read the batches that decide about a span of a log; see `scan_transactions`."""
        begin = self.resume_before(directory, start_offset)
        for i, segment in enumerate(segments):
            following = segments[i + 1].base_offset if i + 1 < len(segments) else None
            if begin is not None and following is not None and following <= begin:
                continue
            self.read_segment(segment, begin, following if may_overlap(segment.path) else None, end_offset)
            if end_offset is not None and self.decided(end_offset):
                break

    def read_segment(
        self, segment: SegmentFile, begin: int | None = None, end: int | None = None, enough: int | None = None
    ) -> None:
        """Read a segment, from the batch of an offset on, up to that of another, or until `enough` is `decided`."""
        if not kind_of(segment.path).has_batches:  # no transactions
            return
        found, index, whole = len(self.aborted), None, True
        lost: list[tuple[int, int]] = []
        try:
            with open_file(segment.path) as file:
                index = TransactionIndex(segment, self.problems)
                lookup = Lookup(file, segment.base_offset)
                start = 0 if begin is None else lookup.position_of_offset(begin)
                stop = None if end is None else lookup.end_of_offsets(end)
                for part in walk_over_damage(file, start, stop, columns=self.columns, growing=enough is not None):
                    if isinstance(part, Damage):
                        self._lose(part.error, lost)
                    elif len(part):
                        if lost and lost[-1][1] == _NO_END:
                            lost[-1] = (lost[-1][0], int(part["base_offset"][0]))
                        data = file.view(int(part["position"][0]), part.consumed)
                        self.feed(part, data, index, path=file.path)
                        file.check_size()
                    if enough is not None and self.decided(enough):
                        whole = False
                        break
        except (DecodeError, OSError) as error:
            fault = self._fault_of(segment.path, error)
            if fault is None:
                raise
            self._lose(fault, lost)
        if index is None:
            return
        self.aborted += index.inside(lost)
        if segment.base_offset is not None and whole and not lost and start == 0 and stop in (None, file.size):
            # An index that is being written has markers that were added after the segment was opened.
            grown = segment.size_in_bytes > file.size
            index.compare(self.aborted[found:], self.problems, before=self.next_offset if grown else None)
        else:
            self.problems += index.faults

    def _fault_of(self, path: str, error: Exception) -> DecodeError | None:
        """What an error hides of a segment; None to raise it."""
        return fault_of(path, error)

    def _lose(self, error: DecodeError, lost: list[tuple[int, int]]) -> None:
        """Note damage, which may hide markers from the next offset on."""
        note(self.problems, error)
        self.damaged_from = self.next_offset if self.damaged_from is None else self.damaged_from
        lost.append((self.next_offset, _NO_END))

    def feed(
        self, headers: BatchHeaders, data: Buffer, index: TransactionIndex | None = None, *, path: str | None = None
    ) -> None:
        """Take the next batches: of a file, or in memory.

        Args:
            headers: theirs, at least one; the `columns`.
            data: has the batches at their positions.
            index: the transaction index of their segment, which tells what markers that cannot be read were.
            path: their file, for the problems.
        """
        self.next_offset = int(headers["last_offset"].max()) + 1
        positions, offsets = headers["position"], headers["base_offset"]
        if (offsets[1:] < offsets[:-1]).any():  # damage
            positions = positions[np.argsort(offsets, kind="stable")]
        ended, of_markers = self._open.follow(data, positions.data)
        if not ended:
            return
        finished = np.frombuffer(ended, FINISHED)
        self.finished.append(finished)
        markers = np.frombuffer(of_markers, np.int64).reshape(-1, len(_Marker._fields))
        kinds = markers[:, _Marker._fields.index("kind")]
        if kinds.min() < 0:
            kinds = kinds.copy()
            for i in np.flatnonzero(kinds < 0).tolist():
                marker = _Marker(*markers[i].tolist())
                kinds[i] = self._kind(finished[i], marker, memoryview(data), index, path)
        aborted = finished[kinds == ControlType.ABORT]
        if len(aborted):
            self.aborted.append(self._begun(aborted, index))

    def _kind(
        self, ended: np.void, marker: _Marker, data: memoryview, index: TransactionIndex | None, path: str | None
    ) -> int:
        """How a transaction ended whose marker was not read. If it cannot be read, the index has those aborted."""
        if marker.kind == COMPRESSED:
            found = marker_of(bytes(data[marker.position : marker.position + marker.size_in_bytes]))
            if found is not None:
                return found.kind
        offset = int(ended["last_offset"])
        note(self.problems, CorruptRecord(f"the marker at offset {offset} cannot be read", path=path))
        indexed = index is not None and index.has(int(ended["producer_id"]), offset)
        return ControlType.ABORT if indexed else ControlType.COMMIT

    def _begun(self, aborted: npt.NDArray[np.void], index: TransactionIndex | None) -> npt.NDArray[np.void]:
        """The same transactions, those from which a marker may have been lost with the beginning of the index."""
        if self.damaged_from is None or index is None:
            return aborted
        first, marker = aborted["first_offset"], aborted["last_offset"]
        for i in np.flatnonzero((first < self.damaged_from) & (self.damaged_from <= marker)).tolist():
            if index.has(int(aborted["producer_id"][i]), int(marker[i])):
                first[i] = index.first_offset(int(marker[i]))
        return aborted


class TransactionIndex:
    """The transaction index of a segment; without entries if it is missing or unreadable.

    A segment whose name is not an offset has none.
    """

    def __init__(self, segment: SegmentFile, problems: list[DecodeError]) -> None:
        self.path = layout.sibling(segment.path, layout.TRANSACTION_INDEX_SUFFIX)
        self.entries: npt.NDArray[np.void] = np.empty(0, ABORTED)
        self.there = segment.base_offset is not None
        self.faults: list[DecodeError] = []  # what the entries end before
        try:
            if not self.there:
                raise FileNotFoundError
            index = read_transaction_index(self.path, on_error="stop")
        except FileNotFoundError:
            self.there = False
        except (OSError, KafkaCodecError) as error:
            problems.append(CorruptIndex(f"the transaction index cannot be read: {reason_of(error)}", path=self.path))
        else:
            self.faults = index.problems
            self.entries = index.entries[list(ABORTED.names or ())].astype(ABORTED)

    @cached_property
    def _by_marker(self) -> dict[int, Any]:
        return {int(entry["last_offset"]): entry for entry in self.entries}

    def has(self, producer: int, marker: int) -> bool:
        """Whether it has an entry for a producer's transaction aborted by the marker at this offset."""
        entry = self._by_marker.get(marker)
        return entry is not None and int(entry["producer_id"]) == producer

    def first_offset(self, marker: int) -> int:
        """The first offset of the transaction that a marker ended."""
        return int(self._by_marker[marker]["first_offset"])

    def inside(self, gaps: Iterable[tuple[int, int]]) -> list[npt.NDArray[np.void]]:
        """The entries whose marker is in one of the gaps between offsets."""
        markers = self.entries["last_offset"]
        return [self.entries[(markers >= start) & (markers < end)] for start, end in gaps]

    def compare(
        self, aborted: list[npt.NDArray[np.void]], problems: list[DecodeError], *, before: int | None = None
    ) -> None:
        """Record differences between index and log in the transactions aborted in the segment.

        If `before` is given, only markers before that offset count.
        """
        ended = np.concatenate([np.empty(0, ABORTED), *aborted])
        expected = ended[ended["first_offset"] < ended["last_offset"]]
        if np.array_equal(expected[np.argsort(expected["last_offset"])], self.entries):
            problems += self.faults
            return
        found = {int(entry["last_offset"]): entry for entry in ended}
        with_records = {marker for marker, entry in found.items() if entry["first_offset"] < marker}
        surplus = {marker for marker in self._by_marker if before is None or marker < before} - found.keys()
        last = max(self._by_marker.keys() - surplus, default=-1)
        missing = with_records - self._by_marker.keys()
        displaced = self._displaced({marker: found[marker] for marker in missing}, surplus)
        texts = []
        for marker in sorted(missing):
            written = displaced.get(marker)
            if written is not None:
                texts.append(f"the entry for the transaction aborted at offset {marker} has the offset {written}")
            elif not self.faults or marker < last:
                what = "entry" if self.there else "index"
                texts.append(f"there is no {what} for the transaction aborted at offset {marker}")
        for marker in sorted(surplus - set(displaced.values())):
            texts.append(f"there is an entry for offset {marker}, where no transaction was aborted")
        for marker in sorted(self._by_marker.keys() & found.keys()):
            entry, right = self._by_marker[marker], found[marker]
            if entry["producer_id"] != right["producer_id"]:
                names = f"producer {right['producer_id']}, not {entry['producer_id']}"
                texts.append(f"the transaction aborted at offset {marker} is that of {names}")
            elif entry["first_offset"] > right["first_offset"]:  # smaller: compaction has removed the first batches
                begins = f"offset {right['first_offset']}, not {entry['first_offset']}"
                texts.append(f"the transaction aborted at offset {marker} begins at {begins}")
        problems += [CorruptIndex(text, path=self.path) for text in texts]
        if not surplus or max(surplus) < last:
            problems += self.faults  # else the entry before it is wrong

    def _displaced(self, missing: Mapping[int, np.void], surplus: Iterable[int]) -> dict[int, int]:
        """Which of the markers without an entry have one with another offset, and that offset.

        The entry has the right producer, and begins where the transaction does, or earlier: compaction may have removed
        its first batches.
        """
        unused: dict[int, list[tuple[int, int]]] = {}
        for written in surplus:
            entry = self._by_marker[written]
            unused.setdefault(int(entry["producer_id"]), []).append((int(entry["first_offset"]), written))
        for entries_of in unused.values():
            entries_of.sort()
        displaced = {}
        for marker in sorted(missing, reverse=True):  # a producer's transactions begin in the order in which they end
            left = unused.get(int(missing[marker]["producer_id"]), [])
            while left and left[-1][0] > missing[marker]["first_offset"]:
                left.pop()
            if left:
                displaced[marker] = left.pop()[1]
        return displaced


def _joined(parts: list[npt.NDArray[np.void]]) -> npt.NDArray[np.void]:
    """Rows of `ABORTED` or `FINISHED`. As numbers, since numpy joins rows of a structured type one by one."""
    numbers = [np.empty(0, np.int64), *(np.ascontiguousarray(part).view(np.int64) for part in parts)]
    return np.concatenate(numbers).view(FINISHED)


def _ended_since(parts: list[npt.NDArray[np.void]], offset: int) -> list[npt.NDArray[np.void]]:
    """The last parts: those with transactions that ended at an offset or later."""
    first = len(parts)
    while first and (not len(parts[first - 1]) or parts[first - 1]["last_offset"].max() >= offset):
        first -= 1
    return parts[first:]


def _snapshot_before(directory: str, offset: int | None) -> ProducerSnapshot | None:
    """The newest readable producer snapshot at or before an offset."""
    if offset is None:
        return None
    listed = [entry.name for entry in entries(directory) if entry.name.endswith(layout.PRODUCER_SNAPSHOT_SUFFIX)]
    names = [layout.parse_file_name(name) for name in listed]
    offsets = [n.base_offset for n in names if n is not None and n.suffix == layout.PRODUCER_SNAPSHOT_SUFFIX]
    for candidate in sorted((o for o in offsets if o <= offset), reverse=True):
        path = os.path.join(directory, layout.file_name(candidate, layout.PRODUCER_SNAPSHOT_SUFFIX))
        try:
            return read_producer_snapshot(path)
        except (OSError, KafkaCodecError):
            continue
    return None
