"""The records of Kafka's internal topics, and control records.

A coordinator record's key starts with an int16 record type, its value with an int16 version. A metadata record starts
with three unsigned varints: frame version, record type, version (KIP-631). A control record's key is an int16 version
and an int16 type; its value starts with an int16 version (KIP-98, KIP-595, KIP-630, KIP-853).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from kafkacodec import internal_records
from kafkacodec._core._buffer import octets
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import CorruptRecord, DecodeError, Truncated, UnsupportedVersion
from kafkacodec.internal_records import CLUSTER_METADATA, ControlType, Coordinator
from kafkacodec.messages.registry import message_class, names_in
from kafkacodec.records._varint import decode_uvarint, encode_uvarint

if TYPE_CHECKING:
    from kafkacodec.messages.classes import Message

__all__ = [
    "INTERNAL_TOPICS",
    "ControlRecord",
    "StoredRecord",
    "decode_control_record",
    "decode_coordinator_record",
    "decode_internal_record",
    "decode_metadata_record",
    "encode_control_record",
    "encode_coordinator_record",
    "encode_internal_record",
    "encode_metadata_record",
]

_FRAME_VERSIONS = (0, 1)  # brokers write 1; 0 is of previews of KRaft (Kafka 2.8)
_KEY_VERSION = 0  # the only one of the fields of a coordinator record's key, and of a control record's key


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
    made_key = key_class.decode(key, _KEY_VERSION, 2)
    if value is None:
        return made_key, None
    return made_key, _decode(value_class, value, _int16(value, "version"), 2)


def encode_coordinator_record(
    coordinator: Coordinator, key: Message, value: Message | None, version: int | None
) -> tuple[bytes, bytes | None]:
    """Key and value of a record as `decode_coordinator_record` takes them.

    Args:
        coordinator: group, transaction or share.
        key: the record's key, a message such as ``OffsetCommitKey``.
        value: the message that belongs to this key; None for a tombstone.
        version: that of the value; None for a tombstone.

    Raises:
        EncodeError, UnsupportedVersion: as for `Message.encode`.
        TypeError: a key of something else, a value that does not belong to it, a value without a version.
    """
    kind = getattr(key, "api_key", None)
    found = None if kind is None else _coordinator_types(coordinator).get(kind)
    if kind is None or found is None or type(key) is not found[0]:
        raise TypeError(f"not a key of a {coordinator} coordinator's record: {type(key).__name__}")
    stored_key = kind.to_bytes(2, "big") + key.encode(_KEY_VERSION)
    if value is None:
        return stored_key, None
    if type(value) is not found[1]:
        raise TypeError(f"not the value of a record with a {type(key).__name__}: {type(value).__name__}")
    if version is None:
        raise TypeError(f"the version of the {type(value).__name__} is missing")
    return stored_key, _int16_of(value, version) + value.encode(version)


def decode_metadata_record(value: Any) -> Message | None:
    """The message in a record value of ``__cluster_metadata`` or of a snapshot; None for an unknown record type.

    Raises DecodeError as `decode_coordinator_record`.
    """
    record_type, version, at = _metadata_header(value)
    cls = _metadata_types().get(record_type)
    return None if cls is None else _decode(cls, value, version, at)


def encode_metadata_record(record: Message, version: int) -> bytes:
    """The value of a record as `decode_metadata_record` takes it, such as of a ``TopicRecord``; the key is null.

    Raises:
        EncodeError, UnsupportedVersion: as for `Message.encode`.
        TypeError: not a metadata record.
    """
    kind = getattr(record, "api_key", None)
    if kind is None or _metadata_types().get(kind) is not type(record):
        raise TypeError(f"not a metadata record: {type(record).__name__}")
    body = record.encode(version)
    return encode_uvarint(_FRAME_VERSIONS[-1]) + encode_uvarint(kind) + encode_uvarint(version) + body


def _metadata_header(value: Any) -> tuple[int, int, int]:
    """Record type, version, and where the fields start."""
    frame_version, at = decode_uvarint(value, 0)
    if frame_version not in _FRAME_VERSIONS:
        raise CorruptRecord(f"unknown metadata frame version {frame_version}", position=0)
    record_type, at = decode_uvarint(value, at)
    version, at = decode_uvarint(value, at)
    return record_type, version, at


INTERNAL_TOPICS: dict[str, Coordinator | None] = {
    name: topic.coordinator
    for name, topic in internal_records.INTERNAL_TOPICS.items()
    if topic.coordinator or name == CLUSTER_METADATA
}
"""The topics that `decode_internal_record` decodes, and the coordinator that writes them; None: a controller."""


class StoredRecord(NamedTuple):
    """A record of an internal topic.

    Attributes:
        key (Message | None): None in the metadata log.
        value (Message | None): None for a tombstone.
        version (int | None): that of the value; None for a tombstone.
    """

    key: Message | None
    value: Message | None
    version: int | None


def decode_internal_record(topic: str | None, key: Any, value: Any) -> StoredRecord | None:
    """A record of one of `INTERNAL_TOPICS`; None for another topic or an unknown record type.

    Raises:
        DecodeError: an invalid record or an unknown version.
    """
    if topic not in INTERNAL_TOPICS:
        return None
    coordinator = INTERNAL_TOPICS[topic]
    if coordinator is None:
        found = decode_metadata_record(b"" if value is None else value)
        return None if found is None else StoredRecord(None, found, _metadata_header(value)[1])
    pair = decode_coordinator_record(coordinator, key, value)
    return None if pair is None else StoredRecord(*pair, None if value is None else _int16(value, "version"))


def encode_internal_record(topic: str, record: StoredRecord) -> tuple[bytes | None, bytes | None]:
    """Key and value of a record of one of `INTERNAL_TOPICS`, the reverse of `decode_internal_record`.

    A metadata record gets the frame version that brokers write (1), also where a preview of KRaft had written 0.

    Raises:
        EncodeError, UnsupportedVersion: as for `Message.encode`.
        TypeError: a key or a value that records of this topic do not have, a value without a version.
        ValueError: another topic.
    """
    if topic not in INTERNAL_TOPICS:
        raise ValueError(f"topic must be one of {', '.join(INTERNAL_TOPICS)}, got {topic!r}")
    coordinator = INTERNAL_TOPICS[topic]
    if coordinator is not None:
        if record.key is None:
            raise TypeError(f"a record of {topic} has a key")
        return encode_coordinator_record(coordinator, record.key, record.value, record.version)
    if record.key is not None or record.value is None or record.version is None:
        raise TypeError(f"a record of {topic} has a value with a version, and no key")
    return None, encode_metadata_record(record.value, record.version)


class ControlRecord(NamedTuple):
    """A control record.

    Attributes:
        type (str): ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION or KRAFT_VOTERS.
        version (int): that of the value.
        value (Message): its fields.
    """

    type: str
    version: int
    value: Message

    def to_dict(self) -> dict[str, Any]:
        """The type, and the fields of the value, as plain values."""
        return {"type": self.type, "version": self.version} | self.value.to_dict()


# The message in the value, and where its fields start: the version before those of a transaction marker is not one of
# them.
_CONTROL_VALUES = {
    ControlType.ABORT: ("EndTxnMarker", 2),
    ControlType.COMMIT: ("EndTxnMarker", 2),
    ControlType.LEADER_CHANGE: ("LeaderChangeMessage", 0),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeaderRecord", 0),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooterRecord", 0),
    ControlType.KRAFT_VERSION: ("KRaftVersionRecord", 0),
    ControlType.KRAFT_VOTERS: ("VotersRecord", 0),
}


def decode_control_record(key: Any, value: Any) -> ControlRecord | None:
    """The record of a control batch; None if its type or its version is unknown, or its bytes are something else."""
    try:
        number = _int16(memoryview(key)[2:], "control type") if key is not None else -1
        if number not in _CONTROL_VALUES:
            return None
        kind, version = ControlType(number), _int16(value, "version")
        name, start = _CONTROL_VALUES[kind]
        return ControlRecord(kind.name, version, message_class(name).decode(value, version, start))
    except (DecodeError, UnsupportedVersion):
        return None


def encode_control_record(record: ControlRecord) -> tuple[bytes, bytes]:
    """Key and value of a record of a control batch, the reverse of `decode_control_record`.

    Raises:
        EncodeError, UnsupportedVersion: as for `Message.encode`.
        TypeError: the value is not the message of this type.
        ValueError: an unknown type, a value whose own version field is another.
    """
    if record.type not in ControlType.__members__:
        raise ValueError(f"type must be one of {', '.join(ControlType.__members__)}, got {record.type!r}")
    kind = ControlType[record.type]
    name, start = _CONTROL_VALUES[kind]
    if type(record.value) is not message_class(name):
        raise TypeError(f"the value of a {record.type} record is a {name}, not a {type(record.value).__name__}")
    value = record.value.encode(record.version)
    version = _int16_of(record.value, record.version)
    if start:
        value = version + value
    elif value[:2] != version:
        raise ValueError(f"the version of the {record.type} record is {record.version}, its value has another")
    return _KEY_VERSION.to_bytes(2, "big") + kind.to_bytes(2, "big"), value


def _decode(cls: type[Message], value: Any, version: int, start: int) -> Message:
    try:
        return cls.decode(value, version, start)
    except UnsupportedVersion as error:
        raise DecodeError(str(error), position=0) from None


def _int16_of(message: Message, version: int) -> bytes:
    """A version as it is stored."""
    message.require_version(version)
    return int(version).to_bytes(2, "big")


def _int16(data: Any, what: str) -> int:
    view = octets(b"" if data is None else data)
    if len(view) < 2:
        raise Truncated(f"a {what} needs 2 bytes, {len(view)} left", position=0)
    return int.from_bytes(bytes(view[:2]), "big", signed=True)
