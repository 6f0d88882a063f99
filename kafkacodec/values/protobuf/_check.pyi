import numpy as np
import numpy.typing as npt

class Sorter:
    """A schema to sort values by.

    Args:
        messages, fields, enums, numbers: its tables as csrc/values/kc_protobuf.h describes them.
        marks: the number of marks of fields.
        width: bytes of a row in columns.

    Raises:
        ValueError: the tables are not a schema.
    """

    def __init__(
        self, messages: bytes, fields: bytes, enums: bytes, numbers: bytes, marks: int, width: int
    ) -> None: ...
    def sort(
        self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], budget: int, out: npt.NDArray[np.uint8]
    ) -> int:
        """Writes a `kc_protobuf_row` for each row to `out`; returns what the columns of plain rows leave of the budget.

        Row i ends at ``ends[i]``, where the next one starts.
        """
