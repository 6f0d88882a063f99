"""A member of a classic group: what it asks, and what it makes of each answer."""

from __future__ import annotations

import pytest

from kafkacodec import messages
from kafkacodec.assignment.assignors import ASSIGNORS
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Coordinator
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.classic import ClassicMembership
from kafkacodec.client.groups.membership import Assigned, Broken, Failed, GroupSettings, Left, Lost, Revoke
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.errors import (
    ConnectionFailed,
    DecodeError,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
    error,
)
from kafkacodec.messages import APIS
from kafkacodec.messages.consumer_protocol import decode_assignment, decode_subscription, encode_assignment

VERSIONS = {key: api.valid_versions for key, api in APIS.items()}
T0, T1 = ("t", 0), ("t", 1)
SUBSCRIBED = bytes.fromhex("0000 00000001 0001 74 ffffffff")  # version 0, the topic "t", no user data


def metadata(**counts):
    kind = messages.MetadataResponse
    topics = []
    for name, count in counts.items():
        partitions = [kind.MetadataResponsePartition(partition_index=n, leader_id=1) for n in range(count)]
        topics.append(kind.MetadataResponseTopic(name=name, partitions=partitions, error_code=0 if count else 3))
    return kind(brokers=[kind.MetadataResponseBroker(node_id=1, host="h", port=1)], topics=topics)


class Member:
    """A membership, the answers that it gets, and its events."""

    def __init__(self, assignors=None, subscription=None, **options):
        self.now = 0.0
        self.cluster = Cluster([("h", 1)], backoff=Backoff(jitter=0.0))
        settings = GroupSettings(group_id="g", backoff=Backoff(jitter=0.0), **options)
        self.group = ClassicMembership(settings, self.cluster, assignors)
        self.group.subscribe(subscription or Subscription(["t"]), self.now)
        self.group.polled(self.now, waiting=True)

    def known(self, **counts):
        self.cluster.refresh()
        self.now += 500
        for send in (s for s in self.cluster.poll(self.now) if s.context is None):
            self.cluster.answered(send, Answer(metadata(**counts), 12, 1), self.now)

    def asked(self):
        """The one request that is due, as its message."""
        (self.send,) = self.group.poll(self.now)
        assert self.send.to == Coordinator("group", "g")
        request, chosen = self.send.request(VERSIONS)
        assert type(request).decode(request.encode(chosen), chosen) is not None
        return request

    def answer(self, **fields):
        kind = type(self.send.request(VERSIONS)[0]).__name__.replace("Request", "Response")
        self.group.answered(self.send, Answer(getattr(messages, kind)(**fields), 9, 1), self.now)

    def joined(self, leader="m", members=(), generation=1, protocol="range", **fields):
        request = self.asked()
        assert isinstance(request, messages.JoinGroupRequest)
        self.answer(
            generation_id=generation, protocol_name=protocol, leader=leader, member_id="m", members=members, **fields
        )
        return request

    def synced(self, *places):
        request = self.asked()
        assert isinstance(request, messages.SyncGroupRequest)
        self.answer(assignment=assignment(*places))
        return request

    def follower(self, *places, generation=1):
        self.joined(leader="other", generation=generation)
        self.synced(*places)
        return self.group.take_events()


def assignment(*places):
    kind = messages.ConsumerProtocolAssignment
    entries = [kind.TopicPartition(topic=topic, partitions=[number]) for topic, number in places]
    return encode_assignment(kind(assigned_partitions=entries))


def member(name, data=SUBSCRIBED):
    return messages.JoinGroupResponse.JoinGroupResponseMember(member_id=name, metadata=data)


def test_the_coordinator_gives_the_member_id():
    it = Member()
    request = it.asked()
    assert (request.member_id, request.session_timeout_ms, request.rebalance_timeout_ms) == ("", 45_000, 300_000)
    assert [entry.name for entry in request.protocols] == ["range", "cooperative-sticky"]
    assert list(decode_subscription(request.protocols[0].metadata).topics) == ["t"]
    it.answer(error_code=79, member_id="m-1")
    assert it.asked().member_id == "m-1"
    assert it.send.timeout_ms == 305_000
    assert it.group.metadata is None


def test_a_follower_reads_what_it_is_assigned_and_sends_heartbeats():
    it = Member()
    assert it.follower(T1, T0) == [Assigned((T0, T1), (T0, T1))]
    assert it.group.metadata == ("g", 1, "m", None)
    assert it.group.stable
    assert it.group.next_deadline() == 3000
    it.now = 3000
    beat = it.asked()
    assert (beat.generation_id, beat.member_id) == (1, "m")
    it.answer()
    assert it.group.next_deadline() == 6000


