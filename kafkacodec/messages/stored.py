"""The records of Kafka's internal topics: coordinator records and the metadata log.

A coordinator record's key starts with an int16 record type, its value with an int16 version. A metadata record starts
with three unsigned varints: frame version, record type, version (KIP-631).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from kafkacodec.errors import CorruptRecord, DecodeError, Truncated, UnsupportedVersion
from kafkacodec.messages.registry import message_class, names_in
from kafkacodec.records._varint import decode_uvarint

if TYPE_CHECKING:
    from kafkacodec.messages.classes import Message

__all__ = ["decode_coordinator_record", "decode_metadata_record"]

Coordinator = Literal["group", "transaction", "share"]
_FRAME_VERSIONS = (0, 1)


@cache
def _coordinator_types(coordinator: Coordinator) -> dict[int, tuple[type[Message], type[Message]]]:
    """Key class and value class by record type."""
    classes = [message_class(name) for name in names_in(coordinator)]
    keys = {cls.api_key: cls for cls in classes if cls._message.kind == "coordinator-key"}
    values = {cls.api_key: cls for cls in classes if cls._message.kind == "coordinator-value"}
    types = {kind: (keys[kind], values[kind]) for kind in keys if kind is not None}
    if coordinator == "group":
        # Offset commits under the oldest record type have values of every version too.
        types[0] = (types[0][0], message_class("OffsetCommitValue"))
    return types


@cache
def _metadata_types() -> dict[int, type[Message]]:
    classes = [message_class(name) for name in names_in("metadata")]
    return {cls.api_key: cls for cls in classes if cls.api_key is not None}


def decode_coordinator_record(coordinator: Coordinator, key: Any, value: Any) -> tuple[Message, Message | None] | None:
    """Key and value of a record in ``__consumer_offsets`` (``group``), ``__transaction_state`` (``transaction``) or
    ``__share_group_state`` (``share``). The value of a tombstone is None.

    Returns None for an unknown record type. Raises DecodeError for an invalid record or an unknown version.
    """
    found = _coordinator_types(coordinator).get(_int16(key, "record type"))
    if found is None:
        return None
    key_class, value_class = found
    made_key = key_class.decode(key, 0, 2)
    if value is None:
        return made_key, None
    return made_key, _decode(value_class, value, _int16(value, "version"), 2)


def decode_metadata_record(value: Any) -> Message | None:
    """The message in a record value of ``__cluster_metadata`` or of a snapshot; None for an unknown record type.

    Raises DecodeError as `decode_coordinator_record`.
    """
    frame_version, at = decode_uvarint(value, 0)
    if frame_version not in _FRAME_VERSIONS:
        raise CorruptRecord(f"unknown metadata frame version {frame_version}", position=0)
    record_type, at = decode_uvarint(value, at)
    version, at = decode_uvarint(value, at)
    cls = _metadata_types().get(record_type)
    return None if cls is None else _decode(cls, value, version, at)


def _decode(cls: type[Message], value: Any, version: int, start: int) -> Message:
    try:
        return cls.decode(value, version, start)
    except UnsupportedVersion as error:
        raise DecodeError(str(error), position=0) from None


def _int16(data: Any, what: str) -> int:
    if data is None or len(data) < 2:
        raise Truncated(f"a {what} needs 2 bytes, {len(data or b'')} left", position=0)
    return int.from_bytes(bytes(memoryview(data)[:2]), "big", signed=True)
