"""Share groups and their states. Expected values are answers of Apache Kafka 4.4.0 to the same requests."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.broker.state.coordinator import GroupCoordinator
from kafkacodec.broker.state.machine import partition_of
from kafkacodec.broker.state.sharing.states import ShareStates, share_key
from kafkacodec.broker.state.sharing.targets import share_targets
from kafkacodec.internal_records import SHARE_GROUP_STATE as TOPIC
from kafkacodec.messages.stored import decode_internal_record
from tests.broker_wire import wire_to
from tests.reference.coordinators import AT_ONCE, Bench, Cluster

T, U = uuid.UUID(int=100), uuid.UUID(int=101)


def bench(**topics: int) -> Bench:
    """A group coordinator beside a share coordinator."""
    cluster = Cluster(**(topics or {"t": 3, "u": 1}))
    made = Bench(lambda: GroupCoordinator(cluster, options=AT_ONCE))
    made.cluster = cluster
    made.other = Bench(lambda: ShareStates(cluster))
    return made


def beat(
    on: Bench, epoch: int, topics: list[str] | None = None, member: str = "m", group: str = "g", **fields: Any
) -> Any:
    every = {"group_id": group, "member_id": member, "member_epoch": epoch, "subscribed_topic_names": topics} | fields
    return on.ask(messages.ShareGroupHeartbeatRequest(**every), 1)


def owned(answer: Any) -> Any:
    return None if answer.assignment is None else {p.topic_id: p.partitions for p in answer.assignment.topic_partitions}


def described(on: Bench, group: str = "g") -> Any:
    return on.ask(messages.ShareGroupDescribeRequest(group_ids=[group]), 1).groups[0]


def state(on: Bench, topic_id: uuid.UUID = T, number: int = 0, group: str = "g") -> Any:
    """Start and state epoch of a partition; an error code if it has none."""
    assert on.other is not None
    request = messages.ReadShareGroupStateRequest
    row = request.ReadStateData(topic_id=topic_id, partitions=[request.PartitionData(partition=number)])
    found = on.other.ask(request(group_id=group, topics=[row]), 0).results[0].partitions[0]
    return found.error_code or (found.start_offset, found.state_epoch)


def kinds(log: list[Any], topic: str) -> list[str]:
    """The records of each append: names of their keys, with a minus for tombstones."""
    found = []
    for append in log:
        records = [decode_internal_record(topic, *row) for row in append.data.rows]
        names = [type(r.key).__name__.removesuffix("Key").removeprefix("ShareGroup") for r in records if r]
        found.append(" ".join(("-" if r and r.value is None else "") + n for r, n in zip(records, names, strict=True)))
    return found


def test_a_member_is_assigned_what_has_a_state() -> None:
    on = bench()
    joined = beat(on, 0, ["t"])
    assert (joined.member_epoch, joined.heartbeat_interval_ms, owned(joined)) == (2, 5_000, {})
    assert [state(on, number=n) for n in range(4)] == [(-1, 2)] * 3 + [42]
    assigned = beat(on, 2)
    assert (assigned.member_epoch, owned(assigned)) == (3, {T: [0, 1, 2]})
    assert (beat(on, 3).assignment, owned(beat(on, 0, ["t"]))) == (None, {T: [0, 1, 2]})
    row = described(on)
    assert (row.group_state, row.group_epoch, row.assignment_epoch, row.assignor_name) == ("Stable", 3, 3, "simple")
    assert [(p.topic_name, p.partitions) for p in row.members[0].assignment.topic_partitions] == [("t", [0, 1, 2])]
    left = beat(on, -1)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (0, -1, 0)
    row = described(on)
    assert (row.group_state, row.group_epoch, row.assignment_epoch, row.members) == ("Empty", 4, 4, [])
    assert kinds(on.log, "__consumer_offsets") == [
        "MemberMetadata Metadata TargetAssignmentMember TargetAssignmentMetadata CurrentMemberAssignment",
        "StatePartitionMetadata",
        "StatePartitionMetadata",
        "Metadata TargetAssignmentMember TargetAssignmentMetadata CurrentMemberAssignment",
        "-CurrentMemberAssignment -TargetAssignmentMember -MemberMetadata Metadata TargetAssignmentMetadata",
    ]


def test_a_group_and_what_it_has_read_are_deleted() -> None:
    on = bench()
    beat(on, 0, ["t"])
    delete = messages.DeleteGroupsRequest(groups_names=["g"])
    assert on.ask(delete, 2).results[0].error_code == 68
    beat(on, -1)
    assert (on.ask(delete, 2).results[0].error_code, described(on).error_code, state(on)) == (0, 69, 42)
    assert on.restarted().groups == {}  # type: ignore[attr-defined]


def test_states_that_were_to_be_deleted_are_deleted_after_a_restart() -> None:
    on = bench()
    beat(on, 0, ["u"])
    beat(on, -1)
    on.holds = True
    request = messages.DeleteShareGroupOffsetsRequest
    row = request.DeleteShareGroupOffsetsRequestTopic(topic_name="u")
    assert on.ask(request(group_id="g", topics=[row]), 0) is None
    on.release()  # recorded, and not asked for
    on.held.clear()
    on.holds = False
    on.restart()
    assert (state(on, U), on.machine.find("g").deleting) == (42, {})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, 42),
        ({"member_id": ""}, 42),
        ({"subscribed_topic_names": None}, 42),
        ({"subscribed_topic_names": []}, 42),
        ({"rack_id": ""}, 42),
        ({"member_epoch": -2}, 42),
        ({"member_epoch": 5}, 69),
        ({"member_epoch": -1}, 69),
        ({"subscribed_topic_names": ["none"]}, 0),
    ],
)
def test_how_to_join(fields: dict[str, Any], code: int) -> None:
    every = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]} | fields
    assert bench().ask(messages.ShareGroupHeartbeatRequest(**every), 1).error_code == code


def test_epochs_of_heartbeats() -> None:
    on = bench()
    beat(on, 0, ["t"])
    beat(on, 2)
    assert [beat(on, epoch).error_code for epoch in (3, 2, 4, 1)] == [0, 0, 110, 110]
    assert [beat(on, epoch, member="other").error_code for epoch in (3, -1)] == [25, 25]


def test_other_kinds_of_groups() -> None:
    on = bench()
    beat(on, 0, ["t"])
    join = {"session_timeout_ms": 9_000, "protocol_type": "consumer", "member_id": ""}
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range")
    assert on.ask(messages.JoinGroupRequest(group_id="g", protocols=[protocol], **join), 3).error_code == 23
    consumer = messages.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="c", rebalance_timeout_ms=9, subscribed_topic_names=["t"], topic_partitions=[]
    )
    beat(on, -1)
    assert on.ask(consumer, 1).error_code == 69  # of an empty one, too
    consumer.group_id = "new"
    assert on.ask(consumer, 1).error_code == 0
    assert beat(on, 0, ["t"], group="new").error_code == 69
    commit = messages.OffsetCommitRequest
    row = commit.OffsetCommitRequestTopic(
        name="t", partitions=[commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    )
    assert on.ask(commit(group_id="g", topics=[row]), 8).topics[0].partitions[0].error_code == 69


def test_a_silent_member_is_put_out_and_an_empty_group_stays() -> None:
    on = bench()
    beat(on, 0, ["t"])
    on.wait(44_000)
    assert described(on).group_state == "Stable"
    on.wait(2_000)
    assert described(on).group_state == "Empty"
    on.wait(30 * 24 * 3_600_000)
    assert described(on).group_state == "Empty"


def test_members_of_a_restarted_coordinator() -> None:
    on = bench()
    beat(on, 0, ["t", "u"])
    assert owned(beat(on, 2)) == {T: [0, 1, 2], U: [0]}
    before = described(on)
    on.restart()
    assert described(on) == before
    assert beat(on, 3).assignment is None
    on.wait(46_000)
    assert described(on).group_state == "Empty"


def test_topics_come_grow_and_go() -> None:
    on = bench()
    beat(on, 0, ["u", "later"])
    assert owned(beat(on, 2)) == {U: [0]}
    on.cluster.counts |= {"u": 2, "later": 1}
    on.cluster.ids["later"] = uuid.UUID(int=102)
    on.machine.topics_changed()
    beat(on, 3)
    assert owned(beat(on, 4)) == {U: [0, 1], uuid.UUID(int=102): [0]}
    del on.cluster.counts["u"], on.cluster.ids["u"]
    on._do(on.machine.topics_deleted(["u"], on.now))
    assert (owned(beat(on, 5)), state(on, U)) == ({uuid.UUID(int=102): [0]}, 42)


@pytest.mark.parametrize(("members", "places", "readers", "each"), [
    (2, 3, 1, [1, 2]), (3, 2, 2, [1, 1, 2]), (4, 3, 2, [1, 1, 2, 2]), (3, 7, 1, [2, 2, 3]), (5, 2, 3, [1, 1, 1, 1, 2]),
])  # fmt: skip
def test_how_partitions_are_shared(members: int, places: int, readers: int, each: list[int]) -> None:
    wanting = {f"m{n}": {T} for n in range(members)}
    found = share_targets([(T, n) for n in range(places)], wanting, {})
    assert sorted(map(len, found.values())) == each
    counts = [sum((T, n) in had for had in found.values()) for n in range(places)]
    assert max(counts) == readers
    again = share_targets([(T, n) for n in range(places)], wanting, found)
    assert again == found
    fewer = share_targets([(T, n) for n in range(places)], {m: {T} for m in list(wanting)[:-1]}, {})
    grown = share_targets([(T, n) for n in range(places)], wanting, fewer)
    assert sorted(map(len, grown.values())) == each


def test_a_full_group() -> None:
    on = bench()
    assert {beat(on, 0, ["t"], member=f"m{n}").error_code for n in range(200)} == {0}
    assert beat(on, 0, ["t"], member="more").error_code == 81


def test_offsets_of_groups_without_members() -> None:
    on = bench()
    request = messages.AlterShareGroupOffsetsRequest
    part = request.AlterShareGroupOffsetsRequestPartition

    def alter(topic: str, *starts: tuple[int, int]) -> Any:
        rows = [part(partition_index=number, start_offset=offset) for number, offset in starts]
        row = request.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=rows)
        answer = on.ask(request(group_id="g", topics=[row]), 0)
        return answer.error_code or [p.error_code for p in answer.responses[0].partitions]

    assert alter("t", (0, 1), (1, 0), (7, 0)) == [0, 0, 3]
    assert (described(on).group_epoch, described(on).assignment_epoch) == (1, 1)
    assert [state(on, number=n) for n in range(3)] == [(1, 1), (0, 1), 42]
    joined = beat(on, 0, ["t"])
    assert (joined.member_epoch, owned(joined)) == (2, {T: [0, 1]})
    assert alter("t", (0, 0)) == 68
    beat(on, -1)
    assert alter("none", (0, 0)) == [3]


# The share coordinator


def test_where_the_records_of_a_partition_are() -> None:
    for group, topic, number in (
        ("g-cc335130", "0088d03a-49b0-402e-9f55-9fdea2ecdf45", 47),
        ("g-dda1469c", "e15bff09-a76f-43f0-89b3-c80ce1f56d8f", 44),
    ):
        assert partition_of(share_key(group, uuid.UUID(topic), 0), 50) == number


class States:
    """Requests to a share coordinator about one partition."""

    def __init__(self) -> None:
        self.on = Bench(lambda: ShareStates(Cluster(t=3)))

    def ask(self, api: str, rows: str, version: int, topic_id: uuid.UUID = T, group: str = "g", **fields: Any) -> Any:
        request = getattr(messages, f"{api}Request")
        part = request.PartitionData(**{"partition": 0} | fields)
        row = getattr(request, rows)(topic_id=topic_id, partitions=[part])
        return self.on.ask(request(group_id=group, topics=[row]), version).results[0].partitions[0]

    def init(self, epoch: int, start: int = -1, **fields: Any) -> int:
        fields = {"state_epoch": epoch, "start_offset": start} | fields
        return int(self.ask("InitializeShareGroupState", "InitializeStateData", 0, **fields).error_code)

    def read(self, epoch: int = 0, **fields: Any) -> Any:
        row = self.ask("ReadShareGroupState", "ReadStateData", 0, leader_epoch=epoch, **fields)
        batches = [tuple(batch.to_dict().values()) for batch in row.state_batches]
        return row.error_code or (row.state_epoch, row.start_offset, batches)

    def summary(self) -> Any:
        row = self.ask("ReadShareGroupStateSummary", "ReadStateSummaryData", 1)
        return row.error_code, row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count

    def write(self, epoch: int, start: int, complete: int, *batches: tuple[int, ...], leader: int = 0) -> int:
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        made = messages.WriteShareGroupStateRequest.StateBatch
        rows = [made(**dict(zip(names, batch, strict=True))) for batch in batches]
        fields = {"state_epoch": epoch, "leader_epoch": leader, "start_offset": start, "state_batches": rows}
        row = self.ask("WriteShareGroupState", "WriteStateData", 1, delivery_complete_count=complete, **fields)
        return int(row.error_code)

    def delete(self) -> int:
        return int(self.ask("DeleteShareGroupState", "DeleteStateData", 0).error_code)


def test_states() -> None:
    s = States()
    assert (s.read(), s.summary(), s.write(0, 0, 0), s.delete()) == (42, (0, 0, 0, -1, -1), 42, 0)
    assert (s.init(0), s.read(), s.summary()) == (0, (0, -1, []), (0, 0, 0, -1, -1))
    assert (s.init(0), s.init(2, 5), s.read(), s.init(1)) == (0, 0, (2, 5, []), 124)
    assert (s.write(1, 0, 0), s.write(0, 0, 0), s.write(3, 5, 0)) == (124, 124, 0)
    assert s.write(2, 5, 2, (5, 6, 2, 1), (7, 9, 0, 2), (10, 10, 4, 1)) == 0
    assert s.read() == (2, 5, [(5, 6, 2, 1), (7, 9, 0, 2), (10, 10, 4, 1)])
    assert s.summary() == (0, 2, 0, 5, 2)
    assert s.write(2, -1, 3, (7, 7, 2, 2), (11, 12, 0, 1)) == 0
    assert s.read() == (2, 5, [(5, 6, 2, 1), (7, 7, 2, 2), (8, 9, 0, 2), (10, 10, 4, 1), (11, 12, 0, 1)])
    assert s.summary() == (0, 2, 0, 5, 2)
    assert s.write(2, 8, 0) == 0
    kept = (2, 8, [(8, 9, 0, 2), (10, 10, 4, 1), (11, 12, 0, 1)])
    assert (s.read(), s.summary()) == (kept, (0, 2, 0, 8, 0))
    assert (s.read(1), s.summary(), s.write(2, 8, 0), s.read(0)) == (kept, (0, 2, 1, 8, 0), 74, 74)
    s.on.restart()
    assert (s.read(1), s.summary()) == (kept, (0, 2, 1, 8, 0))
    assert (s.read(-1), s.init(0, partition=9), s.init(0, partition=-1)) == (42, 3, 42)
    assert s.init(0, topic_id=uuid.UUID(int=9)) == 3
    assert (s.delete(), s.read(), s.delete()) == (0, 42, 0)
    s.on.restart()
    assert s.read() == 42
    empty = messages.ReadShareGroupStateRequest
    assert s.on.ask(empty(group_id="g"), 0).results == s.on.ask(empty(group_id=""), 0).results == []


def test_a_snapshot_follows_many_updates() -> None:
    s = States()
    s.init(1, 0)
    for offset in range(502):
        s.write(1, offset, 1, (offset, offset, 2, 1))
    found = kinds(s.on.log, "__share_group_state")
    assert [at for at, name in enumerate(found) if name == "ShareSnapshot"] == [0, 501]
    s.on.log = s.on.log[501:]  # which makes all before it needless
    s.on.restart()
    assert s.read() == (1, 501, [(501, 501, 2, 1)])


def test_a_write_that_failed_changes_nothing() -> None:
    s = States()
    s.init(1, 0)
    s.on.holds = True
    request = messages.DeleteShareGroupStateRequest
    row = request.DeleteStateData(topic_id=T, partitions=[request.PartitionData(partition=0)])
    asked = s.on.send(request(group_id="g", topics=[row]), 0)
    s.on.release(OSError("no space"))
    assert asked.answer.results[0].partitions[0].error_code == 16
    s.on.holds = False
    assert s.read() == (1, 0, [])


def test_what_is_before_the_last_snapshots_is_cut_off() -> None:
    config = {"share.coordinator.state.topic.num.partitions": 1}
    with kc.broker.serve(config=config, topics={"t": 2}) as broker, wire_to(broker) as wire:
        topic_id = wire.ask("Metadata", 12, topics=[{"name": "t"}]).topics[0].topic_id

        def ask(api: str, version: int, number: int, **fields: Any) -> Any:
            row = {"topic_id": topic_id, "partitions": [{"partition": number} | fields]}
            return wire.ask(api, version, group_id="g", topics=[row]).results[0].partitions[0]

        for number in (0, 1):
            assert ask("InitializeShareGroupState", 0, number, state_epoch=1, start_offset=0).error_code == 0
        for offset in range(501):
            assert ask("WriteShareGroupState", 1, 0, state_epoch=1, start_offset=offset).error_code == 0

        def start() -> int:
            broker.advance(301)
            asked = [{"partition_index": 0, "timestamp": -2}]
            found = wire.ask("ListOffsets", 7, replica_id=-1, topics=[{"name": TOPIC, "partitions": asked}])
            return int(found.topics[0].partitions[0].offset)

        assert start() == 1  # the snapshot of the other partition
        assert ask("InitializeShareGroupState", 0, 1, state_epoch=2, start_offset=0).error_code == 0
        assert start() == 502
        assert ask("ReadShareGroupState", 0, 0).start_offset == 500


def test_targets_stay_for_an_interval_also_across_a_restart() -> None:
    on = bench(t=2)
    beat(on, 0, ["t"], "a")
    epoch = beat(on, 2, member="a").member_epoch
    on.machine.configure("g", "share.assignment.interval.ms", "1000")
    on.wait(999)
    assert owned(beat(on, 0, ["t"], "b")) == {}
    assert (described(on).group_epoch, described(on).assignment_epoch) == (epoch + 1, epoch)
    on.restart()
    on.machine.configure("g", "share.assignment.interval.ms", "1000")
    assert owned(beat(on, epoch, member="b")) is None
    on.wait(1)
    assert [len(numbers) for numbers in owned(beat(on, epoch, member="b")).values()] == [1]
    assert described(on).assignment_epoch == epoch + 1
