"""Groups, their offsets and their lag as brokers tell them, in the rows that are read from their disks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from kafkacodec import errors
from kafkacodec.client.admin.group_descriptions import GroupDescription, GroupMember as Member
from kafkacodec.errors import ItemErrors
from kafkacodec.log.state.group_lag import PartitionLag
from kafkacodec.log.state.groups import CommittedOffset, Group, GroupMember, OwnedPartitions

if TYPE_CHECKING:
    from kafkacodec.assignment.partitions import TopicPartition
    from kafkacodec.client import Admin
    from kafkacodec.client.admin.groups import GroupListing
    from kafkacodec.client.admin.offsets import OffsetAndTimestamp

__all__ = ["live_groups", "live_lag", "live_offsets"]

_WITH_OFFSETS = ("", "classic", "consumer")  # types of groups whose members commit; brokers before 3.8 do not tell it


def live_groups(admin: Admin, wanted: Callable[[str], bool]) -> tuple[list[Group], dict[str, str]]:
    """The groups with their members, and the state of each."""
    found = [_group(described) for described in _described(admin, _listed(admin, wanted).values())]
    return [group for group, _ in found], {group.group: state for group, state in found}


def live_offsets(admin: Admin, wanted: Callable[[str], bool]) -> list[CommittedOffset]:
    """The committed offsets of groups. Brokers do not tell when they were committed."""
    return [
        CommittedOffset(group, key.topic, key.partition, offset.offset, offset.leader_epoch, offset.metadata, -1, -1)
        for group in _with_offsets(admin, wanted)
        for key, offset in sorted(admin.list_group_offsets(group).items())
    ]


def live_lag(
    admin: Admin,
    wanted: Callable[[str], bool],
    topic: Callable[[str], bool],
    isolation_level: Literal["read_uncommitted", "read_committed"],
) -> list[PartitionLag]:
    """How far groups are behind. Times are not known to brokers."""
    listed = _listed(admin, wanted)
    described = {found.group_id: found for found in _described(admin, listed.values())}
    groups = {name: admin.list_group_offsets(name) for name in listed if listed[name].type in _WITH_OFFSETS}
    owners = {name: _owners(found) for name, found in described.items() if name in groups}
    keys = sorted(
        {key for name, offsets in groups.items() for key in (*offsets, *owners.get(name, {})) if topic(key.topic)}
    )
    # A log ends at the high watermark for its readers, which is what brokers tell.
    problems: dict[TopicPartition, str] = {}
    levels = ("read_uncommitted", isolation_level, None)
    ends, stable, starts = (_ends(admin, keys, level, problems) for level in levels)
    lines = []
    for name, offsets in groups.items():
        for key in sorted({*offsets, *owners.get(name, {})}):
            if topic(key.topic):
                committed, owner = offsets.get(key), owners.get(name, {}).get(key)
                offset, end = None if committed is None else committed.offset, stable.get(key)
                behind = None if offset is None or end is None else max(end - offset, 0)
                place = (name, key.topic, key.partition, offset, None)
                log = (starts.get(key), end, ends.get(key), behind, None, None, None)
                member = (None, None, None) if owner is None else (owner.member_id, owner.client_id, owner.client_host)
                lines.append(PartitionLag(*place, *log, *member)._replace(problem=problems.get(key)))
    return lines


def _listed(admin: Admin, wanted: Callable[[str], bool]) -> dict[str, GroupListing]:
    return {name: found for name, found in sorted(admin.list_groups().items()) if wanted(name)}


def _with_offsets(admin: Admin, wanted: Callable[[str], bool]) -> list[str]:
    return [name for name, found in _listed(admin, wanted).items() if found.type in _WITH_OFFSETS]


def _described(admin: Admin, listed: Iterable[GroupListing]) -> Sequence[GroupDescription]:
    """The groups that brokers describe; those of Kafka Streams' own protocol they do not."""
    known = [found.group_id for found in listed if found.type != "streams"]
    return list(admin.describe_groups(known).values())


def _group(described: GroupDescription) -> tuple[Group, str]:
    members = [
        GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.subscription or [],
            _by_topic(member.assignment or ()),
        )
        for member in described.members
    ]
    kind, assignor = described.type, described.assignor or None
    return Group(
        described.group_id, kind, described.epoch, described.protocol_type, assignor, None, members
    ), described.state


def _by_topic(assigned: Iterable[TopicPartition]) -> list[OwnedPartitions]:
    found: dict[str, list[int]] = {}
    for topic, number in assigned:
        found.setdefault(topic, []).append(number)
    return [OwnedPartitions(topic, sorted(numbers)) for topic, numbers in sorted(found.items())]


def _owners(described: GroupDescription) -> dict[TopicPartition, Member]:
    return {key: member for member in described.members for key in member.assignment or ()}


def _ends(
    admin: Admin, keys: Sequence[TopicPartition], level: str | None, problems: dict[TopicPartition, str]
) -> dict[TopicPartition, int]:
    """The ends of partitions, or their starts with None. Those of deleted topics are missing.

    So are those that brokers refuse, such as partitions without a leader; `problems` gets the reasons.
    """
    spec: Literal["earliest", "latest"] = "earliest" if level is None else "latest"
    found: Mapping[TopicPartition, OffsetAndTimestamp]
    try:
        found = admin.list_offsets(
            dict.fromkeys(keys, spec),
            isolation_level="read_committed" if level == "read_committed" else "read_uncommitted",
        )
    except ItemErrors as refused:
        for key, error in refused.errors.items():
            if getattr(error, "code", None) != errors.UNKNOWN_TOPIC_OR_PARTITION:
                problems[key] = str(error)
        found = refused.results
    return {key: offset.offset for key, offset in found.items()}
