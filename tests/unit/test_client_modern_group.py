"""A member of a KIP-848 group or of a share group: its heartbeats, and what it makes of the answers."""

from __future__ import annotations

import uuid

import pytest

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, Answer, Coordinator
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.membership import Assigned, Broken, Failed, GroupSettings, Left, Lost, Revoke
from kafkacodec.client.groups.modern import ModernMembership
from kafkacodec.client.groups.share import ShareMembership
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.errors import ConnectionFailed, LocalProtocolError, RemoteProtocolError, UnsupportedVersion, error
from kafkacodec.messages import APIS

VERSIONS = {key: api.valid_versions for key, api in APIS.items()}
ID, OTHER = uuid.UUID(int=7), uuid.UUID(int=8)
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


class Member:
    """A membership, the answers that it gets, and its events."""

    def __init__(self, kind=ModernMembership, subscription=None, **options):
        self.now = 0.0
        self.cluster = Cluster([("h", 1)], backoff=Backoff(jitter=0.0))
        settings = GroupSettings(group_id="g", backoff=Backoff(jitter=0.0), **options)
        self.group = kind(settings, self.cluster)
        self.group.subscribe(subscription or Subscription(["t"]), self.now)
        self.group.polled(self.now, waiting=True)
        entry = messages.MetadataResponse.MetadataResponseTopic(name="t", topic_id=ID)
        broker = messages.MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=1)
        (send,) = self.cluster.poll(0)
        self.cluster.answered(send, Answer(messages.MetadataResponse(brokers=[broker], topics=[entry]), 12, 1), 0)

    def asked(self):
        (self.send,) = self.group.poll(self.now)
        assert self.send.to == Coordinator("group", "g")
        request, version = self.send.request(VERSIONS)
        return type(request).decode(request.encode(version), version)

    def answer(self, epoch=1, *topics, **fields):
        """With topics as pairs of an id and numbers, or with None for no change."""
        name = type(self.send.request(VERSIONS)[0]).__name__.replace("Request", "Response")
        kind = getattr(messages, name)
        response = kind(member_epoch=epoch, heartbeat_interval_ms=5000, **fields)
        if topics != (None,):
            entries = [kind.TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in topics]
            response.assignment = kind.Assignment(topic_partitions=entries)
        response = kind.decode(response.encode(1), 1)
        self.group.answered(self.send, Answer(response, 1, 1), self.now)

    def joined(self, *topics):
        """A member with these partitions, which it has told the coordinator."""
        self.asked()
        self.answer(1, *topics)
        self.asked()
        self.answer(1, None)
        return self.group.take_events()


def owned(request):
    return {topic.topic_id: list(topic.partitions) for topic in request.topic_partitions}


def test_joining_tells_everything_and_later_heartbeats_only_changes():
    it = Member(client_rack="r", remote_assignor="uniform", group_instance_id="i")
    first = it.asked()
    assert (first.group_id, first.member_epoch, first.rebalance_timeout_ms) == ("g", 0, 300_000)
    assert (first.rack_id, first.server_assignor, first.instance_id) == ("r", "uniform", "i")
    assert first.subscribed_topic_names == ["t"]
    assert first.subscribed_topic_regex is None
    assert first.topic_partitions == []
    assert str(uuid.UUID(first.member_id)) == first.member_id
    it.answer(3, (ID, [0, 1]))
    ack = it.asked()
    assert it.group.take_events() == [Assigned((T0, T1), (T0, T1))]
    assert it.group.metadata == ("g", 3, first.member_id, "i")
    assert owned(ack) == {ID: [0, 1]}
    assert (ack.member_id, ack.member_epoch, ack.rebalance_timeout_ms) == (first.member_id, 3, -1)
    assert (ack.subscribed_topic_names, ack.server_assignor) == (None, None)
    it.answer(3, None)
    assert it.group.next_deadline() == 5000
    it.now = 5000
    quiet = it.asked()
    assert (quiet.topic_partitions, quiet.subscribed_topic_names, quiet.instance_id) == (None, None, "i")
    assert it.group.stable


def test_partitions_are_given_up_before_the_coordinator_hears_of_it():
    it = Member()
    it.joined((ID, [0, 1]))
    it.now = 5000
    it.asked()
    it.answer(1, (ID, [1]))
    assert it.group.poll(it.now) == []
    assert it.group.take_events() == [Revoke((T0,))]
    assert not it.group.stable
    it.now = 10_000
    assert it.asked().topic_partitions is None
    it.answer(1, None)
    it.group.revoked(it.now)
    assert it.group.take_events() == [Assigned((), (T1,))]
    assert owned(it.asked()) == {ID: [1]}


