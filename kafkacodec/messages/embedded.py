"""Messages inside messages: record sets, and what members of a consumer group send each other.

`expand` is for people and tests: it makes a Python object per record.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kafkacodec.errors import DecodeError, EncodeError, KafkaCodecError
from kafkacodec.messages import consumer_protocol as consumer
from kafkacodec.messages.stored import decode_control_record
from kafkacodec.records.decode import decode

if TYPE_CHECKING:
    from kafkacodec.messages.classes import Message
    from kafkacodec.messages.model import StructSpec
    from kafkacodec.records.columns import RecordColumns

__all__ = ["expand", "expand_records"]

MAX_BYTES = 256 << 20
"""Limit on the memory of the columns of one record set; a larger one stays bytes."""


def expand(message: Message, version: int | None = None) -> dict[str, Any]:
    """As ``message.to_dict()``, with the structures inside bytes as dicts and lists; with `version`, only its fields.

    - Fields of type records (Produce, Fetch) become what `expand_records` returns.
    - Subscriptions and assignments of consumers (JoinGroup, SyncGroup, DescribeGroups, ``GroupMetadataValue``) become
      dicts with ``version``; in them, ``user_data`` of the assignors ``sticky`` and ``cooperative-sticky`` too. Before
      JoinGroup 7 and SyncGroup 5 the protocol type is not in the message; then only bytes that are certainly of the
      consumer protocol are expanded.

    Anything that is not what it should be stays bytes.
    """
    values = message.to_dict()
    if version is not None:
        values = _of_version(values, message._spec, version)
    _expand_record_sets(values, message._spec)
    expander = _GROUP_MESSAGES.get(type(message).__name__)
    if expander is not None:
        expander(values)
    return values


def expand_records(data: Any) -> list[dict[str, Any]] | dict[str, Any]:
    """The records of a record set, with offset, timestamp (ms), timestamp_type, key, value and headers.

    A control record has ``control`` too: its type and fields, with ``producer_id`` and ``producer_epoch`` of the
    transaction. If bytes are left over, after a partial batch at the end or damage, the result is a dict with
    ``records``, ``rest`` (these bytes) and ``error`` (None for a partial batch).
    """
    try:
        columns = decode(data, batch_columns=True, include_control=True, on_error="stop", max_total_bytes=MAX_BYTES)
    except KafkaCodecError as error:
        return {"records": [], "rest": bytes(data), "error": str(error)}
    records = _records(columns)
    error_text = str(columns.problems[0].exception) if columns.problems else None
    end = columns.problems[0].position if columns.problems else columns.consumed
    rest = bytes(memoryview(data).cast("B")[end:])
    return {"records": records, "rest": rest, "error": error_text} if rest or error_text else records


def _records(columns: RecordColumns) -> list[dict[str, Any]]:
    made = []
    batches = zip(*(columns[name].tolist() for name in ("is_control", "producer_id", "producer_epoch")), strict=True)
    for record, (is_control, producer_id, producer_epoch) in zip(columns.records(), batches, strict=True):
        fields = record._asdict()
        fields["headers"] = [{"key": key, "value": value} for key, value in record.headers]
        control = decode_control_record(record.key, record.value) if is_control else None
        if control is not None:
            fields["control"] = control.to_dict() | {"producer_id": producer_id, "producer_epoch": producer_epoch}
        made.append(fields)
    return made


def _of_version(values: dict[str, Any], spec: StructSpec, version: int) -> dict[str, Any]:
    """Without the fields that the version lacks."""
    kept = dict(values)
    for field in spec.fields:
        value = values[field.attribute]
        if version not in field.versions:
            del kept[field.attribute]
        elif field.struct is not None and value is not None:
            kept[field.attribute] = (
                [_of_version(inner, field.struct, version) for inner in value]
                if field.array
                else _of_version(value, field.struct, version)
            )
    return kept


def _expand_record_sets(values: dict[str, Any], spec: StructSpec) -> None:
    """Replace the fields of type records, at any depth."""
    for field in spec.fields:
        value = values.get(field.attribute)
        if value is None:
            continue
        if field.type == "records":
            values[field.attribute] = expand_records(value)
        elif field.struct is not None:
            for inner in value if field.array else [value]:
                _expand_record_sets(inner, field.struct)


def _join_request(values: dict[str, Any]) -> None:
    for protocol in values["protocols"]:
        _replace(protocol, "metadata", _subscription, values["protocol_type"], protocol["name"])


def _join_response(values: dict[str, Any]) -> None:
    for member in values["members"]:
        _replace(member, "metadata", _subscription, values["protocol_type"], values["protocol_name"])


def _sync_request(values: dict[str, Any]) -> None:
    for assignment in values["assignments"]:
        _replace(assignment, "assignment", _assignment, values["protocol_type"], values["protocol_name"])


def _sync_response(values: dict[str, Any]) -> None:
    _replace(values, "assignment", _assignment, values["protocol_type"], values["protocol_name"])


def _described_groups(values: dict[str, Any]) -> None:
    for group in values["groups"]:
        for member in group["members"]:
            _replace(member, "member_metadata", _subscription, group["protocol_type"], group["protocol_data"])
            _replace(member, "member_assignment", _assignment, group["protocol_type"], group["protocol_data"])


def _stored_group(values: dict[str, Any]) -> None:
    for member in values["members"]:
        _replace(member, "subscription", _subscription, values["protocol_type"], values["protocol"])
        _replace(member, "assignment", _assignment, values["protocol_type"], values["protocol"])


_GROUP_MESSAGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "JoinGroupRequest": _join_request,
    "JoinGroupResponse": _join_response,
    "SyncGroupRequest": _sync_request,
    "SyncGroupResponse": _sync_response,
    "DescribeGroupsResponse": _described_groups,
    "GroupMetadataValue": _stored_group,
}


def _replace(
    values: dict[str, Any],
    name: str,
    read: Callable[[bytes, bool, str | None], dict[str, Any]],
    protocol_type: str | None,
    assignor: str | None,
) -> None:
    """Replace bytes by their fields if the protocol type is consumer, or unknown."""
    data = values[name]
    if not data or protocol_type not in ("consumer", None):
        return
    with suppress(DecodeError, EncodeError):
        values[name] = read(data, protocol_type is None, assignor)


def _subscription(data: bytes, uncertain: bool, assignor: str | None) -> dict[str, Any]:
    found = consumer.decode_subscription(data)
    version = int.from_bytes(data[:2], "big")
    if uncertain and (version > 3 or consumer.encode_subscription(found, version) != data):
        raise DecodeError("not certainly a subscription")
    fields = {"version": version, **_of_version(found.to_dict(), found._spec, min(version, 3))}
    if found.user_data is not None and assignor in ("sticky", "cooperative-sticky"):
        with suppress(DecodeError):
            sticky = consumer.decode_sticky_user_data(found.user_data, cooperative=assignor != "sticky")
            fields["user_data"] = sticky._asdict()
    return fields


def _assignment(data: bytes, uncertain: bool, assignor: str | None) -> dict[str, Any]:
    found = consumer.decode_assignment(data)
    version = int.from_bytes(data[:2], "big")
    if uncertain and (version > 3 or consumer.encode_assignment(found, version) != data):
        raise DecodeError("not certainly an assignment")
    return {"version": version, **_of_version(found.to_dict(), found._spec, min(version, 3))}
