"""An operation on several items: routing, retries and deadlines, from answers and a clock."""

from __future__ import annotations

import random

import pytest

from kafkacodec import messages
from kafkacodec.client.admin.job import Ask, Job, Leader, refusal
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, CONTROLLER, Answer, Coordinator
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
    UnsupportedVersion,
)

BACKOFF = Backoff(100, 1000, jitter=0.0, random=random.Random(1))
RESPONSE = messages.CreateTopicsResponse


def cluster(*leaders, controller=2, topic="t", error_code=0):
    made = Cluster([("a", 1)], backoff=BACKOFF)
    made.want([topic])
    feed(made, *leaders, controller=controller, topic=topic, error_code=error_code)
    return made


def feed(made, *leaders, now=0.0, controller=2, topic="t", error_code=0):
    """Answer the cluster's request for metadata."""
    kind = messages.MetadataResponse
    brokers = [kind.MetadataResponseBroker(node_id=n, host=f"h{n}", port=9000 + n) for n in (1, 2, 3)]
    parts = [kind.MetadataResponsePartition(partition_index=n, leader_id=leader) for n, leader in enumerate(leaders)]
    entry = kind.MetadataResponseTopic(name=topic, partitions=parts, error_code=error_code)
    (send,) = made.poll(now)
    made.answered(send, Answer(kind(brokers=brokers, controller_id=controller, topics=[entry]), 12, -1), now)


def names(**options):
    """Asks for names; a response has codes by name."""
    return Ask(
        api_key=19,
        request=lambda keys, version: (keys, version),
        read=lambda keys, answer: [(key, refusal(code) or f"made {key}") for key, code in answer.message.items()],
        **options,
    )


def job(ask, keys, of, deadline=10_000):
    return Job(ask, keys, of, deadline, BACKOFF, 3000)


def test_items_of_one_broker_go_in_one_request():
    places = {"a": 1, "b": 2, "c": 1, "d": ANY}
    made = job(names(place=places.__getitem__), places, cluster())
    sends = {send.to: send for send in made.poll(0)}
    assert {place: send.context.keys for place, send in sends.items()} == {1: ["a", "c"], 2: ["b"], ANY: ["d"]}
    assert sends[1].request({19: range(8)}) == ((["a", "c"], 7), 7)
    assert sends[1].timeout_ms == 3000
    assert made.poll(1) == []
    made.answered(sends[1], Answer({"a": 0, "c": 36, "other": 0}, 7, 1), 2)
    made.answered(sends[2], Answer({"b": 0}, 7, 2), 3)
    assert not made.done
    made.answered(sends[ANY], Answer({}, 7, 3), 4)
    assert made.done
    assert made.results == {"a": "made a", "b": "made b"}
    assert made.errors["c"].name == "TOPIC_ALREADY_EXISTS"
    assert isinstance(made.errors["d"], RemoteProtocolError)
    assert made.next_deadline() is None


def test_one_item_per_request_where_the_api_takes_one():
    made = job(names(one_by_one=True), ["a", "b"], cluster())
    assert [(send.to, send.context.keys) for send in made.poll(0)] == [(2, ["a"]), (2, ["b"])]


def test_a_moved_controller_is_looked_up_and_only_its_items_are_asked_for_again():
    of = cluster()
    made = job(names(), ["a", "b"], of)
    (send,) = made.poll(0)
    assert send.to == 2
    made.answered(send, Answer({"a": 0, "b": 41}, 7, 2), 50)
    assert made.poll(51) == []
    assert made.next_deadline() == 150
    feed(of, now=100, controller=3)
    (send,) = made.poll(150)
    assert (send.to, send.context.keys) == (3, ["b"])


def test_without_a_known_controller_any_broker_is_asked_in_the_end():
    made = job(names(), ["a"], cluster(controller=-1))
    assert made.poll(0) == []
    assert made.poll(made.next_deadline()) == []
    (send,) = made.poll(1100)
    assert send.to is ANY
    with pytest.raises(UnsupportedVersion, match=r"does not have CreateTopics; Kafka 0.10.1 and later have it"):
        send.request({3: range(1)})


