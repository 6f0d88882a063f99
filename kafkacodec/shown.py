"""Values as text, and tables as HTML: how records are shown in terminals and notebooks."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any

__all__ = ["cell_text", "counted", "html_table", "repr_of", "repr_of_rows", "text", "timestamp"]

_HEX = frozenset("0123456789abcdef")
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"})

_LONGEST_CELL = 100
"""Characters of a cell that a table in a notebook shows."""

_LONGEST_SOURCE = 2 * _LONGEST_CELL
"""Bytes of a value that are looked at for one cell."""


def text(value: bytes | None) -> str:
    """Bytes as text if they are printable UTF-8, else as hex; a text that is such hex, or ``null``, is quoted."""
    if value is None:
        return "null"
    try:
        decoded = value.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + value.hex()
    if not decoded.isprintable() or "\\" in decoded:
        decoded = decoded.translate(_ESCAPES)
    if not decoded.isprintable():
        return "0x" + value.hex()
    return f'"{decoded}"' if _stands_for_other(decoded) else decoded


def _stands_for_other(shown: str) -> bool:
    """Whether a text is what stands for null, or for bytes that are no text."""
    digits = shown.removeprefix("0x")
    return shown == "null" or (digits != shown and len(digits) % 2 == 0 and bool(digits) and _HEX.issuperset(digits))


MILLISECONDS, SECONDS, MINUTES, DAYS = 23, 19, 16, 10
"""How many characters a time has that ends with these."""


def timestamp(milliseconds: int | None, digits: int = MILLISECONDS) -> str:
    """A time in UTC, down to milliseconds or as `digits` says; ``-`` for none; the number before 1970 or after 9999."""
    if milliseconds is None or milliseconds < 0:
        return "-" if milliseconds is None or milliseconds == -1 else str(milliseconds)
    try:
        return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}"[:digits]
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    import datetime

    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M:%S}"


def cell_text(value: Any, kind: str = "") -> str:
    """A value of a column of an Arrow type as short text on one line."""
    if isinstance(value, bytes):
        shown = text(_beginning(value))
    elif value is None:
        shown = "null"
    elif kind.startswith("timestamp"):
        shown = timestamp(value)
    elif isinstance(value, tuple) and kind.startswith("list"):
        pairs = (f"{cell_text(key)}={cell_text(part)}" for key, part in value)
        shown = ", ".join(pairs)
    else:
        shown = str(value)
        shown = shown if shown.isprintable() else ascii(shown)[1:-1]
    return shown if len(shown) <= _LONGEST_CELL else shown[: _LONGEST_CELL - 1] + "…"


def _beginning(value: bytes) -> bytes:
    """Enough of a long value for a cell, without a part of a character at its end."""
    if len(value) <= _LONGEST_SOURCE:
        return value
    head = value[:_LONGEST_SOURCE]
    cut = head.decode("utf-8", "ignore").encode()
    return cut if len(cut) > len(head) - 4 else head


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """``1 segment``, ``2 segments``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def repr_of(thing: object, *facts: object) -> str:
    """The ``repr`` of an object with a state: ``<Name: one fact, another>``; facts that are None are left out."""
    said = ", ".join(str(fact) for fact in facts if fact is not None)
    return f"<{type(thing).__name__}{': ' * bool(said)}{said}>"


_LONGEST_REPR = 240
"""Characters of the ``repr`` of a table: pytest shows no more of an object in an assertion."""

_LONGEST_NAMES = 90
"""Characters of the names of columns in it."""


class _Short(reprlib.Repr):
    """Values as Python writes them, cut where they are long."""

    def __init__(self) -> None:
        super().__init__()
        self.fillvalue = "…"
        self.maxstring = self.maxother = 40
        self.maxtuple = self.maxlist = self.maxset = self.maxdict = 3

    def repr_bytes(self, value: bytes, _level: int) -> str:
        """The beginning of bytes."""
        shown = repr(value[: self.maxstring])
        return shown if len(value) <= self.maxstring else f"{shown[:-1]}…{shown[-1]}"


_short = _Short()


def repr_of_rows(name: str, count: int, columns: Sequence[str], rows: Iterable[Iterable[object]], *facts: str) -> str:
    """The ``repr`` of a table, in at most 240 characters: ``<Name: 2 rows (a, b), one fact: (1, b'x'), (2, b'y')>``.

    Only as many rows are read as there is room for.
    """
    names = ", ".join(columns)
    if len(names) > _LONGEST_NAMES:
        names = names[: names.rfind(", ", 0, _LONGEST_NAMES) + 2] + "…"
    head = ", ".join([f"{name}: {counted(count, 'row')} ({names})", *facts])
    shown, left = list[str](), _LONGEST_REPR - len(head) - len("<: , …>")
    for row in rows:
        line = f"({', '.join(map(_short.repr, row))})"
        if len(line) > left:
            shown += [line[:left] + "…"] if not shown else ["…"]
            break
        shown.append(line)
        left -= len(line) + len(", ")
    return f"<{head}{': ' * bool(shown)}{', '.join(shown)}>"


def html_table(caption: str, names: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[str] = ()) -> str:
    """A table for notebooks; `numbers` are the columns that are aligned to the right. All text is escaped."""
    from html import escape  # takes long to import, and most programs show no notebook

    styles = [f'style="text-align:{"right" if name in numbers else "left"}"' for name in names]

    def line(tag: str, cells: Sequence[str]) -> str:
        pairs = zip(styles, cells, strict=True)
        return "<tr>" + "".join(f"<{tag} {style}>{escape(cell)}</{tag}>" for style, cell in pairs) + "</tr>"

    head, body = line("th", names), "".join(line("td", row) for row in rows)
    return f"<div><p>{escape(caption)}</p><table><thead>{head}</thead><tbody>{body}</tbody></table></div>"