def test_the_leader_waits_for_the_topics_of_all_members():
    it = Member()
    it.known(t=2)
    other = bytes.fromhex("0000 00000001 0001 75 ffffffff")
    it.joined(members=[member("m"), member("n", other)])
    assert it.group.poll(it.now) == []
    assert "u" not in it.cluster.topics
    it.known(t=2, u=1)
    request = it.asked()
    found = {entry.member_id: decode_assignment(entry.assignment).to_dict() for entry in request.assignments}
    assert found["m"]["assigned_partitions"] == [{"topic": "t", "partitions": [0, 1]}]
    assert found["n"]["assigned_partitions"] == [{"topic": "u", "partitions": [0]}]
    it.answer(assignment=assignment(T0, T1))
    assert it.group.take_events() == [Assigned((T0, T1), (T0, T1))]
    it.known(t=2, u=2)  # a topic that only the other member reads
    it.group.poll(it.now)
    assert it.group.take_events() == [Revoke((T0, T1))]


def test_a_leader_does_not_wait_for_ever():
    it = Member(request_timeout_ms=2000)
    it.joined(members=[member("m")])
    it.now = 1999
    assert it.group.poll(it.now) == []
    it.now = 2000
    assert isinstance(it.asked(), messages.SyncGroupRequest)


def test_a_leader_that_came_back_assigns_nothing_and_watches_the_topics():
    it = Member()
    it.known(t=2)
    it.joined(members=[member("m")], skip_assignment=True)
    assert it.synced(T0).assignments == []
    it.group.take_events()
    assert it.group.stable
    it.known(t=3)
    it.group.poll(it.now)
    assert it.group.take_events() == [Revoke((T0,))]


def test_an_eager_member_gives_up_everything_before_it_joins_again():
    it = Member()
    it.follower(T0, T1)
    it.now = 3000
    it.asked()
    it.answer(error_code=27)
    assert it.group.take_events() == [Revoke((T0, T1))]
    assert it.group.partitions == (T0, T1)
    assert it.group.metadata == ("g", 1, "m", None)  # to commit
    it.now = 6000
    assert isinstance(it.asked(), messages.HeartbeatRequest)
    it.group.revoked(it.now)
    assert it.asked().member_id == "m"
    assert [it.group.metadata] == [None]  # a commit would wait behind JoinGroup
    it.answer(generation_id=2, protocol_name="range", leader="other", member_id="m")
    assert [it.group.metadata] == [None]
    assert not set(it.group.partitions)
    it.synced(T1)
    assert it.group.take_events() == [Assigned((T1,), (T1,))]


def test_a_cooperative_member_gives_up_what_moves_and_joins_again():
    it = Member([ASSIGNORS["cooperative-sticky"]()])
    follower = {"leader": "other", "protocol": "cooperative-sticky"}
    it.joined(**follower)
    it.synced(T0, T1)
    it.group.take_events()
    it.group.rejoin("because", it.now)
    request = it.joined(generation=2, **follower)
    assert request.reason == "because"
    sent = decode_subscription(request.protocols[0].metadata)
    assert [(part.topic, list(part.partitions)) for part in sent.owned_partitions] == [("t", [0, 1])]
    assert sent.generation_id == 1
    it.synced(T1)
    assert it.group.take_events() == [Revoke((T0,))]
    it.group.revoked(it.now)
    assert it.group.take_events() == [Assigned((), (T1,))]
    again = decode_subscription(it.joined(generation=3, **follower).protocols[0].metadata)
    assert [(part.topic, list(part.partitions)) for part in again.owned_partitions] == [("t", [1])]
    assert again.generation_id == 2


@pytest.mark.parametrize(("code", "kept"), [(25, ""), (22, "m")])
def test_a_member_that_was_removed_loses_its_partitions(code, kept):
    it = Member()
    it.follower(T0)
    it.now = 3000
    it.asked()
    it.answer(error_code=code)
    assert it.group.take_events() == [Lost((T0,))]
    assert it.group.metadata is None
    assert it.asked().member_id == kept


def test_a_revoke_without_an_answer_ends_with_a_loss():
    it = Member()
    it.follower(T0)
    it.group.rejoin("x", 0)
    assert it.group.poll(0) == []
    it.now = 3000
    it.asked()
    it.answer(error_code=25)
    assert it.group.take_events() == [Revoke((T0,)), Lost((T0,))]
    it.group.revoked(it.now)
    assert it.group.take_events() == []
    assert it.asked().member_id == ""


