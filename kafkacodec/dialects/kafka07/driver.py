"""The tasks that Kafka 0.6/0.7 leaves to the client ("driver"), and the broker's responses: functions without I/O.

The broker answers a fetch with bytes of one segment file, up to the requested size and without regard to message
boundaries. The client computes the next offset, requests more bytes if the first message does not fit, and decompresses
messages; a position inside a compressed message has no offset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol, Unpack

from kafkacodec.datatypes import NamedTuple, dataclass, replace
from kafkacodec.dialects.kafka07.message_set import DecodeOptions, decode
from kafkacodec.dialects.kafka07.wire import (
    EARLIEST,
    LATEST,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    OffsetsRequest,
    OffsetsResponse,
    check_topic,
)
from kafkacodec.errors import BrokerError, LimitExceeded, Truncated

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.net.service import FilePart
    from kafkacodec.records.columns import RecordColumns

__all__ = [
    "LogSegment",
    "Position",
    "Segment",
    "answer_fetch",
    "answer_offsets",
    "check_topic",
    "larger_fetch",
    "next_fetch",
    "position_after",
    "read_fetch",
]

_LENGTH_BYTES = 4
# Length, magic and checksum of a message of magic 0 without a payload.
_SMALLEST_MESSAGE = 9
_START: Final = attrgetter("start")


class Position(NamedTuple):
    """A consumer's position: fetch from `offset` and skip the first `skip` messages."""

    offset: int
    skip: int


def read_fetch(request: FetchRequest, response: FetchResponse, **options: Unpack[DecodeOptions]) -> RecordColumns:
    """The messages of a FETCH response, with their offsets.

    Raises:
        BrokerError: the response has an error code.
        Truncated: the first message does not fit the requested size; see `larger_fetch`.
        DecodeError: as for `decode`.
    """
    if response.error_code:
        known = response.error_code in ErrorCode._value2member_map_
        name = ErrorCode(response.error_code).name if known else ErrorCode.UNKNOWN.name
        raise BrokerError(f"{name} ({response.error_code}) for {request.topic}-{request.partition} at {request.offset}")
    size = memoryview(response.message_set).nbytes
    if size == request.max_size < _LENGTH_BYTES:
        # `decode` would take these bytes for the end of the log, and the client would repeat the request forever.
        raise Truncated(
            f"a fetch of {size} bytes holds no message: fetch {_LENGTH_BYTES} to get the length of the next one, "
            f"at least {_SMALLEST_MESSAGE} to get a message",
            position=size,
        )
    options["initial_offset"] = request.offset
    return decode(response.message_set, **options)


def next_fetch(request: FetchRequest, columns: RecordColumns) -> FetchRequest:
    """The request for the messages after these; the same request if there were none.

    `columns` are all messages of the response to `request`, with the column ``next_offset``.
    """
    return replace(request, offset=int(columns["next_offset"][-1])) if len(columns) else request


def larger_fetch(request: FetchRequest, message_set: Buffer, *, limit: int) -> FetchRequest | None:
    """The request to send if the first message did not fit the requested size, else None.

    The first four bytes of a message are its length. If fewer were received, the new request is four bytes larger.

    Args:
        request: the last request.
        message_set: the bytes of its response.
        limit: the largest size to request, in bytes.

    Raises:
        LimitExceeded: the message is larger than `limit`, or its length is invalid.
        Truncated: the broker had no more bytes: the log ends inside a message.
    """
    view = memoryview(message_set).cast("B")
    had_no_more = len(view) < request.max_size
    if len(view) < _LENGTH_BYTES:
        if had_no_more:
            return None
        needed = _LENGTH_BYTES + request.max_size
    else:
        needed = _LENGTH_BYTES + int.from_bytes(view[:_LENGTH_BYTES], "big")
        if needed <= len(view):
            return None
        if had_no_more:
            raise Truncated(f"the log ends inside a message of {needed} bytes", position=0)
    if needed > limit:
        raise LimitExceeded(f"a message needs a fetch of {needed} bytes; the limit is {limit}", position=0)
    return replace(request, max_size=needed)


