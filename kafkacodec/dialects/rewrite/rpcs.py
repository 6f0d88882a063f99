"""The group calls of the "Client Rewrite" proposal, and error codes, for which its text has no numbers."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Any, Self

from kafkacodec.messages.classes import Message, build

__all__ = [
    "CreateGroup",
    "CreateGroupResponse",
    "DeleteGroup",
    "DeleteGroupResponse",
    "ErrorCode",
    "Heartbeat",
    "HeartbeatResponse",
    "ListGroups",
    "ListGroupsResponse",
    "RegisterConsumer",
    "RegisterConsumerResponse",
    "RewindConsumer",
    "RewindConsumerResponse",
    "Rpc",
]


class ErrorCode(IntEnum):
    """Error codes. By the text 0 is success and any other number an error; the other numbers are chosen here."""

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
CreateGroupResponse = _RPCS["CreateGroupResponse"]
DeleteGroup = _RPCS["DeleteGroup"]
DeleteGroupResponse = _RPCS["DeleteGroupResponse"]
RegisterConsumer = _RPCS["RegisterConsumer"]
RegisterConsumerResponse = _RPCS["RegisterConsumerResponse"]
ListGroups = _RPCS["ListGroups"]
ListGroupsResponse = _RPCS["ListGroupsResponse"]
RewindConsumer = _RPCS["RewindConsumer"]
RewindConsumerResponse = _RPCS["RewindConsumerResponse"]
