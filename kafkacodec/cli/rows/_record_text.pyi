from collections.abc import Callable, Iterable
from typing import Final

from kafkacodec.arrow._columns import Table

PRINTABLE: Final[int]
BLANK: Final[int]
WIDENS: Final[int]

class Glyphs:
    """What is known of characters, asked for by pages of 256.

    Args:
        page_of: gives the page of a number: a byte for each character, with the columns of a terminal that it takes
            (0 to 2), `PRINTABLE`, `BLANK` if it is yet invisible, and `WIDENS` if U+FE0F makes it take one more.
    """

    def __init__(self, page_of: Callable[[int], bytes]) -> None: ...

class TextWriter:
    """Makes text of rows by a list of pieces.

    Args:
        pieces: for each its kind, as csrc/text/kc_text_rows.h has them; the name of its column or None; the constant,
            or what stands for null; and for cells the most columns, the width, and whether they stand at the right.
        glyphs: what is known of characters.
        ascii: whether JSON has no other characters.
    """

    def __init__(
        self,
        pieces: Iterable[tuple[str, str | None, bytes, int, int, bool]],
        glyphs: Glyphs,
        ascii: bool = False,
    ) -> None: ...
    def write(
        self,
        table: Table | None,
        first: int,
        end: int,
        given: dict[str, list[bytes | None]] | None = None,
        given_first: int = 0,
    ) -> tuple[bytes, int]:
        """The text of rows from `first` on, up to `end` or about 64 KiB, and the row after them.

        Args:
            table: has the columns; all are null without one, and so is a column that it does not have.
            first, end: the rows.
            given: lists of bytes, in place of columns by their names.
            given_first: the row that those lists begin with.

        Raises:
            IndexError: there are no such rows.
            TypeError: a column has other contents than its piece writes.
        """

def place_runs(table: Table) -> list[tuple[str | None, int, int, int]]:
    """The runs of rows of the same partition: (topic, partition, first row, row after the last).

    Raises:
        KeyError: the table lacks the columns topic and partition.
    """
