"""Formatting: values as text or JSON, tables that fit the terminal, a progress bar."""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, TypeVar

import click
from rich.cells import cell_len, set_cell_size

from kafkacodec.cli import console
from kafkacodec.cli.console import is_terminal, say, say_lines, visible
from kafkacodec.datatypes import dataclass, replace
from kafkacodec.shown import (
    DAYS as DAYS,
    MINUTES as MINUTES,
    SECONDS as SECONDS,
    counted as counted,
    text as text,
    timestamp as timestamp,
)

# Column widths come from the first rows, so that output starts early; later rows may be wider.
SAMPLE_ROWS = 200
_MIN_STRETCH = 8
_MIN_WRAP = 16
# A cell's width where no terminal limits it: enough to recognize a value, and lines stay readable.
_MAX_CELL = 100
GAP = "  "
_BELOW = "    "
_PICTURE = "\ufe0f"  # makes some characters wider


def json_value(value: bytes | None) -> str | dict[str, str] | None:
    """Bytes for JSON: a string if they are UTF-8, else ``{"base64": "..."}``; None stays None."""
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def json_tree(value: Any, of_bytes: Callable[[bytes], Any] = json_value) -> Any:
    """Nested values for JSON: bytes by `of_bytes`; uuids, NaN and infinities as text."""
    if isinstance(value, dict):
        return {str(name): json_tree(inner, of_bytes) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_tree(inner, of_bytes) for inner in value]
    if isinstance(value, (bytes, memoryview)):
        return of_bytes(bytes(value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def json_line(value: dict[str, Any]) -> str:
    """JSON on one line, to be written to a file; `console.say_json` prints."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size(count: float) -> str:
    """A number of bytes with its unit, such as ``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def offsets(first: int | None, last: int | None) -> str:
    """``3..9``; ``..9`` if only the last one is known; ``-`` without any."""
    return "-" if last is None else f"{'' if first is None else first}..{last}"


def round_size(count: int) -> str:
    """As `size`, for a power of two or a tick of an axis: ``1 MiB``, not ``1.0 MiB``."""
    return size(count).replace(".0 ", " ")


_UNITS = (
    (86_400_000, "d", "day"),
    (3_600_000, "h", "hour"),
    (60_000, "min", "minute"),
    (1000, "s", "second"),
    (1, "ms", "millisecond"),
)


def duration(milliseconds: int | None) -> str:
    """``2.0 d``, ``1.5 h``, ``310 ms``; ``-`` if unknown."""
    if milliseconds is None:
        return "-"
    unit, name, _ = next((entry for entry in _UNITS if milliseconds >= entry[0]), _UNITS[-1])
    return f"{milliseconds} {name}" if unit == 1 else f"{milliseconds / unit:.1f} {name}"


def interval(milliseconds: int) -> str:
    """The width of a bucket, in the largest unit that divides it: ``1 hour``, ``10 minutes``."""
    unit, _, name = next(entry for entry in _UNITS if milliseconds % entry[0] == 0)
    return counted(milliseconds // unit, name)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    ``right`` aligns it right. A column with ``stretch`` has cells of any length, which are cut, at their start with
    ``cut_start``. To fit the terminal, one with ``optional`` is left out, and the last column may ``wrap`` onto further
    lines or go ``below`` its line.
    """

    title: str
    right: bool = False
    stretch: bool = False
    optional: bool = False
    wrap: bool = False
    cut_start: bool = False
    below: bool = False


_FULL = "kafkacodec.full"

full_option = click.option(
    "--full",
    "--wide",
    is_flag=True,
    expose_value=False,
    callback=lambda context, option, value: context.meta.__setitem__(_FULL, value),
    help="Print long cells of the table whole.",
)
"""For commands that print a table with cells of any length; `print_table` finds what was asked for."""


def _is_full() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_FULL))


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str] | str | None]) -> None:
    """Print rows as they arrive; an error that `rows` raises is raised after the rows before it are printed.

    A row that is a string is a heading for those after it. None says that there are no more rows for now: those before
    it are printed, even if they are few to choose the widths of columns by.
    On a terminal, lines are cut to its width; elsewhere, cells that may have any length are cut. With `full_option`,
    nothing is. Control characters are escaped.
    """
    rows = map(_visible_row, rows)
    with sampled(rows) as sample:
        layout = Layout.of(columns, [row for row in sample if not isinstance(row, str)])
        layout.print_titles()

        def lines() -> Iterator[str | None]:
            for row in chain(sample, rows):
                if row is None:
                    yield None
                elif isinstance(row, str):
                    yield None
                    say(_cut(row, layout.available), bold=True)
                else:
                    yield from layout.lines(row)

        say_lines(lines())


_Row = TypeVar("_Row")


@contextmanager
def sampled(rows: Iterable[_Row | None], most: int = SAMPLE_ROWS) -> Iterator[list[_Row]]:
    """The first rows, up to a pause. An error after some of them is raised when the body has printed those."""
    sample: list[_Row] = []
    failure: Exception | None = None
    try:
        sample.extend(_before_pause(islice(rows, most)))
    except Exception as error:
        if not sample:
            raise
        failure = error
    yield sample
    if failure is not None:
        raise failure


@dataclass(frozen=True)
class Layout:
    """How a table fits the terminal, by some of its rows.

    Attributes:
        columns: those that are shown.
        places: their places among all columns.
        widths: how many columns of the terminal each takes.
        available: the width of the terminal; None where nothing limits it.
        most: the width of a cell of any length; None where nothing limits it.
    """

    columns: Sequence[Column]
    places: Sequence[int]
    widths: Sequence[int]
    available: int | None
    most: int | None
    below: bool

    @classmethod
    def of(cls, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Layout:
        """By the widths of some rows."""
        full = _is_full()
        widths = [max(map(cell_len, column)) for column in zip([c.title for c in columns], *rows, strict=True)]
        widths = [min(w, _MAX_CELL) if c.stretch else w for c, w in zip(columns, widths, strict=True)]
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) and not full else None
        below = width is not None and columns[-1].below and sum(widths) + len(GAP) * (len(widths) - 1) > width
        shown = list(range(len(columns)))
        if width is not None:
            shown, widths = _fit(columns[:-1] if below else columns, widths, width)
        return cls([columns[i] for i in shown], shown, widths, width, None if full else _MAX_CELL, below)

    def print_titles(self) -> None:
        """Print the titles of the columns."""
        columns = [replace(column, cut_start=False) for column in self.columns]
        for line in _lines(columns, self.widths, [column.title for column in columns], self.available):
            say(line, bold=True)

    def lines(self, row: Sequence[str]) -> Iterator[str]:
        """The lines of a row."""
        cells = [_shortened(column, row[i], self.most) for column, i in zip(self.columns, self.places, strict=True)]
        yield from _lines(self.columns, self.widths, cells, self.available)
        if self.below and self.available is not None:
            width = max(self.available - len(_BELOW), _MIN_STRETCH)
            yield from (_BELOW + line for line in textwrap.wrap(row[-1], width))

    def most_of(self, number: int) -> int | None:
        """The width to which the cells of a column are cut, by its number among those that are shown."""
        if self.most is None or not self.columns[number].stretch:
            return None
        return self.most if self.available is None else min(self.most, self.widths[number])

    def cell(self, number: int, text: str) -> str:
        """A cell of a column, cut and padded."""
        column, width = self.columns[number], self.widths[number]
        return _padded(_shortened(column, text, self.most_of(number)), width, column.right)


def glyphs(page: int) -> bytes:
    """What is known of a page of 256 characters, with how many columns of the terminal they take."""
    from kafkacodec.cli.rows._record_text import PRINTABLE, WIDENS

    return bytes(
        glyph + cell_len(chr(code)) + WIDENS * (cell_len(chr(code) + _PICTURE) > cell_len(chr(code)))
        if glyph & PRINTABLE
        else glyph
        for code, glyph in enumerate(console.glyphs(page), page << 8)
    )


def _visible_row(row: Sequence[str] | str | None) -> Sequence[str] | str | None:
    if row is None or isinstance(row, str):
        return row and visible(row)
    whole = "".join(row)
    return row if visible(whole) is whole else [visible(cell) for cell in row]


def _before_pause(rows: Iterable[_Row | None]) -> Iterator[_Row]:
    for row in rows:
        if row is None:
            return
        yield row


def _fit(columns: Sequence[Column], widths: Sequence[int], available: int) -> tuple[list[int], list[int]]:
    """The columns that are shown, and their widths.

    Optional columns are left out until the line fits, the last one first; then the widest ``stretch`` column is
    narrowed until it fits or all have the minimum width. A column that wraps gets the rest of the line.
    """
    shown = list(range(len(columns)))
    fitted = [min(w, _MIN_WRAP) if c.wrap else w for c, w in zip(columns, widths, strict=False)]

    def excess() -> int:
        return sum(fitted[i] for i in shown) + len(GAP) * (len(shown) - 1) - available

    for i in reversed(range(len(columns))):
        if columns[i].optional and excess() > 0:
            shown.remove(i)
    stretch = [i for i in shown if columns[i].stretch]
    while excess() > 0 and stretch:
        widest = max(stretch, key=lambda i: fitted[i])
        if fitted[widest] <= _MIN_STRETCH:
            break
        fitted[widest] -= 1
    if columns[-1].wrap:
        fitted[-1] = max(_MIN_STRETCH, fitted[-1] - excess())
    return shown, [fitted[i] for i in shown]


def _lines(
    columns: Sequence[Column], widths: Sequence[int], row: Sequence[str], available: int | None
) -> Iterator[str]:
    """The lines of a row padded to the widths, and cut to the terminal's width if `available` is given."""
    cells = []
    rest: list[str] = []
    for column, width, cell in zip(columns, widths, row, strict=True):
        if available is not None and column.wrap:
            cell, *rest = textwrap.wrap(cell, width) or [""]
        elif available is not None:
            cell = _shortened(column, cell, width)
        cells.append(_padded(cell, width, column.right))
    line = GAP.join(cells).rstrip()
    yield line if available is None else _cut(line, available)
    indent = " " * (sum(widths[:-1]) + len(GAP) * (len(widths) - 1)) if rest else ""
    for part in rest:
        yield _cut(indent + part, available or 0)


def _padded(cell: str, width: int, right: bool) -> str:
    if cell.isascii():
        return cell.rjust(width) if right else cell.ljust(width)
    padding = " " * (width - _width(cell))
    return padding + cell if right else cell + padding


def _width(cell: str) -> int:
    """How many columns of the terminal it takes: one for each character of ASCII, and for the mark of a cut."""
    return len(cell) if cell.isascii() or (cell[-1] == "…" and cell[:-1].isascii()) else cell_len(cell)


def _shortened(column: Column, cell: str, width: int | None) -> str:
    if width is None or not column.stretch or (len(cell) <= width and cell.isascii()):
        return cell
    return _cut_start(cell, width) if column.cut_start else _cut(cell, width)


def _cut(cell: str, width: int | None) -> str:
    if width is None:
        return cell
    if cell.isascii():
        return cell if len(cell) <= width else cell[: width - 1] + "…"
    if _width(cell) <= width:
        return cell
    return set_cell_size(cell[:width], width - 1) + "…"  # a slice first: a cell may have megabytes


def _cut_start(cell: str, width: int) -> str:
    if _width(cell) <= width:
        return cell
    first = max(len(cell) - width, 0)  # most characters take one column or more
    while cell_len(cell[first:]) > width - 1:
        first += 1
    return "…" + cell[first:]


Advance = Callable[[int], object]
"""Called with the number of bytes processed since the last call."""


@contextmanager
def progress(title: str, total: int | None, *, records: bool = False, typing: bool = False) -> Iterator[Advance]:
    """A progress bar for `total` bytes on standard error while the body runs; nothing if that is not a terminal.

    Without a known total, it shows that bytes are read, and how many. With `records` it counts those instead. With
    `typing` there is none: the user types what is read.
    """
    if typing or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from kafkacodec.cli.progress_columns import counts

    numbers = [*counts(records), *([TimeRemainingColumn()] if total else [])]
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *numbers,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=is_terminal(sys.stdout),  # else what goes to a file would be printed above the bar
    )
    with bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
