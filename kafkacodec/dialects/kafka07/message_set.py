"""Message sets and log segments of Kafka 0.6 and 0.7: to columns and back.

Such bytes cannot always be told from those of later versions, so this format is asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypedDict, Unpack

from kafkacodec.arrow._columns import Budget
from kafkacodec.dialects.kafka07 import _decoder
from kafkacodec.errors import UnsupportedMagic
from kafkacodec.records.arguments import int64, limit, one_of
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.compression import CODECS, compress
from kafkacodec.records.decode import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    DEFAULT_MAX_ROWS,
    DEFAULT_MAX_TOTAL_BYTES,
    ON_ERROR,
    PLACE_COLUMNS,
    OnError,
    budget_of,
    read_chunks,
    read_whole,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["COLUMNS", "DecodeOptions", "decode", "encode_messages", "iter_columns", "valid_bytes"]

_BIT = {name: 1 << i for i, name in enumerate(_decoder.columns())}
_ALL = [name for name in _BIT if name not in PLACE_COLUMNS]

COLUMNS: tuple[str, ...] = tuple(_ALL[:7])
"""The columns that `decode` builds unless told otherwise, in order."""


class DecodeOptions(TypedDict, total=False):
    """The keyword options that `decode` and `iter_columns` share."""

    initial_offset: int
    columns: Iterable[str] | None
    batch_columns: bool
    deep: bool
    verify_crc: bool
    on_error: OnError
    max_decompressed_bytes: int


def _open_decoder(
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
) -> _decoder.Decoder:
    names = COLUMNS if columns is None else tuple(columns)
    unknown = [name for name in names if name not in _ALL]
    if unknown:
        raise ValueError(f"no such column: {', '.join(map(repr, unknown))}; there are {', '.join(_ALL)}")
    one_of("on_error", on_error, ON_ERROR)
    wanted = sum({_BIT[name] for name in (*names, *(_ALL[7:] if batch_columns else ()))})
    return _decoder.Decoder(
        data,
        wanted=wanted,
        verify_crc=verify_crc,
        deep=deep,
        initial_offset=int64(initial_offset),
        limit=limit("max_decompressed_bytes", max_decompressed_bytes),
        budget=budget,
    )


def decode(
    data: Buffer, *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES, **options: Unpack[DecodeOptions]
) -> RecordColumns:
    """Decodes a message set, such as a FETCH response's or a segment file, into one table.

    The columns are those of `kafkacodec.decode`, with ``next_offset`` int64 behind them: what to fetch from after
    this message. The format has no timestamps, keys or headers: they are null, null and empty. ``offset`` is where
    a message starts in the log. Inside a compressed message both are the offset of that message, but for the last
    one inside, whose ``next_offset`` lies behind it. A message cut off at the end is normal and left alone, and so
    are fewer than four bytes, and zeros to the end: `RecordColumns.consumed` tells how many bytes were whole messages.

    Args:
        data: any contiguous buffer; it is not copied.
        initial_offset: the offset of the first byte: the one that was fetched from, or the segment's name.
        columns: names of the columns to build. Default: `COLUMNS`.
        batch_columns: also build ``magic`` int8 (0 in Kafka 0.6, 1 in 0.7) and ``codec`` string (``none``, ``gzip``,
            ``snappy``; of the outermost message).
        deep: open compressed messages; False gives them as they are in the log.
        verify_crc: check every message's checksum.
        on_error: ``"raise"``; ``"stop"`` gives what came before the first fault; ``"skip"`` goes on behind it where
            the fault leaves the length of the message alone. Both list what was passed over in ``problems``.
        max_decompressed_bytes: the most that one compressed message may decompress to, in bytes, with all that is
            compressed inside it once more.
        max_total_bytes: as in `kafkacodec.decode`.

    Raises:
        Truncated: the first message is not whole: fetch more bytes (the broker cuts where the fetch size says).
        CorruptRecord, CrcMismatch: lengths, checksums or compressed data that are wrong.
        UnsupportedMagic, UnsupportedCodec: a magic but 0 and 1, a codec but none, gzip and snappy.
        LimitExceeded: a limit, on bytes or on compressed messages inside one another (8). That of `max_total_bytes`
            is raised whatever `on_error` says.
        ValueError: an option is wrong.

    Source: kafka07-writing-a-driver.
    """
    budget = budget_of(max_total_bytes, "read chunks with kafka07.iter_columns")
    with _open_decoder(data, budget=budget, **options) as decoder:
        return read_whole(decoder, options.get("on_error", "raise"))


def iter_columns(
    data: Buffer,
    *,
    max_rows: int = DEFAULT_MAX_ROWS,
    max_bytes: int = DEFAULT_MAX_BYTES,
    **options: Unpack[DecodeOptions],
) -> Iterator[RecordColumns]:
    """Decodes a message set in chunks, as `kafkacodec.iter_columns` does. A compressed message stays in one chunk.

    Args:
        data: as in `decode`, like the other options and the errors.
        max_rows: rows after which a chunk ends.
        max_bytes: bytes of values after which a chunk ends.
    """
    rows, size = limit("max_rows", max_rows, 1), limit("max_bytes", max_bytes, 1)
    return read_chunks(_open_decoder(data, **options), options.get("on_error", "raise"), rows, size)


def valid_bytes(data: Buffer) -> int:
    """How many bytes at the start are whole messages with the right checksums: what a 0.7 broker keeps at start-up.

    Compressed messages are not opened. Raises UnsupportedMagic where the real broker refuses to start: at a magic
    that it does not know.
    """
    with _open_decoder(data, columns=(), deep=False) as decoder:
        kept = read_whole(decoder, "stop")
    for problem in kept.problems:
        if isinstance(problem.exception, UnsupportedMagic):
            raise problem.exception
    return kept.consumed


def encode_messages(payloads: Iterable[Buffer], *, magic: int = 1, codec: str = "none") -> bytes:
    """A message set of these payloads, in one compressed message where a codec is given.

    Args:
        payloads: bytes of one message each.
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
