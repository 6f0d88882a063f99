"""What a client knows about its cluster, from responses and a clock."""

from __future__ import annotations

import random
import uuid

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, CONTROLLER, Answer, Coordinator
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed, DeadlineExceeded, RemoteProtocolError

BACKOFF = Backoff(100, 1000, jitter=0.0, random=random.Random(1))
VERSIONS = {3: range(0, 13), 10: range(0, 7)}
ID = uuid.uuid4()


def made(**options):
    return Cluster([("a", 1), ("b", 2)], backoff=BACKOFF, **options)


def metadata(*partitions, error_code=0, name="t", topic_id=ID, controller=2):
    kind = messages.MetadataResponse
    brokers = [kind.MetadataResponseBroker(node_id=n, host=f"h{n}", port=9000 + n) for n in (1, 2)]
    entries = [
        kind.MetadataResponsePartition(partition_index=n, leader_id=leader, leader_epoch=epoch)
        for n, (leader, epoch) in enumerate(partitions)
    ]
    topic = kind.MetadataResponseTopic(error_code=error_code, name=name, topic_id=topic_id, partitions=entries)
    return kind(brokers=brokers, controller_id=controller, topics=[topic])


def answer(cluster, message, now=0.0, version=12):
    (send,) = cluster.poll(now)
    cluster.answered(send, Answer(message, version, 1), now)
    return send


def test_metadata_of_wanted_topics():
    cluster = made()
    assert not cluster.want(["t"])
    (send,) = cluster.poll(0)
    assert send.to is ANY
    request, version = send.request(VERSIONS)
    assert version == 12
    assert [topic.name for topic in request.topics] == ["t"]
    assert cluster.poll(5) == []
    cluster.answered(send, Answer(metadata((1, 5), (2, 6)), 12, -1), 5)
    assert (cluster.leader("t", 0), cluster.leader("t", 1), cluster.leader("t", 2)) == (1, 2, None)
    assert cluster.topic_name(ID) == "t"
    assert cluster.node_of(CONTROLLER) == 2
    assert cluster.address(2)[:3] == (2, "h2", 9002)
    assert cluster.address(-2)[:3] == (-2, "b", 2)
    assert cluster.poll(200_000) == []
    assert len(cluster.poll(300_006)) == 1


def test_a_broker_with_older_metadata_does_not_take_a_leader_back():
    cluster = made()
    cluster.want(["t"])
    answer(cluster, metadata((1, 5)))
    cluster.refresh()
    answer(cluster, metadata((2, 4)), 1000)
    assert (cluster.leader("t", 0), cluster.partition("t", 0).leader_epoch) == (1, 5)
    cluster.refresh()
    answer(cluster, metadata((2, 4), topic_id=uuid.uuid4()), 2000)  # a new topic of that name counts from anew
    assert cluster.leader("t", 0) == 2
    assert cluster.topic_name(ID) is None


def test_a_broker_with_older_metadata_does_not_bring_a_deleted_topic_back():
    cluster = made()
    cluster.want(["t"])
    answer(cluster, metadata((1, 5)))
    cluster.refresh()
    newer = uuid.uuid4()
    answer(cluster, metadata((2, 0), topic_id=newer), 1000)
    assert (cluster.topic_id("t"), cluster.leader("t", 0)) == (newer, 2)
    cluster.refresh()
    answer(cluster, metadata((1, 6)), 2000)
    assert (cluster.topic_id("t"), cluster.leader("t", 0)) == (newer, 2)
    assert cluster.topic_name(ID) is None
    assert cluster.poll(3000), "asks again"


def test_what_is_missing_is_asked_for_with_growing_waits():
    cluster = made()
    cluster.want(["t"])
    answer(cluster, metadata(error_code=3))
    assert cluster.topics["t"].error.code == 3
    waits, now = [], 0.0
    for _ in range(6):
        waits.append(cluster.next_deadline() - now)
        now = cluster.next_deadline()
        answer(cluster, metadata(error_code=3), now)
    assert waits == [100, 200, 400, 800, 1000, 1000]
    answer(cluster, metadata((1, 0)), cluster.next_deadline())
    assert cluster.topics["t"].error is None
    assert cluster.next_deadline() > 300_000