def test_version_errors_name_the_feature_and_the_release():
    made = job(names(least=4, needs="a default", place=lambda key: 1), ["a"], cluster())
    (send,) = made.poll(0)
    with pytest.raises(
        UnsupportedVersion,
        match=r"a default needs version 4 of CreateTopics, the broker has 3; Kafka 2.4 and later have it",
    ):
        send.request({19: range(4)})
    assert send.request({19: range(5)})[1] == 4


def test_leaders_are_waited_for_and_followed():
    of = Cluster([("a", 1)], backoff=BACKOFF)
    keys = [("t", 0), ("t", 1)]
    made = job(names(place=lambda key: Leader(*key)), keys, of)
    assert made.poll(0) == []
    assert made.next_deadline() == 100
    feed(of, 1, 2)
    first, second = made.poll(1)
    assert (first.to, first.context.keys, second.to) == (1, [("t", 0)], 2)
    made.answered(first, Answer({("t", 0): 0}, 1, 1), 2)
    made.answered(second, Answer({("t", 1): 6}, 1, 2), 2)
    feed(of, 1, 3, now=102)
    (again,) = made.poll(102)
    assert (again.to, again.context.keys) == (3, [("t", 1)])


@pytest.mark.parametrize(("key", "code"), [(("t", 7), 0), (("t", 0), 3)])
def test_a_topic_or_partition_that_stays_unknown_is_an_error_after_five_seconds(key, code):
    of = cluster(*([] if code else [1]), error_code=code)
    made = job(names(place=lambda key: Leader(*key)), [key], of, 60_000)
    now = 0.0
    while not made.done:
        assert made.poll(now) == []
        now = made.next_deadline() or now
    assert 5000 <= now < 5200
    assert made.errors[key].name == "UNKNOWN_TOPIC_OR_PARTITION"
    assert f"t-{key[1]}" in str(made.errors[key])


def test_a_topic_that_may_not_be_described_is_an_error_at_once():
    made = job(names(place=lambda key: Leader(*key)), [("t", 0)], cluster(error_code=29))
    made.poll(0)
    assert made.errors[("t", 0)].name == "TOPIC_AUTHORIZATION_FAILED"


def coordinator(of, now, node=3, error_code=0):
    """Answer the look-up of the coordinator."""
    kind = messages.FindCoordinatorResponse
    (send,) = [send for send in of.poll(now) if isinstance(send.context, Coordinator)]
    entry = kind.Coordinator(key="g", node_id=node, host="h", port=1, error_code=error_code)
    of.answered(send, Answer(kind(coordinators=[entry]), 4, 1), now)


def test_coordinators_are_looked_up_again_when_they_moved():
    of = cluster()
    made = job(names(place=lambda key: Coordinator("group", "g")), ["a", "b"], of)
    assert made.poll(0) == []
    coordinator(of, 1)
    (send,) = made.poll(2)
    assert (send.to, send.context.keys) == (3, ["a", "b"])
    made.answered(send, Answer({"a": 0, "b": 16}, 4, 3), 3)
    assert made.poll(200) == []
    coordinator(of, 200, node=1)
    (send,) = made.poll(201)
    assert (send.to, send.context.keys) == (1, ["b"])
    made.answered(send, Answer({"b": 14}, 4, 1), 202)  # it loads: the same broker later
    assert made.poll(203) == []
    (send,) = made.poll(403)
    assert send.to == 1


def test_a_coordinator_that_is_refused_is_an_error():
    of = cluster()
    made = job(names(place=lambda key: Coordinator("group", "g")), ["a"], of)
    made.poll(0)
    coordinator(of, 1, error_code=30)
    made.poll(2)
    assert made.errors["a"].name == "GROUP_AUTHORIZATION_FAILED"


