"""How `kafkacodec dump` prints records: as a table, as JSON lines, or by a format string."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import Any

from kafkacodec.cli.console import is_terminal, json_text, say_bytes, say_text, visible, visible_bytes
from kafkacodec.cli.output import GAP, SAMPLE_ROWS, Column, Layout, json_value, sampled, text
from kafkacodec.cli.rows import record_format
from kafkacodec.cli.rows.record_rows import ERRORS, FIELDS, Given, Origin, Page
from kafkacodec.cli.rows.record_text import Pages, Piece, constant, texts, writer
from kafkacodec.cli.rows.stored_records import Named, named

__all__ = ["Pages", "Printer", "print_formatted", "print_json", "print_rows"]

Printer = Callable[[Pages], None]

_TITLES = {"timestamp": "timestamp (UTC)"}
_NUMBERS = ("offset", "producer_id", "producer_epoch", "sequence", "partition_leader_epoch", "batch_offset")
_STRETCHED = ("key", "value", "headers", "place", "topic")
_MORE = "more fields"  # what is given of a control record's


def print_json(pages: Pages, *, columns: tuple[str, ...] | None, raw: bool) -> None:
    """JSON lines, of all fields or the chosen ones."""
    names = tuple(dict.fromkeys(columns or FIELDS))
    say_text(texts(pages, partial(_json_pieces, names), partial(_json_given, names, columns is None, raw)))


def _json_pieces(names: tuple[str, ...], place: Origin, ready: Collection[str]) -> list[Piece]:
    pieces = []
    for i, name in enumerate(names):
        pieces.append(constant(f"{',' if i else '{'}{json_text(name)}:".encode()))
        if name in ("topic", "partition"):
            pieces.append(constant(json_text(getattr(place, name)).encode()))
        elif name in ready:
            pieces.append(Piece("plain", name, b"null"))
        else:
            pieces.append(_JSON.get(name) or Piece("json", name, b"null"))
    return [*pieces, Piece("plain", _MORE), constant(b"}\n")]


_JSON = {
    "headers": Piece("json headers", "headers", b"[]"),
    **{name: Piece("number", name, b"null") for name in ("offset", "timestamp", "timestamp_type")},
}


def _json_given(names: tuple[str, ...], all_fields: bool, raw: bool, page: Page) -> tuple[Given, Collection[str]]:
    by_name = None if raw else named(page)
    if by_name is None:
        found = {part: _json_cells(page, part, values) for part, values in page.typed.items()}
        reasons = {_MORE: _reasons(page)} if all_fields and any(name in page.given for name in ERRORS) else {}
        return {**page.given, **found, **reasons}, tuple(found)
    made: Given = {
        part: [
            cell if one is None else json_text(getattr(one, f"json_{part}")).encode()
            for one, cell in zip(by_name, _json_cells(page, part, page.typed.get(part)), strict=True)
        ]
        for part in ("key", "value")
    }
    if all_fields:
        both = zip(by_name, _reasons(page), strict=True)
        made[_MORE] = [reason if one is None else _more(one) for one, reason in both]
    return {**page.given, **made}, tuple(made)


def _json_cells(page: Page, part: str, typed: list[Any] | None) -> list[bytes | None]:
    values = [None] * len(page) if typed is None else typed
    found = zip(page.cells(part), values, strict=True)
    return [json_text(json_value(data) if value is None else value).encode() for data, value in found]


def _reasons(page: Page) -> list[bytes | None]:
    """Why keys and values could not be decoded, as more fields of an object, for each row."""
    found = [b""] * len(page)
    for name in ERRORS:
        for row, reason in enumerate(page.given.get(name, ())):
            if reason is not None:
                found[row] += f',"{name}":{json_text(reason.decode())}'.encode()
    return list(found)


def _more(one: Named) -> bytes:
    """More fields of an object, after others."""
    return f",{json_text(one.more)[1:-1]}".encode() if one.more else b""


def print_rows(pages: Pages, *, columns: tuple[str, ...], raw: bool) -> None:
    """A table. The column ``place`` is topic and partition."""
    made = [
        Column(
            _TITLES.get(name, "partition" if name == "place" else name),
            right=name in _NUMBERS,
            stretch=name in _STRETCHED,
            cut_start=name == "place",  # the number is at its end
        )
        for name in columns
    ]
    given, pages = partial(_text_given, raw), iter(pages)
    with sampled(_first(pages)) as sample:
        layout = Layout.of(made, _sample_rows(sample, columns, given))
        layout.print_titles()
        shown = [columns[place] for place in layout.places]
        say_text(texts(chain(sample, pages), partial(_cell_pieces, shown, layout), given, cells=True))


def _first(pages: Pages) -> Iterator[Page | None]:
    """Pages with as many records as the widths of columns are chosen by."""
    count = 0
    for page in pages:
        yield page
        count += 0 if page is None else len(page)
        if count >= SAMPLE_ROWS:
            return


def _sample_rows(
    sample: list[Page], columns: tuple[str, ...], given: Callable[[Page], tuple[Given, Collection[str]]]
) -> list[list[str]]:
    """The cells of the first records."""
    rows: list[list[str]] = []
    for page in sample:
        page = page.part(page.first, min(page.end, page.first + SAMPLE_ROWS - len(rows)))
        found, ready = given(page)
        pieces = [piece for name in columns for piece in (_piece_of(name, page.place, ready), constant(b"\0"))]
        cells, row = writer([*pieces, constant(b"\n")]), page.first
        while row < page.end:
            lines, row = cells.write(page.table, row, page.end, found, page.first)
            rows += [line.split("\0")[:-1] for line in lines.decode().split("\n")[:-1]]
    return rows


def _cell_pieces(columns: list[str], layout: Layout, place: Origin, ready: Collection[str]) -> list[Piece]:
    pieces = []
    for i, name in enumerate(columns):
        piece, gap = _piece_of(name, place, ready), b"" if i + 1 == len(columns) else GAP.encode()
        if piece.kind == "constant":
            pieces += [constant(layout.cell(i, piece.text.decode()).encode()), Piece("cell", None, gap)]
        else:
            column = layout.columns[i]
            pieces += [piece, Piece("cell", None, gap, layout.most_of(i) or 0, layout.widths[i], column.right)]
    return [*pieces, Piece("line end", None, b"\n", layout.available or 0)]


_CELLS = {
    "key": Piece("value", "key", b"null"),
    "value": Piece("value", "value", b"null"),
    "timestamp": Piece("time", "timestamp", b"-"),
    "headers": Piece("value headers", "headers"),
    "codec": Piece("visible", "codec", b"-"),
}


def _piece_of(name: str, place: Origin, ready: Collection[str]) -> Piece:
    """The text of a field in a table."""
    if name in ready:
        return Piece("plain", name)
    if name == "place":
        return constant(visible(place.name).encode())
    if name in ("topic", "partition"):
        value = getattr(place, name)
        return constant(b"-" if value is None else visible(str(value)).encode())
    return _CELLS.get(name) or Piece("number", name, b"-")


def _text_given(raw: bool, page: Page) -> tuple[Given, Collection[str]]:
    by_name = None if raw else named(page)
    if by_name is None:
        return dict(page.given), ()
    made: Given = {
        part: [
            visible(text(data) if one is None else getattr(one, part)).encode()
            for one, data in zip(by_name, page.cells(part), strict=True)
        ]
        for part in ("key", "value")
    }
    return {**page.given, **made}, tuple(made)


def print_formatted(pages: Pages, *, template: bytes) -> None:
    """Each record by a format string, without a line end of its own."""
    terminal, parts = is_terminal(sys.stdout), record_format.compiled(template)

    def pieces(place: Origin, ready: Collection[str]) -> list[Piece]:
        return record_format.pieces(parts, place, terminal=terminal)

    def given(page: Page) -> tuple[Given, Collection[str]]:
        found = dict(page.given)
        if terminal and b"R" in parts[1::2]:
            sizes = [-1 if value is None else len(value) for value in page.cells("value")]
            found[record_format.SIZE_COLUMN] = [visible_bytes(size.to_bytes(4, "big", signed=True)) for size in sizes]
        return found, ()

    say_bytes(texts(pages, pieces, given))
