"""What Kafka 0.6/0.7 leaves to the client ("driver"), and how the broker picks bytes: functions without I/O.

The broker answers a fetch with a piece of one segment file, cut where the asked size ends, and knows nothing of
messages. The client finds the offset to go on from, asks for more where not even one message fits, and opens
compressed messages, inside which there are no offsets to go on from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Unpack

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

    from kafkacodec.records.columns import RecordColumns

__all__ = [
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


class Position(NamedTuple):
    """Where a consumer goes on: fetch from `offset`, and pass over the first `skip` messages of what comes."""

    offset: int
    skip: int


def read_fetch(request: FetchRequest, response: FetchResponse, **options: Unpack[DecodeOptions]) -> RecordColumns:
    """The messages of a FETCH response, with their offsets.

    Raises:
        BrokerError: the response has an error code.
        Truncated: not even one message fits the size that was asked for; see `larger_fetch`.
        DecodeError: as for `decode`.
    """
    if response.error_code:
        known = response.error_code in ErrorCode._value2member_map_
        name = ErrorCode(response.error_code).name if known else ErrorCode.UNKNOWN.name
        raise BrokerError(f"{name} ({response.error_code}) for {request.topic}-{request.partition} at {request.offset}")
    size = memoryview(response.message_set).nbytes
    if size == request.max_size < _LENGTH_BYTES:
        # Decoded, so few bytes are the end of the log, and the same would be asked for ever.
        raise Truncated(
            f"a fetch of {size} bytes holds no message: ask for {_LENGTH_BYTES} to learn the length of the next one, "
            f"and for at least {_SMALLEST_MESSAGE} to get one",
            position=size,
        )
    options["initial_offset"] = request.offset
    return decode(response.message_set, **options)


def next_fetch(request: FetchRequest, columns: RecordColumns) -> FetchRequest:
    """The request for what follows these messages; the same request where there were none.

    `columns` are all messages of the response to `request`, with the column ``next_offset``.
    """
    return replace(request, offset=int(columns["next_offset"][-1])) if len(columns) else request


def larger_fetch(request: FetchRequest, message_set: Buffer, *, limit: int) -> FetchRequest | None:
    """The request to send where the first message does not fit into what `request` asked for, else None.

    The message tells its length as soon as four bytes of it are there; before that four more are asked for.

    Args:
        request: what was asked for.
        message_set: what came.
        limit: the largest size to ask for.

    Raises:
        LimitExceeded: the message is larger than `limit`, or its length is nonsense.
        Truncated: the broker had no more bytes to send: the log ends inside a message.
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
        raise LimitExceeded(f"a message needs a fetch of {needed} bytes, which exceeds {limit}", position=0)
    return replace(request, max_size=needed)


def position_after(columns: RecordColumns, row: int) -> Position:
    """Where a consumer goes on that has done with the messages up to and including `row`.

    A compressed message can only be fetched as a whole: inside one the position is its start, and `skip` counts
    the messages in it that were done with.

    Args:
        columns: messages as `decode` gives them, from the start of a compressed message on.
        row: a row of them.
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
        start (int): the offset of its first byte, which is its name.
        data: its bytes.
        modified_ms (int): when it was last written, in milliseconds since the epoch.
    """

    start: int
    data: Buffer
    modified_ms: int = 0

    @property
    def end(self) -> int:
        """The offset behind its last byte."""
        return self.start + memoryview(self.data).nbytes


def answer_fetch(segments: Sequence[Segment], request: FetchRequest) -> FetchResponse:
    """What a broker answers to a FETCH: a piece of one segment, however little that is.

    Args:
        segments: the partition's, in order, each starting where the one before ends; none for a partition that nobody
            has written yet, which has no messages at any offset.
        request: what is asked for.
    """
    if not segments:
        return FetchResponse(ErrorCode.NONE, b"")
    if request.max_size < 0 or not segments[0].start <= request.offset <= segments[-1].end:
        return FetchResponse(ErrorCode.OFFSET_OUT_OF_RANGE, b"")
    i = bisect_right([segment.start for segment in segments], request.offset) - 1
    at = request.offset - segments[i].start
    return FetchResponse(ErrorCode.NONE, memoryview(segments[i].data).cast("B")[at : at + request.max_size])


def answer_offsets(segments: Sequence[Segment], request: OffsetsRequest) -> OffsetsResponse:
    """What a broker answers to OFFSETS.

    Args:
        segments: as in `answer_fetch`.
        request: what is asked for. Negative times but `LATEST` and `EARLIEST` are before all segments.
    """
    starts = [(segment.start, segment.modified_ms) for segment in segments] or [(0, 0)]
    if request.time == EARLIEST:
        offsets = [starts[0][0]]
    elif request.time == LATEST:
        end = segments[-1].end if segments else 0
        offsets = [end, *(start for start, _ in reversed(starts) if start != end)]
    else:
        written = [start for start, modified in starts if segments and modified <= request.time]
        offsets = written[::-1]
    return OffsetsResponse(ErrorCode.NONE, tuple(offsets[: max(request.max_offsets, 0)]))