def test_stale_metadata_that_stays_as_it_is_is_asked_for_with_growing_waits():
    cluster = made()
    cluster.want(["t"])
    answer(cluster, metadata((1, 5)))

    def wait(now, *partitions):
        cluster.refresh()
        answer(cluster, metadata(*partitions), now)
        cluster.refresh()
        return cluster.next_deadline() - now

    now, waits = 5000.0, []
    for _ in range(6):
        waits.append(wait(now, (1, 5)))
        now += waits[-1]
    assert waits == [100, 200, 400, 800, 1000, 1000]
    assert wait(now, (2, 6)) == 100  # there is a new leader
    assert wait(now + 100, (2, 6)) == 200
    assert wait(now + 5000, (2, 6)) == 100  # something else made it stale


def test_a_topic_that_is_gone_is_not_taken_for_the_newer_one_for_ever():
    cluster, gone = made(), uuid.uuid4()
    cluster.want(["t"])
    answer(cluster, metadata((1, 0)), 0)
    cluster.refresh()
    answer(cluster, metadata((2, 3), topic_id=gone), 1000)  # by a broker that has not heard of the newer one
    for second in range(2, 30):
        cluster.refresh()
        answer(cluster, metadata((1, 0)), second * 1000)
    assert (cluster.topic_id("t"), cluster.leader("t", 0)) == (ID, 1)


def test_a_topic_that_is_refused_for_good_is_not_asked_for_again():
    cluster = made()
    cluster.want(["t"])
    answer(cluster, metadata(error_code=29))
    assert cluster.topics["t"].error.code == 29
    assert cluster.topics["t"].refusal.code == 29
    assert cluster.next_deadline() == 300_000


def test_a_topic_is_asked_for_again_while_there_are_too_few_brokers_to_create_it():
    cluster = made()
    cluster.want(["t"])
    answer(cluster, metadata(error_code=38))
    assert cluster.topics["t"].error.name == "INVALID_REPLICATION_FACTOR"
    assert cluster.topics["t"].refusal is None
    assert cluster.next_deadline() == 100


def test_a_failed_request_is_repeated():
    cluster = made()
    (send,) = cluster.poll(0)
    fault = ConnectionFailed("refused")
    cluster.failed(send, fault, 10)
    assert cluster.last_error is fault
    assert cluster.next_deadline() == 110


def test_the_new_leader_of_a_response():
    cluster = made()
    cluster.want(["t"])
    answer(cluster, metadata((1, 5)))
    endpoint = messages.FetchResponse.NodeEndpoint(node_id=7, host="h7", port=9007)
    assert not cluster.leader_changed("t", 0, 7, 5, [endpoint])
    assert cluster.leader_changed("t", 0, 7, 6, [endpoint])
    assert cluster.leader("t", 0) == 7
    assert cluster.address(7).host == "h7"


def test_requests_before_nulls_and_for_all():
    cluster = made()
    cluster.want_all()
    (send,) = cluster.poll(0)
    assert send.request({3: range(0, 1)})[0].topics == []
    assert send.request({3: range(0, 2)})[0].topics is None


def test_coordinators_are_looked_up_and_lost():
    cluster = made()
    answer(cluster, metadata((1, 0)))
    place = Coordinator("group", "g")
    assert cluster.node_of(place) is None
    (send,) = cluster.poll(1)
    request, version = send.request(VERSIONS)
    assert (version, request.key_type, request.coordinator_keys) == (6, 0, ["g"])
    kind = messages.FindCoordinatorResponse
    cluster.answered(send, Answer(kind(coordinators=[kind.Coordinator(key="g", error_code=15)]), 6, 1), 1)
    assert cluster.poll(100) == []
    (send,) = cluster.poll(101)
    found = kind(coordinators=[kind.Coordinator(key="g", node_id=9, host="h9", port=1)])
    cluster.answered(send, Answer(found, 6, 1), 102)
    assert cluster.node_of(place) == 9
    assert cluster.address(9).host == "h9"
    cluster.coordinators.lost(place)
    assert cluster.node_of(place) is None
    assert cluster.poll(103) == []
    assert len(cluster.poll(202)) == 1


