from typing import Any

from kafkacodec.arrow._reader import ImportedArray
from kafkacodec.arrow._single_column import SingleColumn

class Values:
    """The values to split, chunk by chunk.

    Raises:
        TypeError: the column is neither binary nor string.
        EncodeError: a value is not bytes, str or None, or the array is inconsistent; the path names the row.
    """

    def __init__(self) -> None: ...
    def add_array(self, array: ImportedArray) -> None: ...
    def add_list(self, values: list[Any]) -> None: ...
    def split(self) -> tuple[SingleColumn, SingleColumn]:
        """(ids, payloads) of all rows."""
