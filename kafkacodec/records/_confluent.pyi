from typing import Any

from kafkacodec.arrow._reader import ImportedArray
from kafkacodec.arrow._single_column import SingleColumn

class Values:
    """The values to split, chunk by chunk.

    Raises:
        TypeError: a column that is neither bytes nor text.
        EncodeError: a value that is neither, or an array that contradicts itself; the path names the row.
    """

    def __init__(self) -> None: ...
    def add_array(self, array: ImportedArray) -> None: ...
    def add_list(self, values: list[Any]) -> None: ...
    def split(self) -> tuple[SingleColumn, SingleColumn]:
        """(ids, payloads) of all rows."""
