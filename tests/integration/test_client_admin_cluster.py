"""The admin client with three brokers: what is on all of them, on one of them, and moves between them."""

from __future__ import annotations

import threading

import pytest

from kafkacodec import errors
from kafkacodec.client import Admin, Consumer, NewTopic, Producer
from tests.integration.kafka_cluster import Cluster
from tests.patience import LATE, eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(
        tmp_path_factory.mktemp("cluster"),
        3,
        offsets_topic_num_partitions="6",
        auto_leader_rebalance_enable="false",
    )
    made.start()
    yield made
    for broker in made.brokers:  # in good order it would take long, since one of the three is gone
        made.kill(broker)


@pytest.fixture(scope="module")
def admin(cluster):
    with Admin(cluster.servers) as made:
        eventually(lambda: len(made.describe_cluster().brokers) == 3)
        made.create_topics(NewTopic("orders", replica_assignments={0: [1, 2], 1: [2, 3], 2: [3, 1]}))
        eventually(lambda: "orders" in made.list_topics())
        yield made


def partitions(admin):
    return {part.partition: part for part in admin.describe_topics("orders")["orders"].partitions}


def test_groups_of_all_brokers_and_their_offsets(admin):
    names = [f"group-{n}" for n in range(12)]
    for n, name in enumerate(names):
        admin.alter_group_offsets(name, {("orders", n % 3): n})
    listed = admin.list_groups()
    assert set(names) <= set(listed)
    assert {listed[name].coordinator for name in names} == {1, 2, 3}
    described = admin.describe_groups([*names])
    assert {name: found.coordinator for name, found in described.items()} == {
        name: listed[name].coordinator for name in names
    }
    with pytest.raises(errors.ItemErrors) as caught:
        admin.delete_groups([*names, "none"])
    assert {name: type(found).__name__ for name, found in caught.value.errors.items()} == {
        "none": "GroupIdNotFoundError"
    }
    assert not set(names) & set(admin.list_groups())


def test_leaders_are_asked(admin, cluster):
    with Producer(cluster.servers) as producer:
        for n in range(3):
            producer.send("orders", b"x", partition=n, timestamp=1000 + n)
    keys = [("orders", n) for n in range(3)]
    assert [offset.offset for offset in admin.list_offsets(dict.fromkeys(keys, "latest")).values()] == [1, 1, 1]
    assert [offset.timestamp for offset in admin.list_offsets(dict.fromkeys(keys, "max_timestamp")).values()] == [
        1000, 1001, 1002,
    ]  # fmt: skip
    assert {len(found) for found in admin.describe_producers(keys).values()} == {1}
    assert set(admin.describe_log_dirs()) == {1, 2, 3}
    assert admin.describe_configs([("broker", "3")], names=["node.id"])["broker", "3"]["node.id"].value == "3"
    assert admin.delete_records({("orders", 1): -1}) == {("orders", 1): 1}


def test_replicas_move_and_leaders_are_elected(admin):
    admin.alter_partition_reassignments({("orders", 0): [3, 1]})
    eventually(lambda: ("orders", 0) not in admin.list_partition_reassignments())
    eventually(lambda: partitions(admin)[0].replicas == [3, 1])
    eventually(lambda: set(partitions(admin)[0].isr) == {1, 3})
    moved = admin.elect_leaders([("orders", 0), ("orders", 1)])
    assert moved in ([("orders", 0)], [])  # the controller may have moved it with the replicas
    eventually(lambda: partitions(admin)[0].leader == 3)


def test_members_are_described_and_removed(admin, cluster):
    group = "readers"
    options = {"group_id": group, "group_instance_id": "one", "client_id": "reader"}
    with Consumer("orders", bootstrap_servers=cluster.servers, **options) as consumer:
        eventually(lambda: consumer.getmany(0.1) is not None and len(consumer.assignment()) == 3)
        eventually(lambda: admin.describe_groups(group)[group].state == "Stable")
        described = admin.describe_groups(group)[group]
        assert (described.type, described.protocol_type) == ("classic", "consumer")
        (member,) = described.members
        assert (member.group_instance_id, member.client_id, member.subscription) == ("one", "reader", ["orders"])
        assert sorted(member.assignment) == [("orders", 0), ("orders", 1), ("orders", 2)]
        with pytest.raises(errors.ItemErrors) as caught:
            admin.delete_groups(group)
        assert repr(caught.value.errors[group]).startswith("NonEmptyGroupError")
        with pytest.raises(errors.ItemErrors) as caught:
            admin.remove_members(group, ["one", "two"])
        assert {name: type(found).__name__ for name, found in caught.value.errors.items()} == {
            "two": "UnknownMemberIdError"
        }
        assert admin.describe_groups(group)[group].members == []


def test_calls_survive_the_loss_of_the_controller(admin, cluster):
    controller = admin.describe_metadata_quorum().leader_id
    lost = cluster.brokers[controller - 1]
    cluster.kill(lost)
    results = []

    def call():
        results.append(admin.create_topics(NewTopic("later", 3, 2), timeout_ms=LATE * 1000)["later"].num_partitions)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(LATE)
    assert results == [3]
    eventually(lambda: "later" in admin.list_topics())
    assert admin.describe_metadata_quorum().leader_id != controller
    # A broker that is down does not make the lists of the others wait for long, nor is it left out silently.
    if controller in [broker.id for broker in admin.describe_cluster().brokers]:
        with pytest.raises(errors.ItemErrors) as caught:
            admin.list_groups(timeout_ms=2000)
        assert list(caught.value.errors) == [controller]
        assert len(caught.value.results) == 2