def test_an_assignment_of_what_the_member_has_already_is_acknowledged():
    """The coordinator may take back what it gave in an answer that was lost, and waits to hear that it is not used."""
    it = Member()
    it.joined((ID, [0]))
    it.now = 5000
    it.asked()
    it.answer(1, (ID, [0]))
    assert owned(it.asked()) == {ID: [0]}


def test_names_of_unknown_topics_are_asked_for():
    it = Member(subscription=Subscription(broker_pattern="t|u"))
    request = it.asked()
    assert (request.subscribed_topic_regex, request.subscribed_topic_names) == ("t|u", [])
    with pytest.raises(UnsupportedVersion):
        it.send.request({68: range(0, 1)})
    it.answer(1, (OTHER, [0]))
    (send,) = it.group.poll(0)
    request, version = send.request(VERSIONS)
    read = type(request).decode(request.encode(version), version)
    assert send.to is ANY
    assert [(topic.topic_id, topic.name) for topic in read.topics] == [(OTHER, None)]
    assert it.group.take_events() == []
    topic = messages.MetadataResponse.MetadataResponseTopic(topic_id=OTHER, name="u")
    it.group.answered(send, Answer(messages.MetadataResponse(topics=[topic]), version, 1), 0)
    assert owned(it.asked()) == {OTHER: [0]}
    assert it.group.take_events() == [Assigned((U0,), (U0,))]
    (metadata,) = it.cluster.poll(1000)
    assert [topic.name for topic in metadata.request(VERSIONS)[0].topics] == ["u"]  # for reading it


@pytest.mark.parametrize("kind", [ModernMembership, ShareMembership])
def test_a_topic_that_was_created_again_is_lost_and_taken_again(kind):
    it = Member(kind)
    it.joined((ID, [0, 1]))
    it.now = 5000
    it.asked()
    it.answer(1, (OTHER, [1]))
    (send,) = it.group.poll(it.now)
    topic = messages.MetadataResponse.MetadataResponseTopic(topic_id=OTHER, name="t")
    it.group.answered(send, Answer(messages.MetadataResponse(topics=[topic]), 13, 1), it.now)
    request = it.asked()
    assert it.group.take_events() == [Lost((T0, T1)), Assigned((T1,), (T1,))]
    if kind is ModernMembership:
        assert owned(request) == {OTHER: [1]}


def test_names_that_brokers_do_not_know_yet_are_asked_for_again():
    it = Member()
    it.asked()
    it.answer(1, (OTHER, [0]))
    (send,) = it.group.poll(0)
    it.group.answered(send, Answer(messages.MetadataResponse(), 13, 1), 0)
    assert it.group.poll(1) == []
    assert it.group.next_deadline() == 1000
    (send,) = it.group.poll(1000)
    assert send.to is ANY


@pytest.mark.parametrize("code", [25, 110])
def test_a_fenced_member_loses_its_partitions_and_joins_at_once(code):
    it = Member()
    it.joined((ID, [0]))
    member_id, it.now = it.group.metadata.member_id, 5000
    it.asked()
    it.answer(0, None, error_code=code)
    assert it.group.take_events() == [Lost((T0,))]
    assert it.group.metadata is None
    again = it.asked()
    assert (again.member_epoch, again.member_id, again.topic_partitions) == (0, member_id, [])
    assert again.subscribed_topic_names == ["t"]


def test_answers_that_are_nonsense_are_told_and_the_member_goes_on():
    it = Member()
    nonsense = RemoteProtocolError("broker h:1: unexpected correlation id 7")
    for wanted in ([], [], [Broken(nonsense)]):
        it.asked()
        it.group.failed(it.send, nonsense, it.now)
        it.now = it.group.next_deadline()
        assert it.group.take_events() == wanted
    it.joined((ID, [0]))
    assert it.group.partitions == (T0,)


def test_everything_is_told_again_after_a_request_without_an_answer():
    it = Member()
    it.joined((ID, [0]))
    it.now = 5000
    it.asked()
    it.group.failed(it.send, ConnectionFailed("gone", sent=True), it.now)
    assert it.group.poll(it.now) == []
    it.now = it.group.next_deadline()
    assert it.now == 5100
    request = it.asked()
    assert (request.member_epoch, owned(request), request.subscribed_topic_names) == (1, {ID: [0]}, ["t"])
    assert it.group.take_events() == []


