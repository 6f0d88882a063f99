"""The broker's streams groups (KIP-1071): whatever members and topics do, and whatever is lost on the way.

No active task is run by two members at a time, and no process has a task in two roles; epochs never go back; a member
may commit for what it runs; when nothing happens any more, each task has one owner; what a restart loads is what was.
"""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkacodec import messages
from kafkacodec.broker.state.coordinator import GroupCoordinator
from kafkacodec.broker.state.options import GroupOptions
from kafkacodec.broker.state.streams.group import StreamsGroup
from kafkacodec.broker.state.streams.tasks import NO_TASKS, ROLES, task_rows, tasks_of
from tests.differential.streams_members import part, topic, topology
from tests.examples import examples
from tests.reference.coordinators import Bench, Cluster

SLOTS = st.integers(0, 3)
OFTEN = st.sampled_from([True, True, False])
TOPOLOGY = topology(part("0", "t", state_changelog_topics=[topic("c")]), part("1", "u"))
OF_TOPICS = {"t": "0", "u": "1"}
COPIES = "streams.num.standby.replicas"
RECORDED = (
    "epoch",
    "hash",
    "validated",
    "settings",
    "assignment_epoch",
    "assigned_at",
    "members",
    "target",
    "topology",
)
"""The parts of a group that are in its records."""
AWAY = -2


class Member:
    """A member; it runs what answers say that reach it, and what it has not given up yet.

    As in Apache Kafka, an answer that is lost is not given again: `unsure` members may have missed tasks.
    """

    def __init__(self, name: str, slot: int, *, static: bool) -> None:
        self.name, self.process, self.instance = name, f"p{slot // 2}", f"i{slot}" if static else None
        self.start()

    def start(self) -> None:
        self.epoch = 0
        self.told = self.runs = NO_TASKS
        self.unsure = False

    def hear(self, answer: Any) -> None:
        """An answer: new tasks begin when no old one has to end."""
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.told = tasks_of(answer)
        if all(mine <= wanted for mine, wanted in zip(self.runs, self.told, strict=True)):
            self.runs = self.told


