"""The data of one partition in a Fetch response: the extent of its batches, without reading records."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.arrow._rows import runs
from kafkacodec.client.consuming.positions import PartitionState, Position
from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.records.headers import scan

if TYPE_CHECKING:
    from kafkacodec.client.core.calls import Received

__all__ = ["Extent", "Frame", "Part", "extent_of"]

_COLUMNS = ("last_offset", "partition_leader_epoch")
_BATCH_OVERHEAD = 12


class Frame:
    """The memory of a response, released when all its parts are read or dropped."""

    __slots__ = ("_memory", "nbytes", "node", "parts")

    def __init__(self, memory: Received | None, node: int) -> None:
        self._memory = memory
        self.node = node  # the broker that sent it
        self.nbytes = 0
        self.parts = 0

    def release(self) -> None:
        """Give the memory back."""
        if self._memory is not None:
            self._memory.release()


class Epochs:
    """The leader epochs of consecutive batches.

    Args:
        epochs, last_offsets: of each run of batches with the same epoch.
    """

    __slots__ = ("_ends", "_epochs")

    def __init__(self, epochs: Sequence[int], last_offsets: Sequence[int]) -> None:
        self._ends, self._epochs = last_offsets, epochs

    def at(self, offset: int) -> int:
        """The epoch of the record at an offset; -1 if it is not known."""
        run = bisect_left(self._ends, offset)
        return self._epochs[run] if run < len(self._epochs) else -1


NO_EPOCHS: Final = Epochs((), ())


@dataclass(eq=False, slots=True)
class Part:
    """The records of one partition in a response.

    Attributes:
        state, version: the partition, and its version when it was fetched.
        records: complete batches, or starting with a damaged one.
        start: the position that was fetched from.
        end: the position after them; None if they start with a damaged batch.
        epochs: the leader epochs of its batches.
        aborted: the aborted transactions, as a decoder takes them.
        frame: the memory that the records are in.
        given_back: whether the reader has returned it.
    """

    state: PartitionState
    version: int
    records: Any
    start: Position
    end: Position | None
    epochs: Epochs
    aborted: bytes
    frame: Frame
    given_back: bool = False

    @property
    def current(self) -> bool:
        """Whether the records are still wanted."""
        return self.state.is_current(self.version)

    def forget(self) -> None:
        """Drop the reference to the bytes before their memory is released."""
        self.records, self.given_back = b"", True


class Extent(NamedTuple):
    """The extent of the batches of a partition.

    Attributes:
        size (int): bytes in complete batches before a fault.
        next_offset (int): one after their last offset; -1 without any.
        leader_epoch (int): of the last one; -1 if the format has none.
        epochs (Epochs): the leader epochs of all of them.
        damaged (bool): whether a damaged batch follows; a partial batch is none.
        needed_bytes (int): the size of the first batch if that is partial, as its header has it; else 0.
    """

    size: int
    next_offset: int
    leader_epoch: int
    epochs: Epochs
    damaged: bool
    needed_bytes: int


def extent_of(records: memoryview) -> Extent:
    """Measure the batches of a partition by their lengths."""
    headers = scan(records, columns=_COLUMNS, verify_crc=False, on_error="stop")
    damaged = bool(headers.problems)
    if not len(headers):
        needed = 0 if damaged or records.nbytes < _BATCH_OVERHEAD else int.from_bytes(records[8:12], "big", signed=True)
        return Extent(0, -1, -1, NO_EPOCHS, damaged, max(needed + _BATCH_OVERHEAD if needed else 0, 0))
    epochs, last_offsets = zip(*runs(headers, "partition_leader_epoch", "last_offset"), strict=True)
    known = None not in epochs
    return Extent(
        headers.consumed,
        last_offsets[-1] + 1,
        epochs[-1] if known else -1,
        Epochs(epochs, last_offsets) if known else NO_EPOCHS,
        damaged,
        0,
    )
