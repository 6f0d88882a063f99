"""What was given to the user: how far an iteration is, which rows stay, and how to go on after an error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import length_hint

import numpy as np

from kafkacodec.client.consuming.positions import PartitionState, Position
from kafkacodec.client.consuming.record import ConsumedColumns, ConsumerRecord
from kafkacodec.errors import DecodeError
from kafkacodec.records.headers import scan

__all__ = ["Given", "explain", "first_rows"]


@dataclass(eq=False, slots=True)
class Given:
    """Records of a part that the user iterates over."""

    state: PartitionState
    version: int
    records: list[ConsumerRecord]
    left: Iterator[ConsumerRecord]
    end: Position

    def update_position(self) -> None:
        """Set the positions to how far the user is."""
        count = len(self.records) - length_hint(self.left)
        if not count or self.state.version != self.version:
            return
        last = self.records[count - 1]
        epoch = -1 if last.leader_epoch is None else last.leader_epoch
        self.state.position = self.end if count == len(self.records) else Position(last.offset + 1, epoch)
        self.state.processed = Position(last.offset, epoch)


def explain(fault: DecodeError, state: PartitionState, rest: memoryview, offset: int) -> None:
    """Add to an error at the start of `rest` where reading stopped, and the seek that leaves the batch out."""
    headers = scan(rest, columns=["last_offset"], verify_crc=False, on_error="stop", max_batches=1)
    hint = f"; reading stopped at offset {offset}"
    if len(headers) and int(headers.view("last_offset")[0]) >= offset:
        after = int(headers.view("last_offset")[0]) + 1
        hint += f", seek({state.topic!r}, {state.number}, {after}) leaves the batch out"
    fault.reason += hint
    fault.within(f"{state.topic}-{state.number}")


def first_rows(table: ConsumedColumns, rows: int) -> ConsumedColumns:
    """The first rows of a table; the partition of the others was taken away meanwhile."""
    made = table.take(np.arange(rows))
    made.next_offsets = table.next_offsets
    return made
