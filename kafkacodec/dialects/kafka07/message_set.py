"""Message sets and log segments of Kafka 0.6 and 0.7: to columns and back.

Such bytes cannot always be distinguished from later formats, so this format has its own functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from kafkacodec.arguments import column_names, int64, limit, one_of
from kafkacodec.arrow._columns import Budget
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.kafka07 import _decoder
from kafkacodec.errors import UnsupportedMagic
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.compression import CODECS, DEFAULT_MAX_DECOMPRESSED_BYTES, compress
from kafkacodec.records.plan import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_ROWS,
    DEFAULT_MAX_TOTAL_BYTES,
    NOWHERE,
    ON_ERROR,
    PLACE_COLUMNS,
    RECORD_COLUMNS,
    OnError,
    Place,
    budget_of,
)
from kafkacodec.records.reading import read_chunks, read_further, read_whole
from kafkacodec.signatures import shows_options, suggests_options

if TYPE_CHECKING:
    from typing_extensions import Buffer

Codec = Literal["none", "gzip", "snappy"]
"""The codec of containers."""

__all__ = [
    "COLUMNS", "Codec", "DecodeOptions", "Produced", "check_produced", "decode", "decode_log", "encode_messages",
    "iter_columns", "valid_bytes",
]  # fmt: skip

_BIT = {name: 1 << i for i, name in enumerate(_decoder.columns())}
_ALL = [name for name in _BIT if name not in PLACE_COLUMNS]

COLUMNS: tuple[str, ...] = tuple(_ALL[:7])
"""The default columns of `decode`, in order."""


class DecodeOptions(TypedDict, total=False):
    """The keyword options of `decode` and `iter_columns`."""

    initial_offset: int
    columns: Iterable[str] | None
    batch_columns: bool
    deep: bool
    verify_crc: bool
    on_error: OnError
    max_decompressed_bytes: int


def open_decoder(
    data: Buffer,
    *,
    initial_offset: int = 0,
    columns: Iterable[str] | None = None,
    batch_columns: bool = False,
    deep: bool = True,
    verify_crc: bool = True,
    on_error: OnError = "raise",
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    budget: Budget | None = None,
    place: Place | None = None,
) -> _decoder.Decoder:
    """A decoder of the data, with checked options."""
    names = column_names(columns, COLUMNS, _ALL if place is None else list(_BIT))
    one_of("on_error", on_error, ON_ERROR)
    wanted = sum({_BIT[name] for name in (*names, *(_ALL[7:] if batch_columns else ()))})
    decoder = _decoder.Decoder(
        data,
        wanted=wanted,
        verify_crc=verify_crc,
        deep=deep,
        initial_offset=int64(initial_offset),
        limit=limit("max_decompressed_bytes", max_decompressed_bytes),
        budget=budget,
    )
    decoder.set_place(*(place or NOWHERE))
    return decoder


@shows_options(DecodeOptions, open_decoder)
def decode(
    data: Buffer, *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES, **options: Unpack[DecodeOptions]
) -> RecordColumns:
    """Decodes a message set, such as that of a FETCH response or a segment file, into one table.

    The columns are those of `kafkacodec.decode` and ``next_offset`` int64, the offset to fetch from after this
    message. The format has no timestamps, keys or headers: they are null, null and empty. ``offset`` is the position
    of the message in the log. Messages inside a compressed message have its offset, also as ``next_offset``; only the
    last of them has the ``next_offset`` after it. A trailing partial message, fewer than four trailing bytes and
    trailing zeros are normal and left out: `RecordColumns.consumed` is the size of the complete messages in bytes.

    Args:
        data: any contiguous buffer; it is not copied.
        initial_offset: the offset of the first byte: the fetch offset, or the segment's name.
        columns: names of the columns to build. Default: `COLUMNS`.
        batch_columns: also build ``magic`` int8 (0 in Kafka 0.6, 1 in 0.7) and ``codec`` string (``none``, ``gzip``,
            ``snappy``; of the outermost message).
        deep: decompress messages; False returns compressed messages as they are in the log.
        verify_crc: check every message's checksum.
        on_error: ``"raise"``; ``"stop"`` returns the messages before the first fault; ``"skip"`` also those after it,
            if the message's length is valid. Both list the bytes left out in ``problems``.
        max_decompressed_bytes: the most that one compressed message may decompress to, in bytes, including nested
            compressed messages.
        max_total_bytes: as in `kafkacodec.decode`.

    Raises:
        Truncated: the first message is incomplete: fetch more bytes (the broker cuts at the fetch size).
        CorruptRecord, CrcMismatch: invalid lengths, checksums or compressed data.
        UnsupportedMagic, UnsupportedCodec: a magic other than 0 and 1, a codec other than none, gzip and snappy.
        LimitExceeded: a limit on bytes, or more than 8 nested compressed messages. That of `max_total_bytes` is raised
            regardless of `on_error`.
        ValueError: an option is wrong.

    Source: kafka07-writing-a-driver.
    """
    budget = budget_of(max_total_bytes, "read chunks with kafka07.iter_columns")
    with open_decoder(data, budget=budget, **options) as decoder:
        return read_whole(decoder, options.get("on_error", "raise"))


@shows_options(DecodeOptions, open_decoder)
def iter_columns(
    data: Buffer,
    *,
    max_rows: int = DEFAULT_MAX_ROWS,
    max_bytes: int = DEFAULT_MAX_BYTES,
    **options: Unpack[DecodeOptions],
) -> Iterator[RecordColumns]:
    """Decodes a message set in chunks, as `kafkacodec.iter_columns` does. A compressed message is not split.

    Args:
        data: as in `decode`, like the other options and the errors.
        max_rows: rows after which a chunk ends.
        max_bytes: bytes of values after which a chunk ends.
    """
    return placed_columns(data, None, max_rows=max_rows, max_bytes=max_bytes, **options)


def placed_columns(
    data: Buffer, place: Place | None, *, max_rows: int, max_bytes: int, **options: Unpack[DecodeOptions]
) -> Iterator[RecordColumns]:
    """As `iter_columns`. Where a `place` is given, there are columns for it."""
    rows, size = limit("max_rows", max_rows, 1), limit("max_bytes", max_bytes, 1)
    return read_chunks(open_decoder(data, place=place, **options), options.get("on_error", "raise"), rows, size)


@suggests_options
def valid_bytes(data: Buffer, *, any_magic: bool = False) -> int:
    """The size in bytes of the valid messages at the start, to which a 0.7 broker truncates the log at start-up.

    Compressed messages are not decompressed. Raises UnsupportedMagic for an unknown magic, with which the broker does
    not start, unless `any_magic`: then a message of an unknown magic is invalid like others.
    """
    with open_decoder(data, columns=(), deep=False) as decoder:
        kept = read_whole(decoder, "stop")
    for problem in kept.problems:
        if isinstance(problem.exception, UnsupportedMagic) and not any_magic:
            raise problem.exception
    return kept.consumed


def decode_log(pieces: Iterable[tuple[int, Buffer]]) -> RecordColumns:
    """The messages of segments, perhaps of several logs, as one table with the columns of `kafkacodec.decode`.

    Args:
        pieces: the offset of the first byte, and the bytes.

    Raises:
        As `decode`.
    """
    budget = budget_of(DEFAULT_MAX_TOTAL_BYTES, "read chunks with kafkacodec.log")
    with open_decoder(b"", columns=RECORD_COLUMNS, place=NOWHERE, budget=budget) as nothing:
        whole = read_whole(nothing, "raise")
    for start, data in pieces:
        with open_decoder(data, initial_offset=start, columns=RECORD_COLUMNS, place=NOWHERE, budget=budget) as decoder:
            read_further(decoder, "raise", whole)
    return whole


class Produced(NamedTuple):
    """The part of a message set that a broker appends.

    Attributes:
        size: of the complete messages, in bytes; a partial message after them is dropped.
        messages: their number, including each message inside compressed ones.
        too_large: whether a payload exceeds the limit, so that nothing is appended, without an error.
    """

    size: int
    messages: int
    too_large: bool


def check_produced(
    data: Buffer, *, max_payload: int, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> Produced:
    """Check a produced message set as a 0.7.2 broker does.

    It checks every message, also those inside compressed ones, but limits only the outermost ones.

    Args:
        data: the message set.
        max_payload: the largest payload of an outermost message, in bytes, after compression.
        max_decompressed_bytes: as in `decode`.

    Raises:
        DecodeError: as for `decode`: the broker closes the connection, and appends nothing.
    """
    size, messages, compressed, too_large = _decoder.outermost(data, max_payload)
    if compressed and not too_large:
        whole = memoryview(data).cast("B")[:size]
        with open_decoder(whole, columns=(), max_decompressed_bytes=max_decompressed_bytes) as decoder:
            messages = len(read_whole(decoder, "raise"))
    return Produced(size, messages, too_large)


@suggests_options
def encode_messages(payloads: Iterable[Buffer], *, magic: int = 1, codec: Codec = "none") -> bytes:
    """A message set of these payloads; with a codec, in one compressed message.

    Args:
        payloads: the payload of each message.
        magic: 0 for Kafka 0.6, which has no compression, 1 for 0.7.
        codec: ``none``, ``gzip`` or ``snappy``.

    Raises:
        ValueError: an unknown magic or codec.
        EncodeError: a message too large for its length field.
    """
    if magic not in (0, 1):
        raise ValueError(f"unknown magic {magic!r}: Kafka 0.6 has 0, 0.7 has 1")
    if codec not in CODECS[:3] or (magic == 0 and codec != "none"):
        raise ValueError(f"unknown codec {codec!r} in magic {magic}")
    message_set = b"".join(_decoder.encode_message(payload, magic, 0) for payload in payloads)
    if codec == "none" or not message_set:
        return message_set
    number = CODECS.index(codec)
    return _decoder.encode_message(compress(number, message_set, magic=magic), magic, number)
