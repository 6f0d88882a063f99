"""Commits and fetches of offsets: versions, repeated attempts, results per partition."""

from __future__ import annotations

import uuid

import pytest

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Coordinator
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.client.groups.offsets import CommittedOffset, OffsetCommit, OffsetFetch
from kafkacodec.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
    UnsupportedVersion,
)

ID = uuid.UUID(int=7)
MEMBER = GroupMetadata("g", 5, "m", "static")
OFFSETS = {("t", 0): CommittedOffset(3, 1, "a"), ("t", 1): CommittedOffset(4)}
PLACE = Coordinator("group", "g")


def cluster(topic_id=ID):
    made = Cluster([("h", 1)], backoff=Backoff(jitter=0.0))
    made.want(["t"])
    kind = messages.MetadataResponse
    topic = kind.MetadataResponseTopic(name="t", topic_id=topic_id)
    (send,) = made.poll(0)
    broker = kind.MetadataResponseBroker(node_id=1, host="h", port=1)
    made.answered(send, Answer(kind(brokers=[broker], topics=[topic]), 12, 1), 0)
    return made


def commit(member=lambda: MEMBER, offsets=OFFSETS, known=None, deadline=10_000.0):
    return OffsetCommit(known or cluster(), offsets, member, deadline=deadline, backoff=Backoff(jitter=0.0))


def committed(version, *codes):
    kind = messages.OffsetCommitResponse
    partitions = [kind.OffsetCommitResponsePartition(partition_index=n, error_code=c) for n, c in enumerate(codes)]
    topic = kind.OffsetCommitResponseTopic(name="t", topic_id=ID, partitions=partitions)
    response = kind(topics=[topic])
    return kind.decode(response.encode(version), version)


def answer(machine, response, version, now=0.0):
    (send,) = machine.poll(now)
    machine.answered(send, Answer(response, version, 1), now)
    return send


@pytest.mark.parametrize("version", range(11))
def test_each_version_of_a_commit(version):
    machine = commit(lambda: MEMBER._replace(group_instance_id="static" if version >= 7 else None))
    (send,) = machine.poll(0)
    assert send.to == PLACE
    request, chosen = send.request({8: range(0, version + 1)})
    assert chosen == version
    read = type(request).decode(request.encode(version), version)
    assert read.group_id == "g"
    assert (read.generation_id_or_member_epoch, read.member_id) == ((5, "m") if version else (-1, ""))
    (topic,) = read.topics
    assert (topic.name, topic.topic_id) == (("t", uuid.UUID(int=0)) if version < 10 else ("", ID))
    entries = [(p.partition_index, p.committed_offset, p.committed_metadata) for p in topic.partitions]
    assert entries == [(0, 3, "a"), (1, 4, "")]
    assert [p.committed_leader_epoch for p in topic.partitions] == ([1, -1] if version >= 6 else [-1, -1])
    machine.answered(send, Answer(committed(version, 0, 0), version, 1), 0)
    assert (machine.done, machine.error, machine.errors) == (True, None, {})


def test_a_topic_without_a_known_id_is_committed_by_name():
    (send,) = commit(known=cluster(topic_id=uuid.UUID(int=0))).poll(0)
    assert send.request({8: range(0, 11)})[1] == 9


def test_only_what_may_still_succeed_is_sent_again():
    machine = commit()
    answer(machine, committed(9, 12, 14), 9)
    assert machine.poll(99) == []
    assert machine.next_deadline() == 100
    (send,) = machine.poll(100)
    assert [p.partition_index for p in send.request({8: range(0, 10)})[0].topics[0].partitions] == [1]
    response = messages.OffsetCommitResponse.decode(committed(9, 0, 0).encode(9), 9)
    machine.answered(send, Answer(response, 9, 1), 100)
    assert machine.done
    assert {place: fault.code for place, fault in machine.errors.items()} == {("t", 0): 12}


