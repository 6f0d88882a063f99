"""How `kafkacodec dump` prints records: as a table, as JSON lines, or by a format string."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from kafkacodec.cli.console import say_bytes, say_json
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
    for row in rows:
        if row is not None:
            say_json(_fields(row, columns, None if raw else named(row)))


def _fields(row: Row, columns: tuple[str, ...] | None, by_name: Named | None) -> dict[str, object]:
    fields = {name: _json_field(row, name) for name in columns or FIELDS}
    if by_name is not None:
        for name, value in (("key", by_name.json_key), ("value", by_name.json_value)):
            if name in fields:
                fields[name] = value
        if columns is None:
            fields |= by_name.more
    return fields


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
    for row in rows:
        if row is None:
            yield None
            continue
        by_name = None if raw else named(row)
        known = {} if by_name is None else {"key": by_name.key, "value": by_name.value}
        yield [known[name] if name in known else _cell(row, name) for name in columns]


def _cell(row: Row, name: str) -> str:
    if name == "place":
        return row.place.name
    value = row.field(name)
    if name in ("key", "value"):
        return text(value)
    if name == "timestamp":
        return timestamp(value)
    if name == "headers":
        return " ".join(f"{key}={text(content)}" for key, content in value)
    return "-" if value is None else str(value)


def print_formatted(rows: Rows, *, template: bytes) -> None:
    """Each record by a format string, without a line end of its own."""
    formatted = compiled(template)
    say_bytes(None if row is None else partial(formatted, row) for row in rows)
