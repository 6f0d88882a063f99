"""Records as JSON lines with the names that kcat gives their fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacodec.cli.console import say_json
from kafkacodec.cli.output import json_value
from kafkacodec.cli.rows.record_rows import Row

__all__ = ["print_kcat_json"]

_TIMES = ("create", "logappend")


def print_kcat_json(rows: Iterable[Row | None]) -> None:
    """As ``kcat -J`` prints them, but without the broker's number; bytes that are not UTF-8 are base64 in an object."""
    for row in rows:
        if row is not None:
            say_json(_fields(row))


def _fields(row: Row) -> dict[str, Any]:
    record = row.record
    kind = record.timestamp_type
    found: dict[str, Any] = {
        "topic": row.place.topic,
        "partition": row.place.partition,
        "offset": record.offset,
        "tstype": _TIMES[kind] if record.timestamp is not None and kind in (0, 1) else "unknown",
        "ts": record.timestamp,
    }
    if record.headers:
        found["headers"] = [part for key, value in record.headers for part in (key, json_value(value))]
    return found | {"key": json_value(record.key), "payload": json_value(record.value)}
