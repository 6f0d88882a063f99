"""Streams groups: the coordinator, its records, its assignor. Answers are those of Apache Kafka 4.4.0, as recorded in
`tests/data/broker/answers`."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec import messages
from kafkacodec.broker.state.coordinator import GroupCoordinator
from kafkacodec.broker.state.options import GroupOptions
from kafkacodec.broker.state.streams.assignor import Assigned, sticky
from kafkacodec.broker.state.streams.member import STABLE, UNRELEASED, UNREVOKED, StreamsMember
from kafkacodec.broker.state.streams.moving import Holders, moved
from kafkacodec.broker.state.streams.tasks import NO_TASKS, Tasks
from kafkacodec.internal_records import CONSUMER_OFFSETS
from kafkacodec.messages.stored import decode_internal_record
from tests.differential.streams_members import part, topic, topology
from tests.reference.coordinators import Bench, Cluster

ROLES = ("active_tasks", "standby_tasks", "warmup_tasks")


def bench(delay: int = 0, interval: int = 0, **topics: int) -> Bench:
    cluster = Cluster(**(topics or {"t": 2}))
    options = GroupOptions(
        group_streams_initial_rebalance_delay_ms=delay, group_streams_assignment_interval_ms=interval
    )
    made = Bench(lambda: GroupCoordinator(cluster, options=options))
    made.cluster = cluster
    return made


def beat(on: Bench, epoch: int, member: str = "m", made: Any = None, **fields: Any) -> Any:
    first = {"rebalance_timeout_ms": 60_000, "process_id": f"process of {member}", **{role: [] for role in ROLES}}
    if epoch == 0:
        fields = first | {"topology": made or topology(part("0", "t"))} | fields
    every = {"group_id": "g", "member_id": member, "member_epoch": epoch, **fields}
    return on.ask(messages.StreamsGroupHeartbeatRequest.from_dict(every), 1)


def owning(*numbers: int) -> dict[str, Any]:
    rows = [{"subtopology_id": "0", "partitions": [*numbers]}] if numbers else []
    return dict(zip(ROLES, (rows, [], []), strict=True))


def had(answer: Any) -> Any:
    if answer.active_tasks is None:
        return None
    return [[(row.subtopology_id, row.partitions) for row in getattr(answer, role)] for role in ROLES]


def described(on: Bench) -> Any:
    return on.ask(messages.StreamsGroupDescribeRequest(group_ids=["g"]), 1).groups[0]


def state(on: Bench) -> tuple[str, int, int]:
    group = described(on)
    return group.group_state, group.group_epoch, group.assignment_epoch


def statuses(answer: Any) -> list[int]:
    return [row.status_code for row in answer.status]


def kinds(on: Bench) -> list[str]:
    """The records of each append: names of their keys, with a minus for tombstones."""
    found = []
    for append in on.log:
        records = [decode_internal_record(CONSUMER_OFFSETS, *row) for row in append.data.rows]
        names = [type(r.key).__name__.removesuffix("Key").removeprefix("StreamsGroup") for r in records if r]
        found.append(" ".join(("-" if r and r.value is None else "") + n for r, n in zip(records, names, strict=True)))
    return found


def test_a_member_gets_all_tasks() -> None:
    on = bench()
    joined = beat(on, 0)
    assert (joined.member_epoch, had(joined), statuses(joined)) == (2, [[("0", [0, 1])], [], []], [])
    assert (joined.heartbeat_interval_ms, joined.task_offset_interval_ms) == (5_000, 60_000)
    assert (state(on), had(beat(on, 2, **owning(0, 1)))) == (("Stable", 2, 2), None)
    assert beat(on, -1).member_epoch == -1
    assert state(on) == ("Empty", 3, 3)
    assert kinds(on) == [
        "MemberMetadata Topology Metadata TargetAssignmentMember TargetAssignmentMetadata CurrentMemberAssignment",
        "-CurrentMemberAssignment -TargetAssignmentMember -MemberMetadata Metadata TargetAssignmentMetadata",
    ]


def test_the_first_members_wait_for_others() -> None:
    on = bench(delay=3_000)
    first, second = beat(on, 0), beat(on, 0, "n")
    assert (first.member_epoch, statuses(first), had(first)) == (1, [5], [[], [], []])
    assert (second.member_epoch, statuses(second), state(on)) == (1, [5], ("Assigning", 3, 1))
    on.wait(3_000)
    assert state(on) == ("Reconciling", 3, 3)
    assert [had(beat(on, 1, member)) for member in ("m", "n")] == [[[("0", [n])], [], []] for n in (0, 1)]
    assert state(on) == ("Stable", 3, 3)


def test_the_assignment_stays_for_an_interval() -> None:
    on = bench(interval=1_000)
    beat(on, 0)
    joined = beat(on, 0, "n")
    assert (joined.member_epoch, statuses(joined), had(joined)) == (2, [5], [[], [], []])
    on.wait(1_000)
    assert (beat(on, 2, "n").member_epoch, state(on)) == (3, ("Reconciling", 3, 3))


def test_tasks_move_when_they_are_given_up() -> None:
    on = bench()
    beat(on, 0)
    assert had(beat(on, 0, "n")) == [[], [], []]
    told = beat(on, 2)
    assert (told.member_epoch, had(told)) == (2, [[("0", [0])], [], []])
    assert (beat(on, 2, **owning(0, 1)).member_epoch, had(beat(on, 3, "n"))) == (2, None)
    assert beat(on, 2, **owning(0)).member_epoch == 3
    assert had(beat(on, 3, "n")) == [[("0", [1])], [], []]
    assert state(on) == ("Stable", 3, 3)


def test_who_does_not_give_up_tasks_in_time_is_removed() -> None:
    on = bench()
    beat(on, 0, rebalance_timeout_ms=10_000)
    beat(on, 0, "n")
    beat(on, 2)
    on.wait(9_999)
    assert beat(on, 2, **owning(0, 1)).error_code == 0
    on.wait(1)
    assert beat(on, 2).error_code == 25
    assert had(beat(on, 3, "n", **owning())) == [[("0", [0, 1])], [], []]


def test_a_silent_member_is_removed() -> None:
    on = bench()
    beat(on, 0)
    on.wait(44_000)
    beat(on, 2)
    on.wait(44_999)
    assert state(on)[0] == "Stable"
    on.wait(1)
    assert state(on) == ("Empty", 3, 3)


@pytest.mark.parametrize(
    ("epoch", "tasks", "code"),
    [(2, {}, 0), (3, {}, 110), (1, {}, 110), (0, {}, 0), (2, owning(0, 1, 2), 42), (1, owning(2), 110)],
)
def test_epochs_and_tasks_of_heartbeats(epoch: int, tasks: dict[str, Any], code: int) -> None:
    on = bench()
    beat(on, 0)
    assert beat(on, epoch, **tasks).error_code == code


def test_a_lost_answer_is_given_again() -> None:
    on = bench(delay=3_000)
    beat(on, 0)
    on.wait(3_000)
    assert (beat(on, 1).member_epoch, beat(on, 1).error_code) == (2, 110)
    again = beat(on, 1, **owning())
    assert (again.error_code, again.member_epoch) == (0, 2)


def test_a_restart_changes_nothing() -> None:
    on = bench()
    beat(on, 0, instance_id="box", client_tags=[{"key": "zone", "value": "z"}], rack_id="north",
         user_endpoint={"host": "here", "port": 80})  # fmt: skip
    beat(on, 0, "n")
    beat(on, 2, instance_id="box")
    before = described(on)
    on.restart()
    assert described(on) == before
    assert beat(on, 2, instance_id="box", **owning(0)).member_epoch == 3
    on.wait(45_000)
    assert state(on)[0] == "Empty"


def test_static_members_return_to_their_tasks() -> None:
    on = bench()
    beat(on, 0, instance_id="box")
    assert beat(on, 0, "n", instance_id="box").error_code == 111
    assert beat(on, -2, instance_id="box").member_epoch == -2
    back = beat(on, 0, "n", instance_id="box", process_id="process of m")
    assert (back.error_code, back.member_epoch, had(back)) == (0, 2, [[("0", [0, 1])], [], []])
    assert ([member.member_id for member in described(on).members], state(on)) == (["n"], ("Stable", 2, 2))
    assert beat(on, 2, instance_id="box").error_code == 82


def test_offsets_of_a_task_are_committed_with_the_epoch_in_which_it_was_assigned() -> None:
    on = bench(u=1, t=2)

    def commit(partition: int, epoch: int, member: str = "m", name: str = "t", version: int = 9) -> int:
        request = messages.OffsetCommitRequest
        row = request.OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
        asked = request(group_id="g", member_id=member, generation_id_or_member_epoch=epoch)
        asked.topics = [request.OffsetCommitRequestTopic(name=name, partitions=[row])]
        found: int = on.ask(asked, version).topics[0].partitions[0].error_code
        return found

    assert commit(0, 5) == 69
    beat(on, 0)
    assert [commit(0, epoch) for epoch in (2, 1, 3)] == [0, 113, 113]
    beat(on, 0, "n")
    beat(on, 2)
    beat(on, 2, **owning(0))
    assert [commit(0, 2), commit(1, 2), commit(0, 1), commit(0, 2, name="u")] == [0, 113, 113, 113]
    assert [commit(0, 2, "nobody"), commit(0, -1, ""), commit(0, 3, version=8)] == [25, 25, 35]


def test_internal_topics_are_asked_for() -> None:
    on = bench(t=3)
    changelog = topic("c", cleanup_policy="compact")
    made = topology(
        part("0", "t", repartition_sink_topics=["r"]),
        part("1", repartition_source_topics=[topic("r")], state_changelog_topics=[changelog]),
    )
    joined = beat(on, 0, made=made)
    assert (joined.member_epoch, statuses(joined), state(on)) == (2, [3], ("NotReady", 2, 2))
    missing = on.machine.missing_topics("g")
    assert [(one.name, one.partitions, one.factor, one.configs) for one in missing] == [
        ("c", 3, -1, {"cleanup.policy": "compact"}), ("r", 3, -1, {}),
    ]  # fmt: skip
    on.cluster.counts |= {"c": 3, "r": 3}
    on.machine.topics_changed()
    ready = beat(on, 2)
    assert (ready.member_epoch, had(ready)) == (3, [[("0", [0, 1, 2]), ("1", [0, 1, 2])], [], []])
    assert state(on) == ("Stable", 3, 3)


def test_the_order_of_a_long_chain_of_topics_does_not_matter() -> None:
    """Each of many subtopologies writes what the one before it reads."""
    count = 3_000
    parts = [
        part(f"{n:05}", repartition_source_topics=[topic(f"r{n + 1}")], repartition_sink_topics=[f"r{n}"])
        for n in range(count)
    ]
    on = bench(t=2)
    beat(on, 0, made=topology(*parts, part("source", "t", repartition_sink_topics=[f"r{count}"]), part("end", "t")))
    # r0 is read by nobody, so it is no topic of the group
    assert {one.partitions for one in on.machine.missing_topics("g")} == {2}


def members(*processes: str, active: str = "", standby: str = "") -> dict[str, Assigned]:
    """Members a, b, …; tasks as letters of members by partition."""

    def of(name: str, tasks: str) -> frozenset[tuple[str, int]]:
        return frozenset(("0", number) for number, member in enumerate(tasks) if member == name)

    names = "abcdefgh"[: len(processes)]
    return {
        name: Assigned(process, Tasks(of(name, active), of(name, standby)), {})
        for name, process in zip(names, processes, strict=True)
    }


def shown(targets: dict[str, Tasks], count: int) -> tuple[str, list[str]]:
    """Who has each task, and who has copies of it."""

    def who(role: int, number: int) -> str:
        return "".join(sorted(name for name, tasks in targets.items() if ("0", number) in tasks[role]))

    return "".join(who(0, n) for n in range(count)), [who(1, n) for n in range(count)]


@pytest.mark.parametrize(
    ("count", "copies", "known", "active", "standby"),
    [
        (4, 0, members("p", "q"), "abab", [""] * 4),
        (4, 0, members("p", "q", active="aaaa"), "aabb", [""] * 4),
        (4, 0, members("p", "q", "r", active="aabb"), "aabc", [""] * 4),
        (4, 0, members("p", "q", standby="bbaa"), "bbaa", [""] * 4),
        (2, 1, members("p"), "aa", ["", ""]),
        (2, 1, members("p", "p"), "ab", ["", ""]),
        (2, 1, members("p", "q", active="ab"), "ab", ["b", "a"]),
        (4, 1, members("p", "q", active="aaaa"), "aabb", ["b", "b", "a", "a"]),
        (2, 2, members("p", "q", "r", active="ab"), "ab", ["bc", "ac"]),
    ],
)
def test_the_sticky_assignor(
    count: int, copies: int, known: dict[str, Assigned], active: str, standby: list[str]
) -> None:
    assert shown(sticky({"0": count}, ["0"], known, copies), count) == (active, standby)


def test_all_members_get_equally_many_tasks() -> None:
    known = members(*"ppqqrrst", active="a" * 50)
    targets = sticky({"0": 50, "1": 13}, [], known, 1)
    counts = [len(tasks.active) for tasks in targets.values()]
    assert (sum(counts), max(counts) - min(counts)) == (63, 1)
    assert len(targets["a"].active & known["a"].tasks.active) == len(targets["a"].active)


def member(name: str, process: str, *, epoch: int = 2, **tasks: Any) -> StreamsMember:
    assigned = Tasks(**{role: frozenset(("0", n) for n in numbers) for role, numbers in tasks.items()})
    return StreamsMember(
        name, process=process, epoch=epoch, assigned=assigned, epochs=dict.fromkeys(assigned.active, 2)
    )


def of(**tasks: Any) -> Tasks:
    return Tasks(**{role: frozenset(("0", n) for n in numbers) for role, numbers in tasks.items()})


@pytest.mark.parametrize(
    ("had_tasks", "target", "beside", "state", "assigned", "revoking"),
    [
        ({"active": [0]}, of(active=[0, 1]), {}, STABLE, of(active=[0, 1]), NO_TASKS),
        ({"active": [0]}, of(active=[0, 1]), {"active": [1]}, UNRELEASED, of(active=[0]), NO_TASKS),
        ({"active": [0, 1]}, of(active=[0]), {}, UNREVOKED, of(active=[0]), of(active=[1])),
        # a task becomes a copy at once, and is given up as a task; a copy stays until it becomes the task
        ({"active": [0]}, of(standby=[0]), {}, UNREVOKED, of(standby=[0]), of(active=[0])),
        ({"standby": [0]}, of(active=[0]), {}, STABLE, of(active=[0]), NO_TASKS),
        ({"standby": [0]}, of(active=[0]), {"active": [0]}, UNRELEASED, of(standby=[0]), NO_TASKS),
        ({"standby": [0]}, of(warmup=[0]), {}, STABLE, of(warmup=[0]), NO_TASKS),
        ({"warmup": [0]}, of(standby=[0]), {}, STABLE, of(standby=[0]), NO_TASKS),
        # a process has a task in one role
        ({}, of(standby=[0]), {"active": [0], "same": True}, UNRELEASED, NO_TASKS, NO_TASKS),
        ({}, of(standby=[0]), {"active": [0]}, STABLE, of(standby=[0]), NO_TASKS),
        ({}, of(active=[0]), {"standby": [0], "same": True}, UNRELEASED, NO_TASKS, NO_TASKS),
        ({}, of(warmup=[0]), {"standby": [0], "same": True}, UNRELEASED, NO_TASKS, NO_TASKS),
    ],
)
def test_steps_to_a_target(
    had_tasks: dict[str, Any], target: Tasks, beside: dict[str, Any], state: int, assigned: Tasks, revoking: Tasks
) -> None:
    same = beside.pop("same", False) if beside else False
    first = member("a", "p", **had_tasks)
    other = member("b", "p" if same else "q", **beside)
    after = moved(first, target, 3, Holders([first, other]), None)
    assert (after.state, after.assigned, after.revoking) == (state, assigned, revoking)
    assert (after.epoch, after.previous_epoch) == (2 if state == UNREVOKED else 3, 2)
