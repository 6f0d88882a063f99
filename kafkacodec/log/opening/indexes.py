"""Reading the index files of a segment."""

from __future__ import annotations

import os
from typing import Literal

from kafkacodec.arguments import one_of
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.indexes import (
    OFFSETS,
    TIMES,
    TRANSACTIONS,
    IndexFile,
    IndexKind,
    base_offset_of,
    parse_index,
)
from kafkacodec.log.opening import read_file, read_used
from kafkacodec.signatures import suggests_options

__all__ = ["index_of", "read_offset_index", "read_time_index", "read_transaction_index"]

MAX_BYTES = (1 << 31) - 1
"""The largest readable index, in bytes; a broker's sizes have 32 bits."""

_PREALLOCATED = {layout.OFFSET_INDEX_SUFFIX: OFFSETS, layout.TIME_INDEX_SUFFIX: TIMES}


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
    return _read(path, OFFSETS, on_error)


@suggests_options
def read_time_index(path: str | os.PathLike[str], *, on_error: Literal["raise", "stop"] = "raise") -> IndexFile:
    """Read a ``.timeindex`` file: increasing timestamps and the offsets of the records that have them.

    Arguments and errors as in `read_offset_index`.
    """
    return _read(path, TIMES, on_error)


@suggests_options
def read_transaction_index(path: str | os.PathLike[str], *, on_error: Literal["raise", "stop"] = "raise") -> IndexFile:
    """Read a ``.txnindex`` file: the transactions whose abort marker is in the segment.

    Arguments and errors as in `read_offset_index`.
    """
    return _read(path, TRANSACTIONS, on_error)


def index_of(segment: str, suffix: str) -> IndexFile:
    """Return the offset or the time index of a segment, up to its first fault, for a look-up that checks its entries.

    In a preallocated index, nothing is read after the first zeros that fill a page.

    Raises:
        OSError: it cannot be read.
        CorruptIndex: the segment's name is not an offset.
    """
    return _read(layout.sibling(segment, suffix), _PREALLOCATED[suffix], "stop", to_end=False)


def _read(path: str | os.PathLike[str], kind: IndexKind, on_error: str, *, to_end: bool = True) -> IndexFile:
    one_of("on_error", on_error, ("raise", "stop"))
    path = os.fspath(path)
    base_offset_of(path)  # the name is checked first
    if kind is TRANSACTIONS:  # which a broker does not preallocate
        data = read_file(path, MAX_BYTES)
        size = len(data)
    else:
        data, size = read_used(path, MAX_BYTES, to_end=to_end)
    index = parse_index(data, size, path, kind)
    if index.problems and on_error == "raise":
        raise index.problems[0]
    return index