def position_after(columns: RecordColumns, row: int) -> Position:
    """The position of a consumer that has processed the messages up to and including `row`.

    A compressed message can only be fetched entire: inside one the position is its start, and `skip` is the number of
    its messages that were processed.

    Args:
        columns: messages as `decode` returns them, starting with a complete compressed message.
        row: a row of `columns`.
    """
    offsets, following = columns["offset"], int(columns["next_offset"][row])
    if following != int(offsets[row]):
        return Position(following, 0)
    first = int(offsets[: row + 1].searchsorted(following, "left"))
    return Position(following, row + 1 - first)


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of a partition's log.

    Attributes:
        start (int): the offset of its first byte, the file's name.
        data: its bytes.
        modified_ms (int): when it was last written, in milliseconds since the epoch.
    """

    start: int
    data: Buffer
    modified_ms: int = 0

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.start + memoryview(self.data).nbytes

    def read(self, offset: int, size: int) -> memoryview:
        """Its bytes from an offset on, at most `size`."""
        return memoryview(self.data).cast("B")[offset - self.start :][:size]


class LogSegment(Protocol):
    """An object with the attributes of a `Segment`, wherever its bytes are."""

    @property
    def start(self) -> int:
        """As in `Segment`."""

    @property
    def end(self) -> int:
        """As in `Segment`."""

    @property
    def modified_ms(self) -> int:
        """As in `Segment`."""

    def read(self, offset: int, size: int) -> memoryview | FilePart:
        """As in `Segment`."""


def answer_fetch(segments: Sequence[LogSegment], request: FetchRequest, *, end: int | None = None) -> FetchResponse:
    """The broker's response to a FETCH: bytes of one segment, however few.

    Args:
        segments: the partition's, in order, each starting where the previous one ends; empty for a partition without
            writes, which has no messages at any offset.
        request: the request. With a negative size it gets `ErrorCode.INVALID_FETCH_SIZE`; a 0.7.2 broker answers with
            a frame that no client can read.
        end: the offset up to which the log is visible; None: all of it.
    """
    if not segments:
        return FetchResponse(ErrorCode.NONE, b"")
    end = segments[-1].end if end is None else end
    if not segments[0].start <= request.offset <= end:
        return FetchResponse(ErrorCode.OFFSET_OUT_OF_RANGE, b"")
    if request.max_size < 0:
        return FetchResponse(ErrorCode.INVALID_FETCH_SIZE, b"")
    segment = segments[-1]
    if request.offset < segment.start:
        segment = segments[bisect_right(segments, request.offset, key=_START) - 1]
    size = min(request.max_size, segment.end - request.offset, end - request.offset)
    return FetchResponse(ErrorCode.NONE, segment.read(request.offset, size) if size else b"")


def answer_offsets(
    segments: Sequence[LogSegment], request: OffsetsRequest, *, end: int | None = None, now_ms: int | None = None
) -> OffsetsResponse:
    """The broker's response to OFFSETS.

    Args:
        segments: as in `answer_fetch`.
        request: the request. Negative times other than `LATEST` and `EARLIEST` are before all segments. Its count
            must not be negative where there are segments: a broker then closes the connection.
        end: as in `answer_fetch`.
        now_ms: the time, at which the end of the log counts as written; None: the end has no time.
    """
    if not segments:
        return OffsetsResponse(ErrorCode.NONE, (0,) if request.time in (LATEST, EARLIEST) else ())
    count = max(request.max_offsets, 0)
    if request.time == EARLIEST:
        return OffsetsResponse(ErrorCode.NONE, (segments[0].start,)[:count])
    end = segments[-1].end if end is None else end
    known = bisect_left(segments, end, key=_START)  # a segment that begins at the end has nothing to read
    if request.time == LATEST or (now_ms is not None and now_ms <= request.time):
        rest = count - 1
        ends: tuple[int, ...] = (end,)[:count]
    else:
        known, rest, ends = len(segments), count, ()
        while known and segments[known - 1].modified_ms > request.time:
            known -= 1
    older = segments[max(known - max(rest, 0), 0) : known]
    return OffsetsResponse(ErrorCode.NONE, (*ends, *(segment.start for segment in reversed(older))))
