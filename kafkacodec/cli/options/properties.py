"""Files of properties, as Java's and librdkafka's clients are configured by."""

from __future__ import annotations

import re

__all__ = ["read_properties"]

_LINE_END = re.compile(r"\r\n|\n|\r")  # no others, which may be part of a password


def read_properties(text: str) -> dict[str, str]:
    """The properties of a file: ``name=value``, with ``#`` and ``!`` for comments and ``\\`` at the end for more lines.

    As in Java's files, two backslashes do not continue a line. Elsewhere a backslash is an ordinary character.

    Raises:
        ValueError: a line is not a property, or the last one announces another; the message has its number.
    """
    found: dict[str, str] = {}
    start, number = "", 0
    for number, line in enumerate(_LINE_END.split(text), 1):
        line = start + line.lstrip()
        start = ""
        if not line.strip() or line[0] in "#!":
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            start = line[:-1]
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"line {number}: not name=value")
        found[name.strip()] = value.strip()
    if start:
        raise ValueError(f"line {number}: ends with a backslash, but no line follows")
    return found
