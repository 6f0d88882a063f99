"""What a fetch response has of one partition: how far its batches go, without reading records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacodec.client.consuming.positions import PartitionState, Position
from kafkacodec.records.headers import scan

if TYPE_CHECKING:
    from kafkacodec.client.core.calls import Received

__all__ = ["Extent", "Frame", "Part", "extent_of"]

_COLUMNS = ("last_offset", "partition_leader_epoch")
_BATCH_OVERHEAD = 12


class Frame:
    """The memory of a response. It is given back when all its parts are read or dropped."""

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


@dataclass(eq=False, slots=True)
class Part:
    """The records of one partition in a response.

    Attributes:
        state, version: the partition, and its version when it was fetched.
        records: complete batches, or starting with a damaged one.
        start: the position that was fetched from.
        end: the position after them; None if they start with a damaged batch.
        same_epoch: all batches have the leader epoch of `end`.
        aborted: the aborted transactions, as a decoder takes them.
        frame: the memory that the records are in.
        given_back: its reader has no more use for it.
    """

    state: PartitionState
    version: int
    records: Any
    start: Position
    end: Position | None
    same_epoch: bool
    aborted: bytes
    frame: Frame
    given_back: bool = False

    @property
    def current(self) -> bool:
        """Whether the records are still wanted."""
        return self.state.is_current(self.version)

    def forget(self) -> None:
        """Let go of the bytes, before their memory is given back."""
        self.records, self.given_back = b"", True


class Extent(NamedTuple):
    """How far the batches of a partition go.

    Attributes:
        size (int): bytes in complete batches before a fault.
        next_offset (int): one after their last offset; -1 without any.
        leader_epoch (int): of the last one; -1 if the format has none.
        same_epoch (bool): it is that of all of them.
        damaged (bool): a fault follows, which is more than a partial batch.
        needed_bytes (int): the size of the first batch if that is partial, as its header has it; else 0.
    """

    size: int
    next_offset: int
    leader_epoch: int
    same_epoch: bool
    damaged: bool
    needed_bytes: int


def extent_of(records: memoryview) -> Extent:
    """Walks over the batches of a partition by their lengths."""
    headers = scan(records, columns=_COLUMNS, verify_crc=False, on_error="stop")
    damaged = bool(headers.problems)
    if not len(headers):
        needed = 0 if damaged or records.nbytes < _BATCH_OVERHEAD else int.from_bytes(records[8:12], "big", signed=True)
        return Extent(0, -1, -1, True, damaged, max(needed + _BATCH_OVERHEAD if needed else 0, 0))
    epochs = headers.view("partition_leader_epoch")
    known = headers.buffers("partition_leader_epoch")["validity"] is None
    epoch = int(epochs[-1]) if known else -1
    return Extent(
        headers.consumed,
        int(headers.view("last_offset")[-1]) + 1,
        epoch,
        bool(epochs[0] == epoch) if known else False,
        damaged,
        0,
    )
