"""The records of Kafka's internal topics, and control records.

A coordinator record's key starts with an int16 record type, its value with an int16 version. A metadata record starts
with three unsigned varints: frame version, record type, version (KIP-631). A control record's key is an int16 version
and an int16 type; its value starts with an int16 version (KIP-98, KIP-595, KIP-630, KIP-853).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kafkacodec.errors import CorruptRecord, DecodeError, Truncated, UnsupportedVersion
from kafkacodec.messages.registry import message_class, names_in
from kafkacodec.records._varint import decode_uvarint

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
]

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
    record_type, version, at = _metadata_header(value)
    cls = _metadata_types().get(record_type)
    return None if cls is None else _decode(cls, value, version, at)


def _metadata_header(value: Any) -> tuple[int, int, int]:
    """Record type, version, and where the fields start."""
    frame_version, at = decode_uvarint(value, 0)
    if frame_version not in _FRAME_VERSIONS:
        raise CorruptRecord(f"unknown metadata frame version {frame_version}", position=0)
    record_type, at = decode_uvarint(value, at)
    version, at = decode_uvarint(value, at)
    return record_type, version, at


INTERNAL_TOPICS: dict[str, Coordinator | None] = {
    "__consumer_offsets": "group",
    "__transaction_state": "transaction",
    "__share_group_state": "share",
    "__cluster_metadata": None,
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


# By number: the type, the message in the value, and where its fields start: the version before those of a transaction
# marker is not one of them.
_CONTROL_TYPES = {
    0: ("ABORT", "EndTxnMarker", 2),
    1: ("COMMIT", "EndTxnMarker", 2),
    2: ("LEADER_CHANGE", "LeaderChangeMessage", 0),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord", 0),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord", 0),
    5: ("KRAFT_VERSION", "KRaftVersionRecord", 0),
    6: ("KRAFT_VOTERS", "VotersRecord", 0),
}


def decode_control_record(key: Any, value: Any) -> ControlRecord | None:
    """The record of a control batch; None if its type or its version is unknown, or its bytes are something else."""
    try:
        found = _CONTROL_TYPES.get(_int16(memoryview(key)[2:], "control type")) if key is not None else None
        if found is None:
            return None
        version = _int16(value, "version")
        kind, name, start = found
        return ControlRecord(kind, version, message_class(name).decode(value, version, start))
    except (DecodeError, UnsupportedVersion):
        return None


def _decode(cls: type[Message], value: Any, version: int, start: int) -> Message:
    try:
        return cls.decode(value, version, start)
    except UnsupportedVersion as error:
        raise DecodeError(str(error), position=0) from None


def _int16(data: Any, what: str) -> int:
    if data is None or len(data) < 2:
        raise Truncated(f"a {what} needs 2 bytes, {len(data or b'')} left", position=0)
    return int.from_bytes(bytes(memoryview(data)[:2]), "big", signed=True)
