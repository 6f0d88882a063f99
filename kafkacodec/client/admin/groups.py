"""Groups of all types: list, describe, delete, remove members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, get_args

from kafkacodec import messages
from kafkacodec.arguments import one_of
from kafkacodec.client.admin.group_descriptions import DESCRIBES, GROUP_ID_NOT_FOUND, GroupDescription
from kafkacodec.client.admin.job import Ask, refusal
from kafkacodec.client.admin.operations import Operations, as_rows, at_broker, group_coordinator, several
from kafkacodec.client.core.calls import Answer
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import BrokerError, ItemErrors, UnsupportedVersion, error
from kafkacodec.messages.keys import DELETE_GROUPS, LEAVE_GROUP, LIST_GROUPS

__all__ = ["GroupListing", "GroupOperations"]

_OTHER_TYPE: Final = (GROUP_ID_NOT_FOUND, 35)  # GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION: it may have another type
_SEVERAL_MEMBERS_VERSION = 3  # of LeaveGroup

# org.apache.kafka.common.GroupState and GroupType
GroupState = Literal[
    "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady", "Dead"
]  # fmt: skip
GroupKind = Literal["classic", "consumer", "share", "streams"]


class GroupListing(NamedTuple):
    """A group of a cluster.

    `protocol_type` is ``"consumer"`` for consumers and empty for groups that only have offsets. `state` is empty before
    Kafka 2.6, `type` before 3.8. `coordinator` is a broker id.
    """

    group_id: str
    protocol_type: str
    state: str
    type: str
    coordinator: int


class GroupOperations(Operations):
    """The calls on groups and their members."""

    @as_rows(GroupListing)
    async def list_groups(
        self, *, states: Iterable[GroupState] = (), types: Iterable[GroupKind] = (), timeout_ms: int | None = None
    ) -> dict[str, GroupListing]:
        """List the groups of all brokers, by id.

        Args:
            states: only groups in these states (Kafka 2.6 and later): ``"Stable"``, ``"Empty"``,
                ``"PreparingRebalance"``, ``"CompletingRebalance"``, ``"Assigning"``, ``"Reconciling"``, ``"NotReady"``,
                ``"Dead"``.
            types: only groups of these types: ``"classic"``, ``"consumer"``, ``"share"``, ``"streams"`` (Kafka 3.8 and
                later).
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by broker; ``results`` has the groups of the other brokers.
            ValueError: a state or type does not exist.
        """
        wanted_states, wanted_types = several("states", states), several("types", types)
        for state in wanted_states:  # brokers return no groups for an unknown state
            one_of("a state of groups", state, get_args(GroupState))
        for kind in wanted_types:
            one_of("a type of groups", kind, get_args(GroupKind))

        def request(brokers: list[int], version: int) -> Any:
            return messages.ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types)

        def read(brokers: list[int], answer: Answer) -> Iterable[tuple[int, list[GroupListing] | BrokerError]]:
            found = [
                GroupListing(entry.group_id, entry.protocol_type, entry.group_state, entry.group_type, brokers[0])
                for entry in answer.message.groups
            ]
            yield brokers[0], refusal(answer.message.error_code) or found

        ask = Ask(
            api_key=LIST_GROUPS,
            request=request,
            read=read,
            place=at_broker,
            least=5 if wanted_types else 4 if wanted_states else 0,
            needs="a filter by type" if wanted_types else "a filter by state" if wanted_states else "",
        )
        brokers = await self._broker_ids(timeout_ms)
        lists = await self._each(ask, brokers, timeout_ms, "brokers did not list their groups")
        return {group.group_id: group for groups in lists.values() for group in sorted(groups)}

    @as_rows(GroupDescription)
    async def describe_groups(
        self,
        groups: str | Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe the members and assignments of classic, consumer (KIP-848) and share groups (KIP-932).

        Raises:
            ItemErrors: by group, such as GroupIdNotFoundError, GroupAuthorizationFailedError.
        """
        found: dict[str, GroupDescription] = {}
        missing, errors = several("groups", groups), dict[str, Exception]()
        ids = list(missing)
        for describe in DESCRIBES:
            if not missing:
                break
            try:
                ask = describe.ask(include_authorized_operations)
                found |= await self._each(ask, missing, timeout_ms, "groups could not be described")
                missing = []
            except UnsupportedVersion:
                if describe is DESCRIBES[0]:  # every broker has this API, so the options need a later version
                    raise
            except ItemErrors as refused:
                found |= refused.results
                other = {group: why for group, why in refused.errors.items() if _of_another_type(why)}
                errors |= {group: why for group, why in refused.errors.items() if group not in other}
                missing = list(other)
        not_found = error(GROUP_ID_NOT_FOUND)
        errors |= {group: not_found(f"{not_found.name}: group {group!r}") for group in missing}
        await self._suggest(errors)
        ordered = {group: found[group] for group in ids if group in found}
        if errors:
            many = f"{len(errors)} of {len(ids)} groups" if len(ids) > 1 else "the group"
            raise ItemErrors(f"{many} could not be described", errors, ordered)
        return ordered

    async def delete_groups(self, groups: str | Iterable[str], *, timeout_ms: int | None = None) -> None:
        """Delete groups that have no members, with their offsets (Kafka 1.1 and later).

        Raises:
            ItemErrors: by group, such as NonEmptyGroupError, GroupIdNotFoundError.
        """

        def request(keys: list[str], version: int) -> Any:
            return messages.DeleteGroupsRequest(groups_names=keys)

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, BrokerError | None]]:
            for entry in answer.message.results:
                yield entry.group_id, refusal(entry.error_code, entry.error_message)

        ask = Ask(api_key=DELETE_GROUPS, request=request, read=read, place=group_coordinator)
        await self._each(ask, several("groups", groups), timeout_ms, "groups were not deleted")

    async def remove_members(
        self,
        group: str,
        members: Iterable[str] | None = None,
        *,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Remove members from a classic or consumer group, which then rebalances (Kafka 2.4 and later).

        Args:
            group: the group.
            members: the group instance ids of static members. Default: all members, static or not.
            reason: the reason that the broker logs (Kafka 3.1 and later).
            timeout_ms: for the whole call. Default: the client's ``default_api_timeout_ms``.

        Raises:
            ItemErrors: by member, such as UnknownMemberIdError.
        """
        identity = messages.LeaveGroupRequest.MemberIdentity
        if members is None:
            described = await self.describe_groups(group, timeout_ms=timeout_ms)
            leaving = {
                member.member_id: identity(
                    member_id=member.member_id, group_instance_id=member.group_instance_id, reason=reason
                )
                for member in described[group].members
            }
        else:
            names = several("members", members)
            leaving = {name: identity(member_id="", group_instance_id=name, reason=reason) for name in names}
        by_instance = members is not None

        def request(keys: list[str], version: int) -> Any:
            return messages.LeaveGroupRequest(group_id=group, members=[leaving[key] for key in keys])

        def read(keys: list[str], answer: Answer) -> Iterable[tuple[str, BrokerError | None]]:
            whole = refusal(answer.message.error_code)
            if whole is not None:
                yield from ((key, whole) for key in keys)
            for entry in answer.message.members:
                yield entry.group_instance_id if by_instance else entry.member_id, refusal(entry.error_code)

        ask = Ask(
            api_key=LEAVE_GROUP,
            request=request,
            read=read,
            place=lambda key: group_coordinator(group),
            least=_SEVERAL_MEMBERS_VERSION,
            needs="removing other members",
        )
        await self._each(ask, leaving, timeout_ms, "members were not removed")


def _of_another_type(why: Exception) -> bool:
    return isinstance(why, UnsupportedVersion) or (isinstance(why, BrokerError) and why.code in _OTHER_TYPE)
