from typing import Any

class RowCells:
    """The keys and values of a table's rows."""

    def __len__(self) -> int: ...
    @property
    def has_keys(self) -> bool:
        """Whether there is a column of keys."""

    @property
    def size(self) -> int:
        """The bytes of all keys and values."""

    @property
    def largest(self) -> int:
        """The bytes of the largest row."""

    def pair(self, row: int) -> tuple[bytes | None, bytes | None]:
        """The key and the value of a row."""

def row_cells(data: Any) -> RowCells | None:
    """The rows of an object with ``__arrow_c_array__``; None unless their keys and values, binary or text, are all that
    is to be sent of them."""
