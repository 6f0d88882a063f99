"""Records of tables, with their place, for commands that print them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kafkacodec.arrow._rows import cells
from kafkacodec.cli.console import note
from kafkacodec.cli.output import counted
from kafkacodec.datatypes import dataclass, field
from kafkacodec.records.plan import BATCH_COLUMNS

if TYPE_CHECKING:
    from kafkacodec import RecordColumns

__all__ = [
    "COLUMNS",
    "ERRORS",
    "FIELDS",
    "NOTHING",
    "Counted",
    "Decoded",
    "Given",
    "Origin",
    "Page",
    "limited",
    "pages",
]

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


Given = dict[str, list[bytes | None]]
"""What stands in place of columns, for each of some rows."""


@dataclass(frozen=True)
class Page:
    """Records of one partition.

    Attributes:
        place: where they are from.
        table: has their columns; None without one.
        first, end: the rows of the table.
        given: bytes for each of the rows, by the names of the columns in whose place they stand.
        typed: what keys and values are decoded to, by ``key`` and ``value``; None for what is not.
    """

    place: Origin
    table: RecordColumns | None
    first: int
    end: int
    given: Given = field(default_factory=dict)
    typed: dict[str, list[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.end - self.first

    def part(self, first: int, end: int) -> Page:
        """Some of the rows, by their numbers in the table."""
        span = slice(first - self.first, end - self.first)
        given = {name: values[span] for name, values in self.given.items()}
        typed = {name: values[span] for name, values in self.typed.items()}
        return Page(self.place, self.table, first, end, given, typed)

    def cells(self, name: str) -> list[Any]:
        """The values of a column, or what is given in its place; None for a column that the table lacks."""
        if name in self.given:
            return list(self.given[name])
        if self.table is None or name not in self.table.column_names:
            return [None] * len(self)
        return cells(self.table, name, self.first, self.end)


Decoded = tuple[Given, dict[str, list[Any]]]
"""What is given in place of keys and values of a table, and what they are decoded to: as in `Page`, for all rows."""

ERRORS = ("key_error", "value_error")
"""What is given in place of no column: why keys and values could not be decoded."""

NOTHING: Decoded = ({}, {})
"""Where keys and values stay bytes."""


def pages(
    place: Origin,
    chunks: Iterable[RecordColumns],
    decode: Callable[[RecordColumns], Iterable[tuple[RecordColumns, Decoded]]] | None = None,
) -> Iterator[Page]:
    """The records of tables of one partition, with what `decode` makes of keys and values."""
    for chunk in chunks:
        if not len(chunk):
            continue
        for table, (given, typed) in [(chunk, NOTHING)] if decode is None else decode(chunk):
            yield Page(place, table, 0, len(table), given, typed)


class Counted:
    """Pages that are printed; counts the keys and values that could not be decoded."""

    def __init__(self, found: Iterable[Page | None]) -> None:
        self._found, self._count = found, 0

    def __iter__(self) -> Iterator[Page | None]:
        for page in self._found:
            if page is not None:
                errors = (page.given.get(name, ()) for name in ERRORS)
                self._count += sum(reason is not None for reasons in errors for reason in reasons)
            yield page

    def tell(self) -> None:
        """Say on standard error how many there were."""
        if self._count:
            note(f"{counted(self._count, 'value')} could not be decoded; --json gives the reason")


def limited(found: Iterable[Page | None], limit: int | None) -> Iterator[Page | None]:
    """At most so many records; no more are asked for then."""
    if limit is None:
        yield from found
        return
    if limit == 0:
        return
    for page in found:
        if page is None or len(page) <= limit:
            yield page
        else:
            yield page.part(page.first, page.first + limit)
        limit -= 0 if page is None else min(len(page), limit)
        if limit == 0:
            return