@pytest.mark.parametrize(("item", "named"), [("a", "CreateTopics of 'a'"), ("", "CreateTopics")])
def test_a_broken_connection_is_tried_again_until_the_deadline(item, named):
    made = job(names(place=lambda key: 1), [item], cluster(), 1000)
    now, sends = 0.0, 0
    while not made.done:
        for send in made.poll(now):
            assert send.timeout_ms == 1000 - now
            sends += 1
            made.failed(send, ConnectionFailed("broke", sent=True), now)
        now = made.next_deadline() or now
    assert sends == 4  # at 0, 100, 300, 700
    found = made.errors[item]
    assert isinstance(found, DeadlineExceeded)
    assert found.sent
    assert str(found) == f"{named} timed out; last error: broke"


def test_an_error_after_an_unanswered_request_says_so():
    made = job(names(place=lambda key: 1), ["a"], cluster())
    (send,) = made.poll(0)
    made.failed(send, DeadlineExceeded("late", sent=True), 3000)
    (send,) = made.poll(3100)
    made.answered(send, Answer({"a": 36}, 7, 1), 3101)
    assert made.errors["a"].__notes__ == ["an earlier request timed out; the broker may have executed it"]


def test_an_error_after_a_request_that_timed_out_in_the_broker_says_so_too():
    made = job(names(), ["a"], cluster())
    (send,) = made.poll(0)
    made.answered(send, Answer({"a": 7}, 7, 2), 1)
    (send,) = made.poll(101)
    made.answered(send, Answer({"a": 36}, 7, 2), 102)
    assert made.errors["a"].name == "TOPIC_ALREADY_EXISTS"
    assert made.errors["a"].__notes__ == ["an earlier request timed out; the broker may have executed it"]


PLACES = [Leader("t", 0), Coordinator("group", "g"), CONTROLLER]


def fail_metadata(of, error, now):
    """Fail the cluster's request for metadata."""
    (send,) = [send for send in of.poll(now) if not isinstance(send.context, Coordinator)]
    of.failed(send, error, now)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_what_cannot_be_looked_up_as_the_client_is_refused_fails_at_once(place):
    of = Cluster([("a", 1)], backoff=BACKOFF)
    made = job(names(place=lambda key: place), ["a"], of)
    assert made.poll(0) == []
    error = AuthenticationFailed("wrong password")
    fail_metadata(of, error, 1)
    assert made.poll(2) == []
    assert made.errors == {"a": error}
    assert made.done


def test_items_of_known_brokers_do_not_fail_with_the_metadata():
    of = Cluster([("a", 1)], backoff=BACKOFF)
    fail_metadata(of, AuthenticationFailed("wrong password"), 0)
    assert len(job(names(place=lambda key: ANY), ["a"], of).poll(1)) == 1


@pytest.mark.parametrize("place", PLACES[:2], ids=str)
def test_the_time_out_of_what_was_not_found_tells_why_there_is_no_metadata(place):
    of = Cluster([("a", 1)], backoff=BACKOFF)
    made = job(names(place=lambda key: place), ["a"], of, 1000)
    made.poll(0)
    error = ConnectionFailed("broker a:1: refused")
    fail_metadata(of, error, 1)
    made.poll(2)
    made.poll(1000)
    found = made.errors["a"]
    assert isinstance(found, DeadlineExceeded)
    assert str(found) == "CreateTopics of 'a' timed out; last error: broker a:1: refused"
    assert found.__cause__ is error


def asked_coordinators(of, now):
    return [send.context for send in of.poll(now) if isinstance(send.context, Coordinator)]


def test_a_refused_coordinator_is_asked_for_again_by_later_jobs():
    of, place = cluster(), Coordinator("group", "g")
    first = job(names(place=lambda key: place), ["a"], of)
    first.poll(0)
    coordinator(of, 1, error_code=30)
    first.poll(2)
    first.release()
    later = job(names(place=lambda key: place), ["a"], of)
    assert later.poll(3) == []
    coordinator(of, 4)
    (send,) = later.poll(5)
    assert send.to == 3


def test_a_released_coordinator_is_not_looked_up_when_its_broker_goes_away():
    of = cluster()
    made = job(names(place=lambda key: Coordinator("group", key)), ["g"], of)
    made.poll(0)
    coordinator(of, 1)
    (send,) = made.poll(2)
    made.answered(send, Answer({"g": 0}, 7, 3), 3)
    made.release()
    of.coordinators.lost_node(3)
    assert asked_coordinators(of, 10_000) == []


