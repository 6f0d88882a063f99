from collections.abc import Callable
from typing import Any

class BatchBuilder:
    """A batch of magic 2 that grows record by record; offsets count from 0. Zero or more records are bytes at once.

    Args:
        allowed_by: what limits the bytes of a record, for errors.
    """

    def __init__(self, allowed_by: str = "max_request_size") -> None: ...
    @property
    def count(self) -> int:
        """The number of records."""

    @property
    def size(self) -> int:
        """The size in bytes, uncompressed, with the header; 0 without records."""

    def append(self, key: Any, value: Any, headers: Any, timestamp: int, limit: int, most: int) -> int:
        """Append a record, unless the batch has some and would exceed `limit` bytes.

        Args:
            key, value: bytes-like, text as UTF-8, or None.
            headers: pairs of name and value, or a dict.
            timestamp: in ms since 1970.
            most: the most bytes of a record.

        Returns:
            The bytes that the record takes; 0 if it was not appended.

        Raises:
            EncodeError: a key, value or header is of another type, or the record takes more than `most` bytes.
        """

    def close(self, codec: int = 0, compress: Callable[[memoryview], Any] | None = None) -> bytearray:
        """The finished batch, without a producer; the builder is empty afterwards."""

def set_producer(batch: bytearray, producer_id: int, epoch: int, sequence: int, transactional: bool) -> None:
    """Write these fields, the offset 0 and the checksum to a batch of magic 2."""

def partition_of(key: Any, partitions: int) -> int:
    """The partition of a key, which is not None, by Kafka's default partitioner. Raises EncodeError as `append`."""
