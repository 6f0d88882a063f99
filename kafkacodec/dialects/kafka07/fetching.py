"""Fetching partitions from one broker, without I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.kafka07.driver import larger_fetch
from kafkacodec.dialects.kafka07.message_set import decode
from kafkacodec.dialects.kafka07.positions import Place
from kafkacodec.dialects.kafka07.wire import (
    EARLIEST,
    LATEST,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    OffsetsRequest,
    OffsetsResponse,
)
from kafkacodec.errors import BrokerError, DecodeError, KafkaCodecError, Truncated
from kafkacodec.records.columns import RecordColumns

__all__ = ["Begun", "Chunk", "Failed", "Fetches", "Found", "Reset"]

Reset: TypeAlias = Literal["smallest", "largest", "none"]
"""The start without a committed offset or after an offset out of range; ``"none"``: an error."""

_MOST_BYTES: Final = 64 << 20  # of an answer
_TIMES: Final = {"smallest": EARLIEST, "largest": LATEST}


class Chunk(NamedTuple):
    """Messages of a partition.

    Attributes:
        place: the partition.
        columns: the messages, with their next offsets.
        following: the offset after them.
    """

    place: Place
    columns: RecordColumns
    following: int


class Begun(NamedTuple):
    """The start of a partition at an offset; `again`: another offset was out of range."""

    place: Place
    offset: int
    again: bool


class Failed(NamedTuple):
    """A partition cannot be read on."""

    place: Place
    error: KafkaCodecError


Found: TypeAlias = Chunk | Begun | Failed


class Fetches:
    """The requests for the partitions of one broker, one after another.

    Args:
        places: the partitions.
        offset_of: returns the position in a partition; None: ask the broker.
        reset: see `Reset`.
        fetch_size: the number of bytes of a partition to ask for.
        max_fetch_size: the limit of that, if a message is larger.
    """

    def __init__(
        self, places: Iterable[Place], offset_of: Callable[[Place], int | None], *, reset: Reset, fetch_size: int,
        max_fetch_size: int,
    ) -> None:  # fmt: skip
        self._sizes = dict.fromkeys(places, fetch_size)
        self._places = {(place.topic, place.partition): place for place in self._sizes}
        self._offset_of, self._reset = offset_of, reset
        self._fetch_size, self._max_fetch_size = fetch_size, max_fetch_size
        self._out_of_range: set[Place] = set()
        self._failed: set[Place] = set()
        self._order = list(self._sizes)
        self._quiet = 0  # the number of partitions in a row without messages

    @property
    def is_idle(self) -> bool:
        """Whether no partition had messages in its last answer."""
        return self._quiet >= len(self._sizes) - len(self._failed)

    def next(self, full: Iterable[Place]) -> OffsetsRequest | MultiFetchRequest | None:
        """Return the next request, or None. `full` partitions have messages that nobody has taken.

        Partitions without a known position come first.
        """
        open_places = [place for place in self._order if place not in self._failed]
        for place in open_places:
            if place in self._out_of_range or self._offset_of(place) is None:
                return OffsetsRequest(place.topic, place.partition, _TIMES.get(self._reset, EARLIEST), 1)
        skipped = set(full)
        asked: list[FetchRequest] = []
        left = _MOST_BYTES
        for place in open_places:
            size = self._sizes[place]
            if place in skipped or (asked and size > left):
                continue
            asked.append(FetchRequest(place.topic, place.partition, self._offset_of(place) or 0, size))
            left -= size
        self._quiet += len(skipped)
        return MultiFetchRequest(asked) if asked else None

    def answered(self, request: OffsetsRequest | MultiFetchRequest, response: Any) -> list[Found]:
        """Apply a response."""
        if isinstance(request, OffsetsRequest):
            self._quiet = 0
            return [self._begun(self._place(request), response)]
        found: list[Found] = []
        answer: MultiFetchResponse = response
        for part, one in zip(request.requests, answer.responses, strict=True):
            place = self._place(part)
            self._order.remove(place)
            self._order.append(place)
            self._quiet += 1
            try:
                found += self._fetched(place, part, one)
            except KafkaCodecError as error:
                found.append(self._fail(place, error))
        if found:
            self._quiet = 0
        return found

    def _place(self, request: FetchRequest | OffsetsRequest) -> Place:
        return self._places[request.topic, request.partition]

    def _begun(self, place: Place, response: OffsetsResponse) -> Found:
        if not response.offsets:
            return self._fail(place, BrokerError(f"{_name(place)}: the broker has no offset"))
        again = place in self._out_of_range
        self._out_of_range.discard(place)
        return Begun(place, response.offsets[0], again)

    def _fetched(self, place: Place, request: FetchRequest, response: FetchResponse) -> list[Found]:
        if response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self._reset != "none":
            self._out_of_range.add(place)
            self._quiet = 0
            return []
        if response.error_code:
            known = response.error_code in ErrorCode._value2member_map_
            name = ErrorCode(response.error_code).name if known else "UNKNOWN"
            raise BrokerError(f"{_name(place)} at {request.offset}: {name} ({response.error_code})")
        if not memoryview(response.message_set).nbytes:
            return []
        try:
            columns = decode(response.message_set, initial_offset=request.offset, on_error="stop")
        except Truncated:
            return self._enlarge(place, request, response)
        if not len(columns) and columns.problems:
            problem = columns.problems[0].exception
            if isinstance(problem, Truncated):
                return self._enlarge(place, request, response)
            raise _at(place, problem)
        if not columns.consumed:
            return self._enlarge(place, request, response)
        self._sizes[place] = self._fetch_size
        return [Chunk(place, columns, request.offset + columns.consumed)]

    def _enlarge(self, place: Place, request: FetchRequest, response: FetchResponse) -> list[Found]:
        """The first message did not fit."""
        larger = larger_fetch(request, response.message_set, limit=self._max_fetch_size)
        if larger is not None:
            self._sizes[place] = larger.max_size
            self._quiet = 0
        return []

    def _fail(self, place: Place, error: KafkaCodecError) -> Failed:
        self._failed.add(place)
        return Failed(place, error)


def _at(place: Place, error: Exception) -> KafkaCodecError:
    return error.within(_name(place)) if isinstance(error, DecodeError) else BrokerError(f"{_name(place)}: {error}")


def _name(place: Place) -> str:
    return f"{place.topic} {place.broker}-{place.partition}"
