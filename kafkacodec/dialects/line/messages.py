"""The ``messages`` of a CONSUME payload: a list of ``offset:value`` with commas.

Values may contain commas. A comma ends a value if it is followed by an offset and a colon, and the offset is larger
than the previous one and below the payload's high watermark. If a value contains such text, the payload gets another
key, ``lengths``: the size of each value in bytes of UTF-8. (The protocol allows new keys in payloads; readers that do
not know this one ignore it.)
"""

from __future__ import annotations

import re
from typing import Any

from kafkacodec.dialects.line._tokens import read_integer
from kafkacodec.dialects.line.values import Kind, shortened

__all__ = ["LENGTHS", "MESSAGES", "message_size", "prepare_messages", "refine_messages"]

LENGTHS = "lengths"

Messages = list[dict[str, Any]]

_NEXT = re.compile(r",(-?[0-9]{1,20}):")
# Characters that end a word, a section or a line.
_SEPARATORS = re.compile(r"[ |\n]")


def _read(word: str, below: int | None = None) -> Messages:
    """Split at the commas; offsets except the first must be less than `below`."""
    messages: Messages = []
    text = f",{word}"
    if word and not _NEXT.match(text):
        raise ValueError(f"{shortened(word)} is not a list of offset:value")
    start = 0
    for match in _NEXT.finditer(text):
        offset = read_integer(match[1]) if not messages else _offset(match[1])
        if messages and (offset <= messages[-1]["offset"] or (below is not None and offset >= below)):
            continue
        if messages:
            messages[-1]["value"] = text[start : match.start()]
        messages.append({"offset": offset})
        start = match.end()
    if messages:
        messages[-1]["value"] = text[start:]
    return messages


def _offset(digits: str) -> int:
    """The offset, or the least integer if the digits are not one."""
    try:
        return read_integer(digits)
    except ValueError:
        return -(1 << 63)


def _read_sized(word: str, lengths: list[int]) -> Messages:
    """Split by the size of each value."""
    messages: Messages = []
    data = f",{word}".encode() if word else b""
    at = 0
    for length in lengths:
        start = data.find(b":", at) + 1
        end = start + length
        if data[at : at + 1] != b"," or not start or length < 0 or end > len(data):
            raise ValueError(f"{LENGTHS} {shortened(str(lengths))} do not match the messages")
        try:
            offset, value = data[at + 1 : start - 1].decode(), data[start:end].decode()
        except UnicodeDecodeError:
            raise ValueError(f"{LENGTHS} {shortened(str(lengths))} split a character") from None
        messages.append({"offset": read_integer(offset), "value": value})
        at = end
    if at != len(data):
        raise ValueError(f"{LENGTHS} {shortened(str(lengths))} do not match the messages")
    return messages


def _write(messages: Messages) -> str:
    words = []
    for message in messages:
        offset, value = message["offset"], message["value"]
        if not -(1 << 63) <= offset < 1 << 63:
            raise ValueError(f"{offset!r} is not an integer of 64 bits")
        if _SEPARATORS.search(value):
            raise ValueError(f"{shortened(value)} contains a space, a bar or a line end")
        words.append(f"{offset}:{value}")
    return ",".join(words)


MESSAGES = Kind(_read, _write)


def message_size(offset: int, value: str) -> int:
    """The largest size in bytes of a message in a payload, including its entry in ``lengths``."""
    size = len(value.encode("utf-8", "surrogatepass"))
    return len(f"{offset}:,{size},") + size


def prepare_messages(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields to write, with ``lengths`` if the commas alone are ambiguous."""
    messages, below = fields.get("messages") or [], fields.get("hw")
    if LENGTHS not in fields and not any(_is_ambiguous(m, below) for m in messages if "," in m["value"]):
        return fields
    return {**fields, LENGTHS: [len(m["value"].encode("utf-8", "surrogatepass")) for m in messages]}


def _is_ambiguous(message: dict[str, Any], below: int | None) -> bool:
    offsets = (_offset(match[1]) for match in _NEXT.finditer(message["value"]))
    return any(message["offset"] < o and (below is None or o < below) for o in offsets)


def refine_messages(fields: dict[str, Any], payload: str) -> None:
    """Split the messages again by ``lengths`` or the high watermark, if this gives another result."""
    messages, below = fields.get("messages"), fields.get("hw")
    if messages is None:
        return
    if LENGTHS in fields:
        fields["messages"] = _read_sized(_word(payload), fields[LENGTHS])
    elif messages and below is not None and messages[-1]["offset"] >= below:
        fields["messages"] = _read(_word(payload), below)


def _word(payload: str) -> str:
    return next(word for word in payload.split(" ") if word.startswith("messages=")).removeprefix("messages=")