def test_another_job_asks_again_for_what_was_released():
    of, group = cluster(1), Coordinator("group", "g")
    keys = {"a": group, "b": Leader("new", 0)}
    first, second = (job(names(place=keys.__getitem__), keys, of) for _ in range(2))
    first.poll(0)
    second.poll(0)
    assert asked_coordinators(of, 1) == [group]  # before metadata may be asked for again
    first.release()
    assert second.poll(100) == []
    lookup, metadata = of.poll(101)
    assert lookup.context == group
    assert [topic.name for topic in metadata.request({3: range(13)})[0].topics] == ["new"]


@pytest.mark.parametrize(("leaders", "error_code"), [([], 3), ([-1], 0)])
def test_topics_without_leaders_are_wanted_no_more_after_the_job(leaders, error_code):
    of = Cluster([("a", 1)], backoff=BACKOFF)
    made = job(names(place=lambda key: Leader("t", key)), [0], of, 1000)
    made.poll(0)
    feed(of, *leaders, now=1, error_code=error_code)
    made.poll(1000)
    assert made.done
    made.release()
    assert of.poll(2000) == []
    (send,) = of.poll(1_000_000)  # by age
    assert send.request({3: range(13)})[0].topics == []


def test_topics_with_leaders_stay_known():
    of = cluster(1)
    made = job(names(place=lambda key: Leader("t", key)), [0], of)
    (send,) = made.poll(0)
    made.answered(send, Answer({0: 0}, 7, 1), 1)
    made.release()
    assert made.topics == {"t"}
    assert len(job(names(place=lambda key: Leader("t", key)), [0], of).poll(2)) == 1


@pytest.mark.parametrize("error", [AuthenticationFailed("no"), UnsupportedVersion("old"), RemoteProtocolError("bytes")])
def test_errors_that_stay_are_not_retried(error):
    made = job(names(place=lambda key: 1), ["a"], cluster())
    (send,) = made.poll(0)
    made.failed(send, error, 1)
    assert made.errors == {"a": error}
    assert made.done


def test_final_codes_are_not_retried_though_they_are_retriable():
    made = job(names(place=lambda key: 1, final=frozenset({3})), ["a"], cluster())
    (send,) = made.poll(0)
    made.answered(send, Answer({"a": 3}, 7, 1), 1)
    assert made.errors["a"].name == "UNKNOWN_TOPIC_OR_PARTITION"


def test_every_release_is_of_a_version_that_exists():
    from kafkacodec.protocol.releases import _RELEASES

    for key, versions in _RELEASES.items():
        assert all(version in messages.APIS[key].valid_versions for version in versions)


def test_controller_is_the_default_place():
    assert names().place("a") is CONTROLLER


def test_a_broker_that_the_cluster_does_not_have_is_told_soon():
    of = cluster()
    made = job(names(place=lambda key: key), [9, 3], of, deadline=60_000)
    now = 0.0
    while not made.done and now < 60_000:
        for send in made.poll(now):  # as the driver, which knows of brokers 1 to 3
            known = send.to != 9
            reason = "reset" if known else "broker 9 is not in the cluster's metadata"
            made.failed(send, ConnectionFailed(reason), now)
        if now > 20_000:
            break
        now = made.next_deadline()
        if 9 in made.errors and now < 7000:
            assert str(made.errors[9]) == "broker 9 is not in the cluster's metadata"
    assert list(made.errors) == [9]
    assert now > 20_000  # the other one is asked again, as it is down


def test_a_broker_that_comes_up_in_time_is_asked():
    of = cluster()
    made = job(names(place=lambda key: key), [9], of, deadline=60_000)
    (send,) = made.poll(0)
    made.failed(send, ConnectionFailed("broker 9 is not in the cluster's metadata"), 0)
    (send,) = made.poll(3000)
    made.answered(send, Answer({9: 0}, 7, 9), 3000)
    assert made.results == {9: "made 9"}
