from typing import Any

class RowCells:
    """The keys and values of a table's rows."""

    def __len__(self) -> int: ...
    def pair(self, row: int) -> tuple[bytes | None, bytes | None]:
        """The key and the value of a row."""

def row_cells(data: Any) -> RowCells | None:
    """The rows of an object with ``__arrow_c_array__``; None unless their keys and values, binary or text, are all that
    is to be sent of them."""

def parts_of(data: Any) -> list[RowCells] | None:
    """The rows of a table, part by part; None if they have more than a key and a value of bytes or text, or are known
    to be many, or may be asked for only once."""
