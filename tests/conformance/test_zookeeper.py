"""The ZooKeeper tree of a real Kafka 0.7.2, stage by stage."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafkacodec.dialects import zookeeper
from kafkacodec.errors import DecodeError, EncodeError, LimitExceeded
from tests.dialect_vectors import document

STAGES = document("kafka07/zookeeper")["stages"]


def tree(stage: dict[str, Any]) -> dict[str, str | None]:
    return {node["path"]: node["data"] for node in stage["nodes"]}


@pytest.mark.parametrize("stage", STAGES, ids=lambda s: s["name"])
def test_every_node_both_ways(stage: dict[str, Any]) -> None:
    for node in stage["nodes"]:
        parsed = zookeeper.parse_node(node["path"], node["data"])
        if parsed is None:
            assert not node["data"]
            assert not node["ephemeral"]
            continue
        assert (parsed.path, parsed.data, parsed.ephemeral) == (node["path"], node["data"], node["ephemeral"])


ASSIGNMENTS = [(s, a) for s in STAGES for a in s.get("assignments", ())]


@pytest.mark.parametrize(
    ("stage", "want"), ASSIGNMENTS, ids=[f"{s['name']}-{a['group']}-{a['topic']}" for s, a in ASSIGNMENTS]
)
def test_partitions_go_to_the_threads_that_had_them(stage: dict[str, Any], want: dict[str, Any]) -> None:
    registry = zookeeper.Registry(tree(stage))
    group, topic = want["group"], want["topic"]
    assert registry.partitions(topic) == want["partitions_in_string_order"]
    assert registry.consumer_threads(group, topic) == want["consumer_threads_in_string_order"]
    assert registry.assignment(group, topic) == want["owners"]
    found = {f"{o.broker_id}-{o.partition}": o.thread for o in registry.owners if (o.group, o.topic) == (group, topic)}
    assert found == want["owners"]


def test_the_example_of_the_text() -> None:
    partitions = [f"{broker}-{i}" for broker in (0, 1) for i in range(3)]
    assert zookeeper.assign(partitions, "CAB") == {
        "0-0": "A", "0-1": "A", "0-2": "B", "1-0": "B", "1-1": "C", "1-2": "C",
    }  # fmt: skip
    assert list(zookeeper.assign(["0-0"], ["b", "a"]).items()) == [("0-0", "a")]
    assert zookeeper.assign(["0-0"], []) == {}


def test_a_new_topic_goes_to_partition_0_of_any_broker() -> None:
    registry = zookeeper.Registry(tree(STAGES[1]))
    assert registry.producer_targets("never-written") == [(0, 0), (1, 0)]


def test_a_producer_sends_to_every_broker_with_an_address_and_to_no_other() -> None:
    """By the text, producers also send to partition 0 of brokers that do not list the topic."""
    registry = zookeeper.Registry(tree(STAGES[1]))
    assert sorted(registry.brokers) == [0, 1]
    assert registry.topics["orders"] == {0: 2}
    assert registry.producer_targets("orders") == [(0, 0), (0, 1), (1, 0)]
    nodes = {"/brokers/ids/3": "c:host:9092", "/brokers/topics/t/2": "4", "/brokers/topics/t/3": "2"}
    assert zookeeper.Registry(nodes).producer_targets("t") == [(3, 0), (3, 1)]
    assert zookeeper.Registry({"/brokers/topics/t/2": "4"}).producer_targets("t") == []
    assert zookeeper.Registry({"/brokers/ids/3": "c:host:9092", "/brokers/topics/t/3": "0"}).producer_targets("t") == [
        (3, 0)
    ]


def test_what_follows_the_port_of_a_broker_is_not_looked_at() -> None:
    """As in clients of 0.7."""
    registry = zookeeper.Registry({"/brokers/ids/3": "c:host:9092:more"})
    assert (registry.brokers[3].host, registry.brokers[3].port) == ("host", 9092)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/ids/0", None),
        ("/brokers/ids/0", "host:1"),
        ("/brokers/ids/0", "a:b:c"),
        ("/brokers/topics/t/0", "two"),
        ("/brokers/topics/t/0", "9" * 5000),
        ("/brokers/topics/t/0", "-1"),
        ("/brokers/topics/t/0", "2147483648"),
        ("/brokers/topics/t/0", "9223372036854775807"),
        ("/brokers/topics/t/2147483648", "1"),
        ("/consumers/g/ids/c", "*x*a"),
        ("/consumers/g/ids/c", "*1!a"),
        ("/consumers/g/ids/c", "!0!a"),
        ("/consumers/g/ids/c", '{ "t": 0 }'),
        ("/consumers/g/ids/c", '{ "t": true }'),
        ("/consumers/g/ids/c", "[" * 100_000),
        ("/consumers/g/ids/c", "1"),
        ("/consumers/g/ids/c", '{ "t": 2147483648 }'),
        ("/consumers/g/offsets/t/0-0", "1.5"),
    ],
)
def test_wrong_data_names_the_node(path: str, data: str | None) -> None:
    with pytest.raises(DecodeError) as caught:
        zookeeper.parse_node(path, data)
    assert caught.value.path == path


def test_a_wrong_node_is_listed_and_the_rest_works() -> None:
    nodes = tree(STAGES[1])
    bad = {"/brokers/ids/7": "host:1", "/brokers/topics/orders/1": "many", "/consumers/g/ids/c": "*1!a"}
    registry = zookeeper.Registry({**bad, **nodes})
    whole = zookeeper.Registry(nodes)
    assert whole.problems == []
    assert [(p.path, type(p)) for p in registry.problems] == [(path, DecodeError) for path in bad]
    for name in ("brokers", "topics", "consumers", "owners", "offsets"):
        assert getattr(registry, name) == getattr(whole, name)


def test_a_filter_that_cannot_be_read_names_its_node() -> None:
    registry = zookeeper.Registry({"/consumers/g/ids/c": "*1*(", "/consumers/h/ids/d": "*1*t"})
    with pytest.raises(DecodeError, match="topic filter") as caught:
        registry.consumer_threads("g", "t")
    assert caught.value.path == "/consumers/g/ids/c"
    assert registry.consumer_threads("h", "t") == ["d-0"]


def test_a_filter_takes_no_longer_than_its_length() -> None:
    """A filter of another client, for which a backtracking matcher needs exponential time."""
    for cls in (zookeeper.Whitelist, zookeeper.Blacklist):
        started = time.process_time()
        threads = [cls(pattern, 3).threads("a" * 249) for pattern in ("(a+)+b", "(a|a)*b", "(.*a){20}b")]
        assert threads == [0 if cls.wanted else 3] * 3
        assert time.process_time() - started < 1


def test_counts_of_strangers_are_not_counted_out() -> None:
    """A node of a few bytes can claim any number of partitions."""
    nodes = {"/brokers/ids/0": "c:h:1", "/brokers/topics/t/0": "2147483647", "/brokers/topics/u/0": "2"}
    registry = zookeeper.Registry({**nodes, "/consumers/g/ids/g_c": "*999999999*.*"})
    for ask in (
        lambda: registry.partitions("t"),
        lambda: registry.producer_targets("t"),
        lambda: registry.consumer_threads("g", "t"),
        lambda: registry.consumers[0].threads("t"),
        lambda: registry.assignment("g", "u"),
    ):
        with pytest.raises(LimitExceeded):
            ask()
    assert registry.partitions("u") == ["0-0", "0-1"]
    assert registry.consumer_threads("other", "t") == []
    several = {f"/brokers/topics/t/{broker}": "40" for broker in range(3)}
    assert len(zookeeper.Registry(several, max_partitions=120).partitions("t")) == 120
    with pytest.raises(LimitExceeded, match="120 partitions exceed the limit of 119"):
        zookeeper.Registry(several, max_partitions=119).partitions("t")


def test_what_a_node_cannot_hold_is_refused() -> None:
    with pytest.raises(EncodeError):
        _ = zookeeper.BrokerNode(0, "a:b", "host", 1).data
    with pytest.raises(EncodeError):
        _ = zookeeper.TopicNode("a/b", 0, 1).path
    with pytest.raises(DecodeError):
        zookeeper.Whitelist("(", 1).threads("t")
