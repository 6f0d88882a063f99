"""Files that a broker preallocated: the bytes before the zeros at their end.

The newest indexes of a running broker have 10 MiB each, of which a few KiB are used. The rest is a hole in the broker's
file, and often real zeros in a copy.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from kafkacodec.log.files.access import TRIES, check_limit, naming, open_regular

__all__ = ["read_used", "without_zeros"]

_FIRST = 64 << 10
_GAP = bytes(4096)
_ZEROS = bytes(1 << 20)


def read_used(path: str, limit: int, *, to_end: bool) -> tuple[bytes, int]:
    """The bytes of a regular file without the zeros at its end, and its size.

    Args:
        path: the file.
        limit: its size in bytes at most.
        to_end: look at the whole file. Otherwise the bytes may end before zeros that fill a page, even if others follow
            them: for readers that would not use what follows.

    Raises:
        LimitExceeded: the file is larger than `limit`.
        OSError: missing, unreadable, or not a regular file; `filename` names it.
    """
    with naming(path), open(open_regular(path), "rb", buffering=0) as file:
        descriptor = file.fileno()
        for _ in range(TRIES):
            size = os.fstat(descriptor).st_size
            check_limit(size, limit, path)
            data = _beginning(descriptor, size)
            if to_end and (end := _end_of_data(descriptor, len(data), size)) > len(data):
                data += _read(descriptor, len(data), end)
            if os.fstat(descriptor).st_size >= size:
                break  # otherwise it was shortened: a broker cuts an index when its segment is complete
        return without_zeros(data), size


def without_zeros(data: bytes) -> bytes:
    """The bytes up to the last one that is not zero."""
    end = len(data)
    while end and data[max(end - len(_GAP), 0) : end] == _GAP[:end]:
        end = max(end - len(_GAP), 0)
    start = max(end - len(_GAP), 0)
    return data[: start + len(data[start:end].rstrip(b"\0"))]


def _beginning(descriptor: int, size: int) -> bytes:
    """The bytes up to a piece that ends with zeros; each piece is as long as all before it."""
    data = _read(descriptor, 0, min(_FIRST, size))
    while len(data) < size and not data.endswith(_GAP):
        more = _read(descriptor, len(data), min(2 * len(data), size))
        if not more:
            break
        data += more
    return data


def _end_of_data(descriptor: int, start: int, size: int) -> int:
    """The position after the last byte that is not zero from `start` on; `start` if there is none."""
    found = start
    for position, end in _written(descriptor, start, size):
        for at in range(position, end, len(_ZEROS)):
            piece = _read(descriptor, at, min(at + len(_ZEROS), end))
            if piece != _ZEROS[: len(piece)]:
                found = at + len(without_zeros(piece))
    return found


def _written(descriptor: int, position: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are no holes, as positions and ends; the whole rest where the system cannot tell."""
    while position < size:
        start, end = position, size
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
            end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
        yield start, end
        position = end


def _read(descriptor: int, start: int, end: int) -> bytes:
    """The bytes of a part of a file, fewer if it ends before."""
    parts = []
    while start < end and (part := os.pread(descriptor, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
