"""The group calls of the "Client Rewrite" proposal, and error codes, for which its text has no numbers."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Any, Final, Self

from kafkacodec.messages.classes import Message, build

__all__ = [
    "ANSWERS",
    "CommitOffsets",
    "CommitOffsetsResponse",
    "CreateEphemeralGroup",
    "CreateGroup",
    "CreateGroupResponse",
    "DeleteGroup",
    "DeleteGroupResponse",
    "ErrorCode",
    "FetchOffsets",
    "FetchOffsetsResponse",
    "Heartbeat",
    "HeartbeatResponse",
    "ListGroups",
    "ListGroupsResponse",
    "RegisterConsumer",
    "RegisterConsumerResponse",
    "RewindConsumer",
    "RewindConsumerResponse",
    "Rpc",
    "echoed",
    "refusal",
]


class ErrorCode(IntEnum):
    """Error codes. In the text, 0 is success and any other number an error; this module chooses the numbers."""

    NONE = 0
    GROUP_CHANGES = 1
    UNKNOWN_GROUP = 2
    UNKNOWN_MEMBER = 3
    GROUP_EXISTS = 4
    GROUP_HAS_MEMBERS = 5
    CLIENT_ID_IN_USE = 6
    UNKNOWN_PARTITION = 7
    INVALID_REQUEST = 8
    LIMIT_EXCEEDED = 9
    REPLACED = 10
    NOT_OWNER = 11
    OFFSET_TOO_SMALL = 12
    NOT_CONTROLLER = 13
    CONTROLLER_UNREACHABLE = 14
    STORAGE_ERROR = 15


class Rpc(Message):
    """A call or its reply: the body, starting with the version. The text has no request keys and no frame."""

    __slots__ = ()

    def encode(self, version: int = 0) -> bytes:
        """The body as bytes. `version` selects the layout, of which there is one; the field `version` is encoded as is.

        Raises:
            EncodeError: a value of the wrong type or range; `path` names the field.
        """
        return super().encode(version)

    @classmethod
    def decode(cls, data: Any, version: int = 0, start: int = 0) -> Self:
        """Decodes `data` (any buffer) from `start` to its end.

        Raises:
            DecodeError: not a valid message, or bytes after it; `position` and `path` name the place.
        """
        return super().decode(data, version, start)


_RPCS: dict[str, Any] = build((Path(__file__).parent / "rpcs.kmsg").read_text("ascii"), __name__, Rpc)

Heartbeat = _RPCS["Heartbeat"]
HeartbeatResponse = _RPCS["HeartbeatResponse"]
CreateGroup = _RPCS["CreateGroup"]
CreateEphemeralGroup = _RPCS["CreateEphemeralGroup"]
CreateGroupResponse = _RPCS["CreateGroupResponse"]
DeleteGroup = _RPCS["DeleteGroup"]
DeleteGroupResponse = _RPCS["DeleteGroupResponse"]
RegisterConsumer = _RPCS["RegisterConsumer"]
RegisterConsumerResponse = _RPCS["RegisterConsumerResponse"]
ListGroups = _RPCS["ListGroups"]
ListGroupsResponse = _RPCS["ListGroupsResponse"]
RewindConsumer = _RPCS["RewindConsumer"]
RewindConsumerResponse = _RPCS["RewindConsumerResponse"]
CommitOffsets = _RPCS["CommitOffsets"]
CommitOffsetsResponse = _RPCS["CommitOffsetsResponse"]
FetchOffsets = _RPCS["FetchOffsets"]
FetchOffsetsResponse = _RPCS["FetchOffsetsResponse"]

ANSWERS: Final[dict[type[Rpc], type[Rpc]]] = {
    ListGroups: ListGroupsResponse,
    CreateGroup: CreateGroupResponse,
    CreateEphemeralGroup: CreateGroupResponse,
    DeleteGroup: DeleteGroupResponse,
    RegisterConsumer: RegisterConsumerResponse,
    Heartbeat: HeartbeatResponse,
    RewindConsumer: RewindConsumerResponse,
    CommitOffsets: CommitOffsetsResponse,
    FetchOffsets: FetchOffsetsResponse,
}
"""The class of the reply by that of the call."""


def echoed(call: Any) -> dict[str, Any]:
    """The fields of a reply that repeat those of the call."""
    names = ("version", "correlation_id", *_REPEATED.get(type(call), ()))
    return {name: getattr(call, name) for name in names}


def refusal(call: Any, code: int) -> Rpc:
    """The reply to a refused call; RewindConsumer has an error only for each partition."""
    fields = echoed(call)
    if isinstance(call, RewindConsumer):
        entry = RewindConsumerResponse.PartitionResult
        given: Any = call.new_offsets
        fields["actual_offsets"] = [
            entry(topic=o.topic, partition=o.partition, offset=o.offset, error_code=code) for o in given
        ]
    else:
        fields["error_code"] = code
    return ANSWERS[type(call)](**fields)


_REPEATED: Final[dict[type[Rpc], tuple[str, ...]]] = {
    ListGroups: ("client_id",),
    CreateGroup: ("consumer_group",),
    CreateEphemeralGroup: ("consumer_group",),
    RegisterConsumer: ("client_id", "consumer_group"),
    RewindConsumer: ("consumer_group",),
    CommitOffsets: ("consumer_group",),
    FetchOffsets: ("consumer_group",),
}
