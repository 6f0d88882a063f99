from collections.abc import Callable, Iterable
from typing import Any

from kafkacodec.arrow._single_column import SingleColumn
from kafkacodec.records._record_chunks import RecordChunk

class GrowingBytes:
    """A bytes object that is written from front to back and gets its final size at the end."""

class BatchEncoder:
    """Divides the rows of chunks into batches, in one pass. A chunk is not needed after its rows are written.

    Raises:
        EncodeError: from every method that takes rows: offsets do not increase, a record exceeds the maximum batch
            size, or the magic cannot represent it; `path` names the row.

    Attributes:
        writable: whether `next_batch` and `last_batch` return memory that the caller may change.
        plain_bytes: the size of the last such batch before compression, with its header; it keeps no more memory.
    """

    writable: bool
    @property
    def plain_bytes(self) -> int: ...
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
        first_offset: int = -1,
        last_offset: int = -1,
        default_timestamp: int = -1,
    ) -> None:
        """Of the parameters, `first_offset` and `last_offset` are the range that the batches cover, or both are -1."""

    def empty_batch(self, max_timestamp: int) -> bytes:
        """A batch of magic 2 for the range of offsets, without records."""

    def encode(self, chunks: Iterable[RecordChunk], compress: Callable[[memoryview], Any] | None = None) -> bytes:
        """All batches of the chunks, each compressed by `compress`, which must not keep a view of its argument."""

    def encode_again(self, chunks: Iterable[RecordChunk], compress: Callable[[memoryview], Any] | None = None) -> bytes:
        """As `encode`, from the start again, regardless of what this encoder did before."""

    def encode_rows(
        self,
        chunks: Iterable[RecordChunk],
        compress: Callable[[memoryview], Any] | None = None,
        num_rows: int = -1,
        max_total_bytes: int = ...,
    ) -> SingleColumn:
        """A large_binary column; each row has the batches of the records with its number in their column ``row``."""

    def next_batch(
        self, chunk: RecordChunk, compress: Callable[[memoryview], Any] | None = None
    ) -> tuple[bytes, int, int, int, int] | None:
        """The next complete batch: bytes, first offset, last offset, largest timestamp, number of records.

        None if all rows of the chunk are written; the open batch continues with the rows of the next chunk.
        """

    def last_batch(
        self, compress: Callable[[memoryview], Any] | None = None
    ) -> tuple[bytes, int, int, int, int] | None:
        """The open batch, to the end of the range if there is one; without records if there were none. Or None."""