@pytest.mark.parametrize("code", [22, 25, 27, 82, 110, 3])
def test_errors_that_do_not_pass(code):
    machine = commit()
    answer(machine, committed(9, code, code), 9)
    assert machine.done
    assert machine.error is None
    assert [fault.code for fault in machine.errors.values()] == [code, code]


def test_a_partition_without_an_answer_has_not_succeeded():
    machine = commit()
    answer(machine, committed(9, 0), 9)
    assert {place: fault.code for place, fault in machine.errors.items()} == {("t", 1): -1}


@pytest.mark.parametrize("code", [15, 16])
def test_a_coordinator_that_moved_is_looked_up_again(code):
    known = cluster()
    assert known.node_of(PLACE) is None
    (lookup,) = known.poll(0)
    found = messages.FindCoordinatorResponse
    known.answered(lookup, Answer(found(coordinators=[found.Coordinator(key="g", node_id=1, port=1)]), 6, 1), 0)
    assert known.node_of(PLACE) == 1
    machine = commit(known=known)
    answer(machine, committed(9, code, code), 9)
    assert not machine.done
    assert known.node_of(PLACE) is None


def test_a_new_epoch_of_the_same_member_is_used_and_that_of_another_is_not():
    current = MEMBER
    machine = commit(lambda: current)
    (send,) = machine.poll(0)
    current = MEMBER._replace(generation=6)
    machine.answered(send, Answer(committed(9, 113, 113), 9, 1), 0)
    (send,) = machine.poll(100)
    assert send.request({8: range(0, 10)})[0].generation_id_or_member_epoch == 6
    current = MEMBER._replace(member_id="other", generation=7)
    machine.answered(send, Answer(committed(9, 113, 113), 9, 1), 100)
    assert {fault.code for fault in machine.errors.values()} == {113}


def test_membership_that_ends_ends_the_commit():
    current = MEMBER
    machine = commit(lambda: current)
    answer(machine, committed(9, 14, 14), 9)
    current = None
    assert machine.poll(100) == []
    assert machine.done
    assert machine.error.code == 14


def test_time_is_over_with_the_last_error_as_its_cause():
    machine = commit(deadline=150)
    (send,) = machine.poll(0)
    assert send.timeout_ms == 150
    fault = ConnectionFailed("gone", sent=True)
    machine.failed(send, fault, 10)
    (send,) = machine.poll(110)
    assert send.timeout_ms == 40
    machine.failed(send, ConnectionFailed("gone again"), 120)
    assert machine.next_deadline() == 150
    assert machine.poll(150) == []
    assert isinstance(machine.error, DeadlineExceeded)
    assert machine.error.sent
    assert "gone again" in str(machine.error)
    assert str(machine.error.__cause__) == "gone again"


@pytest.mark.parametrize("fault", [UnsupportedVersion("too old"), AuthenticationFailed("wrong password")])
def test_what_would_fail_again_is_not_repeated(fault):
    machine = commit()
    (send,) = machine.poll(0)
    machine.failed(send, fault, 0)
    assert machine.error is fault


def test_nothing_to_commit_is_done():
    machine = commit(offsets={})
    assert (machine.done, machine.error, machine.poll(0)) == (True, None, [])


# Fetching


def fetch(places=(("t", 1), ("t", 0)), **options):
    member = lambda: GroupMetadata("g")  # noqa: E731
    return OffsetFetch(cluster(), places, member, deadline=10_000, backoff=Backoff(jitter=0.0), **options)


def fetched(version, *rows, code=0):
    """A response with partition, offset, epoch, metadata and error code in each row."""
    kind = messages.OffsetFetchResponse
    names = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    if version < 8:
        entries = [kind.OffsetFetchResponsePartition(**dict(zip(names, row, strict=True))) for row in rows]
        response = kind(topics=[kind.OffsetFetchResponseTopic(name="t", partitions=entries)])
        response.error_code = code if version >= 2 else 0
    else:
        entries = [kind.OffsetFetchResponsePartitions(**dict(zip(names, row, strict=True))) for row in rows]
        topic = kind.OffsetFetchResponseTopics(name="t", topic_id=ID, partitions=entries)
        response = kind(groups=[kind.OffsetFetchResponseGroup(group_id="g", topics=[topic], error_code=code)])
    return kind.decode(response.encode(version), version)


