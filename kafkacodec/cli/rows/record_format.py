"""Format strings for records, as kcat has them: ``'%o %k: %s\\n'``."""

from __future__ import annotations

import re

from kafkacodec.cli.console import visible_bytes
from kafkacodec.cli.rows.record_rows import Origin
from kafkacodec.cli.rows.record_text import Piece, constant

__all__ = ["FIELDS", "SIZE_COLUMN", "compiled", "pieces"]

_TOKEN = re.compile(rb"%(.?)|\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}

SIZE_COLUMN = "size of the value"
"""What is given for %R on a terminal."""

FIELDS: dict[bytes, Piece | None] = {
    b"t": None,
    b"p": None,
    b"o": Piece("number", "offset", b"-1"),
    b"T": Piece("number", "timestamp", b"-1"),
    b"k": Piece("plain", "key"),
    b"K": Piece("size", "key", b"-1"),
    b"s": Piece("plain", "value"),
    b"S": Piece("size", "value", b"-1"),
    b"R": Piece("size bytes", "value"),
    b"h": Piece("plain headers", "headers"),
}
"""The pieces by letter; those of the place depend on it."""

# The record's own bytes, which a terminal must not get as they are.
_SHOWN = {
    b"k": Piece("visible", "key"),
    b"s": Piece("visible", "value"),
    b"R": Piece("plain", SIZE_COLUMN),
    b"h": Piece("visible headers", "headers"),
}


def compiled(template: bytes) -> list[bytes]:
    """The parts of a format string: letters of fields, and constants, in turn; the first one is a constant.

    Raises:
        ValueError: an unknown field or escape.
    """
    parts = [b""]
    end = 0
    for token in _TOKEN.finditer(template):
        letter, escape = token.groups()
        parts[-1] += template[end : token.start()]
        if letter in FIELDS:
            parts += [letter, b""]
        else:
            parts[-1] += _constant(token, letter, escape)
        end = token.end()
    parts[-1] += template[end:]
    return parts


def _constant(token: re.Match[bytes], letter: bytes | None, escape: bytes) -> bytes:
    if letter == b"%":
        return b"%"
    if letter is None and escape[:1] == b"x" and len(escape) == 3:
        return bytes.fromhex(escape[1:].decode())
    if letter is None and escape in _ESCAPES:
        return _ESCAPES[escape]
    known = " ".join("%" + known.decode() for known in FIELDS)
    raise ValueError(rf"unknown '{token.group().decode(errors='replace')}'; use {known} %% \n \r \t \0 \\ \xNN")


def pieces(parts: list[bytes], place: Origin, *, terminal: bool) -> list[Piece]:
    """The pieces of a record's text, from `compiled` parts. For a terminal, the record's own bytes are escaped."""
    topic = (place.topic or "").encode(errors="surrogateescape")
    places = {
        b"t": visible_bytes(topic) if terminal else topic,
        b"p": b"-1" if place.partition is None else b"%d" % place.partition,
    }
    made = []
    for text, letter in zip(parts[::2], [*parts[1::2], None], strict=True):
        made.append(constant(text))
        if letter is not None:
            field = (_SHOWN if terminal else FIELDS).get(letter) or FIELDS[letter]
            made.append(field or constant(places[letter]))
    return made
