import numpy as np
import numpy.typing as npt

class Checker:
    """A schema to check values against.

    Args:
        nodes: the tree as an array of structs of `kind`, `first`, `count`, `limit` (int32), `width`, `least` (int64),
            which csrc/values/kc_avro.h describes.

    Raises:
        ValueError: the nodes are not such a tree.
    """

    def __init__(self, nodes: bytes) -> None: ...
    def check(
        self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], start: int, budget: int
    ) -> tuple[int, int, tuple[str, int, int, int, int] | None]:
        """The first row from `start` that is no value of the schema, the memory left of `budget`, and the fault.

        A fault is what is wrong, the position in the data, the number of the node, the actual and the expected number.
        Where it says nothing, the row is a value of the schema, but has a decimal of more bytes than its column.
        The row is the number of rows, and the fault None, where all are. Row i ends at ``ends[i]``, where the next
        one starts.
        """

def join(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], out: npt.NDArray[np.uint8]
) -> int:
    """Copies parts of the data one after another to `out`; returns their size."""

def begin_alike(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], count: int
) -> bool:
    """Whether there are rows, and all have at least `count` bytes, of which the first are the same."""