class StreamsGroups(RuleBasedStateMachine):
    """Members that beat, lose answers, leave, return and vanish."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(t=3, u=2, c=3)
        self.members: dict[int, Member] = {}
        self.epochs: dict[str, int] = {}
        self.number = self.copies = 0

    @initialize(
        delay=st.sampled_from([0, 3_000]), interval=st.sampled_from([0, 1_000]), copies=st.integers(0, 1),
        first=st.sets(SLOTS),
    )  # fmt: skip
    def start(self, delay: int, interval: int, copies: int, first: set[int]) -> None:
        options = GroupOptions(
            group_streams_initial_rebalance_delay_ms=delay, group_streams_assignment_interval_ms=interval
        )
        self.bench = Bench(lambda: GroupCoordinator(self.cluster, options=options))
        self.configure(copies)
        for slot in sorted(first):
            self.join(slot, static=False, lost=False)
        for _ in range(2):
            self.all_beat(3_000)

    @rule(slot=SLOTS, static=st.booleans(), lost=st.booleans())
    def join(self, slot: int, static: bool, lost: bool) -> None:
        if slot not in self.members:
            self.number += 1
            self.members[slot] = Member(f"m{self.number}", slot, static=static)
            self.beat(slot, lost=lost)

    @rule(place=SLOTS, lost=st.booleans(), reports=OFTEN, gives_up=OFTEN)
    @precondition(lambda self: self.members)
    def one_beats(self, place: int, lost: bool, reports: bool, gives_up: bool) -> None:
        slot = self.at(place)
        if gives_up:
            self.members[slot].runs = self.members[slot].told
        self.beat(slot, lost=lost, reports=reports)

    def at(self, place: int) -> int:
        return sorted(self.members)[place % len(self.members)]

    @rule(milliseconds=st.sampled_from([0, 1_000, 3_000]))
    def all_beat(self, milliseconds: int) -> None:
        """Nothing is lost, and all do what they are told."""
        self.bench.wait(milliseconds)
        for slot, member in list(self.members.items()):
            member.runs = member.told
            self.beat(slot, reports=True)

    def beat(self, slot: int, *, lost: bool = False, reports: bool = False) -> None:
        member = self.members[slot]
        fields: dict[str, Any] = dict.fromkeys((f"{role}_tasks" for role in ROLES), [] if member.epoch == 0 else None)
        if member.epoch == 0:
            fields |= {"topology": TOPOLOGY, "rebalance_timeout_ms": 10_000, "process_id": member.process}
        elif reports:
            fields = {f"{role}_tasks": rows(tasks) for role, tasks in zip(ROLES, member.runs, strict=True)}
        answer = self.ask(member, member.epoch, **fields)
        if answer.error_code:
            del self.members[slot]
        elif lost:
            member.unsure = True
            self.commit(member)
        else:
            member.hear(answer)

    def ask(self, member: Member, epoch: int, **fields: Any) -> Any:
        every = {"group_id": "g", "member_id": member.name, "member_epoch": epoch, "instance_id": member.instance}
        return self.bench.ask(messages.StreamsGroupHeartbeatRequest.from_dict(every | fields), 1)

    @rule(place=SLOTS, returns=st.booleans())
    @precondition(lambda self: self.members)
    def leave(self, place: int, returns: bool) -> None:
        member = self.members.pop(self.at(place))
        self.ask(member, AWAY if returns and member.instance is not None else -1)

    @rule(milliseconds=st.sampled_from([1_000, 9_000, 44_000]))
    def wait(self, milliseconds: int) -> None:
        self.bench.wait(milliseconds)
        group = self.group()
        known = group.members if group is not None else {}
        self.members = {slot: member for slot, member in self.members.items() if member.name in known}

    @rule(partitions=st.integers(0, 4))
    def change_topic(self, partitions: int) -> None:
        """Topic u grows, goes, or comes anew."""
        if partitions < self.cluster.counts["u"]:
            self.cluster.ids["u"] = uuid.UUID(int=1_000 + len(self.bench.log))
        self.cluster.counts["u"] = partitions
        self.bench.machine.topics_changed()

    @rule(copies=st.integers(0, 2))
    def configure(self, copies: int) -> None:
        self.copies = copies
        self.bench.machine.configure("g", COPIES, copies)

    @rule()
    def restart(self) -> None:
        self.bench.restart()
        self.bench.machine.configure("g", COPIES, self.copies)

    def commit(self, member: Member) -> None:
        """Whoever runs tasks may commit for them, also if it has not heard of its newest epoch."""
        runs = {name: [n for part, n in member.runs.active if part == OF_TOPICS[name]] for name in OF_TOPICS}
        made = messages.OffsetCommitRequest
        asked = made(group_id="g", member_id=member.name, generation_id_or_member_epoch=member.epoch)
        for name, numbers in runs.items():
            rows = [made.OffsetCommitRequestPartition(partition_index=n, committed_offset=1) for n in numbers]
            if rows and max(numbers) < self.cluster.counts[name]:
                asked.topics.append(made.OffsetCommitRequestTopic(name=name, partitions=rows))
        if asked.topics:
            answer = self.bench.ask(asked, 9)
            assert {row.error_code for each in answer.topics for row in each.partitions} == {0}

    def group(self) -> StreamsGroup | None:
        found = self.bench.machine.groups.get("g")
        assert found is None or isinstance(found, StreamsGroup)
        return found

    @invariant()
    def no_task_runs_twice(self) -> None:
        active: list[Any] = [task for member in self.members.values() for task in member.runs.active]
        assert len(active) == len(set(active))
        for process in ("p0", "p1"):
            here = [member.runs for member in self.members.values() if member.process == process]
            roles = [task for tasks in here for each in tasks for task in each]
            assert len(roles) == len(set(roles))

    @invariant()
    def no_task_is_held_twice(self) -> None:
        group = self.group()
        held = (
            []
            if group is None
            else [member.assigned.active | member.revoking.active for member in group.members.values()]
        )
        assert sum(map(len, held)) == len(frozenset().union(*held))

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self.group()
        if group is None:
            return
        now = {"the group": group.epoch, "its targets": group.assignment_epoch}
        assert group.assignment_epoch <= group.epoch
        for member in group.members.values():
            assert member.epoch <= group.assignment_epoch
            if member.epoch != AWAY:
                now[member.id] = member.epoch
        assert all(epoch >= self.epochs.get(name, 0) for name, epoch in now.items())
        self.epochs = now

    @invariant()
    def records_have_it_all(self) -> None:
        live, loaded = self.group(), self.bench.restarted().groups.get("g")  # type: ignore[attr-defined]
        assert (live is None) == (loaded is None)
        for name in RECORDED if live is not None else ():
            assert getattr(live, name) == getattr(loaded, name), name

    def teardown(self) -> None:
        self.cluster.counts["u"] = max(2, self.cluster.counts["u"])
        self.bench.machine.topics_changed()
        for slot in [slot for slot, member in self.members.items() if member.unsure and member.instance is not None]:
            del self.members[slot]  # it cannot join again until its session ends
        for member in self.members.values():
            if member.unsure:
                member.start()
        for _ in range(30):  # a member that was refused, or is away, is there until its session ends
            self.all_beat(2_000)
        group = self.group()
        if not self.members or group is None:
            return
        assert group.state == "Stable"
        assert {member.name for member in self.members.values()} == group.members.keys()
        for member in self.members.values():
            assert member.runs == group.members[member.name].assigned == group.target[member.name]
        every = [(part, number) for name, part in OF_TOPICS.items() for number in range(self.cluster.counts[name])]
        assert sorted(task for member in self.members.values() for task in member.runs.active) == sorted(every)
        assert max(len(member.runs.active) for member in self.members.values()) <= -(-len(every) // len(self.members))
        copies = min(self.copies, len({member.process for member in self.members.values()}) - 1)
        standby = [task for member in self.members.values() for task in member.runs.standby]
        assert sorted(standby) == sorted(copies * [("0", number) for number in range(3)])


def rows(tasks: Any) -> list[dict[str, Any]]:
    row = messages.StreamsGroupHeartbeatRequest.TaskIds
    return [each.to_dict() for each in task_rows(row, tasks)]


TestStreamsGroups = StreamsGroups.TestCase
TestStreamsGroups.settings = settings(max_examples=examples(200), stateful_step_count=25, deadline=None)
