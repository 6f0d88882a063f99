from collections.abc import Callable
from typing import Any

from kafkacodec._arrow_import import ImportedArray

class RecordChunk:
    """Rows that the kernels can read: imported columns, or ones made from Python records."""

    def __len__(self) -> int: ...

class ArrowChunk(RecordChunk):
    """One imported record batch, its columns found by name.

    Raises:
        EncodeError: a column has the wrong type or length, or the array contradicts itself.
    """

    def __init__(self, array: ImportedArray) -> None: ...

class ListChunk(RecordChunk):
    """Columns made from Python records, one pass, no object kept.

    Raises:
        EncodeError: a value is neither bytes, text nor None; a number does not fit.
    """

    def __init__(self) -> None: ...
    def append_record(self, offset: Any, timestamp: Any, key: Any, value: Any, headers: Any) -> None:
        """Add a record. An offset must be there in all or in none; a timestamp of None is -1."""

    def finish(self) -> ListChunk:
        """Let the kernels see the rows; none may be added afterwards."""

class BatchEncoder:
    """Spreads chunks over batches and writes those that are complete.

    Chunks are kept, and may not change, until `forget` after their last batch was written.
    """

    def __init__(
        self,
        *,
        magic: int,
        drop_unsupported: bool,
        base_offset: int,
        batch_bytes: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        leader_epoch: int,
        attributes: int,
    ) -> None: ...
    @property
    def ready(self) -> int:
        """How many complete batches have not been written."""

    def add(self, chunk: RecordChunk) -> None:
        """Take the chunk's rows; the last batch stays open for the next chunk.

        Raises:
            EncodeError: offsets do not increase, a record is larger than a batch may be, or the magic cannot hold it;
                `path` names the row.
        """

    def finish(self) -> None:
        """Close the open batch."""

    def write_all(self, compress: Callable[[memoryview], Any] | None = None) -> bytes:
        """Every complete batch, the records of each put through `compress`, a function from buffer to buffer."""

    def write_next(self, compress: Callable[[memoryview], Any] | None = None) -> tuple[bytes, int, int, int, int]:
        """The next complete batch: bytes, first offset, last offset, largest timestamp, number of records.

        Raises:
            IndexError: no batch is complete.
        """

    def forget(self) -> None:
        """Let go of the chunks whose rows are all in batches that were written."""
