"""Fetched parts as tables and records. Runs in the user's thread, beside the driver's.

The reader takes parts from the left of `Fetcher.ready` and returns them through a callback, which passes them to the
driver's thread. Only the reader moves `PartitionState.position`, after it has checked the part's version.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from kafkacodec.arrow._rows import cells, take
from kafkacodec.client.consuming.given import Given, explain, first_rows
from kafkacodec.client.consuming.open_part import OpenPart
from kafkacodec.client.consuming.positions import Failure, Key, PartitionState, Position, Positions
from kafkacodec.client.consuming.received import Part
from kafkacodec.client.consuming.record import TABLE_COLUMNS, ConsumedColumns, ConsumerRecord
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.errors import ClientClosed, CorruptRecord, DecodeError, LocalProtocolError, SchemaError
from kafkacodec.records._record_rows import ConsumerRecords
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.plan import DEFAULT_MAX_BYTES, DEFAULT_MAX_ROWS, RECORD_COLUMNS

if TYPE_CHECKING:
    from kafkacodec.client.consuming.typed import Typing
    from kafkacodec.records._decoder import Decoder

__all__ = ["OF_RECORDS", "RECORD_ROWS", "Reader"]

P = ParamSpec("P")
T = TypeVar("T")

OF_RECORDS: Final = (*RECORD_COLUMNS, "partition_leader_epoch")
"""The columns that records are made of."""
RECORD_ROWS: Final = 2048
"""At a time, so that they stay in the cache."""


class Reader:
    """Reads fetched parts in order.

    Args:
        ready: the parts, taken from the left.
        positions: the assigned partitions.
        settings: the consumer's.
        give_back: called with parts whose memory is no longer used.
        again: called with a partition and its version, to fetch it again from its position.
        hungry: called when a read has found nothing.
        given: the settings with the deserializers, if `settings` lacks them.

    Attributes:
        records_given: the number of records given so far.
        asked_at: when the user last asked for records or ended a wait for them, by `time.monotonic`; 0.0 before that.
        waiting: whether the user is waiting for records.
        hungry: whether the last read, if any, found nothing.
    """

    def __init__(
        self,
        ready: deque[Part],
        positions: Positions,
        settings: ConsumerSettings,
        give_back: Callable[[list[Part]], None],
        again: Callable[[PartitionState, int], None],
        hungry: Callable[[], None] = lambda: None,
        given: ConsumerSettings | None = None,
    ) -> None:
        self._open = OpenPart(ready, settings, give_back)
        self._positions = positions
        self._given_settings = settings if given is None else given
        self._again = again
        self._tell_hungry = hungry
        self._failure: Failure | None = None  # of the last part
        self._read: list[PartitionState] = []  # partitions with returned but unprocessed records
        self._before: dict[PartitionState, Position | None] = {}  # positions changed by this read
        self._spans: list[tuple[Part, int, int]] = []  # of the last table: parts with their rows
        self._given: Given | None = None
        self._raised = False  # the last read raised an error: records of other partitions come before another one
        self._user: int | None = None  # the thread that reads now
        self._closed = False
        self.records_given = 0
        self.asked_at = 0.0
        self.waiting = False
        self.hungry = True
        positions.dropped = self.drop

    @property
    def has_data(self) -> bool:
        """Whether a read returns or raises something at once."""
        given = self._given
        return bool(self._open.has_data or self._failure or self._positions.failures or (given and given.has_more))

    # Reads of the user

    def columns(
        self,
        max_rows: int | None = None,
        names: tuple[str, ...] = TABLE_COLUMNS,
        made: Typing | None = None,
    ) -> Any:
        """The next `ConsumedColumns`, or what `made` makes of it; None if nothing is ready.

        Raises the error of a partition, and that of an invalid row, after the records before it; what `made` raises
        about no single row with the positions as before. `names` are the columns to decode, in their usual order;
        ``offset`` must be one.
        """
        return self._whole(self._made, DEFAULT_MAX_ROWS if max_rows is None else max_rows, names, made)

    def records_by_partition(self, max_records: int) -> dict[Key, list[ConsumerRecord]]:
        """At most `max_records` records; empty if nothing is ready. Raises as `columns` does."""
        return self._whole(self._lists, max_records) or {}

    def iterated(self) -> Iterator[ConsumerRecord] | None:
        """The next records of one partition, whose position moves with the iterator; None if nothing is ready."""
        return self._whole(self._iterator)

    def asks(self, recent_ms: float) -> bool:
        """Whether the user waits for records, or asked for some not long ago."""
        return self.waiting or (time.monotonic() - self.asked_at) * 1000 < recent_ms

    def wait(self, waiting: bool) -> None:
        """Note that the user starts or stops waiting for records."""
        self.waiting, self.asked_at = waiting, time.monotonic()

    # From the driver's thread

    def update_position(self) -> None:
        """Update the position of the partition that is being iterated over."""
        given = self._given
        if given is not None:
            given.update_position()

    def drop(self, state: PartitionState) -> None:
        """Stop giving records of a partition whose version changes."""
        given = self._given
        if given is not None and given.part.state is state:
            given.update_position()
            given.finish()

    def finish(self) -> None:
        """Stop giving records, and keep the positions as they are now."""
        given = self._given
        if given is not None:
            given.update_position()
            given.finish()

    def close(self) -> None:
        """Give everything back."""
        self._closed = True
        self.finish()
        self._open.close()

    # A read

    def _whole(self, read: Callable[P, T | None], /, *args: P.args, **options: P.kwargs) -> T | None:
        """The result of a read, or the next error.

        All or nothing: if the read is interrupted (Ctrl-C, or no memory), the positions are as before.
        """
        self._enter()
        try:
            self._settle()
            failure = None if self._raised else self._queued_failure()
            found = read(*args, **options) if failure is None else None
            if not found:
                self._settle()  # nothing that was read is with the user
                failure = failure or self._next_failure()
            self._raised = failure is not None
            self._open.give_back()
            self.hungry = not found
            if self.hungry:
                self._tell_hungry()
        except BaseException as error:
            self._undo()
            if self._closed and isinstance(error, Exception):
                raise ClientClosed("the consumer was closed during the read") from error
            raise
        finally:
            self._user = None
        if failure is not None:
            raise failure.error
        return found

    def _enter(self) -> None:
        self.asked_at = time.monotonic()
        me = threading.get_ident()
        if self._user not in (None, me):  # the same one, if an interrupt left it here
            raise LocalProtocolError("another thread is reading: only one thread may use a consumer at a time")
        self._user = me
        self._before.clear()

    def _settle(self) -> None:
        """Count returned records as processed, since the user asks for more."""
        given = self._given
        if given is not None:
            given.asked_for_more()
            if not given.has_more:
                self._retire(given)
        for state in self._read:
            state.processed = state.position
        self._read.clear()

    def _retire(self, given: Given) -> None:
        """End the iteration over these records."""
        given.finish()
        self._read.append(given.part.state)
        self._open.finish(given.part)
        self._given = None

    def _undo(self) -> None:
        """Undo a read without a result: restore the positions and fetch again."""
        if self._given is not None:
            self._retire(self._given)
        self._failure = None
        self._open.recover()
        for state, position in self._before.items():
            state.position = position
        with contextlib.suppress(ClientClosed):
            for state in list(self._positions.partitions.values()):
                self._fetch_again(state, state.version)
            self._open.give_back()

    def _fetch_again(self, state: PartitionState, version: int) -> None:
        state.turned_back = version
        self._again(state, version)

    # Reading

    def _iterator(self) -> Iterator[ConsumerRecord] | None:
        if self._given is None:
            found = self._records(RECORD_ROWS)
            if found is None:
                return None
            self._given = found
            self._open.keep(found.part)
        return self._given.records

    def _lists(self, max_records: int) -> dict[Key, list[ConsumerRecord]]:
        found: dict[Key, list[ConsumerRecord]] = {}
        left = max_records
        given = self._given
        if given is not None:
            state = given.part.state
            self._before.setdefault(state, state.position)
            records = given.take(left)
            if records:
                found[state.key] = records
                left -= len(records)
            if given.has_more:
                return found
            self._retire(given)
        while left > 0:
            more = self._records(left)
            if more is None:
                break
            self._advance(more.part, more.end)
            found.setdefault(more.part.state.key, []).extend(more.records)
            left -= more.records.total
        return found

    def _made(self, max_rows: int, names: tuple[str, ...], made: Typing | None) -> Any:
        table = self._table(max_rows, names)
        if table is None:
            return None
        if made is None:
            self.records_given += len(table)
            return table
        found, rows, error = made.before_error(table)
        if error is not None:
            self._stop_at(table, rows, error)
        self.records_given += rows
        return found

    def _stop_at(self, table: ConsumedColumns, row: int, error: DecodeError | SchemaError) -> None:
        """Continue at a row of the last table, whose error comes first, and at the later rows of other partitions."""
        failure, self._failure = self._failure, None
        again = [] if failure is None else [(failure.state, failure.version)]  # which brings its error again
        behind: set[PartitionState] = set()
        for part, first, end in self._spans:
            state, left = part.state, max(first, row)
            if left >= end or state in behind:
                continue
            behind.add(state)
            if part.current:
                offset: int = cells(take(table, range(left, left + 1)), "offset")[0]
                state.position = Position(offset)
            if self._failure is None:
                self._failure = Failure(state, part.version, error.within(f"{state.topic}-{state.number}"))
            else:
                again.append((state, part.version))
        if self._open.part is not None and self._open.part.state in behind:
            self._open.close_part()
        for state, version in again:
            if self._failure is None or state is not self._failure.state:
                self._fetch_again(state, version)

    def _table(self, max_rows: int, names: tuple[str, ...]) -> ConsumedColumns | None:
        self._turn_back()
        table: ConsumedColumns | None = None
        self._spans.clear()
        while (opened := self._next_part(names)) is not None:
            part, decoder = opened
            before = 0 if table is None else len(table)
            if table is None:
                table = decoder.read(ConsumedColumns, max_rows, DEFAULT_MAX_BYTES)
                table.next_offsets = {}
            else:
                decoder.read_on(table, max_rows, DEFAULT_MAX_BYTES)
            end = self._open.end_of(part, decoder, table, before)
            if part.current:
                self._advance(part, end)
                table.next_offsets[part.state.key] = end.offset
            else:
                table = first_rows(table, before)
            self._spans.append((part, before, len(table)))
            if not self._over(part, decoder, end):
                break
        if table is None or not len(table):
            return None
        return table

    def _turn_back(self) -> None:
        """Read untaken records again, as columns, from the position."""
        given = self._given
        if given is None:
            return
        self._retire(given)
        state, part = given.part.state, self._open.part
        if self._failure is not None and self._failure.state is state:
            self._failure = None
        if part is given.part and part.current:
            self._open.reopen()
        else:
            self._fetch_again(state, given.part.version)

    def _records(self, max_records: int) -> Given | None:
        """Records of one part and the position after them, which is not set yet; None if there are none."""
        settings = self._given_settings
        while (opened := self._next_part(OF_RECORDS)) is not None:
            part, decoder = opened
            chunk = decoder.read(RecordColumns, max_records, DEFAULT_MAX_BYTES)
            end = self._open.end_of(part, decoder, chunk)
            place = part.state.key
            records = ConsumerRecords(chunk, ConsumerRecord, *place)
            try:
                if settings.key_deserializer is not None or settings.value_deserializer is not None:
                    records.deserialize(settings.key_deserializer, settings.value_deserializer)
            except Exception as error:
                offset = records.offset(records.total)
                error.add_note(f"{place[0]}-{place[1]}: the record at offset {offset} was not deserialized")
                self._failure = Failure(part.state, part.version, error)  # it comes after the records before
                end = Position(offset)
            self._over(part, decoder, end)
            if part.current and records.total:
                self.records_given += records.total
                return Given(part, records, end)
            self._advance(part, end)
        return None

    def _next_part(self, names: tuple[str, ...]) -> tuple[Part, Decoder] | None:
        """The part to read and its decoder; None if there is none, or if an error comes first."""
        if self._failure is not None and self._failure.holds:
            return None
        self._failure = None
        return self._open.open(names)

    def _advance(self, part: Part, end: Position) -> None:
        if part.current:
            state = part.state
            self._before.setdefault(state, state.position)
            state.position = end
            self._read.append(state)

    def _over(self, part: Part, decoder: Decoder, end: Position) -> bool:
        """Close a part that is read to its end or to an error. Returns whether to go on with the next one."""
        fault = decoder.take_fault()
        if fault is None and decoder.done and part.end is None and part.current:
            fault = CorruptRecord("the records are damaged")
        if fault is not None:
            if isinstance(fault, DecodeError):
                explain(fault, part.state, memoryview(part.records)[decoder.position :], end.offset)
            self._failure = Failure(part.state, part.version, fault)
        if fault is not None or decoder.done:
            self._open.close_part()
        return fault is None and decoder.done

    # Errors

    def _next_failure(self) -> Failure | None:
        """The next error that still holds; its partition is fetched again."""
        failure, self._failure = self._failure, None
        if failure is None or not failure.holds:
            return self._queued_failure()
        return self._taken(failure)

    def _queued_failure(self) -> Failure | None:
        """Return the next error from brokers that still holds, after all records before it."""
        failures = self._positions.failures
        while failures:
            failure = failures.popleft()
            if failure.holds:
                return self._taken(failure)
        return None

    def _taken(self, failure: Failure) -> Failure:
        if self._open.part is not None and self._open.part.state is failure.state:
            self._open.close_part()
        self._fetch_again(failure.state, failure.version)
        return failure
