"""The transaction index of a growing segment: the transactions with an abort marker in it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.indexes import encode_transaction_index
from kafkacodec.log.growing.disk import Disk, OpenFile
from kafkacodec.log.opening.indexes import read_transaction_index

__all__ = ["Aborted", "AbortedTransactions", "aborted_between"]


class Aborted(NamedTuple):
    """An aborted transaction; the last offset is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedTransactions:
    """The entries of one segment's ``.txnindex``, which exists only if there are any.

    Args:
        path: the ``.log`` file.
        disk: writes the file.
    """

    def __init__(self, path: str, disk: Disk) -> None:
        self._path, self._disk = layout.sibling(path, layout.TRANSACTION_INDEX_SUFFIX), disk
        self._entries: list[Aborted] | None = None
        self._written = 0

    @property
    def entries(self) -> list[Aborted]:
        """The entries of the file, up to the first fault; read at first use."""
        if self._entries is None:
            self._entries = []
            if os.path.exists(self._path):
                index = read_transaction_index(self._path, on_error="stop")
                columns = (index[name].tolist() for name in Aborted._fields)
                self._entries = [Aborted(*row) for row in zip(*columns, strict=True)]
            self._written = len(self._entries)
        return self._entries

    def add(self, aborted: Aborted) -> None:
        """Add an entry. If the disk does not take it now, `write` does later."""
        self.entries.append(aborted)
        with suppress(OSError):
            self.write()

    def write(self) -> None:
        """Write entries that the file lacks. Raises OSError; a later call writes the same ones."""
        entries, size = self.entries, layout.TRANSACTION_INDEX_ENTRY.itemsize
        if self._written < len(entries):
            rows = [(0, *entry) for entry in entries[self._written :]]
            self._disk.write(self._disk.open(self._path), encode_transaction_index(rows), self._written * size)
            self._written = len(entries)

    def truncate(self, offset: int) -> None:
        """Remove the entries whose marker is at an offset or later."""
        kept = [entry for entry in self.entries if entry.last_offset < offset]
        if os.path.exists(self._path):
            self._disk.truncate(self._disk.open(self._path), len(kept) * layout.TRANSACTION_INDEX_ENTRY.itemsize)
        self._entries, self._written = kept, min(self._written, len(kept))

    def files(self) -> list[OpenFile]:
        """The open file, with all entries, if there are any. Raises OSError."""
        self.write()
        return [self._disk.open(self._path)] if os.path.exists(self._path) else []


def aborted_between(
    indexes: Iterable[AbortedTransactions], start_offset: int, end_offset: int
) -> list[tuple[int, int]]:
    """Return transactions that may have aborted records between two offsets: producer id and first offset of each.

    Args:
        indexes: of the segments from that of the start on
            (`org.apache.kafka.storage.internals.log.TransactionIndex.collectAbortedTxns`).
        start_offset, end_offset: the span.
    """
    found = []
    for index in indexes:
        for entry in index.entries:
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                found.append((entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= end_offset:
                return found
    return found
