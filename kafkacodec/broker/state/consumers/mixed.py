"""Members of the classic protocol in a group of the consumer protocol, so that a running group can change over.

A classic member also gets the broker's assignment: its generation is its epoch, it joins at once, gets its share with
SyncGroup, and its heartbeats tell it to join again whenever its partitions change (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.classic import ClassicGroup, joined_error
from kafkacodec.broker.state.consumers.group import ConsumerGroup
from kafkacodec.broker.state.consumers.member import (
    UNRELEASED,
    UNREVOKED,
    ClassicPart,
    ConsumerMember,
    Places,
    short_id,
)
from kafkacodec.broker.state.consumers.step import Step
from kafkacodec.broker.state.groups import Groups
from kafkacodec.broker.state.machine import Client, Room
from kafkacodec.broker.state.members import ClassicMember
from kafkacodec.datatypes import replace
from kafkacodec.errors import (
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    DecodeError,
)
from kafkacodec.messages.consumer_protocol import decode_assignment, decode_subscription, encode_assignment
from kafkacodec.messages.stored import StoredRecord

__all__ = ["Mixed"]

_IDS_FIRST = 4  # JoinGroup: the first version in which a new member gets its id before it joins


class Mixed:
    """The classic calls for such groups, and the change from one kind of group to the other.

    Args:
        groups: all groups.
        watch: sets the time limit for a member's next heartbeat.
        remove: removes members from a group.
    """

    def __init__(
        self,
        groups: Groups,
        watch: Callable[[ConsumerGroup, ConsumerMember], None],
        remove: Callable[[ConsumerGroup, list[ConsumerMember], Callable[[int], None]], None],
    ) -> None:
        self._groups, self._watch, self._remove = groups, watch, remove

    # JoinGroup, SyncGroup, Heartbeat

    def join(self, group: ConsumerGroup, request: Any, version: int, client: Client, to: Any) -> None:
        """Let a classic member join a group with members of the consumer protocol."""
        if self._is_full(group, request.member_id):
            self._refuse(to, GROUP_MAX_SIZE_REACHED, version)
        elif not _has_protocol_in_common(group, request):
            self._refuse(to, INCONSISTENT_GROUP_PROTOCOL, version)
        elif not request.member_id and request.group_instance_id is None and version >= _IDS_FIRST:
            promised = short_id(self._groups.new_id())
            self._groups.reply(to, joined_error(MEMBER_ID_REQUIRED, promised, version))
        else:
            self._join_known(group, request, version, client, to)

    def _join_known(self, group: ConsumerGroup, request: Any, version: int, client: Client, to: Any) -> None:
        member_id = request.member_id or short_id(self._groups.new_id())
        member = self._joining(group, request, member_id)
        after = member if isinstance(member, int) else _told(member, member_id, request, client)
        if isinstance(after, int) or isinstance(member, int):
            self._refuse(to, after if isinstance(after, int) else INCONSISTENT_GROUP_PROTOCOL, version)
            return
        if member.id == member_id:
            step = Step(group, member)
        else:
            step = Step(group, replace(member, id=member_id, epoch=0, previous_epoch=0), replaces=member.id)
        step.subscribe(after)
        step.divide(self._groups.setting(group.name, "consumer.assignment.interval.ms"))
        step.reconcile(self._owned(after))
        others = [each for each in group.members.values() if each.id != member.id]
        downgrades = member.instance is not None and member.id in group.members
        if downgrades and all(each.classic is not None for each in others):
            last = replace(step.member, epoch=0) if step.raises else step.member  # 0: it has to join again
            joined = partial(self._joined, group.name, last, version, to)
            self.downgrade(group, [*others, last], joined, replaced=member.id, rebalances=step.raises)
        else:
            group.room.write(step.records, partial(self._joined, group.name, step.member, version, to))

    def _joined(self, name: str, member: ConsumerMember, version: int, to: Any, code: int) -> None:
        group = self._groups.find(name)
        if code or member.classic is None:
            self._refuse(to, code or UNKNOWN_MEMBER_ID, version)
            return
        if isinstance(group, ConsumerGroup):
            group.room.cancel(f"join {member.id}")
            late = partial(self._too_late, group.name, member.id, None)
            group.room.set_timer(f"sync {member.id}", member.rebalance_timeout_ms, late)
            self._watch(group, member)
        protocol = member.classic.protocols[0][0]
        made = messages.JoinGroupResponse(generation_id=member.epoch, protocol_type="consumer", protocol_name=protocol)
        made.member_id = member.id
        self._groups.reply(to, made)

    def _joining(self, group: ConsumerGroup, request: Any, member_id: str) -> ConsumerMember | int:
        if request.group_instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        holder = group.static(request.group_instance_id)
        if not request.member_id:
            return holder or ConsumerMember(member_id)
        if holder is None:
            return UNKNOWN_MEMBER_ID
        return holder if holder.id == member_id else FENCED_INSTANCE_ID

    def _is_full(self, group: ConsumerGroup, member_id: str) -> bool:
        return member_id not in group.members and len(group.members) >= self._groups.options.group_max_size

    def _owned(self, member: ConsumerMember) -> Places:
        found = decode_subscription(member.classic.protocols[0][1]) if member.classic is not None else None
        return frozenset() if found is None else self._places(found.owned_partitions)

    def _places(self, rows: Iterable[Any]) -> Places:
        ids = {row.topic: self._groups.topics.id_of(row.topic) for row in rows}
        return frozenset(
            (topic_id, number) for row in rows for number in row.partitions if (topic_id := ids[row.topic]) is not None
        )

    def _refuse(self, to: Any, code: int, version: int) -> None:
        self._groups.reply(to, joined_error(code, "", version))

    def _member(self, group: ConsumerGroup, request: Any) -> ConsumerMember | int:
        """Return the classic member of a SyncGroup or Heartbeat, or an error code."""
        member = group.members.get(request.member_id)
        if request.group_instance_id is not None:
            member = group.static(request.group_instance_id)
            if member is not None and member.id != request.member_id:
                return FENCED_INSTANCE_ID
        if member is None or member.classic is None:
            return UNKNOWN_MEMBER_ID
        return member if request.generation_id == member.epoch else ILLEGAL_GENERATION

    def sync(self, group: ConsumerGroup, request: Any, to: Any) -> None:
        """Answer a classic member with its share."""
        member = self._member(group, request)
        response = messages.SyncGroupResponse
        if isinstance(member, int) or member.classic is None:
            self._groups.reply(to, response(error_code=member if isinstance(member, int) else UNKNOWN_MEMBER_ID))
            return
        protocol = member.classic.protocols[0][0]
        code = NONE
        if request.protocol_type not in (None, "consumer") or request.protocol_name not in (None, protocol):
            code = INCONSISTENT_GROUP_PROTOCOL
        elif group.assignment_epoch > member.epoch and member.state != UNREVOKED:
            code = REBALANCE_IN_PROGRESS
        if code:
            self._groups.reply(to, response(error_code=code))
            return
        group.room.cancel(f"sync {member.id}")
        self._watch(group, member)
        share = self._share(member, member.assigned)
        self._groups.reply(to, response(protocol_type="consumer", protocol_name=protocol, assignment=share))

    def heartbeat(self, group: ConsumerGroup, request: Any) -> int:
        """Note a sign of life of a classic member; return the error code of the answer."""
        member = self._member(group, request)
        if isinstance(member, int):
            return member
        self._watch(group, member)
        if not self._is_to_join(group, member):
            return NONE
        timer = f"join {member.id}"
        if not group.room.waits(timer):
            late = partial(self._too_late, group.name, member.id, member.epoch)
            group.room.set_timer(timer, member.rebalance_timeout_ms, late)
        return REBALANCE_IN_PROGRESS

    def _is_to_join(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        if member.epoch < group.assignment_epoch or member.state == UNREVOKED:
            return True
        if member.state != UNRELEASED:
            return False
        taken = {place for each in group.members.values() for place in each.assigned | each.revoking}
        return not (group.target.get(member.id, frozenset()) - member.assigned) & taken

    def _too_late(self, name: str, member_id: str, epoch: int | None) -> None:
        """Remove a member that has not asked for its share in time, or has not joined again since an epoch."""
        group = self._groups.find(name)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if isinstance(group, ConsumerGroup) and member is not None and epoch in (None, member.epoch):
            self._remove(group, [member], lambda code: None)

    def _share(self, member: ConsumerMember, places: Places) -> bytes:
        """Partitions in the words of the classic protocol, in the version of the member."""
        entry = messages.ConsumerProtocolAssignment.TopicPartition
        topics: dict[str, list[int]] = {}
        for topic_id, number in sorted(places):
            name = self._groups.topics.name_of(topic_id)
            if name is not None:
                topics.setdefault(name, []).append(number)
        rows = [entry(topic=name, partitions=numbers) for name, numbers in topics.items()]
        subscription = member.classic.protocols[0][1] if member.classic is not None else b""
        version = min(int.from_bytes(subscription[:2], "big"), 3)
        return encode_assignment(messages.ConsumerProtocolAssignment(assigned_partitions=rows), version)

    # Changes of the kind

    def upgraded(self, classic: ClassicGroup) -> tuple[ConsumerGroup, list[StoredRecord]] | None:
        """A classic group as one of the consumer protocol, and the records for that; None if it cannot be."""
        if classic.protocol_type != "consumer" or not classic.members:
            return None
        try:
            members = [self._converted(member, classic.generation) for member in classic.members.values()]
        except DecodeError:
            return None
        group = ConsumerGroup(Room(self._groups, classic.name), self._groups.topics)
        records = [member.metadata_record(group.name) for member in members]
        counts = group.counts(group.subscriptions({member.id: member for member in members}, {}))
        records.append(group.epoch_record(classic.generation, group.hash_of(counts)))
        records += group.target_records({member.id: member.assigned for member in members}, classic.generation, 0)
        records += [member.assignment_record(group.name) for member in members]
        for record in records:
            group.apply(record.key, record.value)
        return group, [*classic.tombstones(), *records]

    def _converted(self, member: ClassicMember, generation: int) -> ConsumerMember:
        subscription = decode_subscription(next(iter(member.protocols.values())))
        return ConsumerMember(
            member.id,
            member.instance,
            subscription.rack_id or None,
            member.client.id,
            member.client.host,
            tuple(subscription.topics),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            epoch=generation,
            previous_epoch=generation,
            assigned=self._places(decode_assignment(member.assignment).assigned_partitions),
            classic=ClassicPart(member.session_timeout_ms, tuple(member.protocols.items())),
        )

    def downgrade(
        self,
        group: ConsumerGroup,
        left: list[ConsumerMember],
        then: Callable[[int], None],
        *,
        replaced: str | None = None,
        rebalances: bool = True,
    ) -> None:
        """Make a classic group when the last member of the consumer protocol goes.

        Args:
            group: the present group.
            left: the members of the classic group.
            then: gets the error code.
            replaced: the id of the last member of the consumer protocol, if the last of `left` takes its place.
            rebalances: whether the members have to join again.
        """
        classic = ClassicGroup(group.room, self._groups.options, self._groups.new_id)
        classic.generation, classic.protocol_type, classic.since = group.epoch, "consumer", group.room.now
        for member in left:
            part = member.classic or ClassicPart(0, ())
            made = ClassicMember(
                member.id,
                member.instance,
                Client(member.client_id, member.client_host),
                member.rebalance_timeout_ms,
                part.session_timeout_ms,
                dict(part.protocols),
            )
            had = replaced if replaced is not None and member is left[-1] else member.id
            made.assignment = self._share(member, group.target.get(had, frozenset()))
            classic.members[member.id] = made
        classic.protocol, classic.leader = classic.elected(), left[0].id

        def written(code: int) -> None:
            now = self._groups.find(group.name)
            if not code and isinstance(now, ClassicGroup):
                for member_id, member in now.members.items():
                    member.protocols = classic.members[member_id].protocols
                now.start()
                now.settle(left=rebalances)
            then(code)

        group.room.write([*group.tombstones(), classic.record()], written)


def _has_protocol_in_common(group: ConsumerGroup, request: Any) -> bool:
    """Whether a classic member offers a protocol that all present classic members offer."""
    common = {entry.name for entry in request.protocols}
    for part in (member.classic for member in group.members.values()):
        common &= {name for name, _ in part.protocols} if part is not None else common
    return request.protocol_type == "consumer" and bool(common)


def _told(member: ConsumerMember, member_id: str, request: Any, client: Client) -> ConsumerMember | int:
    """Return the member with its own fields; an error code if its subscription is invalid."""
    protocols = tuple((entry.name, bytes(entry.metadata)) for entry in request.protocols)
    try:
        subscription = decode_subscription(protocols[0][1])
    except DecodeError:
        return INCONSISTENT_GROUP_PROTOCOL
    if member.id != member_id:
        member = replace(member, id=member_id, epoch=0, previous_epoch=0)
    return replace(
        member,
        instance=request.group_instance_id,
        rack=subscription.rack_id or None,
        client_id=client.id,
        client_host=client.host,
        topics=tuple(subscription.topics),
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        classic=ClassicPart(request.session_timeout_ms, protocols),
    )
