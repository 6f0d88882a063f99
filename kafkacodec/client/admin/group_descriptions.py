"""Descriptions of groups of all types, as brokers return them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

from kafkacodec import messages
from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import group_coordinator
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import GROUP_ID_NOT_FOUND, BrokerError, DecodeError
from kafkacodec.messages.consumer_protocol import decode_assignment, decode_subscription
from kafkacodec.messages.keys import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, SHARE_GROUP_DESCRIBE
from kafkacodec.protocol.terms import authorized_operations

__all__ = ["DESCRIBES", "GROUP_ID_NOT_FOUND", "GroupDescription", "GroupMember", "GroupType"]

GroupType = Literal["classic", "consumer", "share"]

_DEAD: Final = "Dead"  # the state by which DescribeGroups before version 6 reports a missing classic group


class GroupMember(NamedTuple):
    """A member of a group.

    `epoch` is -1 and `target_assignment` None in classic groups; their `subscription` and `assignment` are None unless
    they are in the format of Kafka's consumers. The broker matches `subscription_pattern` against topics.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None
    epoch: int
    subscription: list[str] | None
    subscription_pattern: str | None
    assignment: list[TopicPartition] | None
    target_assignment: list[TopicPartition] | None


class GroupDescription(NamedTuple):
    """A group with its members.

    `state` is Kafka's term, such as ``Stable``, ``Empty`` or ``Reconciling``. `assignor` is the classic protocol or
    the assignor's name. `epoch` is -1 for classic groups. `authorized_operations` is None unless requested.
    """

    group_id: str
    type: GroupType
    state: str
    protocol_type: str
    assignor: str
    epoch: int
    coordinator: int
    members: list[GroupMember]
    authorized_operations: frozenset[str] | None


Described: TypeAlias = "Iterable[tuple[str, GroupDescription | BrokerError]]"


@dataclass(frozen=True)
class Describe:
    """The requests and responses for groups of one type."""

    api_key: int
    request: Any
    read: Any

    def ask(self, operations: bool) -> Ask[str, GroupDescription]:
        def request(groups: list[str], version: int) -> Any:
            return self.request(groups, operations)

        classic = self.api_key == DESCRIBE_GROUPS
        return Ask(
            api_key=self.api_key,
            request=request,
            read=self.read,
            place=group_coordinator,
            least=3 if operations and classic else 0,
            needs="include_authorized_operations" if operations and classic else "",
        )


def _ask_classic(groups: list[str], operations: bool) -> Any:
    return messages.DescribeGroupsRequest(groups=groups, include_authorized_operations=operations)


def _classic(keys: list[str], answer: Answer) -> Described:
    for group in answer.message.groups:
        code = group.error_code or (GROUP_ID_NOT_FOUND if group.group_state == _DEAD else 0)
        refused = refusal(code, group.error_message)
        yield (
            group.group_id,
            refused
            or GroupDescription(
                group.group_id,
                "classic",
                group.group_state,
                group.protocol_type,
                group.protocol_data,
                -1,
                answer.node,
                [_classic_member(member, group.protocol_type) for member in group.members],
                authorized_operations(group.authorized_operations),
            ),
        )


def _classic_member(member: Any, protocol_type: str) -> GroupMember:
    topics: list[str] | None = None
    rack, assigned = None, None
    if protocol_type == "consumer":  # a member may still send anything
        with suppress(DecodeError):
            subscription = decode_subscription(member.member_metadata)
            topics, rack = list(subscription.topics), subscription.rack_id
        with suppress(DecodeError):
            assigned = [
                TopicPartition(entry.topic, number)
                for entry in decode_assignment(member.member_assignment).assigned_partitions
                for number in entry.partitions
            ]
    return GroupMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        rack,
        -1,
        topics,
        None,
        assigned,
        None,
    )


def _ask_consumer(groups: list[str], operations: bool) -> Any:
    return messages.ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=operations)


def _ask_share(groups: list[str], operations: bool) -> Any:
    return messages.ShareGroupDescribeRequest(group_ids=groups, include_authorized_operations=operations)


def _consumer(keys: list[str], answer: Answer) -> Described:
    return _modern("consumer", answer)


def _share(keys: list[str], answer: Answer) -> Described:
    return _modern("share", answer)


def _modern(kind: Literal["consumer", "share"], answer: Answer) -> Described:
    """Read groups of the protocols in which the broker assigns partitions."""
    for group in answer.message.groups:
        yield (
            group.group_id,
            refusal(group.error_code, group.error_message)
            or GroupDescription(
                group.group_id,
                kind,
                group.group_state,
                kind,
                group.assignor_name,
                group.group_epoch,
                answer.node,
                [_modern_member(member) for member in group.members],
                authorized_operations(group.authorized_operations),
            ),
        )


def _modern_member(member: Any) -> GroupMember:
    target = getattr(member, "target_assignment", None)
    return GroupMember(
        member.member_id,
        getattr(member, "instance_id", None),
        member.client_id,
        member.client_host,
        member.rack_id,
        member.member_epoch,
        list(member.subscribed_topic_names),
        getattr(member, "subscribed_topic_regex", None) or None,
        _assigned(member.assignment),
        None if target is None else _assigned(target),
    )


def _assigned(assignment: Any) -> list[TopicPartition]:
    return [
        TopicPartition(entry.topic_name, number) for entry in assignment.topic_partitions for number in entry.partitions
    ]


# In this order: every broker has the first, and answers that groups of other types do not exist.
DESCRIBES: Final = (
    Describe(DESCRIBE_GROUPS, _ask_classic, _classic),
    Describe(CONSUMER_GROUP_DESCRIBE, _ask_consumer, _consumer),
    Describe(SHARE_GROUP_DESCRIBE, _ask_share, _share),
)
