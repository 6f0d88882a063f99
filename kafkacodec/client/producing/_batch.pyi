from collections.abc import Callable
from typing import Any

class BatchBuilder:
    """A batch of magic 2 that `Appending` adds records to, with offsets from 0.

    Args:
        allowed_by: the name of the option that limits the size of a record, for errors.
    """

    def __init__(self, allowed_by: str = "max_request_size") -> None: ...
    def close(self, codec: int = 0, compress: Callable[[memoryview], Any] | None = None) -> bytearray:
        """Return the finished batch, without a producer id, and empty the builder."""

def set_producer(
    batch: bytearray | memoryview, producer_id: int, epoch: int, sequence: int, transactional: bool
) -> None:
    """Write these fields, base offset 0 and the checksum into a batch of magic 2."""
