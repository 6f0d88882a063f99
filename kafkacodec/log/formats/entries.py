"""Entries of fixed size in binary files, as tuples and as columns."""

from __future__ import annotations

from functools import cached_property
from itertools import starmap
from struct import Struct, calcsize
from typing import TYPE_CHECKING

from kafkacodec.lazy import np

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["EntryType"]


class EntryType:
    """The fields of an entry, big-endian and without gaps.

    Args:
        **fields: the code of each field in `struct`, by name.

    Attributes:
        itemsize (int): the bytes of an entry.
    """

    def __init__(self, **fields: str) -> None:
        self._fields = fields
        self._struct = Struct(">" + "".join(fields.values()))
        self.itemsize = self._struct.size

    def encoded(self, entries: Iterable[Iterable[int]]) -> bytes:
        """The bytes of entries, each with its fields in order. Raises struct.error for a field that is too large."""
        return b"".join(starmap(self._struct.pack, entries))

    @cached_property
    def stored(self) -> np.dtype[np.void]:
        """The type of an array of entries as they are in a file."""
        return np.dtype([(name, f">{_numpy_code(code)}") for name, code in self._fields.items()])

    @cached_property
    def native(self) -> np.dtype[np.void]:
        """The same in the byte order of this machine."""
        return np.dtype([(name, _numpy_code(code)) for name, code in self._fields.items()])


def _numpy_code(code: str) -> str:
    return f"{'u' if code.isupper() else 'i'}{calcsize('>' + code)}"
