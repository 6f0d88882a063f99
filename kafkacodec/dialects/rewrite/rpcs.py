"""The group calls of the "Client Rewrite" proposal, and the error codes chosen here: the text names none."""

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
    """Error codes. 0 is success, and any other number is an error, as in the text; the numbers are a choice."""

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
    """A call or its answer: the body from the version on. The text has no request keys and no frame around it."""

    __slots__ = ()

    def encode(self, version: int = 0) -> bytes:
        """The body as bytes. `version` chooses the layout, of which there is one; the field is what goes out.

        Raises:
            EncodeError: a value that does not fit; `path` names the field.
        """
        return super().encode(version)

    @classmethod
    def decode(cls, data: Any, version: int = 0, start: int = 0) -> Self:
        """The message that all of `data` (any buffer) stands for.

        Raises:
            DecodeError: bytes that are no such message; `position` and `path` name the place.
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
