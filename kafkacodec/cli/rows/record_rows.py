"""Records one by one, with their place and the fields of their batch, for `kafkacodec dump`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacodec.arrow._rows import cells
from kafkacodec.records.plan import BATCH_COLUMNS
from kafkacodec.records.record import Record

if TYPE_CHECKING:
    from kafkacodec import RecordColumns

FIELDS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
"""The fields of a record, in the order of the JSON."""

COLUMNS = (*FIELDS, *BATCH_COLUMNS)
"""The fields that can be chosen."""


@dataclass(frozen=True)
class Origin:
    """Where records are from; `name` is that in tables."""

    topic: str | None
    partition: int | None
    name: str


_NONE: Mapping[str, Any] = {}


class Row(NamedTuple):
    """A record; `batch` has the fields of its batch that were asked for, `typed` its decoded key and value."""

    place: Origin
    record: Record
    batch: Mapping[str, Any]
    typed: Mapping[str, Any] = _NONE

    def field(self, name: str) -> Any:
        """One of `COLUMNS`; None for a field of the batch that the format lacks."""
        if name in ("topic", "partition"):
            return getattr(self.place, name)
        return getattr(self.record, name) if name in FIELDS else self.batch.get(name)


def rows(
    place: Origin,
    chunks: Iterable[RecordColumns],
    batch_fields: Iterable[str],
    typed: Callable[[RecordColumns], Iterator[tuple[Record, dict[str, Any]]]] | None = None,
) -> Iterator[Row]:
    """The records of chunks that were read with the columns of the batch, if fields of it are asked for.

    `typed` gives the records of a chunk with what their keys and values are decoded to.
    """
    for chunk in chunks:
        if not len(chunk):
            continue
        names = [name for name in batch_fields if name in chunk.column_names]
        if not names and typed is None:
            for record in chunk.records():
                yield Row(place, record, _NONE)
            continue
        values = [cells(chunk, name) for name in names]
        decoded = ((record, _NONE) for record in chunk.records()) if typed is None else typed(chunk)
        for i, (record, found) in enumerate(decoded):
            yield Row(place, record, {name: column[i] for name, column in zip(names, values, strict=True)}, found)