@pytest.mark.parametrize("code", [23, 24, 26, 30, 81, 82])
def test_refusals(code):
    it = Member()
    it.asked()
    it.answer(error_code=code)
    (event,) = it.group.take_events()
    assert isinstance(event, Failed)
    assert type(event.error) is error(code)
    assert "'g'" in str(event.error)
    assert it.group.poll(1e9) == []
    assert it.group.next_deadline() is None
    it.group.subscribe(Subscription(["t"]), 1e9)
    assert it.group.poll(1e9)


@pytest.mark.parametrize("code", [14, 15, 16, 25, 27])
def test_joining_is_repeated_with_growing_waits(code):
    it = Member()
    waits = []
    for _ in range(5):
        it.asked()
        it.answer(error_code=code)
        assert it.group.poll(it.now) == []
        waits.append(it.group.next_deadline() - it.now)
        it.now = it.group.next_deadline()
    assert waits == [100, 200, 400, 800, 1000]
    assert it.group.take_events() == []


def test_joining_waits_longer_each_time_that_the_second_step_fails():
    it = Member()
    waits = []
    for _ in range(5):
        it.joined(leader="other")
        assert isinstance(it.asked(), messages.SyncGroupRequest)
        it.group.failed(it.send, ConnectionFailed("gone", sent=True), it.now)
        waits.append(it.group.next_deadline() - it.now)
        it.now = it.group.next_deadline()
    assert waits == [100, 200, 400, 800, 1000]
    assert it.follower() == [Assigned((), ())]
    it.now = it.group.next_deadline()
    assert isinstance(it.asked(), messages.HeartbeatRequest)
    it.answer(error_code=25)  # the member was removed, and joins anew
    it.now = it.group.next_deadline()
    it.asked()
    it.answer(error_code=15)
    assert it.group.next_deadline() - it.now == 100


def test_answers_that_are_nonsense_are_told_and_joining_goes_on():
    it = Member()
    nonsense = RemoteProtocolError("broker h:1: unexpected correlation id 7")
    for wanted in ([], [], [Broken(nonsense)]):
        it.asked()
        it.group.failed(it.send, nonsense, it.now)
        it.now = it.group.next_deadline()
        assert it.group.take_events() == wanted
    assert it.follower(T0) == [Assigned((T0,), (T0,))]


def test_a_broken_connection_makes_it_join_again():
    it = Member()
    it.joined(leader="other")
    it.asked()
    it.group.failed(it.send, ConnectionFailed("gone", sent=True), it.now)
    it.now = 100
    assert it.asked().member_id == "m"


def test_a_failed_heartbeat_is_repeated():
    it = Member()
    it.follower(T0)
    it.now = 3000
    it.asked()
    it.group.failed(it.send, ConnectionFailed("gone"), it.now)
    assert it.group.next_deadline() == 3100
    assert it.group.partitions == (T0,)


def test_static_members_need_a_broker_that_has_them():
    it = Member(group_instance_id="i")
    assert it.asked().group_instance_id == "i"
    with pytest.raises(UnsupportedVersion, match="group_instance_id"):
        it.send.request({11: range(0, 5)})


def test_leaving():
    it = Member()
    it.follower(T0)
    it.group.leave(it.now)
    assert it.group.poll(it.now) == []
    assert it.group.take_events() == [Revoke((T0,))]
    with pytest.raises(LocalProtocolError):
        it.group.subscribe(Subscription(["u"]), it.now)
    it.group.revoked(it.now)
    assert [entry.member_id for entry in it.asked().members] == ["m"]
    old, _ = it.send.request({13: range(0, 3)})
    assert (old.member_id, old.members) == ("m", [])
    it.answer()
    assert it.group.take_events() == [Left()]
    assert it.group.poll(1e9) == []
    assert it.cluster.topics == {}


@pytest.mark.parametrize("options", [{"remain": True}, {}])
def test_a_member_that_remains_says_nothing(options):
    it = Member(group_instance_id=None if options else "i")
    it.follower(T0)
    it.group.leave(it.now, **options)
    it.group.poll(it.now)
    it.group.revoked(it.now)
    assert it.group.poll(it.now) == []
    assert it.group.take_events() == [Revoke((T0,)), Left()]


def test_an_application_that_does_not_read():
    it = Member(max_poll_interval_ms=5000)
    it.follower(T0)
    it.group.polled(0)
    it.now = 4999
    assert isinstance(it.asked(), messages.HeartbeatRequest)
    it.answer()
    assert it.group.next_deadline() == 5000
    it.now = 5000
    assert isinstance(it.asked(), messages.LeaveGroupRequest)
    assert it.group.take_events() == [Lost((T0,))]
    assert it.group.poll(1e6) == []
    assert it.group.next_deadline() is None
    it.group.polled(1e6)
    it.now = 1e6
    assert it.asked().member_id == ""


