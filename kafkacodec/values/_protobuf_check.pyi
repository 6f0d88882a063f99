import numpy as np
import numpy.typing as npt

class Sorter:
    """A schema to sort values by.

    Args:
        messages, fields, enums, numbers: its tables as csrc/values/kc_protobuf.h describes them.
        marks: the number of marks of fields.

    Raises:
        ValueError: the tables are not a schema.
    """

    def __init__(self, messages: bytes, fields: bytes, enums: bytes, numbers: bytes, marks: int) -> None: ...
    def sort(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], out: npt.NDArray[np.uint8]) -> None:
        """Writes a `kc_protobuf_row` for each row to `out`. Row i ends at ``ends[i]``, where the next one starts."""
