"""Checks of a produced batch, and changes to it, before it is appended.

The checks have the same order as in Apache Kafka, since the order shows in the answers
(`org.apache.kafka.storage.internals.log.LogValidator`, `ProduceRequest.validateRecords`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from kafkacodec import errors
from kafkacodec.broker.topics._head import CORRUPT, NO_BATCH, Head, Produced, glance, read_head
from kafkacodec.datatypes import dataclass, field
from kafkacodec.errors import DecodeError, KafkaCodecError
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
        early: whether the check is of the request alone, so that it comes before those of acks and of the topic.
        late: whether the check read the log, so that the answer has its start.
    """

    code: int
    text: str | None = None
    records: list[tuple[int, str]] = field(default_factory=list)
    early: bool = False
    late: bool = False


def accept(data: memoryview | None, config: TopicConfig, version: int, now: float) -> Produced | Refused:
    """Check the records of a partition in a Produce request of version 3 or later.

    Args:
        data: from the request. It changes a batch whose header has another kind of time, or another largest timestamp
            than its records, in place.
        config: of the topic.
        version: of the request.
        now: milliseconds since 1970.
    """
    begins = NO_BATCH if data is None else glance(data)
    if data is None or begins == NO_BATCH:
        return Refused(errors.INVALID_RECORD, early=True)
    if begins == CORRUPT:
        return Refused(errors.CORRUPT_MESSAGE, early=True)
    try:
        head, after = read_head(data)
    except DecodeError:
        return Refused(errors.CORRUPT_MESSAGE)
    if head is None:
        return Refused(errors.CORRUPT_MESSAGE)
    if config.takes_plain and head.is_plain and head.size <= config.max_message_bytes:
        largest = head.largest_timestamp
        if largest <= now + config.after_max_ms:
            return head.produced(data, largest, _NO_TIME)
    refused = _refuses_head(head, after, config, version)
    return refused or _checked(data if head.size == len(data) else data[: head.size], head, config, now)


def _refuses_head(head: Head, after: int, config: TopicConfig, version: int) -> Refused | None:
    """Refuse a batch for its header, or for what follows it; a part of another batch is left out."""
    if head.magic != _MAGIC:
        return Refused(errors.INVALID_RECORD, early=True)
    if head.codec >= _ZSTD and version < _ZSTD_FROM:
        is_known = head.codec == _ZSTD
        return Refused(errors.UNSUPPORTED_COMPRESSION_TYPE if is_known else errors.UNKNOWN_SERVER_ERROR, early=True)
    if after != NO_BATCH:
        return Refused(errors.CORRUPT_MESSAGE if after == CORRUPT else errors.INVALID_RECORD, early=True)
    if not head.crc_ok:
        return Refused(errors.CORRUPT_MESSAGE)
    if head.size > config.max_message_bytes:
        return Refused(errors.MESSAGE_TOO_LARGE)
    if head.codec > _ZSTD:
        return Refused(errors.UNKNOWN_SERVER_ERROR, late=True)
    return None


def _checked(data: memoryview, head: Head, config: TopicConfig, now: float) -> Produced | Refused:
    """Check what takes the records. The header gets their largest timestamp, whatever the producer wrote there."""
    if not head.is_sound:
        return Refused(errors.INVALID_RECORD, late=True)
    largest = head.largest_timestamp
    if head.codec or config.is_compacted or not _is_in_time(largest, head, config, now):
        try:
            with (_WITH_KEYS if config.is_compacted else _TIMES).decoder(data) as decoder:
                records = read_whole(decoder, "raise")
        except KafkaCodecError:
            return Refused(errors.INVALID_RECORD, late=True)
        times = _times(records)
        largest = int(times.max())
        refused = _refuses_records(records, times, head, config, now)
        if refused is not None:
            return refused
    elif not head.records_ok:
        return Refused(errors.INVALID_RECORD, late=True)
    if config.compression != "producer":
        wanted = cast(Codec, config.compression.replace("uncompressed", "none"))
        if wanted != CODECS[head.codec]:
            data = _recompressed(data, head, wanted, config)
            if len(data) > config.max_message_bytes:
                return Refused(errors.MESSAGE_TOO_LARGE)
    append_time = int(now) if config.has_append_time else _NO_TIME
    if config.has_append_time:
        largest = append_time
    if head.has_append_time != config.has_append_time or head.max_timestamp != largest:
        data = _stamped(data, largest, is_append_time=config.has_append_time)
    return head.produced(data, largest, append_time)


def _is_in_time(largest: int, head: Head, config: TopicConfig, now: float) -> bool:
    """Whether no timestamp can be wrong, so that they need not be looked at one by one."""
    if head.has_append_time and (config.has_append_time or largest == _NO_TIME):
        return False
    if config.has_append_time:
        return True
    return largest <= now + config.after_max_ms and config.before_max_ms >= _UNLIMITED


def _refuses_records(
    records: RecordColumns, times: npt.NDArray[np.int64], head: Head, config: TopicConfig, now: float
) -> Refused | None:
    """Refuse a batch with the errors of its records; an error of a key comes before that of a timestamp."""
    keyless: dict[int, str] = {}
    if config.is_compacted:
        text = "Compacted topic cannot accept message without key"
        keyless = {i: text for i, key in enumerate(records["key"]) if key is None}
    wrong = {i: text for i, text in _wrong_times(times, head, config, now).items() if i not in keyless}
    if not keyless and not wrong:
        return None
    first = next(iter((wrong or keyless).values()))
    code = errors.INVALID_TIMESTAMP if wrong else errors.INVALID_RECORD
    return Refused(code, first, sorted((keyless | wrong).items()), late=True)


def _wrong_times(times: npt.NDArray[np.int64], head: Head, config: TopicConfig, now: float) -> dict[int, str]:
    """The errors of timestamps, by the number of the record."""
    if _is_in_time(int(times.max()), head, config, now):
        return {}
    if head.has_append_time and (config.has_append_time or head.max_timestamp == _NO_TIME):
        return dict.fromkeys(range(len(times)), "only the broker gives records the time of the append")
    latest, earliest = now + config.after_max_ms, now - config.before_max_ms
    wrong = np.flatnonzero((times != _NO_TIME) & ((times > latest) | (times < earliest))).tolist()
    text = f"a timestamp is not within message.timestamp.before.max.ms and after.max.ms of {int(now)}"
    return dict.fromkeys(wrong, text)


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


def _stamped(data: memoryview, time: int, *, is_append_time: bool) -> memoryview:
    """The batch with another largest timestamp, which is or is not the time of the append."""
    if data.readonly:
        data = memoryview(bytearray(data))
    if is_append_time:
        data[_ATTRIBUTES_AT + 1] |= _APPEND_TIME_BIT
    else:
        data[_ATTRIBUTES_AT + 1] &= ~_APPEND_TIME_BIT & 0xFF
    data[_MAX_TIMESTAMP_AT : _MAX_TIMESTAMP_AT + 8] = time.to_bytes(8, "big", signed=True)
    data[_CRC_AT : _CRC_AT + 4] = crc32c(data[_ATTRIBUTES_AT:]).to_bytes(4, "big")
    return data
