from typing import Any

import numpy as np
import numpy.typing as npt

from kafkacodec.arrow._reader import ImportedArray

def murmur2(key: Any) -> int: ...
def arrow_partitions(array: ImportedArray, partitions: int, out: npt.NDArray[np.int32], first_row: int) -> int:
    """Writes the partition of each key of an imported array to `out`, -1 for null; returns the number of null keys.

    `first_row` is for error messages.
    """

def list_partitions(keys: list[Any], partitions: int, out: npt.NDArray[np.int32]) -> int:
    """The same for a list of bytes, str and None."""