def test_a_coordinator_that_is_refused():
    cluster = made()
    answer(cluster, metadata((1, 0)))
    place = Coordinator("transaction", "x")
    cluster.node_of(place)
    (send,) = cluster.poll(1)
    assert send.request({10: range(0, 3)})[1] == 2
    cluster.answered(send, Answer(messages.FindCoordinatorResponse(error_code=53), 2, 1), 1)
    assert cluster.coordinators.refusal(place).code == 53
    assert cluster.poll(10_000) == []


def test_a_coordinator_about_which_brokers_answer_nonsense():
    cluster = made()
    answer(cluster, metadata((1, 0)))
    place, now = Coordinator("group", "g"), 1
    cluster.node_of(place)
    nonsense = RemoteProtocolError("broker h:1: negative frame size")
    for wanted in (None, None, nonsense):
        (send,) = cluster.poll(now)
        cluster.failed(send, nonsense, now)
        now += 1000
        assert cluster.coordinators.refusal(place) is wanted


def test_a_refusal_is_seen_by_who_waits_for_metadata():
    cluster = made()
    before = cluster.generation
    (send,) = cluster.poll(0)
    fault = AuthenticationFailed("wrong password")
    cluster.failed(send, fault, 10)
    assert cluster.refused is fault
    assert cluster.generation > before
    answer(cluster, metadata((1, 5)), 2000)
    assert cluster.refused is None


def test_old_brokers_are_asked_for_all_topics_if_they_must_not_create_any():
    cluster = made(auto_create=False)
    assert not cluster.want(["t", "nowhere"])
    (send,) = cluster.poll(0)
    assert send.request({3: range(0, 3)}) == (messages.MetadataRequest(topics=None, allow_auto_topic_creation=True), 2)
    assert send.request({3: range(0, 1)})[0].topics == []
    cluster.answered(send, Answer(metadata((1, -1), topic_id=uuid.UUID(int=0)), 2, 1), 0)
    assert cluster.leader("t", 0) == 1
    assert cluster.topics["nowhere"].error.name == "UNKNOWN_TOPIC_OR_PARTITION"
    creating = made(auto_create=True)
    creating.want(["t"])
    (send,) = creating.poll(0)
    assert [topic.name for topic in send.request({3: range(0, 3)})[0].topics] == ["t"]


def test_brokers_are_unreachable_when_all_of_the_bootstrap_list_failed():
    cluster = made()
    for now in (0, 10_000):
        assert cluster.unreachable is None
        (send,) = cluster.poll(now)
        cluster.failed(send, ConnectionFailed("refused"), now)
    assert str(cluster.unreachable) == "refused"
    answer(cluster, metadata((1, 5)), 20_000)
    assert cluster.unreachable is None


def test_brokers_that_do_not_answer_any_more_are_unreachable_after_a_while():
    cluster = made(silence_ms=60_000)
    answer(cluster, metadata((1, 5)), 0)
    for now, known in ((10_000, True), (40_000, True), (70_000, False), (71_000, False)):
        cluster.refresh()
        (send,) = cluster.poll(now)
        cluster.failed(send, DeadlineExceeded("hangs"), now)
        assert (cluster.unreachable is None) == known
    answer(cluster, metadata((1, 5)), 90_000)
    assert cluster.unreachable is None


