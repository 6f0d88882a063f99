from typing import Any

from kafkacodec.arrow._reader import ImportedArray

class SplitColumn:
    """One column that came out of `Values.split`: exported to Arrow as often as wanted, over the same memory."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class Values:
    """The values to split, chunk by chunk.

    Raises:
        TypeError: a column that is neither bytes nor text.
        EncodeError: a value that is neither, or an array that contradicts itself; the path names the row.
    """

    def __init__(self) -> None: ...
    def add_array(self, array: ImportedArray) -> None: ...
    def add_list(self, values: list[Any]) -> None: ...
    def split(self) -> tuple[SplitColumn, SplitColumn]:
        """(ids, payloads) of all rows."""
