"""The group calls of the "Client Rewrite" proposal, and its membership protocol.

The calls are classes such as `Heartbeat`; `GroupController` and `GroupMember` are the two sides of the protocol,
without I/O. The proposal was never implemented: docs/dialects/rewrite.md lists the choices made where its text is
silent.
"""

from kafkacodec.dialects.rewrite.controller import Broker, GroupController, Reply
from kafkacodec.dialects.rewrite.frames import (
    API_KEYS,
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    Request,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
)
from kafkacodec.dialects.rewrite.groups import NO_OFFSET, Group, Member, Partition, Strategy
from kafkacodec.dialects.rewrite.member import (
    Action,
    Assigned,
    Failed,
    GroupMember,
    MemberState,
    Rewound,
    Send,
    Stop,
)
from kafkacodec.dialects.rewrite.rpcs import (
    CommitOffsets,
    CommitOffsetsResponse,
    CreateGroup,
    CreateGroupResponse,
    DeleteGroup,
    DeleteGroupResponse,
    ErrorCode,
    FetchOffsets,
    FetchOffsetsResponse,
    Heartbeat,
    HeartbeatResponse,
    ListGroups,
    ListGroupsResponse,
    RegisterConsumer,
    RegisterConsumerResponse,
    RewindConsumer,
    RewindConsumerResponse,
    Rpc,
)

__all__ = [
    "API_KEYS",
    "MAX_REPLY_BYTES",
    "MAX_REQUEST_BYTES",
    "NO_OFFSET",
    "Action",
    "Assigned",
    "Broker",
    "CommitOffsets",
    "CommitOffsetsResponse",
    "CreateGroup",
    "CreateGroupResponse",
    "DeleteGroup",
    "DeleteGroupResponse",
    "ErrorCode",
    "Failed",
    "FetchOffsets",
    "FetchOffsetsResponse",
    "Group",
    "GroupController",
    "GroupMember",
    "Heartbeat",
    "HeartbeatResponse",
    "ListGroups",
    "ListGroupsResponse",
    "Member",
    "MemberState",
    "Partition",
    "RegisterConsumer",
    "RegisterConsumerResponse",
    "Reply",
    "Request",
    "RewindConsumer",
    "RewindConsumerResponse",
    "Rewound",
    "Rpc",
    "Send",
    "Stop",
    "Strategy",
    "decode_reply",
    "decode_request",
    "encode_reply",
    "encode_request",
]


def __dir__() -> list[str]:
    return list(__all__)
