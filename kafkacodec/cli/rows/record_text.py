"""Pages of records as text, by pieces that the kernels write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any

from kafkacodec.cli import console, output
from kafkacodec.cli.rows._record_text import Glyphs, TextWriter
from kafkacodec.cli.rows.record_rows import Given, Origin, Page
from kafkacodec.datatypes import NamedTuple

__all__ = ["Pages", "Piece", "constant", "texts", "writer"]

Pages = Iterable[Page | None]
"""Records; None where there are no more for now."""


class Piece(NamedTuple):
    """A piece of the text of each row.

    Attributes:
        kind: as csrc/text/kc_text_rows.h has them.
        column: the column whose values are written.
        text: the constant, or what stands for null.
        most, width, right: of cells: where they are cut, how wide they are, and whether they stand at the right.
    """

    kind: str
    column: str | None = None
    text: bytes = b""
    most: int = 0
    width: int = 0
    right: bool = False


def constant(text: bytes) -> Piece:
    """Text that is the same in every row of a partition."""
    return Piece("constant", None, text)


@cache
def _glyphs(page_of: Callable[[int], bytes]) -> Glyphs:
    return Glyphs(page_of)


def writer(pieces: Iterable[Piece], *, cells: bool = False) -> TextWriter:
    """What writes such pieces; `cells` says that they are cut and padded."""
    return TextWriter(pieces, _glyphs(output.glyphs if cells else console.glyphs), not console.is_unicode())


def texts(
    pages: Pages,
    pieces: Callable[[Origin, Collection[str]], list[Piece]],
    given: Callable[[Page], tuple[Given, Collection[str]]],
    *,
    cells: bool = False,
) -> Iterator[bytes | None]:
    """The text of pages in blocks: on a terminal, of a row each.

    Args:
        pages: the records.
        pieces: makes the pieces for a place, where some columns are given as they are to appear.
        given: what stands in place of a page's columns, and the names of those that are to appear so.
        cells: whether the pieces are cells.
    """
    writers: dict[Any, TextWriter] = {}
    one_by_one = console.is_terminal(sys.stdout)
    for page in pages:
        if page is None:
            yield None
            continue
        found, ready = given(page)
        key = (page.place, *ready)
        if key not in writers:
            writers[key] = writer(pieces(page.place, ready), cells=cells)
        row = page.first
        while row < page.end:
            end = row + 1 if one_by_one else page.end
            text, row = writers[key].write(page.table, row, end, found, page.first)
            yield text
