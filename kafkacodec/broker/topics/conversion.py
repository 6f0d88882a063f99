"""Record batches as message sets of magic 0 and 1 for fetches of old clients, and message sets as batches.

The rules follow Apache Kafka 3.9.1 (`org.apache.kafka.common.record.RecordsUtil`,
`org.apache.kafka.storage.internals.log.LogValidator`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors
from kafkacodec.broker.topics.batches import Produced, Refused, accept
from kafkacodec.errors import DecodeError, KafkaCodecError, UnsupportedCodec
from kafkacodec.records.decode import decode
from kafkacodec.records.encode import encode
from kafkacodec.records.headers import scan

if TYPE_CHECKING:
    from kafkacodec.broker.topics.configs import TopicConfig
    from kafkacodec.records.columns import BatchHeaders

__all__ = ["accept_set", "lowered"]

_NEWEST: Final = 1 << 15  # accepts every codec: an old set's codec was checked before
_WHOLE: Final = 1 << 30
_KEPT: Final = ("key", "value", "timestamp")
_NO_OFFSET: Final = b"\xff" * 8
_HEAD_BYTES: Final = 12  # offset and size
_BATCH_HEAD_BYTES: Final = 61


def accept_set(data: memoryview | None, config: TopicConfig, version: int, now: float) -> Produced | Refused | None:
    """Check the records of a partition in a Produce request before version 3; arguments as for `accept`.

    Messages of magic 0 and 1 become one batch of magic 2 with the same codec.

    Returns:
        None: there is no whole message, which is accepted and appends nothing.
    """
    try:
        heads = scan(data if data is not None else b"")
    except DecodeError:
        return Refused(errors.CORRUPT_MESSAGE)
    if not len(heads):
        return None
    whole = memoryview(data)[: heads.consumed] if data is not None else memoryview(b"")
    magics, codecs = set(heads["magic"].tolist()), set(heads["codec"].tolist())
    if magics == {2}:
        return accept(whole, config, version, now)
    if not all(heads["crc_ok"].tolist()):
        return Refused(errors.CORRUPT_MESSAGE)
    if int(heads["size_in_bytes"].max()) > config.max_message_bytes:
        return Refused(errors.MESSAGE_TOO_LARGE)
    if len(magics) > 1 or len(codecs) > 1 or (len(heads) > 1 and codecs != {"none"}):
        return Refused(errors.INVALID_RECORD, late=True)
    try:
        made = encode(decode(whole, columns=_KEPT), codec=codecs.pop(), batch_bytes=_WHOLE)
    except KafkaCodecError:
        return Refused(errors.INVALID_RECORD, late=True)
    return accept(memoryview(bytearray(made)), config, _NEWEST, now)


def lowered(data: memoryview, magic: int, first_offset: int) -> bytes:
    """Return batches as message sets of magic 0 or 1, of the same length, as in answers of brokers before 4.0.

    The start of a missing message fills the rest of the length; readers take it for a partial message. The last message
    may be partial, too; only the messages of the first batch are always complete. Control batches and headers are left
    out, and with magic 0 timestamps.

    Args:
        data: batches of any magic, the last of which may be partial.
        magic: the highest that the client reads.
        first_offset: the client's position; uncompressed messages start there.

    Raises:
        UnsupportedCodec: a batch of zstd, which old clients do not know.
        DecodeError: a damaged batch.
    """
    pieces: list[bytes] = []
    heads = scan(data, verify_crc=False)
    size = len(data) if len(heads) else 0
    for piece in _pieces(data, heads, magic, first_offset):
        size = size if pieces else max(size, len(piece))
        pieces.append(piece)
    made = b"".join(pieces)[:size]
    left = size - len(made) if made else min(size, _HEAD_BYTES)
    return made + _filling(left)


def _filling(left: int) -> bytes:
    """Return the start of a message without an end, as brokers write it."""
    return (_NO_OFFSET + max(_BATCH_HEAD_BYTES, left + 1).to_bytes(4, "big")).ljust(left, b"\0")[:left]


def _pieces(data: memoryview, heads: BatchHeaders, magic: int, first_offset: int) -> Iterator[bytes]:
    """Yield the conversion of each batch."""
    names = ("position", "size_in_bytes", "magic", "codec", "timestamp_type", "is_control")
    for position, size, has, codec, timestamp_type, is_control in zip(
        *(heads[name].tolist() for name in names), strict=True
    ):
        batch = data[position : position + size]
        if has <= magic:
            yield bytes(batch)
        elif not is_control:
            if codec == "zstd":
                raise UnsupportedCodec("message sets of magic 0 and 1 cannot be compressed with zstd")
            rows: Any = decode(batch)
            if codec == "none":
                rows = rows.filter(rows["offset"] >= first_offset)
            if len(rows):
                yield encode(
                    rows, magic=magic, codec=codec, batch_bytes=_WHOLE, drop_unsupported=True,
                    timestamp_type=timestamp_type if magic else 0,
                )  # fmt: skip