@pytest.mark.parametrize("version", range(11))
def test_each_version_of_a_fetch(version):
    machine = fetch(require_stable=True)
    (send,) = machine.poll(0)
    request, chosen = send.request({9: range(0, version + 1)})
    assert chosen == version
    read = type(request).decode(request.encode(version), version)
    group = read if version < 8 else read.groups[0]
    (topic,) = group.topics
    assert group.group_id == "g"
    assert topic.partition_indexes == [0, 1]
    assert (topic.topic_id == ID) if version == 10 else (topic.name == "t")
    assert read.require_stable is (version >= 7)
    response = fetched(version, (0, 12, 4, "x", 0), (1, -1, -1, "", 0))
    machine.answered(send, Answer(response, version, 1), 0)
    epoch = 4 if version >= 5 else -1
    assert (machine.done, machine.error, machine.errors) == (True, None, {})
    assert machine.offsets == {("t", 0): CommittedOffset(12, epoch, "x"), ("t", 1): None}


def test_all_partitions_of_a_group():
    machine = fetch(None)
    (send,) = machine.poll(0)
    request, version = send.request({9: range(0, 11)})
    assert (version, request.groups[0].topics) == (9, None)  # ids could be of topics without a known name
    machine.answered(send, Answer(fetched(9, (0, 12, 4, "x", 0)), 9, 1), 0)
    assert machine.offsets == {("t", 0): CommittedOffset(12, 4, "x")}
    with pytest.raises(UnsupportedVersion):
        fetch(None).poll(0)[0].request({9: range(0, 2)})


def test_zookeeper_answers_an_unknown_partition_where_there_is_no_offset():
    machine = fetch([("t", 0)])
    answer(machine, fetched(0, (0, -1, -1, "", 3)), 0)
    assert (machine.errors, machine.offsets) == ({}, {("t", 0): None})
    machine = fetch([("t", 0)])
    answer(machine, fetched(1, (0, -1, -1, "", 3)), 1)
    assert {place: fault.code for place, fault in machine.errors.items()} == {("t", 0): 3}


@pytest.mark.parametrize("version", [2, 7, 8, 9])
def test_an_error_of_the_group(version):
    machine = fetch()
    answer(machine, fetched(version, code=16), version)
    assert not machine.done
    (send,) = machine.poll(100)
    machine.answered(send, Answer(fetched(version, code=30), version, 1), 100)
    assert machine.error.code == 30


def test_unstable_offsets_are_waited_for():
    machine = fetch()
    answer(machine, fetched(9, (0, 12, -1, "", 0), (1, -1, -1, "", 88)), 9)
    assert not machine.done
    answer(machine, fetched(9, (1, 8, -1, "", 0)), 9, 100)
    assert machine.done
    assert machine.offsets == {("t", 0): CommittedOffset(12), ("t", 1): CommittedOffset(8)}


def test_without_a_generation_nothing_is_committed():
    machine = commit(lambda: None)
    assert machine.poll(0) == []
    assert machine.error.code == 27


@pytest.mark.parametrize("make", [commit, fetch], ids=["commit", "fetch"])
def test_answers_that_are_nonsense_end_the_call(make):
    machine, now = make(), 0.0
    nonsense = RemoteProtocolError("broker h:1: unexpected correlation id 7")
    for wanted in (None, None, nonsense):
        (send,) = machine.poll(now)
        machine.failed(send, nonsense, now)
        assert machine.error is wanted
        now += 1000
    assert machine.done
