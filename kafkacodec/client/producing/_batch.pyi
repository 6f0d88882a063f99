from collections.abc import Callable
from typing import Any

class BatchBuilder:
    """A batch of magic 2 that grows record by record, with offsets from 0.

    Args:
        allowed_by: the name of the option that limits the size of a record, for errors.
    """

    def __init__(self, allowed_by: str = "max_request_size") -> None: ...
    @property
    def count(self) -> int:
        """The number of records."""

    @property
    def size(self) -> int:
        """The uncompressed size in bytes, including the header; 0 without records."""

    def append(self, key: Any, value: Any, headers: Any, timestamp: int, limit: int, most: int) -> int:
        """Append a record, unless the batch already has records and would exceed `limit` bytes.

        Args:
            key, value: bytes-like, text as UTF-8, or None.
            headers: pairs of name and value, or a dict.
            timestamp: in ms since 1970.
            most: the maximum size of a record in bytes.

        Returns:
            The size of the record in bytes; 0 if it was not appended.

        Raises:
            EncodeError: a key, value or header has another type, or the record takes more than `most` bytes.
        """

    def close(self, codec: int = 0, compress: Callable[[memoryview], Any] | None = None) -> bytearray:
        """Return the finished batch, without a producer id, and empty the builder."""

def set_producer(batch: bytearray, producer_id: int, epoch: int, sequence: int, transactional: bool) -> None:
    """Write these fields, base offset 0 and the checksum into a batch of magic 2."""

def partition_of(key: Any, partitions: int) -> int:
    """The partition of a key (not None) by Kafka's default partitioner. Raises EncodeError like `append`."""
