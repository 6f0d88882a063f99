"""Records of internal topics and control records, decoded by name, as text and as JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacodec.cli.output import json_tree
from kafkacodec.errors import DecodeError
from kafkacodec.messages.embedded import expand
from kafkacodec.messages.stored import INTERNAL_TOPICS, decode_control_record, decode_internal_record

if TYPE_CHECKING:
    from kafkacodec.cli.rows.record_rows import Row
    from kafkacodec.messages import Message

BATCH_FIELDS = ("is_control", "producer_id", "producer_epoch")
"""The fields of the batch by which control records are recognized and shown."""


_WORD = re.compile(r"[^\s\"=]+")


class Named(NamedTuple):
    """A key and a value as text, and as JSON; with what else is known of a control record."""

    key: str
    value: str
    json_key: Any
    json_value: Any
    more: dict[str, Any]


def named(row: Row) -> Named | None:
    """The record by name; None for a record of another topic, of an unknown type, or that cannot be decoded."""
    if row.batch.get("is_control"):
        return _control(row)
    if row.place.topic not in INTERNAL_TOPICS:
        return None
    try:
        found = decode_internal_record(row.place.topic, row.record.key, row.record.value)
    except DecodeError:
        return None
    if found is None:
        return None
    key, value = found.key, found.value
    json_key = None if key is None else _typed(key)
    json_value = None if value is None else _typed(value, found.version)
    if key is None:
        return Named(
            "null", "null" if value is None else _text(value, found.version, name=True), json_key, json_value, {}
        )
    return Named(
        _text(key, name=True), "null" if value is None else _text(value, found.version), json_key, json_value, {}
    )


def _control(row: Row) -> Named | None:
    control = decode_control_record(row.record.key, row.record.value)
    if control is None:
        return None
    text, more = _text(control.value, control.version), {}
    if control.type in ("COMMIT", "ABORT"):
        more = {name: row.batch.get(name) for name in ("producer_id", "producer_epoch")}
        text = f"{_fields(more)} {text}"
    return Named(control.type, text, {"type": control.type}, _typed(control.value, control.version), more)


def _typed(message: Message, version: int | None = None) -> dict[str, Any]:
    known = {} if version is None else {"version": version}
    return {"type": type(message).__name__, **known, "data": json_tree(expand(message, version))}


def _text(message: Message, version: int | None = None, *, name: bool = False) -> str:
    """``OffsetCommit group=billing topic=orders partition=0``."""
    fields = _fields(json_tree(expand(message, version)))
    kind = type(message).__name__.removesuffix("Key").removesuffix("Value")
    return f"{kind} {fields}".rstrip() if name else fields


def _fields(values: dict[str, Any]) -> str:
    """``name=value`` for each field: plain words as they are, anything else as JSON."""
    return " ".join(f"{name}={_word(value)}" for name, value in values.items())


def _word(value: object) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else json.dumps(value, ensure_ascii=False)
