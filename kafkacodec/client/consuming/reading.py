"""What was fetched as tables and records. Runs in the thread of the user, beside the driver's.

The reader takes parts from the left of `Fetcher.ready` and gives them back through a callback, which takes them to the
driver's thread. It alone moves `PartitionState.position`, after it has checked the part's version.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Final

from kafkacodec.client.consuming.given import Given, explain, first_rows
from kafkacodec.client.consuming.positions import Failure, Key, PartitionState, Position, Positions
from kafkacodec.client.consuming.received import Part
from kafkacodec.client.consuming.record import ConsumedColumns, ConsumerRecord
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.errors import CorruptRecord, DecodeError
from kafkacodec.records._record_rows import consumer_records
from kafkacodec.records.arguments import column_names
from kafkacodec.records.columns import Problems, RecordColumns
from kafkacodec.records.decode import DEFAULT_MAX_BYTES, DEFAULT_MAX_ROWS, PLACE_COLUMNS, RECORD_COLUMNS, plan_of

if TYPE_CHECKING:
    from kafkacodec.records._decoder import Decoder

__all__ = ["TABLE_COLUMNS", "Reader", "table_columns"]

TABLE_COLUMNS: Final = (*PLACE_COLUMNS, *RECORD_COLUMNS)
_OF_RECORDS: Final = (*RECORD_COLUMNS, "partition_leader_epoch")
_RECORD_ROWS: Final = 2048


class Reader:
    """Reads fetched parts in order.

    Args:
        ready: the parts, taken from the left.
        positions: the assigned partitions.
        settings: the consumer's.
        give_back: gets parts whose memory is not used any more.
        again: gets a partition and its version, to be fetched again from its position.

    Attributes:
        records_given: the records that were given out so far.
        asked_at: when the user last asked for records or ended a wait for them, by `time.monotonic`; 0.0 before that.
        waiting: the user waits for records now.
    """

    def __init__(
        self,
        ready: deque[Part],
        positions: Positions,
        settings: ConsumerSettings,
        give_back: Callable[[list[Part]], None],
        again: Callable[[PartitionState, int], None],
    ) -> None:
        self._ready = ready
        self._positions = positions
        self._settings = settings
        self._give_back = give_back
        self._again = again
        self._decoders: dict[tuple[str, ...], Decoder] = {}  # by their columns
        self._part: Part | None = None
        self._reading: Decoder | None = None  # of `_part`
        self._finished: list[Part] = []
        self._failure: Failure | None = None
        self._read: list[PartitionState] = []
        self._given: Given | None = None
        self.records_given = 0
        self.asked_at = 0.0
        self.waiting = False
        positions.dropped = self.drop

    @property
    def has_data(self) -> bool:
        """Whether a read brings something at once."""
        return bool(self._ready or self._part or self._failure or self._positions.failures or self._given)

    # What the user reads

    def columns(self, max_rows: int | None = None, names: tuple[str, ...] = TABLE_COLUMNS) -> ConsumedColumns | None:
        """The next table; None if nothing is ready. Raises what is wrong with a partition, after what precedes it.

        `names` are the columns to decode, in their usual order; ``offset`` must be one.
        """
        self._begin()
        self._turn_back()
        try:
            return self._table(DEFAULT_MAX_ROWS if max_rows is None else max_rows, names)
        finally:
            self._end()

    def records_by_partition(self, max_records: int) -> dict[Key, list[ConsumerRecord]]:
        """The next records, up to so many; empty if nothing is ready. Raises as `columns`."""
        self._begin()
        found: dict[Key, list[ConsumerRecord]] = {}
        left = max_records
        if self._given is not None:
            records = list(islice(self._given.left, left))
            found[self._given.state.key] = records
            left -= len(records)
            self.update_position()
            if length_hint(self._given.left):
                return found
            self._read.append(self._given.state)
            self._given = None
        try:
            while left > 0:
                records, part, end = self._records(left)
                if part is None:
                    break
                self._advance(part, end)
                found.setdefault(part.state.key, []).extend(records)
                left -= len(records)
            if not found:
                self._raise()
            return found
        finally:
            self._end()

    def iterated(self) -> Iterator[ConsumerRecord] | None:
        """The next records of one partition, whose position moves with the iterator; None if nothing is ready."""
        self._begin()
        if self._given is not None:
            return self._given.left
        try:
            records, part, end = self._records(_RECORD_ROWS)
            if part is None:
                self._raise()
                return None
            self._given = Given(part.state, part.version, records, iter(records), end)
            return self._given.left
        finally:
            self._end()

    def wait(self, waiting: bool) -> None:
        """The user begins or ends to wait for records."""
        self.waiting, self.asked_at = waiting, time.monotonic()

    # From the driver's thread

    def update_position(self) -> None:
        """Bring the position of the partition that is being iterated over up to date."""
        if self._given is not None:
            self._given.update_position()

    def drop(self, state: PartitionState) -> None:
        """The partition gets another version: give no more of it."""
        given = self._given
        if given is not None and given.state is state:
            given.update_position()
            given.records.clear()
            self._given = None

    def finish(self) -> None:
        """The user comes back no more: no later look takes a record that it has at hand for one that it still reads."""
        self.update_position()
        self._given = None

    def close(self) -> None:
        """Give everything back."""
        self.update_position()
        self._given = None
        self._close_part()
        for decoder in self._decoders.values():
            decoder.close()
        self._end()

    # Steps

    def _begin(self) -> None:
        """The user asks for more: what was given before is processed."""
        self.asked_at = time.monotonic()
        self.update_position()
        given = self._given
        if given is not None and not length_hint(given.left):
            self._read.append(given.state)
            self._given = None
        for state in self._read:
            state.processed = state.position
        self._read.clear()

    def _end(self) -> None:
        if self._finished:
            finished, self._finished = self._finished, []
            self._give_back(finished)

    def _turn_back(self) -> None:
        """Records that the user has not taken are read again as columns: what is open starts at the position."""
        given, self._given = self._given, None
        if given is None:
            return
        given.records.clear()
        part = self._part
        if part is not None and part.state is given.state and part.current:
            self._reading = None  # opened again at the position
        else:
            self._again(given.state, given.version)

    def _table(self, max_rows: int, names: tuple[str, ...]) -> ConsumedColumns | None:
        table: ConsumedColumns | None = None
        while (part := self._open(names)) is not None:
            decoder = self._reading
            assert decoder is not None
            before = 0 if table is None else len(table)
            if table is None:
                table = decoder.read(ConsumedColumns, max_rows, DEFAULT_MAX_BYTES)
                table.problems, table.next_offsets = Problems(), {}
            else:
                decoder.read_on(table, max_rows, DEFAULT_MAX_BYTES)
            end = self._end_of(part, decoder, _last_offset(table, before))
            if part.current:
                self._advance(part, end)
                table.next_offsets[part.state.key] = end.offset
            else:
                table = first_rows(table, before)
            if not self._over(part, decoder, end):
                break
        if table is None or not len(table):
            self._raise()
            return None
        self.records_given += len(table)
        return table

    def _records(self, max_records: int) -> tuple[list[ConsumerRecord], Part | None, Position]:
        """Records of one part with the position after them, which is not set yet; without a part if there are none."""
        settings = self._settings
        while (part := self._open(_OF_RECORDS)) is not None:
            decoder = self._reading
            assert decoder is not None
            chunk = decoder.read(RecordColumns, max_records, DEFAULT_MAX_BYTES)
            end = self._end_of(part, decoder, _last_offset(chunk, 0))
            records: list[ConsumerRecord] = []
            place = part.state.key
            try:
                consumer_records(
                    records, chunk, ConsumerRecord, *place, settings.key_deserializer, settings.value_deserializer
                )
            except Exception as error:
                end = self._not_deserialized(part, int(chunk["offset"][len(records)]), error)
            self._over(part, decoder, end)
            if part.current and records:
                self.records_given += len(records)
                return records, part, end
            if part.current:
                self._advance(part, end)
        return [], None, Position(0)

    def _open(self, names: tuple[str, ...]) -> Part | None:
        """The part to read, opened; None if there is none, or if an error comes first."""
        if self._failure is not None:
            return None
        while True:
            part = self._part
            if part is None:
                try:
                    part = self._part = self._ready.popleft()
                except IndexError:
                    return None
                self._reading = None
            if not part.current:
                self._close_part()
                continue
            decoder = self._decoder(names)
            if self._reading is not decoder:
                self._reading = decoder
                position = part.state.position or part.start
                first = max(position.offset, part.start.offset)
                decoder.open(part.records, aborted=part.aborted, start_offset=first, end_offset=part.state.end)
                decoder.set_place(part.state.topic, part.state.number)
            return part

    def _decoder(self, names: tuple[str, ...]) -> Decoder:
        found = self._decoders.get(names)
        if found is None:
            plan = plan_of(columns=names, verify_crc=self._settings.check_crcs, place_columns=True)
            found = self._decoders[names] = plan.decoder(b"")
        return found

    def _end_of(self, part: Part, decoder: Decoder, last_offset: int | None) -> Position:
        """The position after what was read of a part."""
        if decoder.done and decoder.fault is None and part.end is not None:
            return part.end if part.end.offset <= part.state.end else Position(part.state.end)
        if last_offset is None:
            return part.state.position or part.start
        return Position(last_offset + 1, part.end.leader_epoch if part.same_epoch and part.end is not None else -1)

    def _advance(self, part: Part, end: Position) -> None:
        if part.current:
            part.state.position = end
            self._read.append(part.state)

    def _over(self, part: Part, decoder: Decoder, end: Position) -> bool:
        """Close a part that is read to its end or to an error. Returns whether to go on with the next one."""
        fault = decoder.take_fault()
        if fault is None and decoder.done and part.end is None and part.current:
            fault = CorruptRecord("the records are damaged")
        if fault is not None:
            self._failed(part, decoder, fault, end.offset)
        if fault is not None or decoder.done:
            self._close_part()
        return fault is None and decoder.done

    def _failed(self, part: Part, decoder: Decoder, fault: Exception, offset: int) -> None:
        """Keep an error for the user; reading stopped at `offset`."""
        state = part.state
        if isinstance(fault, DecodeError):
            explain(fault, state, memoryview(part.records)[decoder.position :], offset)
        self._failure = Failure(state, part.version, fault)

    def _not_deserialized(self, part: Part, offset: int, error: Exception) -> Position:
        """A deserializer failed: the records before are given, then its error comes."""
        error.add_note(f"{part.state.topic}-{part.state.number}: the record at offset {offset} was not deserialized")
        self._failure = Failure(part.state, part.version, error)
        return Position(offset, -1)

    def _close_part(self) -> None:
        if self._part is not None:
            if self._reading is not None:
                self._reading.close()
            self._finished.append(self._part)
            self._part = self._reading = None

    def _raise(self) -> None:
        """Raise the error that comes next, if it still holds."""
        failure, self._failure = self._failure, None
        while failure is None or failure.state.version != failure.version:
            try:
                failure = self._positions.failures.popleft()
            except IndexError:
                return
        if self._part is not None and self._part.state is failure.state:
            self._close_part()
        self._again(failure.state, failure.version)
        raise failure.error


def table_columns(names: Iterable[str] | None) -> tuple[str, ...]:
    """The columns to build in their usual order, ``offset`` always. Raises TypeError, ValueError."""
    wanted = {"offset", *column_names(names, TABLE_COLUMNS, TABLE_COLUMNS)}
    return tuple(name for name in TABLE_COLUMNS if name in wanted)


def _last_offset(table: RecordColumns, before: int) -> int | None:
    return int(table["offset"][-1]) if len(table) > before else None
