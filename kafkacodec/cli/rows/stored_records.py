"""Records of internal topics and control records, decoded by name, as text and as JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from kafkacodec.cli.output import json_tree
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import DecodeError
from kafkacodec.messages.embedded import expand
from kafkacodec.messages.stored import INTERNAL_TOPICS, decode_control_record, decode_internal_record

if TYPE_CHECKING:
    from kafkacodec.cli.rows.record_rows import Page
    from kafkacodec.messages import Message

_WORD = re.compile(r"[^\s\"=]+")


class Named(NamedTuple):
    """A key and a value as text, and as JSON; with what else is known of a control record."""

    key: str
    value: str
    json_key: Any
    json_value: Any
    more: dict[str, Any]


def named(page: Page) -> list[Named | None] | None:
    """The records by name; None for one of an unknown type, or that cannot be decoded.

    None for all if they are of another topic, and no control records.
    """
    topic, controls = page.place.topic, page.cells("is_control")
    if topic not in INTERNAL_TOPICS and not any(controls):
        return None
    batch = zip(controls, page.cells("producer_id"), page.cells("producer_epoch"), strict=True)
    producers = [
        {"producer_id": number, "producer_epoch": epoch} if control else None for control, number, epoch in batch
    ]
    return [
        _stored(topic, key, value) if producer is None else _control(key, value, producer)
        for producer, key, value in zip(producers, page.cells("key"), page.cells("value"), strict=True)
    ]


def _stored(topic: str | None, key: bytes | None, value: bytes | None) -> Named | None:
    if topic not in INTERNAL_TOPICS:
        return None
    try:
        found = decode_internal_record(topic, key, value)
    except DecodeError:
        return None
    if found is None:
        return None
    of_key, of_value = found.key, found.value
    return Named(
        "null" if of_key is None else _text(of_key, name=True),
        "null" if of_value is None else _text(of_value, found.version, name=of_key is None),
        None if of_key is None else _typed(of_key),
        None if of_value is None else _typed(of_value, found.version),
        {},
    )


def _control(key: bytes | None, value: bytes | None, producer: dict[str, Any]) -> Named | None:
    control = decode_control_record(key, value)
    if control is None:
        return None
    text, more = _text(control.value, control.version), {}
    if control.type in ("COMMIT", "ABORT"):
        more = producer
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
