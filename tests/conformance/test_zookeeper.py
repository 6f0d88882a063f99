"""The ZooKeeper tree of a real Kafka 0.7.2, stage by stage."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec.dialects import zookeeper
from kafkacodec.errors import DecodeError, EncodeError
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
    assert registry.producer_targets("orders") == [(0, 0), (0, 1)]
    assert registry.producer_targets("never-written") == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/ids/0", None),
        ("/brokers/ids/0", "host:1"),
        ("/brokers/ids/0", "a:b:c"),
        ("/brokers/ids/0", "a:b:1:2"),
        ("/brokers/topics/t/0", "two"),
        ("/brokers/topics/t/0", "9" * 5000),
        ("/consumers/g/ids/c", "*x*a"),
        ("/consumers/g/ids/c", "*1!a"),
        ("/consumers/g/ids/c", "!0!a"),
        ("/consumers/g/ids/c", '{ "t": 0 }'),
        ("/consumers/g/ids/c", '{ "t": true }'),
        ("/consumers/g/ids/c", "[" * 100_000),
        ("/consumers/g/ids/c", "1"),
        ("/consumers/g/offsets/t/0-0", "1.5"),
    ],
)
def test_wrong_data_names_the_node(path: str, data: str | None) -> None:
    with pytest.raises(DecodeError) as caught:
        zookeeper.Registry({path: data})
    assert caught.value.path == path


def test_what_a_node_cannot_hold_is_refused() -> None:
    with pytest.raises(EncodeError):
        _ = zookeeper.BrokerNode(0, "a:b", "host", 1).data
    with pytest.raises(EncodeError):
        _ = zookeeper.TopicNode("a/b", 0, 1).path
    with pytest.raises(DecodeError):
        zookeeper.Whitelist("(", 1).threads("t")
