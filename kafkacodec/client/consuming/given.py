"""What was given to the user: how far an iteration is, which rows stay, and how to go on after an error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import length_hint

import numpy as np

from kafkacodec.client.consuming.positions import PartitionState, Position
from kafkacodec.client.consuming.received import Part
from kafkacodec.client.consuming.record import ConsumedColumns, ConsumerRecord
from kafkacodec.errors import DecodeError, LimitExceeded
from kafkacodec.records.headers import scan

__all__ = ["Given", "explain", "first_rows"]


@dataclass(eq=False, slots=True)
class Given:
    """Records of a part that the user iterates over.

    Attributes:
        part: what they are from. It is given back no earlier than when all of them are taken.
        records, left: all of them, and an iterator over those that are not taken.
        end: the position after them.
        settled: another one has to be given before the user has processed more.
        over: the positions do not depend on it any more.
    """

    part: Part
    records: list[ConsumerRecord]
    left: Iterator[ConsumerRecord]
    end: Position
    settled: int = 0
    over: bool = False

    @property
    def taken(self) -> int:
        """How many records the user has taken."""
        return len(self.records) - length_hint(self.left)

    @property
    def has_more(self) -> bool:
        """Whether there are records that the user has not taken."""
        return length_hint(self.left) > 0

    def take(self, most: int) -> list[ConsumerRecord]:
        """The next ones as a list. None of them is processed before more is asked for."""
        self.settled = len(self.records)  # a look from another thread counts none of them
        found = list(islice(self.left, most))
        self.settled = self.taken
        self.update_position()
        return found

    def update_position(self) -> None:
        """Set the positions to how far the user is. In any thread."""
        count, state = self.taken, self.part.state
        try:
            last = self.records[count - 1]
        except IndexError:  # another thread has ended this
            return
        epoch = -1 if last.leader_epoch is None else last.leader_epoch
        position = self.end if count == len(self.records) else Position(last.offset + 1, epoch)
        if count and self.part.current and not self.over:
            state.position = position
            if count > self.settled and (state.processed is None or state.processed.offset < last.offset):
                state.processed = Position(last.offset, epoch)

    def asked_for_more(self) -> None:
        """All that was given is processed."""
        self.update_position()
        self.settled = self.taken
        if self.settled and self.part.current and not self.over:
            self.part.state.processed = self.part.state.position

    def finish(self) -> None:
        """Give no more of it."""
        self.over = True
        self.records.clear()


def explain(fault: DecodeError, state: PartitionState, rest: memoryview, offset: int) -> None:
    """Add to an error at the start of `rest` where reading stopped, and the seek that leaves the batch out."""
    headers = scan(rest, columns=["last_offset"], verify_crc=False, on_error="stop", max_batches=1)
    hint = f"; reading stopped at offset {offset}"
    if len(headers) and int(headers.view("last_offset")[0]) >= offset:
        after = int(headers.view("last_offset")[0]) + 1
        hint += f", seek({state.topic!r}, {state.number}, {after}) leaves the batch out"
    fault.reason += option_of(fault) + hint
    fault.within(f"{state.topic}-{state.number}")


def option_of(fault: DecodeError) -> str:
    """The option that would let a batch be read which exceeds a limit, for its error; empty for other errors."""
    exceeds = isinstance(fault, LimitExceeded) and fault.reason.startswith("decompressed")
    return ": raise max_decompressed_bytes (max.decompressed.bytes) to read it" if exceeds else ""


def first_rows(table: ConsumedColumns, rows: int) -> ConsumedColumns:
    """The first rows of a table; the partition of the others was taken away meanwhile."""
    made = table.take(np.arange(rows))
    made.next_offsets = table.next_offsets
    return made
