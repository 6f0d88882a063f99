from collections.abc import Callable, Iterable
from typing import Any

from kafkacodec.arrow._reader import ImportedArray
from kafkacodec.arrow._single_column import SingleColumn

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

class GrowingBytes:
    """A bytes object that is written from front to back and takes its final size at the end."""

class BatchEncoder:
    """Spreads the rows of chunks over batches, in one pass. Nothing of a chunk is needed once its rows are written.

    Raises:
        EncodeError: from every method that takes rows: offsets do not increase, a record is larger than a batch may be,
            or the magic cannot hold it; `path` names the row.
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
    def encode(self, chunks: Iterable[RecordChunk], compress: Callable[[memoryview], Any] | None = None) -> bytes:
        """All batches of the chunks, each put through `compress`, which keeps no view of its argument."""

    def encode_rows(
        self,
        chunks: Iterable[RecordChunk],
        compress: Callable[[memoryview], Any] | None = None,
        num_rows: int = -1,
        max_total_bytes: int = ...,
    ) -> SingleColumn:
        """A large_binary column with all batches of the records that have its number in their column ``row``."""

    def next_batch(
        self, chunk: RecordChunk, compress: Callable[[memoryview], Any] | None = None
    ) -> tuple[bytes, int, int, int, int] | None:
        """The next batch that is complete: bytes, first offset, last offset, largest timestamp, number of records.

        None where the chunk's rows have all been taken; the batch that is open goes on with the next chunk's.
        """

    def last_batch(
        self, compress: Callable[[memoryview], Any] | None = None
    ) -> tuple[bytes, int, int, int, int] | None:
        """The batch that is open, or None."""
