"""How `kafkacodec dump` prints records: as a table, as JSON lines, or by a format string."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from kafkacodec.cli.console import is_unicode, json_encoder, say_bytes, say_json_lines
from kafkacodec.cli.output import Column, json_value, print_table, text, timestamp
from kafkacodec.cli.rows.record_format import compiled
from kafkacodec.cli.rows.record_rows import FIELDS, Row
from kafkacodec.cli.rows.stored_records import Named, named

Rows = Iterable[Row | None]
"""Records; None where there are no more for now."""

Printer = Callable[[Rows], None]

_TITLES = {"timestamp": "timestamp (UTC)"}
_NUMBERS = ("offset", "producer_id", "producer_epoch", "sequence", "partition_leader_epoch", "batch_offset")
_STRETCHED = ("key", "value", "headers", "place", "topic")


def print_json(rows: Rows, *, columns: tuple[str, ...] | None, raw: bool) -> None:
    """JSON lines, of all fields or the chosen ones."""
    say_json_lines(_json_lines(rows, columns, raw))


def _json_lines(rows: Rows, columns: tuple[str, ...] | None, raw: bool) -> Iterator[str | None]:
    encode, names = json_encoder(), tuple(dict.fromkeys(columns or FIELDS))
    titles = [f"{',' if i else '{'}{encode(name)}:" for i, name in enumerate(names)]
    parts = list(zip(titles, (_json_part(name, encode) for name in names), strict=True))
    for row in rows:
        by_name = None if raw or row is None else named(row)
        if row is None:
            yield None
        elif by_name is None and not row.typed:
            yield "".join([title + part(row) for title, part in parts]) + "}"
        else:
            yield encode(_fields(row, columns, by_name))


def _json_part(name: str, encode: Callable[[Any], str]) -> Callable[[Row], str]:
    """A function that makes the JSON of a field."""
    text_of = encode_basestring if is_unicode() else encode_basestring_ascii

    def of_bytes(value: bytes | None) -> str:
        if value is None:
            return "null"
        try:
            return text_of(value.decode())
        except UnicodeDecodeError:
            return encode(json_value(value))

    def of_headers(row: Row) -> str:
        headers = row.record.headers
        return encode(_json_field(row, "headers")) if headers else "[]"

    known: dict[str, Callable[[Row], str]] = {
        "topic": lambda row: "null" if row.place.topic is None else text_of(row.place.topic),
        "partition": lambda row: "null" if row.place.partition is None else str(row.place.partition),
        "offset": lambda row: str(row.record.offset),
        "timestamp": lambda row: "null" if row.record.timestamp is None else str(row.record.timestamp),
        "timestamp_type": lambda row: str(row.record.timestamp_type),
        "key": lambda row: of_bytes(row.record.key),
        "value": lambda row: of_bytes(row.record.value),
        "headers": of_headers,
    }
    return known.get(name, lambda row: encode(_json_field(row, name)))


def _fields(row: Row, columns: tuple[str, ...] | None, by_name: Named | None) -> dict[str, object]:
    fields = {name: _json_field(row, name) for name in columns or FIELDS}
    if by_name is None:
        return fields
    for name, value in (("key", by_name.json_key), ("value", by_name.json_value)):
        if name in fields:
            fields[name] = value
    return fields | by_name.more if columns is None else fields


def _json_field(row: Row, name: str) -> object:
    if name in row.typed:
        return row.typed[name]
    value = row.field(name)
    if name == "headers":
        return [{"key": key, "value": json_value(content)} for key, content in value]
    return json_value(value) if name in ("key", "value") else value


def print_rows(rows: Rows, *, columns: tuple[str, ...], raw: bool) -> None:
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
    print_table(made, _cells(rows, columns, raw))


def _cells(rows: Rows, columns: tuple[str, ...], raw: bool) -> Iterator[list[str] | None]:
    made = [_cell_of(name) for name in columns]
    for row in rows:
        if row is None:
            yield None
            continue
        by_name = None if raw else named(row)
        if by_name is None:
            yield [cell(row) for cell in made]
        else:
            known = {"key": by_name.key, "value": by_name.value}
            yield [known[name] if name in known else cell(row) for name, cell in zip(columns, made, strict=True)]


_CELLS: dict[str, Callable[[Row], str]] = {
    "place": lambda row: row.place.name,
    "offset": lambda row: str(row.record.offset),
    "key": lambda row: text(row.record.key),
    "value": lambda row: text(row.record.value),
    "timestamp": lambda row: timestamp(row.record.timestamp),
    "headers": lambda row: " ".join([f"{key}={text(content)}" for key, content in row.record.headers]),
}


def _cell_of(name: str) -> Callable[[Row], str]:
    """A function that makes the cell of a column."""

    def cell(row: Row) -> str:
        value = row.field(name)
        return "-" if value is None else str(value)

    return _CELLS.get(name, cell)


def print_formatted(rows: Rows, *, template: bytes) -> None:
    """Each record by a format string, without a line end of its own."""
    formatted = compiled(template)
    say_bytes(None if row is None else partial(formatted, row) for row in rows)
