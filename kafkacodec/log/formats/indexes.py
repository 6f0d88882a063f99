"""The bytes of the index files of a segment: offsets, timestamps, aborted transactions.

An index is a hint. Here its entries are checked for order; `kafkacodec.log.reading.lookup` and
`kafkacodec.log.checking.verify` check them against the batches of the segment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import CorruptIndex, DecodeError, EncodeError
from kafkacodec.lazy import np
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.entries import EntryType

if TYPE_CHECKING:
    import numpy.typing as npt

    Entries = npt.NDArray[np.void]

OUT_OF_ORDER = "an index entry is out of order or out of range"
"""The reason of an entry that does not follow the one before it: either may be wrong."""

_OFFSET_ENTRY = EntryType(offset="q", position="q")
_TIME_ENTRY = EntryType(timestamp="q", offset="q")


@dataclass(frozen=True)
class IndexFile:
    """The entries of an index file, up to the first invalid one.

    Attributes:
        path (str): the file.
        base_offset (int): the offset in the file's name; stored offsets are relative to it.
        entries (numpy.ndarray): a structured array in native byte order. `read_offset_index`: offset, position;
            `read_time_index`: timestamp (milliseconds), offset; `read_transaction_index`: version, producer_id,
            first_offset, last_offset, last_stable_offset. Offsets are absolute, all fields but version are int64.
        padding (int): the number of unused entries at the end: a live broker preallocates its newest index with zeros.
        problems (list[DecodeError]): the fault that the entries end before, if any.
    """

    path: str
    base_offset: int
    entries: Entries
    padding: int = 0
    problems: list[DecodeError] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """One field of all entries."""
        return self.entries[name]


class IndexKind(NamedTuple):
    """A kind of index: its stored entries, what is made of them and a file's base offset, and which are valid."""

    entry: EntryType
    convert: Callable[[Entries, int], Entries]
    good: Callable[[Entries], npt.NDArray[np.bool_]]


def _offset_entries(raw: Entries, base_offset: int) -> Entries:
    entries = np.empty(len(raw), _OFFSET_ENTRY.native)
    entries["offset"] = raw["relative_offset"].astype(np.int64) + base_offset
    entries["position"] = raw["position"]
    return entries


def _good_offsets(raw: Entries) -> npt.NDArray[np.bool_]:
    return _grows(raw["relative_offset"], strictly=True) & _grows(raw["position"], strictly=True)


def _time_entries(raw: Entries, base_offset: int) -> Entries:
    entries = np.empty(len(raw), _TIME_ENTRY.native)
    entries["timestamp"] = raw["timestamp"]
    entries["offset"] = raw["relative_offset"].astype(np.int64) + base_offset
    return entries


def _good_times(raw: Entries) -> npt.NDArray[np.bool_]:
    return _grows(raw["timestamp"], strictly=True) & _grows(raw["relative_offset"], strictly=False)


def _transactions(raw: Entries, _base_offset: int) -> Entries:
    return raw.astype(layout.TRANSACTION_INDEX_ENTRY.native)


def _good_transactions(raw: Entries) -> npt.NDArray[np.bool_]:
    ok = _grows(raw["last_offset"], strictly=True)
    ok &= raw["version"] == layout.TRANSACTION_INDEX_VERSION
    ok &= (raw["producer_id"] >= 0) & (raw["first_offset"] >= 0)
    ok &= raw["first_offset"] <= raw["last_offset"]
    return ok


OFFSETS = IndexKind(layout.OFFSET_INDEX_ENTRY, _offset_entries, _good_offsets)
TIMES = IndexKind(layout.TIME_INDEX_ENTRY, _time_entries, _good_times)
TRANSACTIONS = IndexKind(layout.TRANSACTION_INDEX_ENTRY, _transactions, _good_transactions)


def base_offset_of(path: str) -> int:
    """The base offset in the name of an index file. Raises CorruptIndex: it is none."""
    name = layout.parse_file_name(os.path.basename(path))
    if name is None:
        raise CorruptIndex("the name of an index file must be an offset of twenty digits", path=path)
    return name.base_offset


def parse_index(data: bytes, size: int, path: str, kind: IndexKind) -> IndexFile:
    """The entries of an index file, up to the first fault.

    Args:
        data: the bytes of the file; zeros at its end may be left out.
        size: the size of the file, in bytes.
        path: its name has the base offset.
        kind: what the entries are.

    Raises:
        CorruptIndex: the file's name is not an offset.
    """
    base_offset, entry = base_offset_of(path), kind.entry.itemsize
    whole, rest = divmod(size, entry)
    count = min(-(-len(data) // entry), whole)
    raw = np.frombuffer(data.ljust(count * entry, b"\0"), kind.entry.stored, count)
    problems: list[DecodeError] = []
    used, padding = len(raw), whole - len(raw)
    bad = np.flatnonzero(~kind.good(raw))
    if len(bad) and bad[0] == used - 1 and padding and not raw[-1][-1]:
        raw, bad, used, padding = raw[:-1], bad[:0], used - 1, padding + 1  # a broker is writing its second half
    if len(bad):
        used, padding = int(bad[0]), 0
        problems.append(CorruptIndex(OUT_OF_ORDER, position=used * entry, path=path))
    elif rest:
        problems.append(CorruptIndex("trailing partial index entry", position=size - rest, path=path))
    return IndexFile(path, base_offset, kind.convert(raw[:used], base_offset), padding, problems)


def _grows(values: npt.NDArray[Any], *, strictly: bool) -> npt.NDArray[np.bool_]:
    """Which values are not negative and larger than the previous one (or equal, unless `strictly`)."""
    ok: npt.NDArray[np.bool_] = values >= 0
    ok[1:] &= values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]
    return ok


def encode_offset_index(offsets: Sequence[int], positions: Iterable[int], base_offset: int) -> bytes:
    """The bytes of an ``.index`` file."""
    return layout.OFFSET_INDEX_ENTRY.encoded(zip(_relative(offsets, base_offset), positions, strict=True))


def encode_time_index(timestamps: Iterable[int], offsets: Sequence[int], base_offset: int) -> bytes:
    """The bytes of a ``.timeindex`` file."""
    return layout.TIME_INDEX_ENTRY.encoded(zip(timestamps, _relative(offsets, base_offset), strict=True))


def encode_transaction_index(entries: Iterable[Iterable[int]]) -> bytes:
    """The bytes of a ``.txnindex`` file, from entries with the fields of `read_transaction_index`."""
    return layout.TRANSACTION_INDEX_ENTRY.encoded(entries)


def _relative(offsets: Sequence[int], base_offset: int) -> list[int]:
    relative = [offset - base_offset for offset in offsets]
    if relative and not 0 <= min(relative) <= max(relative) < 2**31:
        raise EncodeError(f"an offset is not within 2^31 of the index's base offset {base_offset}")
    return relative