def test_topics_that_match():
    it = Member(subscription=Subscription(matches=lambda name: name.startswith("t")))
    assert it.group.poll(0) == []
    it.known(t=1, tt=1, u=1)
    assert list(decode_subscription(it.joined(leader="other").protocols[0].metadata).topics) == ["t", "tt"]
    it.synced(T0)
    it.group.take_events()
    it.known(t=1, tt=1, ttt=1)
    it.group.poll(it.now)
    assert it.group.take_events() == [Revoke((T0,))]
    it.group.revoked(it.now)
    assert list(decode_subscription(it.asked().protocols[0].metadata).topics) == ["t", "tt", "ttt"]


def test_another_test_of_names():
    it = Member(subscription=Subscription(matches=lambda name: name == "t"))
    it.known(t=1, u=1)
    it.follower(T0)
    it.group.subscribe(Subscription(matches=lambda name: name == "u"), it.now)
    it.now += 500
    (send,) = it.cluster.poll(it.now)
    it.cluster.answered(send, Answer(metadata(t=1, u=1), 12, 1), it.now)
    it.group.poll(it.now)
    assert it.group.take_events() == [Revoke((T0,))]
    it.group.revoked(it.now)
    assert list(decode_subscription(it.asked().protocols[0].metadata).topics) == ["u"]


def test_partitions_outside_of_the_subscription_are_not_read():
    it = Member()
    assert it.follower(T0, ("u", 0)) == [Assigned((T0,), (T0,))]
    it.group.poll(it.now)
    assert it.group.take_events() == [Revoke((T0,))]


class Wrong:
    """An assignor that answers something else."""

    name = "range"
    supported_protocols = frozenset({"eager"})

    def __init__(self, assigned):
        self.assigned = assigned

    def user_data(self, topics, owned, generation):
        return None

    def assign(self, partitions, subscriptions):
        return self.assigned if isinstance(self.assigned, dict) else 1 // 0


@pytest.mark.parametrize(
    ("assigned", "reason"),
    [
        ({"x": [T0]}, "there is no member 'x'"),
        ({"m": [("t", 9)]}, "there is no partition 9 of topic 't'"),
        ({"m": [("u", 0)]}, "there is no partition 0 of topic 'u'"),
        ({"m": [T0, T0]}, "partition 0 of topic 't' is assigned twice"),
        (None, "division"),
    ],
)
def test_an_assignor_that_is_wrong_is_an_error_of_this_member(assigned, reason):
    it = Member([Wrong(assigned)])
    it.known(t=2)
    it.joined(members=[member("m")])
    leaving = it.asked()  # else the others would wait for its session to end
    (event,) = it.group.take_events()
    assert reason in str(event.error)
    assert isinstance(leaving, messages.LeaveGroupRequest)
    assert [(entry.member_id, reason in entry.reason) for entry in leaving.members] == [("m", True)]
    it.answer()
    assert (it.group.poll(1e9), it.group.take_events()) == ([], [])


def test_bytes_that_cannot_be_read():
    it = Member()
    it.joined(members=[member("m"), member("n", b"\0\0\0\0\0\1")])
    (event,) = it.group.take_events()
    assert isinstance(event.error, DecodeError)
    assert "member 'n'" in str(event.error)
    it = Member()
    it.joined(leader="other")
    it.asked()
    it.answer(assignment=b"\0\0\0")
    (event,) = it.group.take_events()
    assert isinstance(event.error, DecodeError)
    assert "group 'g'" in str(event.error)


def test_late_answers_are_ignored():
    it = Member()
    it.asked()
    late = it.send
    it.group.failed(late, ConnectionFailed("gone"), 0)
    it.group.answered(late, Answer(messages.JoinGroupResponse(error_code=82), 9, 1), 0)
    assert it.group.take_events() == []


def test_wrong_arguments():
    with pytest.raises(ValueError, match="assignors"):
        ClassicMembership(GroupSettings(group_id="g"), Cluster([("h", 1)]), [])
    with pytest.raises(ValueError, match="subscription"):
        Subscription()
    with pytest.raises(ValueError, match="subscription"):
        Subscription(["t"], matches=bool)
    with pytest.raises(LocalProtocolError):
        Member(subscription=Subscription(broker_pattern="t.*"))
