from collections.abc import Collection, Iterable, Iterator
from typing import Any

from kafkacodec.arrow._reader import ImportedArray

ENCODED: tuple[str, ...]
"""The columns that are encoded."""

def is_record_column(name: str) -> bool:
    """Whether readers of records write a column of this name. Any other may be a misspelt one, and is refused."""

def refuse_unknown_columns(names: Iterable[str], used: Collection[str]) -> None:
    """Raise EncodeError for a column that records do not have, where those of `used` are encoded."""

class RecordChunk:
    """Rows for the kernels: imported columns, or columns of Python records."""

    def __len__(self) -> int: ...

class ArrowChunk(RecordChunk):
    """One imported record batch, whose columns are found by name.

    Raises:
        EncodeError: a column has the wrong type or length, or the array is inconsistent.
    """

    def __init__(self, array: ImportedArray) -> None: ...

class ListChunk(RecordChunk):
    """Columns of Python records; no reference to the objects is kept.

    Raises:
        EncodeError: a value is not bytes, str or None, or an integer does not fit.
    """

    def __init__(self) -> None: ...
    def append_record(self, offset: Any, timestamp: Any, key: Any, value: Any, headers: Any) -> None:
        """Add a record. Either all records have an offset or none; a timestamp of None is -1."""

    def extend(self, rows: Iterator[Any], first: int, most: int, before: ListChunk | None = None) -> None:
        """Add rows of an iterator, the first of which has that number in `records`, until the chunk has `most`.

        `before` is the chunk of the rows that came before.
        """

    def finish(self) -> ListChunk:
        """Make the rows available to the kernels. No rows can be added afterwards."""
