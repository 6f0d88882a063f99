"""Reading and writing the index files of a segment: offsets, timestamps, aborted transactions.

An index is a hint. Here its entries are checked for order; `kafkacodec.log.segments.lookup` and
`kafkacodec.log.checking.verify` check them against the batches of the segment.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkacodec.arguments import one_of
from kafkacodec.errors import CorruptIndex, DecodeError, EncodeError
from kafkacodec.log.formats import layout
from kafkacodec.log.storage import read_file, read_used
from kafkacodec.signatures import suggests_options

Entries = npt.NDArray[np.void]

MAX_BYTES = (1 << 31) - 1
"""The largest index that is read, in bytes; a broker's sizes have 32 bits."""

OUT_OF_ORDER = "an index entry is out of order or out of range"
"""The reason of an entry that does not follow the one before it: either may be wrong."""

_OFFSET_ENTRY = np.dtype([("offset", "i8"), ("position", "i8")])
_TIME_ENTRY = np.dtype([("timestamp", "i8"), ("offset", "i8")])


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


@suggests_options
def read_offset_index(path: str | os.PathLike[str], *, on_error: Literal["raise", "stop"] = "raise") -> IndexFile:
    """Read an ``.index`` file: for some batches, the offset and the position in the segment.

    Args:
        path: the file; its name is the base offset.
        on_error: ``"raise"``, or ``"stop"`` to get the entries before the first fault and the fault in `problems`.

    Raises:
        CorruptIndex: entries that do not increase or are negative, a trailing partial entry, or a file name that is
            not an offset.
        OSError: the file cannot be read.
    """
    return _read(path, _OFFSETS, on_error)


@suggests_options
def read_time_index(path: str | os.PathLike[str], *, on_error: Literal["raise", "stop"] = "raise") -> IndexFile:
    """Read a ``.timeindex`` file: increasing timestamps and the offsets of the records that have them.

    Arguments and errors as in `read_offset_index`.
    """
    return _read(path, _TIMES, on_error)


@suggests_options
def read_transaction_index(path: str | os.PathLike[str], *, on_error: Literal["raise", "stop"] = "raise") -> IndexFile:
    """Read a ``.txnindex`` file: the transactions whose abort marker is in the segment.

    Arguments and errors as in `read_offset_index`.
    """
    return _read(path, _TRANSACTIONS, on_error)


def index_of(segment: str, suffix: str) -> IndexFile:
    """The offset or the time index of a segment, up to its first fault, for a look-up that checks what it uses.

    In a preallocated index, nothing is read after the first zeros that fill a page.

    Raises:
        OSError: it cannot be read.
        CorruptIndex: the segment's name is not an offset.
    """
    return _read(layout.sibling(segment, suffix), _PREALLOCATED[suffix], "stop", to_end=False)


class _Kind(NamedTuple):
    """A kind of index: its stored entries, what is made of them and a file's base offset, and which are valid."""

    stored: np.dtype[np.void]
    convert: Callable[[Entries, int], Entries]
    good: Callable[[Entries], npt.NDArray[np.bool_]]


def _offset_entries(raw: Entries, base_offset: int) -> Entries:
    entries = np.empty(len(raw), _OFFSET_ENTRY)
    entries["offset"] = raw["relative_offset"].astype(np.int64) + base_offset
    entries["position"] = raw["position"]
    return entries


def _good_offsets(raw: Entries) -> npt.NDArray[np.bool_]:
    return _grows(raw["relative_offset"], strictly=True) & _grows(raw["position"], strictly=True)


def _time_entries(raw: Entries, base_offset: int) -> Entries:
    entries = np.empty(len(raw), _TIME_ENTRY)
    entries["timestamp"] = raw["timestamp"]
    entries["offset"] = raw["relative_offset"].astype(np.int64) + base_offset
    return entries


def _good_times(raw: Entries) -> npt.NDArray[np.bool_]:
    return _grows(raw["timestamp"], strictly=True) & _grows(raw["relative_offset"], strictly=False)


def _transactions(raw: Entries, _base_offset: int) -> Entries:
    return raw.astype(layout.TRANSACTION_INDEX_ENTRY.newbyteorder("="))


