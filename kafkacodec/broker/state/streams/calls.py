"""The requests of streams groups: StreamsGroupHeartbeat and StreamsGroupDescribe (KIP-1071)."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.classic import ClassicGroup
from kafkacodec.broker.state.groups import Groups
from kafkacodec.broker.state.heartbeats import HeartbeatCalls
from kafkacodec.broker.state.machine import Client, Handler, Room
from kafkacodec.broker.state.members import EMPTY
from kafkacodec.broker.state.streams.configuring import (
    MISSING_CLIENT_TAGS,
    SHUTDOWN_APPLICATION,
    InternalTopic,
    Problem,
)
from kafkacodec.broker.state.streams.endpoints import endpoint_rows
from kafkacodec.broker.state.streams.group import COPIES, StreamsGroup
from kafkacodec.broker.state.streams.member import AWAY, StreamsMember
from kafkacodec.broker.state.streams.step import Circumstances, Step
from kafkacodec.broker.state.streams.tasks import Tasks, task_rows
from kafkacodec.broker.state.streams.topology import Refusal
from kafkacodec.errors import (
    FENCED_INSTANCE_ID,
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    INVALID_REQUEST,
    STREAMS_INVALID_TOPOLOGY,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    error,
)
from kafkacodec.messages import keys
from kafkacodec.messages.stored import StoredRecord

__all__ = ["StreamsCalls"]

_TAGS = "rack.aware.assignment.tags"
_FIRST = "first assignment"
_WITH_TAGS = 1  # of StreamsGroupHeartbeat: statuses about tags


class StreamsCalls(HeartbeatCalls[StreamsGroup, StreamsMember]):
    """Both requests."""

    session = "streams.session.timeout.ms"

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups, StreamsGroup, lambda group, members: group.left(*members))
        self.handlers: dict[int, Handler] = {
            keys.STREAMS_GROUP_HEARTBEAT: self._heartbeat,
            keys.STREAMS_GROUP_DESCRIBE: self._describe,
        }

    def missing_topics(self, name: str) -> Collection[InternalTopic]:
        """The internal topics that a group needs and that do not exist."""
        group = self._groups.find(name)
        if not isinstance(group, StreamsGroup) or group.configured is None:
            return ()
        return group.configured.missing

    # StreamsGroupHeartbeat

    def _heartbeat(self, request: Any, version: int, client: Client, to: Any) -> None:
        code, text = _invalid(request)
        if code:
            self._refuse(to, code, text)
        else:
            self._groups.run(request.group_id, partial(self._heartbeat_now, request, version, client, to))

    def _refuse(self, to: Any, code: int, text: str | None = None) -> None:
        text = None if code == UNKNOWN_SERVER_ERROR else text or f"the heartbeat is refused: {error(code).__name__}"
        self._groups.reply(to, messages.StreamsGroupHeartbeatResponse(error_code=code, error_message=text))

    def _heartbeat_now(self, request: Any, version: int, client: Client, to: Any) -> None:
        try:
            if request.member_epoch < 0:
                self._leave(request, to)
            else:
                self._go_on(request, version, client, to)
        except Refusal as refused:
            self._refuse(to, refused.code, refused.text)

    def _found(self, request: Any) -> tuple[StreamsGroup, list[StoredRecord]]:
        """Return the group, and the records of one that it replaces: an empty classic group becomes one of this
        protocol.
        """
        name = request.group_id
        found = self._groups.find(name)
        if isinstance(found, StreamsGroup):
            return found, []
        empty = isinstance(found, ClassicGroup) and found.state == EMPTY
        if request.member_epoch == 0 and (found is None or empty):
            gone = [] if found is None else found.tombstones()
            return StreamsGroup(Room(self._groups, name), self._groups.topics), gone
        raise Refusal(GROUP_ID_NOT_FOUND, f"there is no streams group {name}")

    def _go_on(self, request: Any, version: int, client: Client, to: Any) -> None:
        group, gone = self._found(request)
        delay = self._groups.setting(group.name, "streams.initial.rebalance.delay.ms")
        starts = not group.members and delay > 0
        around = Circumstances(
            self._groups.topics_version,
            self._settings(group.name),
            self._groups.setting(group.name, "streams.assignment.interval.ms"),
            starts or group.room.waits(_FIRST),
            self._groups.options.group_streams_max_size,
        )
        step = Step(group, request, client, around)
        if request.shutdown_application:
            group.stopper = group.stopper or step.member.id
        stopper = group.stopper  # of the answer: the records may empty the group for a moment, which ends it

        def written(code: int) -> None:
            if code:
                self._refuse(to, code)
                return
            now = self._groups.find(group.name)
            if not isinstance(now, StreamsGroup):  # no step removes it
                self._refuse(to, UNKNOWN_SERVER_ERROR)
                return
            if starts and not now.room.waits(_FIRST):
                now.room.set_timer(_FIRST, delay, partial(self._divide_first, now.name))
            now.configured, now.checked_at = step.configured, around.topics_version
            if now is group:  # what is not in records begins after the heartbeat that makes the group, as in Kafka
                now.offsets[step.member.id] = step.offsets
            self._watch(now, step.member, anew=step.member.epoch != step.before.epoch)
            self._groups.reply(to, self._answer(group, now, step, request, version, stopper))

        group.room.write([*gone, *step.records], written)

    def _settings(self, name: str) -> dict[str, str]:
        settings = {COPIES: str(self._groups.setting(name, "streams.num.standby.replicas"))}
        tags = self._groups.text_setting(name, "streams.rack.aware.assignment.tags")
        return {**settings, _TAGS: tags} if tags else settings

    def _divide_first(self, name: str) -> None:
        """Compute the first targets, after the members have had time to join."""
        group = self._groups.find(name)
        if not isinstance(group, StreamsGroup) or not group.members or group.epoch <= group.assignment_epoch:
            return
        if group.configured is not None and group.topology is not None:
            found = group.targets(group.members, group.topology, group.configured, int(group.settings[COPIES]))
            group.room.write(group.target_records(found, group.target, group.epoch), lambda code: None)

    def _answer(
        self, before: StreamsGroup, group: StreamsGroup, step: Step, request: Any, version: int, stopper: str | None
    ) -> Any:
        response = messages.StreamsGroupHeartbeatResponse
        name, member = group.name, step.member
        answer = response(
            member_id=member.id, member_epoch=member.epoch,
            heartbeat_interval_ms=self._groups.setting(name, "streams.heartbeat.interval.ms"),
            task_offset_interval_ms=self._groups.options.group_streams_task_offset_interval_ms,
            acceptable_recovery_lag=self._groups.options.group_streams_acceptable_recovery_lag,
        )  # fmt: skip
        moved = member.assigned != step.before.assigned
        if moved or request.member_epoch == 0:
            answer.active_tasks, answer.standby_tasks, answer.warmup_tasks = _rows(member.assigned)
        self._tell_endpoints(before, group, step, request, answer, moved)
        problems = [*step.statuses, *([step.configured.problem] if step.configured.problem is not None else ())]
        if stopper is not None:
            text = f"member {stopper} has failed and asks all members of the application to stop"
            problems.append(Problem(SHUTDOWN_APPLICATION, text))
        problems += self._lacking_tags(name, member) if version >= _WITH_TAGS else ()
        answer.status = [response.Status(status_code=code, status_detail=text) for code, text in problems]
        return answer

    def _lacking_tags(self, name: str, member: StreamsMember) -> list[Problem]:
        tags = self._groups.text_setting(name, "streams.rack.aware.assignment.tags").strip()
        lacks = [tag for tag in (part.strip() for part in tags.split(",")) if tag not in member.tags] if tags else []
        text = f"the group divides standby tasks by client tags that the member lacks: {', '.join(lacks)};"
        return [Problem(MISSING_CLIENT_TAGS, f"{text} set them as client.tag.NAME")] if lacks else []

    def _tell_endpoints(
        self, before: StreamsGroup, group: StreamsGroup, step: Step, request: Any, answer: Any, moved: bool
    ) -> None:
        """Tell which partitions are behind which address, if the member knows an older state of them."""
        member = step.member
        changed = member.endpoint != step.before.endpoint or (moved and member.endpoint is not None)
        epoch = before.endpoint_epoch + changed
        if epoch != request.endpoint_information_epoch:
            others = [other for name, other in group.members.items() if name != member.id]
            rows = endpoint_rows([*others, member], step.topology, self._groups.topics)
            answer.partitions_by_user_endpoint = rows
        if before is group:
            group.endpoint_epoch = answer.endpoint_information_epoch = epoch

    # Leaving

    def _leave(self, request: Any, to: Any) -> None:
        group, _ = self._found(request)
        if request.shutdown_application:
            group.stopper = group.stopper or request.member_id
        member = group.members.get(request.member_id)
        if request.instance_id is not None:
            member = group.static(request.instance_id)
            if member is not None and member.id != request.member_id:
                raise Refusal(FENCED_INSTANCE_ID, f"another member has the instance id {request.instance_id}")
        if member is None:
            raise Refusal(UNKNOWN_MEMBER_ID, f"the group has no member {request.member_id}")
        epoch = AWAY if request.instance_id is not None and request.member_epoch == AWAY else -1
        answer = messages.StreamsGroupHeartbeatResponse(member_id=member.id, member_epoch=request.member_epoch)

        def written(code: int) -> None:
            if code:
                self._refuse(to, code)
            else:
                self._groups.reply(to, answer)

        if epoch == AWAY:
            group.room.write([member.away().assignment_record(group.name)], written)
        else:
            self.remove(group, [member], written)

    # StreamsGroupDescribe

    def _describe(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.StreamsGroupDescribeResponse
        rows = []
        for name in request.group_ids:
            group = self._groups.find(name)
            if isinstance(group, StreamsGroup):
                rows.append(group.described_as(with_description=request.include_topology_description))
                continue
            row = response.DescribedGroup(group_id=name, error_code=INVALID_GROUP_ID)
            if name:
                row.error_code, row.error_message = GROUP_ID_NOT_FOUND, f"Group {name} not found."
            rows.append(row)
        self._groups.reply(to, response(groups=rows))


def _rows(tasks: Tasks) -> list[Any]:
    row = messages.StreamsGroupHeartbeatResponse.TaskIds
    return [task_rows(row, each) for each in tasks]


def _invalid(request: Any) -> tuple[int, str]:
    """Return the error of an invalid heartbeat, regardless of the group; 0 if it is valid."""
    epoch, topology = request.member_epoch, request.topology
    parts = topology.subtopologies if topology is not None else ()
    tasks = request.active_tasks, request.standby_tasks, request.warmup_tasks
    joins = epoch == 0
    wrong = {
        "regular expressions of source topics are not supported yet": any(part.source_topic_regex for part in parts),
        "the member id is empty": not request.member_id.strip(),
        "the group id is empty": not request.group_id.strip(),
        "the instance id is empty": request.instance_id is not None and not request.instance_id.strip(),
        "the rack id is empty": request.rack_id is not None and not request.rack_id.strip(),
        "the first heartbeat has no rebalance timeout": joins and request.rebalance_timeout_ms == -1,
        "the first heartbeat has no empty lists of tasks": joins and tasks != ([], [], []),
        "the first heartbeat has no topology": joins and topology is None,
        "only the first heartbeat has a topology": not joins and topology is not None,
        f"the epoch is {epoch}; it is at least {AWAY}": epoch < AWAY,
        "a member that will return has an instance id": epoch == AWAY and request.instance_id is None,
        "all kinds of tasks are null, or none is": len({each is None for each in tasks}) > 1,
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            return INVALID_REQUEST, text
    for info in (info for part in parts for info in part.state_changelog_topics):
        if info.partitions:
            return STREAMS_INVALID_TOPOLOGY, f"changelog topic {info.name} has a number of partitions; it must be 0"
    if len({part.subtopology_id for part in parts}) < len(parts):
        return UNKNOWN_SERVER_ERROR, "two subtopologies have the same id"
    return 0, ""