def test_all_topics_are_asked_for_even_if_that_is_wanted_while_others_are_asked_for():
    cluster = made()
    cluster.want(["t"])
    (send,) = cluster.poll(0)
    assert send.request(VERSIONS)[0].topics is not None
    cluster.want_all()
    cluster.answered(send, Answer(metadata((1, 5)), 12, 1), 0)
    assert not cluster.knows_all
    (send,) = cluster.poll(100)
    assert send.request(VERSIONS)[0].topics is None
    cluster.answered(send, Answer(metadata((1, 5)), 12, 1), 100)
    assert cluster.knows_all
    assert cluster.poll(1000) == []


def test_a_wanted_topic_that_is_not_among_all_does_not_exist():
    cluster = made()
    cluster.want_all()
    cluster.want(["u"])
    answer(cluster, metadata((1, 5)))
    assert cluster.topics["u"].error.code == 3
    assert sorted(cluster.topics) == ["t", "u"]


def described(*names, code=0):
    """Metadata of these topics, each with one partition; without it, if there is an error."""
    kind = messages.MetadataResponse
    found = metadata()
    found.topics = []
    for name in names:
        entry = kind.MetadataResponseTopic(name=name, topic_id=uuid.uuid5(ID, name), error_code=code)
        if not code:
            entry.partitions = [kind.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0)]
        found.topics.append(entry)
    return found


def asks(send, versions=VERSIONS):
    """The topics that a request names, and whether they may be created."""
    request, _ = send.request(versions)
    return [topic.name for topic in request.topics], request.allow_auto_topic_creation


def test_new_topics_are_asked_for_at_once_together_and_alone():
    cluster = made(auto_create=True)
    cluster.want(["a"])
    answer(cluster, described("a"), 0)
    for number in range(20):  # each is wanted as soon as the one before it is known
        names = [f"b{number}", f"c{number}"]
        assert not cluster.want(names)
        assert cluster.next_deadline() <= number
        (send,) = cluster.poll(number)
        assert asks(send) == (names, True)
        assert cluster.poll(number) == []
        cluster.answered(send, Answer(described(*names), 12, 1), number)
        assert cluster.leader(names[1], 0) == 1
    assert cluster.poll(1000) == []


def test_a_request_for_all_that_is_wanted_does_not_hold_up_a_new_topic():
    cluster = made()
    cluster.want(["a"])
    answer(cluster, described("a"), 0)
    cluster.refresh()
    (slow,) = cluster.poll(1000)
    cluster.want(["b"])
    (send,) = cluster.poll(1001)
    assert asks(send) == (["b"], False)
    cluster.answered(send, Answer(described("b"), 12, 1), 1002)
    cluster.answered(slow, Answer(described("a"), 12, 1), 1003)
    assert sorted(cluster.topics) == ["a", "b"]


def test_only_what_is_missing_is_asked_for_again():
    cluster = made()
    cluster.want(["a", "b", "c"])
    answer(cluster, described("a"), 0)
    assert cluster.next_deadline() == 100
    (send,) = cluster.poll(100)
    assert asks(send)[0] == ["b", "c"]
    cluster.failed(send, ConnectionFailed("reset"), 100)
    assert cluster.next_deadline() == 300
    (send,) = cluster.poll(300)
    cluster.answered(send, Answer(described("b", "c"), 12, 1), 300)
    assert cluster.next_deadline() == 300_000


def test_many_topics_that_do_not_exist_take_few_requests():
    cluster, now, requests = made(), 0.0, 0
    for number in range(300):
        cluster.want([f"t{number}"])
        for send in cluster.poll(now):
            cluster.answered(send, Answer(described(*asks(send)[0], code=3), 12, 1), now)
        now += 7
    for _ in range(600):
        now = cluster.next_deadline()
        if now > 20_000:
            break
        for send in cluster.poll(now):
            requests += 1
            cluster.answered(send, Answer(described(*asks(send)[0], code=3), 12, 1), now)
    assert now > 20_000
    assert requests < 200


