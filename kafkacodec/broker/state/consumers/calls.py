"""The requests of groups of the consumer protocol: ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.classic import ClassicGroup
from kafkacodec.broker.state.consumers.group import ConsumerGroup
from kafkacodec.broker.state.consumers.member import AWAY, ConsumerMember, places_of, rows_of, short_id
from kafkacodec.broker.state.consumers.mixed import Mixed
from kafkacodec.broker.state.consumers.step import Step
from kafkacodec.broker.state.groups import Groups
from kafkacodec.broker.state.heartbeats import HeartbeatCalls
from kafkacodec.broker.state.machine import Client, Handler, Room, Then
from kafkacodec.broker.state.members import EMPTY
from kafkacodec.broker.state.targets import TARGETS
from kafkacodec.datatypes import replace
from kafkacodec.errors import (
    FENCED_INSTANCE_ID,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INVALID_GROUP_ID,
    INVALID_REGULAR_EXPRESSION,
    INVALID_REQUEST,
    NONE,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
    error,
)
from kafkacodec.messages import keys
from kafkacodec.messages.stored import StoredRecord
from kafkacodec.patterns import PatternError, whole_matcher

__all__ = ["ConsumerCalls"]

_FOR_GOOD = -1


class ConsumerCalls(HeartbeatCalls[ConsumerGroup, ConsumerMember]):
    """Both requests."""

    session = "consumer.session.timeout.ms"

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups, ConsumerGroup, Step.removal)
        self.mixed = Mixed(groups, self._watch, self.remove)
        self.handlers: dict[int, Handler] = {
            keys.CONSUMER_GROUP_HEARTBEAT: self._heartbeat,
            keys.CONSUMER_GROUP_DESCRIBE: self._describe,
        }

    # ConsumerGroupHeartbeat

    def _heartbeat(self, request: Any, version: int, client: Client, to: Any) -> None:
        wrong = _invalid(request, version)
        if wrong:
            self._refuse(to, wrong)
        else:
            self._groups.run(request.group_id, partial(self._heartbeat_now, request, client, to))

    def _refuse(self, to: Any, code: int) -> None:
        text = f"the heartbeat is refused: {error(code).__name__}"
        self._groups.reply(to, messages.ConsumerGroupHeartbeatResponse(error_code=code, error_message=text))

    def _heartbeat_now(self, request: Any, client: Client, to: Any) -> None:
        joins = request.member_epoch == 0
        found = self._groups.find(request.group_id)
        before: list[StoredRecord] = []
        changed = self.mixed.upgraded(found) if joins and isinstance(found, ClassicGroup) else None
        if isinstance(found, ConsumerGroup):
            group = found
        elif changed is not None:
            group, before = changed
        elif joins and (found is None or (isinstance(found, ClassicGroup) and found.state == EMPTY)):
            # an empty classic group becomes one of this protocol
            group = ConsumerGroup(Room(self._groups, request.group_id), self._groups.topics)
            before = [] if found is None else found.tombstones()
        else:
            self._refuse(to, GROUP_ID_NOT_FOUND)
            return
        if request.member_epoch < 0:
            self._leave(group, request, to)
            return
        member_id = request.member_id or short_id(self._groups.new_id())
        found_member = self._member(group, request, member_id)
        if isinstance(found_member, int):
            self._refuse(to, found_member)
        else:
            was = found if isinstance(found, ClassicGroup) else None
            self._go_on(group, request, client, found_member, was, before, to)

    def _member(self, group: ConsumerGroup, request: Any, member_id: str) -> ConsumerMember | int:
        """Return the current state of a heartbeat's member, or an error code."""
        holder = group.static(request.instance_id) if request.instance_id is not None else None
        known = group.members.get(member_id)
        if request.member_epoch == 0:
            if holder is not None:
                return holder if holder.epoch == AWAY or holder.classic is not None else UNRELEASED_INSTANCE_ID
            if known is None and len(group.members) >= self._groups.options.group_max_size:
                return GROUP_MAX_SIZE_REACHED
            if known is None or known.epoch == AWAY:
                return known or ConsumerMember(member_id)
            return known  # the answer to its joining was lost, or it has forgotten what it knew
        if request.instance_id is not None:
            if holder is None:
                return UNKNOWN_MEMBER_ID
            if holder.id != member_id:
                return FENCED_INSTANCE_ID
            known = holder
        if known is None:
            return UNKNOWN_MEMBER_ID
        owned = None if request.topic_partitions is None else places_of(request.topic_partitions)
        return known.epoch_refusal(request.member_epoch, owned) or known

    def _go_on(
        self,
        group: ConsumerGroup,
        request: Any,
        client: Client,
        member: ConsumerMember,
        found: ClassicGroup | None,
        before: list[StoredRecord],
        to: Any,
    ) -> None:
        if request.member_epoch > 0 and self._has_no_news(group, member, _told(member, request, client)):
            self._watch(group, member)
            self._groups.reply(to, self._answer(group.name, member, _is_full(request)))
            return
        version = self._groups.topics_version
        if request.member_epoch == 0 and request.member_id and member.id != request.member_id:  # of the same instance
            step = Step(group, replace(member, id=request.member_id, epoch=0, previous_epoch=0), replaces=member.id)
        else:
            step = Step(group, member)
        step.subscribe(_told(step.member, request, client))
        step.divide(self._groups.setting(group.name, "consumer.assignment.interval.ms"))
        owned = None if request.topic_partitions is None else places_of(request.topic_partitions)
        step.reconcile(owned)

        def written(code: int) -> None:
            if code:
                self._refuse(to, code)
                return
            if found is not None:
                found.release()
            now = self._groups.find(group.name)
            if isinstance(now, ConsumerGroup):
                for other in now.members.values() if before else ():
                    self._watch(now, other)
                now.checked_at = version
                self._watch(now, step.member)
                self._resolve_later(now)
            everything = _is_full(request) or step.member.assigned != member.assigned
            self._groups.reply(to, self._answer(group.name, step.member, everything))

        group.room.write([*before, *step.records], written)

    def _answer(self, group: str, member: ConsumerMember, with_assignment: bool) -> Any:
        response = messages.ConsumerGroupHeartbeatResponse
        answer = response(
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._groups.setting(group, "consumer.heartbeat.interval.ms"),
        )
        if with_assignment:
            answer.assignment = response.Assignment(topic_partitions=rows_of(response.TopicPartitions, member.assigned))
        return answer

    def _has_no_news(self, group: ConsumerGroup, member: ConsumerMember, told: ConsumerMember) -> bool:
        """Whether a heartbeat changes nothing, as most do; it then needs no computation."""
        settled = group.epoch == group.assignment_epoch and member.settled(group.epoch)
        return settled and told == member and group.checked_at == self._groups.topics_version

    # Regular expressions

    def _resolve_later(self, group: ConsumerGroup) -> None:
        """Find the topics of regular expressions, if these or the cluster's topics are new: not within a heartbeat."""
        version = self._groups.topics_version
        if group.unresolved() or (group.patterns and group.resolved_at != version):
            group.room.set_timer("patterns", 0, partial(self._resolve, group.name))

    def _resolve(self, name: str) -> None:
        group = self._groups.find(name)
        if isinstance(group, ConsumerGroup):
            version = self._groups.topics_version

            def written(code: int) -> None:
                if not code:
                    group.resolved_at = version

            group.room.write(Step.resolution(group), written)

    # Leaving

    def _leave(self, group: ConsumerGroup, request: Any, to: Any) -> None:
        member = group.members.get(request.member_id)
        code = NONE
        if request.instance_id is not None:
            member = group.static(request.instance_id)
            if member is not None and member.id != request.member_id:
                code = FENCED_INSTANCE_ID
        if member is None:
            code = UNKNOWN_MEMBER_ID
        if code or member is None:
            self._refuse(to, code)
            return
        answer = messages.ConsumerGroupHeartbeatResponse(member_id=member.id, member_epoch=request.member_epoch)

        def written(code: int) -> None:
            if code:
                self._refuse(to, code)
            else:
                self._groups.reply(to, answer)

        if request.member_epoch == AWAY:
            away = replace(member, epoch=AWAY, revoking=frozenset())
            group.room.write([away.assignment_record(group.name)], written)
        else:
            self.remove(group, [member], written)

    def remove(self, group: ConsumerGroup, members: list[ConsumerMember], then: Then) -> None:
        """Put members out of a group, which becomes a classic one if it has only members of that protocol left."""
        left = [member for member in group.members.values() if member not in members]
        if left and all(member.classic is not None for member in left):
            self.mixed.downgrade(group, left, then)
        else:
            super().remove(group, members, then)

    def _forget(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        super()._forget(group, member)
        for timer in (f"join {member.id}", f"sync {member.id}"):
            group.room.cancel(timer)

    def _session_ms(self, group: ConsumerGroup, member: ConsumerMember) -> int:
        return super()._session_ms(group, member) if member.classic is None else member.classic.session_timeout_ms

    # ConsumerGroupDescribe

    def _describe(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.ConsumerGroupDescribeResponse
        rows = []
        for name in request.group_ids:
            group = self._groups.find(name)
            if isinstance(group, ConsumerGroup):
                rows.append(group.described())
                continue
            row = response.DescribedGroup(group_id=name, error_code=INVALID_GROUP_ID)
            if name:
                row.error_code, row.error_message = GROUP_ID_NOT_FOUND, f"Group {name} not found."
            rows.append(row)
        self._groups.reply(to, response(groups=rows))


def _invalid(request: Any, version: int) -> int:
    """Return the error of an invalid heartbeat, regardless of the group; 0 if it is valid."""
    epoch = request.member_epoch
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    wrong = (
        not request.group_id.strip()
        or (not request.member_id and (version > 0 or epoch != 0))
        or request.instance_id == ""
        or request.rack_id == ""
        or epoch < AWAY
        or (epoch == AWAY and request.instance_id is None)
        or (epoch == 0 and (request.rebalance_timeout_ms == -1 or request.topic_partitions != [] or not subscribes))
    )
    if wrong:
        return INVALID_REQUEST
    if request.server_assignor is not None and request.server_assignor not in TARGETS:
        return UNSUPPORTED_ASSIGNOR
    try:
        if request.subscribed_topic_regex:
            whole_matcher(request.subscribed_topic_regex)
    except (PatternError, ImportError):  # RE2 is a separate package
        return INVALID_REGULAR_EXPRESSION
    return NONE


def _is_full(request: Any) -> bool:
    """Whether a heartbeat has all fields, as when joining; then the answer has, too."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    whole = request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
    return request.member_epoch == 0 or whole


def _told(member: ConsumerMember, request: Any, client: Client) -> ConsumerMember:
    """Return a member with the fields of its heartbeat; null changes nothing."""
    said: dict[str, Any] = {"client_id": client.id, "client_host": client.host, "classic": None}
    if request.rebalance_timeout_ms != -1:
        said["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.subscribed_topic_names is not None:
        said["topics"] = tuple(request.subscribed_topic_names)
    others = ("instance_id", "instance"), ("rack_id", "rack"), ("server_assignor", "assignor")
    for field, name in (*others, ("subscribed_topic_regex", "pattern")):
        if getattr(request, field) is not None:
            said[name] = getattr(request, field)
    return replace(member, **said)
