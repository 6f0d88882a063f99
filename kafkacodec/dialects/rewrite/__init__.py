"""The group calls of the "Client Rewrite" proposal, and its membership protocol.

The calls are classes such as `Heartbeat`; `GroupController` and `GroupMember` are the two sides of the protocol,
without I/O. `Consumer`, `Producer` and `KafkaConnection` are clients, those in `aio` for asyncio. Nobody implemented
the proposal; docs/dialects/rewrite.md lists the choices for points that its text leaves open.
"""

from typing import TYPE_CHECKING

from kafkacodec.dialects.rewrite.controller import Broker, GroupController, Reply
from kafkacodec.dialects.rewrite.errors import GroupError
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
    CreateEphemeralGroup,
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
from kafkacodec.lazy import at_first_use

if TYPE_CHECKING:
    from kafkacodec.dialects.rewrite import aio as aio
    from kafkacodec.dialects.rewrite.aio import MessageAndOffset as MessageAndOffset
    from kafkacodec.dialects.rewrite.blocking import (
        Consumer as Consumer,
        KafkaConnection as KafkaConnection,
    )
    from kafkacodec.dialects.rewrite.sending import (
        KafkaMessage as KafkaMessage,
        Producer as Producer,
        SendResponse as SendResponse,
    )

# The clients, which need an event loop: public name -> its module; "" for a module.
_HOMES = {
    "Consumer": "blocking",
    "KafkaConnection": "blocking",
    "KafkaMessage": "sending",
    "MessageAndOffset": "aio",
    "Producer": "sending",
    "SendResponse": "sending",
    "aio": "",
}

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
    "Consumer",
    "CreateEphemeralGroup",
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
    "GroupError",
    "GroupMember",
    "Heartbeat",
    "HeartbeatResponse",
    "KafkaConnection",
    "KafkaMessage",
    "ListGroups",
    "ListGroupsResponse",
    "Member",
    "MemberState",
    "MessageAndOffset",
    "Partition",
    "Producer",
    "RegisterConsumer",
    "RegisterConsumerResponse",
    "Reply",
    "Request",
    "RewindConsumer",
    "RewindConsumerResponse",
    "Rewound",
    "Rpc",
    "Send",
    "SendResponse",
    "Stop",
    "Strategy",
    "aio",
    "decode_reply",
    "decode_request",
    "encode_reply",
    "encode_request",
]


__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
