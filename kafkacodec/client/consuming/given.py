"""Records returned to the user: the progress of an iteration, and hints for errors."""

from __future__ import annotations

from itertools import islice

from kafkacodec.client.consuming.positions import PartitionState, Position
from kafkacodec.client.consuming.received import Part
from kafkacodec.client.consuming.record import ConsumedColumns, ConsumerRecord
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import DecodeError, LimitExceeded
from kafkacodec.records._record_rows import ConsumerRecords
from kafkacodec.records.headers import scan

__all__ = ["Given", "explain", "first_rows"]


@dataclass(eq=False, slots=True)
class Given:
    """Records of a part that the user iterates over.

    Attributes:
        part: the part they come from. It is returned once all of them are taken.
        records: those not yet taken.
        end: the position after them.
        settled: whether the user must take another record before more count as processed.
        over: the positions no longer depend on it.
    """

    part: Part
    records: ConsumerRecords[ConsumerRecord]
    end: Position
    settled: int = 0
    over: bool = False

    @property
    def has_more(self) -> bool:
        """Whether records are left for the user."""
        return self.records.taken < self.records.total

    def take(self, most: int) -> list[ConsumerRecord]:
        """The next records as a list. They count as processed when more are asked for."""
        self.settled = self.records.total  # a look from another thread counts none of them
        found = list(islice(self.records, most))
        self.settled = self.records.taken
        self.update_position()
        return found

    def update_position(self) -> None:
        """Move the positions to where the user is. Safe in any thread."""
        records, state = self.records, self.part.state
        count = records.taken
        whole = count == records.total  # or another thread has ended this
        if not count:
            return
        last, epoch = records.offset(count - 1), records.leader_epoch(count - 1)
        taken = Position(last, -1 if epoch is None else epoch)
        position = self.end if whole else Position(last + 1, taken.leader_epoch)
        if self.part.current and not self.over:
            state.position = position
            if count > self.settled and (state.processed is None or state.processed.offset < last):
                state.processed = taken

    def asked_for_more(self) -> None:
        """Count everything given so far as processed."""
        self.update_position()
        self.settled = self.records.taken
        if self.settled and self.part.current and not self.over:
            self.part.state.processed = self.part.state.position

    def finish(self) -> None:
        """Stop giving records."""
        self.over = True
        self.records.stop()


def explain(fault: DecodeError, state: PartitionState, rest: memoryview, offset: int) -> None:
    """Add to an error at the start of `rest` where reading stopped, and the seek that skips the batch."""
    headers = scan(rest, columns=["last_offset"], verify_crc=False, on_error="stop", max_batches=1)
    hint = f"; reading stopped at offset {offset}"
    if len(headers) and int(headers.view("last_offset")[0]) >= offset:
        after = int(headers.view("last_offset")[0]) + 1
        hint += f", seek({state.topic!r}, {state.number}, {after}) skips the batch"
    fault.reason += option_of(fault) + hint
    fault.within(f"{state.topic}-{state.number}")


def option_of(fault: DecodeError) -> str:
    """A hint at the option that allows larger batches, if the error is about that limit; else empty."""
    exceeds = isinstance(fault, LimitExceeded) and fault.reason.startswith("decompressed")
    return ": raise max_decompressed_bytes (max.decompressed.bytes) to read it" if exceeds else ""


def first_rows(table: ConsumedColumns, rows: int) -> ConsumedColumns:
    """The first rows of a table, whose other rows belong to a partition that was taken away."""
    made = table[:rows]
    made.next_offsets = table.next_offsets
    return made