def _good_transactions(raw: Entries) -> npt.NDArray[np.bool_]:
    ok = _grows(raw["last_offset"], strictly=True)
    ok &= raw["version"] == layout.TRANSACTION_INDEX_VERSION
    ok &= (raw["producer_id"] >= 0) & (raw["first_offset"] >= 0)
    ok &= raw["first_offset"] <= raw["last_offset"]
    return ok


_OFFSETS = _Kind(layout.OFFSET_INDEX_ENTRY, _offset_entries, _good_offsets)
_TIMES = _Kind(layout.TIME_INDEX_ENTRY, _time_entries, _good_times)
_TRANSACTIONS = _Kind(layout.TRANSACTION_INDEX_ENTRY, _transactions, _good_transactions)
_PREALLOCATED = {layout.OFFSET_INDEX_SUFFIX: _OFFSETS, layout.TIME_INDEX_SUFFIX: _TIMES}


def _grows(values: npt.NDArray[Any], *, strictly: bool) -> npt.NDArray[np.bool_]:
    """Which values are not negative and larger than the previous one (or equal, unless `strictly`)."""
    ok: npt.NDArray[np.bool_] = values >= 0
    ok[1:] &= values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]
    return ok


def _read(path: str | os.PathLike[str], kind: _Kind, on_error: str, *, to_end: bool = True) -> IndexFile:
    one_of("on_error", on_error, ("raise", "stop"))
    path = os.fspath(path)
    name = layout.parse_file_name(os.path.basename(path))
    if name is None:
        raise CorruptIndex("the name of an index file must be an offset of twenty digits", path=path)
    raw, size = _entries(path, kind, to_end=to_end)
    entry = kind.stored.itemsize
    problems: list[DecodeError] = []
    whole, rest = divmod(size, entry)
    used, padding = len(raw), whole - len(raw)
    bad = np.flatnonzero(~kind.good(raw))
    if len(bad):
        used, padding = int(bad[0]), 0
        problems.append(CorruptIndex(OUT_OF_ORDER, position=used * entry, path=path))
    elif rest:
        problems.append(CorruptIndex("trailing partial index entry", position=size - rest, path=path))
    if problems and on_error == "raise":
        raise problems[0]
    return IndexFile(path, name.base_offset, kind.convert(raw[:used], name.base_offset), padding, problems)


def _entries(path: str, kind: _Kind, *, to_end: bool) -> tuple[Entries, int]:
    """The entries before the zeros of a preallocated index, and the size of the file."""
    if kind is _TRANSACTIONS:
        data = read_file(path, MAX_BYTES)
        return np.frombuffer(data, kind.stored, len(data) // kind.stored.itemsize), len(data)
    data, size = read_used(path, MAX_BYTES, to_end=to_end)
    count = min(-(-len(data) // kind.stored.itemsize), size // kind.stored.itemsize)
    return np.frombuffer(data.ljust(count * kind.stored.itemsize, b"\0"), kind.stored, count), size


def encode_offset_index(offsets: npt.ArrayLike, positions: npt.ArrayLike, base_offset: int) -> bytes:
    """The bytes of an ``.index`` file."""
    entries = np.empty(len(np.asarray(offsets)), layout.OFFSET_INDEX_ENTRY)
    entries["relative_offset"] = _relative(offsets, base_offset)
    entries["position"] = positions
    return entries.tobytes()


def encode_time_index(timestamps: npt.ArrayLike, offsets: npt.ArrayLike, base_offset: int) -> bytes:
    """The bytes of a ``.timeindex`` file."""
    entries = np.empty(len(np.asarray(offsets)), layout.TIME_INDEX_ENTRY)
    entries["timestamp"] = timestamps
    entries["relative_offset"] = _relative(offsets, base_offset)
    return entries.tobytes()


def encode_transaction_index(entries: Entries) -> bytes:
    """The bytes of a ``.txnindex`` file, from entries as `read_transaction_index` returns them."""
    return entries.astype(layout.TRANSACTION_INDEX_ENTRY).tobytes()


def _relative(offsets: npt.ArrayLike, base_offset: int) -> npt.NDArray[np.int64]:
    relative = np.asarray(offsets, np.int64) - base_offset
    if len(relative) and not 0 <= int(relative.min()) <= int(relative.max()) < 2**31:
        raise EncodeError(f"an offset is not within 2^31 of the index's base offset {base_offset}")
    return relative
