"""Checks of a produced batch, and changes to it, before it is appended.

The checks have the same order as in Apache Kafka, since the order shows in the answers
(`org.apache.kafka.storage.internals.log.LogValidator`, `ProduceRequest.validateRecords`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from kafkacodec import errors
from kafkacodec.broker.topics._head import Head, Produced, read_head
from kafkacodec.errors import DecodeError, KafkaCodecError, UnsupportedMagic
from kafkacodec.lazy import np
from kafkacodec.records._crc import crc32c
from kafkacodec.records.compression import CODECS, Codec
from kafkacodec.records.decode import decode
from kafkacodec.records.encode import encode
from kafkacodec.records.plan import plan_of
from kafkacodec.records.reading import read_whole

if TYPE_CHECKING:
    import numpy.typing as npt

    from kafkacodec.broker.topics.configs import TopicConfig
    from kafkacodec.records.columns import RecordColumns

__all__ = ["Produced", "Refused", "accept"]

_MAGIC: Final = 2
_ZSTD: Final = CODECS.index("zstd")
_ZSTD_FROM: Final = 7
_NO_TIME: Final = -1
_UNLIMITED: Final = (1 << 63) - 1
_APPEND_TIME_BIT: Final = 0x08
_CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 17, 21, 35
_TIMES = plan_of(columns=("timestamp",), verify_crc=False)
_WITH_KEYS = plan_of(columns=("timestamp", "key"), verify_crc=False)


@dataclass(slots=True)
class Refused:
    """The reason for refusing a batch.

    Attributes:
        code: the error code.
        text: for the client; None for none.
        records: the errors of single records.
        late: whether the check read the log, so that the answer has its start.
    """

    code: int
    text: str | None = None
    records: list[tuple[int, str]] = field(default_factory=list)
    late: bool = False


def accept(data: memoryview | None, config: TopicConfig, version: int, now: float) -> Produced | Refused:
    """Check the records of a partition in a Produce request of version 3 or later.

    Args:
        data: from the request. It changes a batch of CreateTime in a topic of LogAppendTime in place.
        config: of the topic.
        version: of the request.
        now: milliseconds since 1970.
    """
    if data is None or not len(data):
        return Refused(errors.INVALID_RECORD)
    try:
        head = read_head(data)
    except UnsupportedMagic as error:
        return Refused(errors.CORRUPT_MESSAGE, str(error))
    except DecodeError:
        return Refused(errors.INVALID_RECORD)
    if head is None:
        return Refused(errors.INVALID_RECORD)
    return _refuses_head(head, config, version) or _checked(data, head, config, now)


def _refuses_head(head: Head, config: TopicConfig, version: int) -> Refused | None:
    if head.magic != _MAGIC:
        return Refused(errors.INVALID_RECORD)
    if head.codec == _ZSTD and version < _ZSTD_FROM:
        return Refused(errors.UNSUPPORTED_COMPRESSION_TYPE)
    if not head.crc_ok:
        return Refused(errors.CORRUPT_MESSAGE)
    if head.size > config.max_message_bytes:
        return Refused(errors.MESSAGE_TOO_LARGE)
    return None


def _checked(data: memoryview, head: Head, config: TopicConfig, now: float) -> Produced | Refused:
    """Check what takes the records."""
    if not head.is_sound:
        return Refused(errors.INVALID_RECORD, late=True)
    if head.codec or config.is_compacted or not _is_in_time(head, config, now):
        try:
            with (_WITH_KEYS if config.is_compacted else _TIMES).decoder(data) as decoder:
                records = read_whole(decoder, "raise")
        except KafkaCodecError:
            return Refused(errors.INVALID_RECORD, late=True)
        refused = _refuses_records(records, head, config, now)
        if refused is not None:
            return refused
    elif not head.records_ok:
        return Refused(errors.INVALID_RECORD, late=True)
    if config.compression != "producer":
        wanted = cast(Codec, config.compression.replace("uncompressed", "none"))
        if wanted != CODECS[head.codec]:
            data = _recompressed(data, head, wanted, config)
    if config.has_append_time or head.has_append_time:
        append_time = int(now) if config.has_append_time else _NO_TIME
        data, max_timestamp = _stamped(data, append_time, head)
        return head.produced(data, max_timestamp, append_time)
    return head.produced(data, head.max_timestamp, _NO_TIME)


def _is_in_time(head: Head, config: TopicConfig, now: float) -> bool:
    """Whether no timestamp can be too early or too late, so that they need not be looked at one by one."""
    if config.has_append_time:
        return True
    return head.max_timestamp <= now + config.after_max_ms and config.before_max_ms >= _UNLIMITED


def _refuses_records(records: RecordColumns, head: Head, config: TopicConfig, now: float) -> Refused | None:
    if config.is_compacted:
        missing = [i for i, key in enumerate(records["key"]) if key is None]
        if missing:
            text = "Compacted topic cannot accept message without key"
            return Refused(errors.INVALID_RECORD, text, [(i, text) for i in missing], late=True)
    if _is_in_time(head, config, now):
        return None
    latest, earliest = now + config.after_max_ms, now - config.before_max_ms
    times = _times(records)
    wrong = np.flatnonzero((times != _NO_TIME) & ((times > latest) | (times < earliest))).tolist()
    if not wrong:
        return None
    text = f"a timestamp is not within message.timestamp.before.max.ms and after.max.ms of {int(now)}"
    return Refused(errors.INVALID_TIMESTAMP, text, [(i, text) for i in wrong], late=True)


def _times(records: RecordColumns) -> npt.NDArray[np.int64]:
    times: npt.NDArray[np.int64] = records["timestamp"].astype(np.int64)
    return np.maximum(times, _NO_TIME)  # null is the smallest number


def _recompressed(data: memoryview, head: Head, codec: Codec, config: TopicConfig) -> memoryview:
    """The batch with another codec; all else stays."""
    made = encode(
        decode(data, verify_crc=False), codec=codec, level=config.level(codec), batch_bytes=1 << 30,
        producer_id=head.producer_id, producer_epoch=head.producer_epoch, base_sequence=head.base_sequence,
        is_transactional=head.is_transactional, timestamp_type=int(head.has_append_time),
    )  # fmt: skip
    return memoryview(bytearray(made))


def _stamped(data: memoryview, time: int, head: Head) -> tuple[memoryview, int]:
    """The batch with the time of the append, or without, and the largest timestamp."""
    if data.readonly:
        data = memoryview(bytearray(data))
    if time == _NO_TIME:
        data[_ATTRIBUTES_AT + 1] &= ~_APPEND_TIME_BIT & 0xFF
        time = head.max_timestamp
    else:
        data[_ATTRIBUTES_AT + 1] |= _APPEND_TIME_BIT
    data[_MAX_TIMESTAMP_AT : _MAX_TIMESTAMP_AT + 8] = time.to_bytes(8, "big", signed=True)
    data[_CRC_AT : _CRC_AT + 4] = crc32c(data[_ATTRIBUTES_AT:]).to_bytes(4, "big")
    return data, time
