"""Committed offsets of the broker. Expected values are answers of Apache Kafka 4.1.0 and 4.4.0 to the same requests."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kafkacodec import messages
from kafkacodec.messages.stored import decode_internal_record
from tests.reference.coordinators import Bench
from tests.reference.group_members import Member, bench, described, stable

DAY = 86_400_000
ID_OF_T = uuid.UUID(int=100)


def commit(on: Bench, offset: int, topic: str = "t", partition: int = 0, version: int = 8, **fields: Any) -> int:
    """The error code of a commit for one partition."""
    entry = messages.OffsetCommitRequest.OffsetCommitRequestTopic
    row = messages.OffsetCommitRequest.OffsetCommitRequestPartition
    metadata, epoch = fields.pop("metadata", ""), fields.pop("leader_epoch", -1)
    one = row(partition_index=partition, committed_offset=offset)
    one.committed_metadata, one.committed_leader_epoch = metadata, epoch
    topics = [entry(**place(on, topic, version), partitions=[one])]
    request = messages.OffsetCommitRequest(**{"group_id": "g", "topics": topics} | fields)
    return int(on.ask(request, version).topics[0].partitions[0].error_code)


def commit_in_transaction(on: Bench, offset: int, version: int = 3, producer: int = 7, **fields: Any) -> int:
    """The error code of a commit in a transaction."""
    entry = messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    row = messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    rows = [row(partition_index=0, committed_offset=offset, committed_metadata="")]
    who = {"transactional_id": "x", "group_id": "g", "producer_id": producer, "producer_epoch": 0}
    request = messages.TxnOffsetCommitRequest(**who | {"topics": [entry(name="t", partitions=rows)]} | fields)
    return int(on.ask(request, version).topics[0].partitions[0].error_code)


def fetch(on: Bench, topics: dict[str, list[int]] | None = None, version: int = 7, **fields: Any) -> Any:
    """The rows of OffsetFetch: topic, partition, offset, error."""
    if version < 8:
        old = messages.OffsetFetchRequest.OffsetFetchRequestTopic
        rows = None if topics is None else [old(name=t, partition_indexes=p) for t, p in topics.items()]
        found = on.ask(messages.OffsetFetchRequest(**{"group_id": "g", "topics": rows} | fields), version).topics
    else:
        new = messages.OffsetFetchRequest.OffsetFetchRequestTopics
        asked = topics and [new(**place(on, t, version), partition_indexes=p) for t, p in topics.items()]
        group = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=asked)
        found = on.ask(messages.OffsetFetchRequest(groups=[group], **fields), version).groups[0].topics
    return [
        (topic.name or topic.topic_id, row.partition_index, row.committed_offset, row.error_code)
        for topic in found
        for row in topic.partitions
    ]


def place(on: Bench, topic: str, version: int) -> dict[str, Any]:
    """A topic by its name or id."""
    return {"topic_id": on.cluster.ids.get(topic, uuid.UUID(int=31))} if version > 9 else {"name": topic}


def delete(on: Bench, topic: str = "t", partition: int = 0, group: str = "g") -> tuple[int, list[int]]:
    """The error codes of OffsetDelete."""
    entry = messages.OffsetDeleteRequest.OffsetDeleteRequestTopic
    row = messages.OffsetDeleteRequest.OffsetDeleteRequestPartition
    topics = [entry(name=topic, partitions=[row(partition_index=partition)])]
    answer = on.ask(messages.OffsetDeleteRequest(group_id=group, topics=topics), 0)
    return answer.error_code, [p.error_code for t in answer.topics for p in t.partitions]


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_committed_and_fetched_with_every_version(version: int) -> None:
    on = bench()
    assert commit(on, 40 + version, version=version) == 0
    name: Any = ID_OF_T if version > 9 else "t"
    assert fetch(on, {"t": [0, 1]}, version) == [(name, 0, 40 + version, 0), (name, 1, -1, 0)]
    if version > 1:
        assert fetch(on, None, version) == [(name, 0, 40 + version, 0)]
    assert described(on).group_state == "Empty"
    fresh: Any = on.restarted()
    assert fresh.offsets.places("g") == [("t", 0)]


def test_places_that_are_not_there() -> None:
    on = bench()
    assert [commit(on, 1, "none"), commit(on, 1, partition=9), commit(on, 1, partition=-1)] == [3, 3, 3]
    assert commit(on, 1, "none", version=10) == 100
    assert fetch(on, {"none": [0], "t": [9]}) == [("none", 0, -1, 0), ("t", 9, -1, 0)]
    assert fetch(on, {"none": [0]}, 10) == [(uuid.UUID(int=31), 0, -1, 100)]
    assert fetch(on, {"t": [0]}, 0) == [("t", 0, -1, 3)]
    assert described(on).group_state == "Dead"
    assert on.log == []


def test_metadata_and_numbers() -> None:
    on = bench()
    texts = [None, "", "größe", "x" * 4_096, "x" * 4_097, "\U0001f600" * 2_049]
    assert [commit(on, 5, metadata=text) for text in texts] == [0, 0, 0, 0, 12, 12]
    assert [commit(on, offset) for offset in (0, 2**63 - 1, -1, -2)] == [0, 0, 0, 0]
    assert fetch(on, {"t": [0]}) == [("t", 0, -2, 0)]
    assert commit(on, 7, group_id="") == 0
    assert fetch(on, {"t": [0]}, group_id="") == [("t", 0, 7, 0)]


def test_only_members_commit_in_a_group_that_has_some() -> None:
    on = bench()
    (m,) = stable(on, 1)
    mine = {"generation_id_or_member_epoch": 1, "member_id": m.id}
    assert [commit(on, 2, version=version, **mine) for version in (2, 5, 7, 9)] == [0, 0, 0, 0]
    codes = [
        commit(on, 9, **mine | {"generation_id_or_member_epoch": 55}),
        commit(on, 9, **mine | {"generation_id_or_member_epoch": 0}),
        commit(on, 9, **mine | {"member_id": "nobody"}),
        commit(on, 9, **mine | {"member_id": ""}),
        commit(on, 9),
        commit(on, 9, member_id=m.id),
        commit(on, 9, group_instance_id="box", **mine),
        commit(on, 9, **mine | {"group_id": "none"}),
    ]
    assert codes == [22, 22, 25, 25, 25, 22, 25, 22]
    assert fetch(on, {"t": [0]}) == [("t", 0, 2, 0)]
    m.leave()
    assert (commit(on, 10), commit(on, 11, **mine)) == (0, 25)


def test_commits_while_a_group_rebalances() -> None:
    on = bench()
    (m,) = stable(on, 1)
    mine = {"generation_id_or_member_epoch": 1, "member_id": m.id}
    Member(on).enter()
    assert commit(on, 3, **mine) == 0
    m.join()
    assert commit(on, 4, **mine | {"generation_id_or_member_epoch": 2}) == 27
    assert commit(on, 4, **mine) == 22
    assert fetch(on, {"t": [0]}) == [("t", 0, 3, 0)]


def test_offsets_are_deleted() -> None:
    on = bench()
    for partition in range(3):
        commit(on, partition + 1, partition=partition)
    assert delete(on) == delete(on) == (0, [0])
    assert (delete(on, partition=7), delete(on, "none")) == ((0, [3]), (0, [3]))
    assert (delete(on, group="nobody"), delete(on, group="")) == ((69, []), (24, []))
    delete(on, partition=1)
    delete(on, partition=2)
    assert (fetch(on), described(on).group_state) == ([], "Empty")
    fresh: Any = on.restarted()
    assert fresh.offsets.places("g") == []


def test_subscribed_topics_keep_their_offsets() -> None:
    on = bench()
    member = Member(on)
    subscription = b"\0\0" + messages.ConsumerProtocolSubscription(topics=["t"]).encode(0)
    member.join({"range": subscription})
    member.sync()
    mine = {"generation_id_or_member_epoch": 1, "member_id": member.id}
    commit(on, 1, **mine)
    commit(on, 1, "u", **mine)
    assert (delete(on), delete(on, "u")) == ((0, [86]), (0, [0]))
    other = bench()
    (m,) = stable(other, 1, protocol_type="connect")
    commit(other, 1, generation_id_or_member_epoch=1, member_id=m.id)
    assert delete(other) == (68, [])


def test_a_commit_in_a_transaction_is_pending_until_the_marker() -> None:
    on = bench()
    assert commit(on, 5) == 0
    assert commit_in_transaction(on, 9) == 0
    assert on.log[-1].data[2:] == (7, 0)
    assert fetch(on, {"t": [0]}) == [("t", 0, 5, 0)]
    assert fetch(on, {"t": [0, 1]}, require_stable=True) == [("t", 0, -1, 88), ("t", 1, -1, 0)]
    assert fetch(on, None, require_stable=True) == [("t", 0, -1, 88)]
    partition = on.machine.log_of("g")[1]
    on.machine.end_transaction(partition + 1, 7, True)  # of another partition
    assert fetch(on, {"t": [0]}) == [("t", 0, 5, 0)]
    on.machine.end_transaction(partition, 7, True)
    assert fetch(on, {"t": [0]}, require_stable=True) == [("t", 0, 9, 0)]
    commit_in_transaction(on, 11)
    on.machine.end_transaction(partition, 7, False)
    assert fetch(on, {"t": [0]}, require_stable=True) == [("t", 0, 9, 0)]


def test_the_later_commit_counts_though_its_transaction_ended_first() -> None:
    on = bench()
    partition = on.machine.log_of("g")[1]
    commit_in_transaction(on, 1, producer=7)
    commit_in_transaction(on, 2, producer=8)
    on.machine.end_transaction(partition, 8, True)
    on.machine.end_transaction(partition, 7, True)
    assert fetch(on, {"t": [0]}) == [("t", 0, 2, 0)]
    commit_in_transaction(on, 3)
    assert delete(on) == (0, [0])  # takes away what is pending, too
    on.machine.end_transaction(partition, 7, True)
    assert fetch(on) == []


def test_who_may_commit_in_a_transaction() -> None:
    on = bench()
    (m,) = stable(on, 1)
    mine = {"generation_id_or_member_epoch": 1, "member_id": m.id}
    codes = [
        commit_in_transaction(on, 1, **mine),
        commit_in_transaction(on, 2, **mine | {"generation_id_or_member_epoch": 8}),
        commit_in_transaction(on, 2, **mine | {"member_id": "nobody"}),
        commit_in_transaction(on, 2, group_instance_id="box", **mine),
        commit_in_transaction(on, 3),
        commit_in_transaction(on, 4, version=2),
        commit_in_transaction(on, 1, group_id="none", generation_id_or_member_epoch=3, member_id="nobody"),
    ]
    assert codes == [0, 22, 25, 25, 0, 0, 25]


def test_the_records_are_what_kafka_writes() -> None:
    on = bench()
    commit(on, 5, metadata="m", leader_epoch=2)
    commit(on, 6, version=2, retention_time_ms=10 * DAY)
    commit(on, 7, version=10)
    found: list[Any] = [decode_internal_record("__consumer_offsets", *append.data.rows[0]) for append in on.log]
    assert [record.version for record in found] == [4, 1, 4]
    first = found[0].value
    assert (first.offset, first.leader_epoch, first.metadata, first.commit_timestamp) == (5, 2, "m", on.now)
    assert found[1].value.expire_timestamp == on.now + 10 * DAY
    assert found[2].value.topic_id == ID_OF_T


def test_offsets_end_with_their_group() -> None:
    on = bench()
    (m,) = stable(on, 1, session_timeout_ms=1_800_000)
    commit(on, 1, generation_id_or_member_epoch=1, member_id=m.id)
    commit(on, 2, "u", group_id="simple")
    commit(on, 3, group_id="short", version=2, retention_time_ms=DAY)
    on.wait(DAY)
    assert described(on, "short").group_state == "Dead"
    assert described(on).group_state == "Empty"  # its member was silent for half an hour
    on.wait(6 * DAY)
    assert (described(on, "simple").group_state, described(on).group_state) == ("Dead", "Empty")
    on.wait(DAY)
    assert described(on).group_state == "Dead"
    fresh: Any = on.restarted()
    assert (fresh.groups, fresh.offsets.places("g")) == ({}, [])


def test_offsets_of_deleted_topics_go() -> None:
    on = bench()
    commit(on, 1)
    commit(on, 2, "u")
    commit_in_transaction(on, 3)
    for append in on.machine.topics_deleted(["t"], on.now).appends:
        on.append(append)
    assert fetch(on) == [("u", 0, 2, 0)]


def test_offsets_of_deleted_topics_go_when_there_is_room_again() -> None:
    on = bench()
    commit(on, 1)
    on.holds = True
    on.held += on.machine.topics_deleted(["t"], on.now).appends
    on.release(OSError("no space left"))
    assert fetch(on) == [("t", 0, 1, 0)]
    on.holds = False
    on.wait(1_000)
    assert fetch(on) == []


def test_a_commit_that_cannot_be_kept_is_refused() -> None:
    on = bench()
    commit(on, 1)
    on.holds = True
    row = messages.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=2)
    row.committed_metadata = ""
    topics = [messages.OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[row])]
    asked = on.send(messages.OffsetCommitRequest(group_id="g", topics=topics), 8)
    assert not asked.answered
    on.release(OSError("no space left"))
    assert asked.answer.topics[0].partitions[0].error_code == 16
    assert fetch(on, {"t": [0]}) == [("t", 0, 1, 0)]