def test_only_what_is_used_may_be_created_and_only_once():
    cluster = made(auto_create=True)
    cluster.want(["used"])
    cluster.want(["asked"], create=False, keep=False)
    flags = {}
    for send in cluster.poll(0):
        names, create = asks(send)
        flags.update(dict.fromkeys(names, create))
        cluster.answered(send, Answer(described(*names), 12, 1), 0)
    assert flags == {"used": True, "asked": False}
    for now in (300_000, 300_100, 300_300, 300_700):  # both are deleted: nothing creates them
        for send in cluster.poll(now):
            names, create = asks(send)
            assert not create
            cluster.answered(send, Answer(described(*names, code=3), 12, 1), now)
    assert cluster.topics["used"].error.code == 3
    cluster.want(["used"])  # it is used again
    (send,) = cluster.poll(300_701)
    assert asks(send) == (["used"], True)


def test_old_brokers_are_asked_for_all_topics_instead_of_one_that_they_would_create():
    cluster = made(auto_create=True)
    cluster.want(["t"])
    (send,) = cluster.poll(0)
    assert [topic.name for topic in send.request({3: range(0, 3)})[0].topics] == ["t"]
    cluster.answered(send, Answer(metadata((1, -1), topic_id=uuid.UUID(int=0)), 2, 1), 0)
    (send,) = cluster.poll(300_000)
    assert send.request({3: range(0, 3)})[0].topics is None


def test_topics_that_were_only_asked_about_are_forgotten():
    cluster = made(max_age_ms=1000, max_idle_ms=5000)
    cluster.want(["kept"])
    cluster.want(["asked", "kept"], create=False, keep=False)
    asked = {}
    for now in range(0, 10_000, 1000):
        if now == 3000:
            cluster.want(["asked"], create=False, keep=False)
        for send in cluster.poll(now):
            names, _ = asks(send)
            asked.update(dict.fromkeys(names, now))
            cluster.answered(send, Answer(described(*names), 12, 1), now)
    assert asked["kept"] == 9000
    assert 7000 <= asked["asked"] <= 9000 - 1000
    assert sorted(cluster.topics) == ["kept"]


def test_what_is_stale_of_one_topic_is_not_asked_for_with_all_others():
    cluster = made()
    cluster.want(["a", "b"])
    answer(cluster, described("a", "b"), 0)
    cluster.refresh(["b"])
    assert cluster.poll(50) == []
    (send,) = cluster.poll(100)
    assert asks(send)[0] == ["b"]
    cluster.answered(send, Answer(described("b"), 12, 1), 100)
    assert cluster.next_deadline() == 300_000


def test_a_topic_that_comes_up_is_asked_for_sooner_than_one_that_is_missing():
    cluster = made(auto_create=True)
    cluster.want(["t"])
    now, waits = 0.0, []
    for _ in range(9):
        answer(cluster, described("t", code=5), now)
        waits.append(cluster.next_deadline() - now)
        now = cluster.next_deadline()
    assert waits == [10, 20, 40, 80, 160, 320, 640, 1000, 1000]


def test_a_coordinator_that_nothing_is_sent_to_any_more_is_forgotten():
    cluster = made(max_age_ms=10**9, max_idle_ms=5000)
    answer(cluster, metadata((1, 0)))
    used, unused = Coordinator("group", "used"), Coordinator("group", "unused")
    looked_up = []
    for now in range(0, 20_000, 1000):
        cluster.node_of(used)
        if not now:
            cluster.node_of(unused)
        for send in cluster.poll(now):
            looked_up.append((now, send.context.key))
            entry = messages.FindCoordinatorResponse.Coordinator(key=send.context.key, node_id=1, host="h1", port=1)
            cluster.answered(send, Answer(messages.FindCoordinatorResponse(coordinators=[entry]), 6, 1), now)
        if now in (3000, 12_000):
            cluster.coordinators.lost_node(1)
    assert looked_up == [(0, "used"), (0, "unused"), (4000, "used"), (4000, "unused"), (13_000, "used")]