@pytest.mark.parametrize("code", [14, 15, 16])
def test_waits_grow_while_the_coordinator_refuses(code):
    it = Member()
    waits = []
    for _ in range(3):
        it.asked()
        it.answer(0, None, error_code=code)
        waits.append(it.group.next_deadline() - it.now)
        it.now = it.group.next_deadline()
    assert waits == [100, 200, 400]


@pytest.mark.parametrize("code", [24, 30, 35, 42, 81, 82, 111, 112, 128])
def test_refusals(code):
    it = Member()
    it.joined((ID, [0]))
    it.now = 5000
    it.asked()
    it.answer(0, None, error_code=code, error_message="because")
    lost, failed = it.group.take_events()
    assert lost == Lost((T0,))
    assert isinstance(failed, Failed)
    assert type(failed.error) is error(code)
    assert "because" in str(failed.error)
    assert it.group.poll(1e9) == []
    assert it.group.next_deadline() is None


@pytest.mark.parametrize(("instance", "remain", "epoch"), [(None, None, -1), ("i", None, -2), ("i", False, -1)])
def test_leaving(instance, remain, epoch):
    it = Member(group_instance_id=instance)
    it.joined((ID, [0]))
    it.group.leave(it.now, remain=remain)
    it.group.poll(it.now)
    assert it.group.take_events() == [Revoke((T0,))]
    with pytest.raises(LocalProtocolError):
        it.group.subscribe(Subscription(["u"]), it.now)
    it.group.revoked(it.now)
    assert it.asked().member_epoch == epoch
    it.group.failed(it.send, ConnectionFailed("gone"), it.now)
    assert it.group.take_events() == [Left()]
    assert it.group.poll(1e9) == []


def test_an_application_that_does_not_read():
    it = Member(max_poll_interval_ms=5000)
    it.joined((ID, [0]))
    it.group.polled(0)
    it.now = 5000
    assert it.asked().member_epoch == -1
    assert it.group.take_events() == [Lost((T0,))]
    assert it.group.poll(1e6) == []
    assert it.group.next_deadline() is None
    it.group.polled(1e6)
    assert it.asked().member_epoch == 0


def test_a_changed_subscription_is_told_at_once():
    it = Member()
    it.joined((ID, [0]))
    it.group.subscribe(Subscription(["u", "t"]), it.now)
    assert it.asked().subscribed_topic_names == ["t", "u"]
    it.answer(1, None)
    it.group.subscribe(Subscription(broker_pattern="x"), it.now)
    request = it.asked()
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ([], "x")
    it.answer(1, None)
    it.group.subscribe(Subscription(["t"]), it.now)
    request = it.asked()
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["t"], "")
    it.group.failed(it.send, ConnectionFailed("gone"), it.now)  # the coordinator still has the expression
    it.now = 100
    request = it.asked()
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["t"], "")
    assert it.send.request({68: range(1)})[0].subscribed_topic_regex is None


def test_a_share_group_moves_partitions_without_asking():
    it = Member(ShareMembership, client_rack="r")
    request = it.asked()
    assert isinstance(request, messages.ShareGroupHeartbeatRequest)
    assert (request.member_epoch, request.subscribed_topic_names, request.rack_id) == (0, ["t"], "r")
    it.answer(1, (ID, [0, 1]))
    it.asked()
    assert it.group.take_events() == [Assigned((T0, T1), (T0, T1))]
    it.answer(2, (ID, [1]))
    it.group.poll(it.now)
    assert it.group.take_events() == [Assigned((), (T1,))]
    with pytest.raises(LocalProtocolError):
        it.group.subscribe(Subscription(broker_pattern="x"), it.now)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (ModernMembership, r'does not offer group_protocol="consumer" .* use "classic"'),
        (ShareMembership, "has no share groups .* need Kafka 4.2"),
    ],
)
def test_brokers_without_such_groups_are_named_as_too_old(kind, reason):
    it = Member(kind)
    it.asked()
    older = {key: versions for key, versions in VERSIONS.items() if key not in (68, 76)}
    with pytest.raises(UnsupportedVersion, match=reason):
        it.send.request(older)
