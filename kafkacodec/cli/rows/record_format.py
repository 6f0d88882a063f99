"""Format strings for records, as kcat has them: ``'%o %k: %s\\n'``."""

from __future__ import annotations

import re
from collections.abc import Callable

from kafkacodec.cli.rows.record_rows import Row

Part = Callable[[Row], bytes]
Shown = Callable[[bytes], bytes]

_TOKEN = re.compile(rb"%(.?)|\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


def _size(value: bytes | None) -> int:
    return -1 if value is None else len(value)


def _headers(row: Row) -> bytes:
    return b",".join(key.encode() + b"=" + (b"NULL" if value is None else value) for key, value in row.record.headers)


def _number(number: int | None) -> bytes:
    return b"-1" if number is None else b"%d" % number


# By letter: the bytes, and whether they are the record's own, which a terminal must not get as they are.
_FIELDS: dict[bytes, tuple[Part, bool]] = {
    b"t": (lambda row: (row.place.topic or "").encode(errors="surrogateescape"), True),
    b"p": (lambda row: _number(row.place.partition), False),
    b"o": (lambda row: _number(row.record.offset), False),
    b"T": (lambda row: _number(row.record.timestamp), False),
    b"k": (lambda row: row.record.key or b"", True),
    b"K": (lambda row: _number(_size(row.record.key)), False),
    b"s": (lambda row: row.record.value or b"", True),
    b"S": (lambda row: _number(_size(row.record.value)), False),
    b"R": (lambda row: _size(row.record.value).to_bytes(4, "big", signed=True), True),
    b"h": (_headers, True),
}


def compiled(template: bytes) -> Callable[[Row, Shown], bytes]:
    """A function that formats a record. Its second argument makes bytes of the record fit for the output.

    Raises:
        ValueError: an unknown field or escape.
    """
    parts: list[bytes | tuple[Part, bool]] = []
    end = 0
    for token in _TOKEN.finditer(template):
        parts += [template[end : token.start()], _part(token)]
        end = token.end()
    parts.append(template[end:])

    parts = [part for part in parts if part]

    def formatted(row: Row, shown: Shown) -> bytes:
        return b"".join(
            [part if isinstance(part, bytes) else shown(part[0](row)) if part[1] else part[0](row) for part in parts]
        )

    return formatted


def _part(token: re.Match[bytes]) -> bytes | tuple[Part, bool]:
    field, escape = token.groups()
    if field == b"%":
        return b"%"
    if field in _FIELDS:
        return _FIELDS[field]
    if field is None and escape[:1] == b"x" and len(escape) == 3:
        return bytes.fromhex(escape[1:].decode())
    if field is None and escape in _ESCAPES:
        return _ESCAPES[escape]
    known = " ".join("%" + letter.decode() for letter in _FIELDS)
    raise ValueError(rf"unknown '{token.group().decode(errors='replace')}'; use {known} %% \n \r \t \0 \\ \xNN")
