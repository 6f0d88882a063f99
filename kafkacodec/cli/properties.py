"""Files of properties, as Java's and librdkafka's clients are configured by."""

from __future__ import annotations

__all__ = ["read_properties"]


def read_properties(text: str) -> dict[str, str]:
    """The properties of a file: ``name=value``, with ``#`` and ``!`` for comments and ``\\`` at the end for more lines.

    Raises:
        ValueError: a line is not a property; the message has its number.
    """
    found: dict[str, str] = {}
    start = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = start + line.lstrip()
        start = ""
        if not line.strip() or line[0] in "#!":
            continue
        if line.endswith("\\"):
            start = line[:-1]
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"line {number}: not name=value")
        found[name.strip()] = value.strip()
    return found
