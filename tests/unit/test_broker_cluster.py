"""Several pretended brokers: leaders and coordinators, what the wrong broker answers, moves, stops and starts.

The expected answers are those of three brokers of Apache Kafka 4.4.0 to the same requests.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import uuid
from contextlib import ExitStack
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import errors
from kafkacodec.broker.host.sessions import Session
from kafkacodec.client import Consumer, Producer  # here: imported in threads, pytest could fail to rewrite them
from tests.broker_wire import Wire
from tests.patience import SOON

NOT_LEADER, NOT_COORDINATOR = errors.NOT_LEADER_OR_FOLLOWER, errors.NOT_COORDINATOR
SMALL = {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3}


class One:
    def __init__(self, server):
        self.bootstrap_servers = server


class Wires:
    """A connection to each broker, by id."""

    def __init__(self, kafka, stack):
        self.servers = dict(enumerate(kafka.bootstrap_servers.split(","), 1))
        self._stack, self._made = stack, {}

    def __getitem__(self, broker):
        if broker not in self._made:
            self._made[broker] = wire = Wire(One(self.servers[broker]))
            self._stack.callback(wire.socket.close)
        return self._made[broker]


@pytest.fixture
def kafka():
    with kc.broker.serve(brokers=3, config=SMALL) as running:
        yield running


@pytest.fixture
def wires(kafka):
    with ExitStack() as stack:
        yield Wires(kafka, stack)


@pytest.fixture
def topics(wires):
    """Topic a has one replica, at broker 1; b has three and the same leader."""
    answer = wires[2].ask(
        "CreateTopics", 7, timeout_ms=9000,
        topics=[assigned("a", [1]), assigned("b", [1, 2, 3])],
    )  # fmt: skip
    assert [(row.error_code, row.replication_factor) for row in answer.topics] == [(0, 1), (0, 3)]
    return {row.name: row.topic_id for row in answer.topics}


def assigned(name, *replicas):
    rows = [{"partition_index": n, "broker_ids": list(brokers)} for n, brokers in enumerate(replicas)]
    return {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": rows}


def produce(wire, topic, version, topic_id=None, acks=-1):
    entry = {"name": topic} if version < 13 else {"topic_id": topic_id}
    data = kc.encode([(b"k", b"v")])
    entry["partition_data"] = [{"index": 0, "records": data}]
    answer = wire.ask("Produce", version, topic_data=[entry], acks=acks, timeout_ms=9000)
    return answer.responses[0].partition_responses[0], answer.node_endpoints


def fetch(wire, topic, version, topic_id=None, epoch=-1, wait=0):
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20, "current_leader_epoch": epoch}
    entry = {"topic": topic} if version < 13 else {"topic_id": topic_id}
    answer = wire.ask(
        "Fetch", version, topics=[{**entry, "partitions": [row]}], session_epoch=-1, max_wait_ms=wait, min_bytes=1
    )
    return answer.responses[0].partitions[0], answer.node_endpoints


def leader_of(row):
    return row.current_leader.leader_id, row.current_leader.leader_epoch


def ports(rows):
    return [(row.node_id, f"{row.host}:{row.port}") for row in rows]


def metadata(wire, *names, version=12):
    answer = wire.ask("Metadata", version, topics=[{"name": name} for name in names])
    return answer, {row.name: row.partitions for row in answer.topics}


def test_all_brokers_tell_the_same_of_the_cluster(kafka, wires):
    kafka.create_topic("orders", 6)
    assert [kafka.leader("orders", number) for number in range(6)] == [1, 2, 3, 1, 2, 3]
    for number in (1, 2, 3):
        answer, topics = metadata(wires[number], "orders")
        assert ports(answer.brokers) == sorted(wires.servers.items())
        assert [row.leader_id for row in topics["orders"]] == [1, 2, 3, 1, 2, 3]
        assert topics["orders"][1].replica_nodes == topics["orders"][1].isr_nodes == [2, 3, 1]
        described = wires[number].ask("DescribeTopicPartitions", 0, topics=[{"name": "orders"}]).topics[0]
        assert [row.leader_id for row in described.partitions] == [1, 2, 3, 1, 2, 3]
        cluster = wires[number].ask("DescribeCluster", 2)
        assert [(row.broker_id, f"{row.host}:{row.port}") for row in cluster.brokers] == sorted(wires.servers.items())
        config = [{"resource_type": 4, "resource_name": str(number), "configuration_keys": ["node.id"]}]
        row = wires[number].ask("DescribeConfigs", 4, resources=config).results[0]
        assert [one.value for one in row.configs] == [str(number)]
        config[0]["resource_name"] = str(number % 3 + 1)
        assert wires[number].ask("DescribeConfigs", 4, resources=config).results[0].error_code == errors.INVALID_REQUEST


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"name": "big", "num_partitions": 1, "replication_factor": 4}, errors.INVALID_REPLICATION_FACTOR),
        (assigned("twice", [1, 1]), errors.INVALID_REPLICA_ASSIGNMENT),
        (assigned("unknown", [9]), errors.INVALID_REPLICA_ASSIGNMENT),
        (assigned("uneven", [1], [1, 2]), errors.INVALID_REPLICA_ASSIGNMENT),
        (assigned("none", []), errors.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_replicas_that_cannot_be(wires, topic, code):
    assert wires[1].ask("CreateTopics", 7, topics=[topic], timeout_ms=9000).topics[0].error_code == code


@pytest.mark.parametrize("topic", ["a", "b"])
def test_produce_at_another_broker_names_the_leader(wires, topics, topic):
    for version in (3, 9):
        row, nodes = produce(wires[2], topic, version)
        assert (row.error_code, leader_of(row), nodes) == (NOT_LEADER, (-1, -1), [])
    for version in (10, 13):
        row, nodes = produce(wires[2], topic, version, topics[topic])
        assert (row.error_code, leader_of(row), row.base_offset) == (NOT_LEADER, (1, 0), -1)
        assert ports(nodes) == [(1, wires.servers[1])]
    row, nodes = produce(wires[1], topic, 12)
    assert (row.error_code, leader_of(row), nodes) == (0, (-1, -1), [])
    wires[2].send("Produce", 9, acks=0, timeout_ms=9, topic_data=[
        {"name": topic, "partition_data": [{"index": 0, "records": kc.encode([(b"k", b"v")])}]}
    ])  # fmt: skip
    assert wires[2].frame() is None  # so that a client that wants no answers asks for the leader


def test_fetch_at_another_broker(wires, topics):
    produce(wires[1], "a", 12), produce(wires[1], "b", 12)
    for version in (4, 10, 11, 12):
        assert fetch(wires[2], "a", version)[0].error_code == NOT_LEADER
    row, nodes = fetch(wires[2], "a", 15, topics["a"])
    assert (row.error_code, leader_of(row), nodes) == (NOT_LEADER, (-1, -1), [])
    for epoch in (-1, 0, 5):
        row, nodes = fetch(wires[2], "a", 16, topics["a"], epoch)
        assert (row.error_code, leader_of(row), ports(nodes)) == (NOT_LEADER, (1, 0), [(1, wires.servers[1])])
        assert (row.high_watermark, row.aborted_transactions, row.records) == (-1, None, b"")
    assert fetch(wires[2], "b", 10)[0].error_code == NOT_LEADER  # from v11 on consumers may fetch from a replica
    for version in (11, 17):
        row, nodes = fetch(wires[2], "b", version, topics["b"], 0)
        assert (row.error_code, row.high_watermark, nodes) == (0, 1, [])
        assert kc.decode(row.records)["value"].tolist() == [b"v"]
    row, nodes = fetch(wires[2], "b", 16, topics["b"], 5)
    assert (row.error_code, leader_of(row), nodes) == (errors.UNKNOWN_LEADER_EPOCH, (-1, -1), [])


@pytest.mark.parametrize("topic", ["a", "b"])
def test_other_requests_for_a_leader(kafka, wires, topics, topic):
    def ask(broker, api, version, row, **more):
        names = {"OffsetForLeaderEpoch": "topic"}
        entry = {names.get(api, "name"): topic, "partitions": [row]}
        return wires[broker].ask(api, version, topics=[entry], **more).topics[0].partitions[0].error_code

    for broker, code in ((1, 0), (2, NOT_LEADER)):
        for version in (1, 4, 8):
            assert ask(broker, "ListOffsets", version, {"partition_index": 0, "timestamp": -1}, replica_id=-1) == code
        assert ask(broker, "OffsetForLeaderEpoch", 4, {"partition": 0, "leader_epoch": 0}) == code
        assert ask(broker, "DeleteRecords", 2, {"partition_index": 0, "offset": 0}, timeout_ms=99) == code
        answer = wires[broker].ask("DescribeProducers", 0, topics=[{"name": topic, "partition_indexes": [0]}])
        assert answer.topics[0].partitions[0].error_code == (code if topic == "a" else 0)
        dirs = wires[broker].ask("DescribeLogDirs", 4, topics=[{"topic": topic, "partitions": [0]}])
        assert len(dirs.results[0].topics) == (broker == 1 or topic == "b")


def coordinators(wire, kind, names):
    rows = wire.ask("FindCoordinator", 4, key_type=kind, coordinator_keys=list(names)).coordinators
    assert all(not row.error_code for row in rows)
    return {row.key: row.node_id for row in rows}


def one_at(wire, kind, broker):
    names = [f"{kind}{n}" for n in range(40)]
    return next(name for name, of in coordinators(wire, kind, names).items() if of == broker)


PLACES = [{"name": "a", "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}]
FOR_GROUPS = [
    ("JoinGroup", (0, 4, 9), {"session_timeout_ms": 9000, "rebalance_timeout_ms": 9000, "protocol_type": "consumer",
                              "protocols": [{"name": "range", "metadata": b"\0\0\0\0\0\0"}], "member_id": ""}),
    ("SyncGroup", (0,), {"generation_id": 1, "member_id": "m"}),
    ("Heartbeat", (0, 4), {"generation_id": 1, "member_id": "m"}),
    ("LeaveGroup", (0, 2), {"member_id": "m"}),
    ("LeaveGroup", (3, 5), {"members": [{"member_id": "m"}]}),
    ("OffsetCommit", (2, 5, 9), {"topics": PLACES, "generation_id_or_member_epoch": -1, "member_id": ""}),
    ("OffsetFetch", (1, 2, 7), {"topics": [{"name": "a", "partition_indexes": [0]}]}),
    ("OffsetDelete", (0,), {"topics": [{"name": "a", "partitions": [{"partition_index": 0}]}]}),
    ("TxnOffsetCommit", (0, 3, 5), {"transactional_id": "t", "producer_id": 1, "producer_epoch": 0, "topics": PLACES}),
    ("ConsumerGroupHeartbeat", (0, 1), {"member_id": "A" * 22, "member_epoch": 0, "rebalance_timeout_ms": 5000,
                                        "subscribed_topic_names": ["a"], "topic_partitions": []}),
]  # fmt: skip


def codes_of(message):
    """All error codes of an answer."""
    found = message.to_dict() if hasattr(message, "to_dict") else message
    if isinstance(found, dict):
        own = [value for name, value in found.items() if name in ("error_code", "partition_error_code")]
        return own + [code for value in found.values() for code in codes_of(value)]
    return [code for row in found for code in codes_of(row)] if isinstance(found, list) else []


@pytest.mark.parametrize(("api", "versions", "fields"), FOR_GROUPS)
def test_requests_about_a_group_at_another_broker(wires, topics, api, versions, fields):
    group = one_at(wires[1], 0, 2)
    for version in versions:
        answer = wires[1].ask(api, version, group_id=group, **fields)
        assert max(codes_of(answer)) == NOT_COORDINATOR
        assert NOT_COORDINATOR not in codes_of(wires[2].ask(api, version, group_id=group, **fields))


def test_requests_about_a_transaction_at_another_broker(wires, topics):
    name = one_at(wires[1], 1, 3)
    for version in (0, 4, 5):
        asked = {"transactional_id": name, "transaction_timeout_ms": 9000, "producer_id": -1, "producer_epoch": -1}
        row = wires[1].ask("InitProducerId", version, **asked)
        assert (row.error_code, row.producer_id, row.producer_epoch) == (NOT_COORDINATOR, -1, -1)
    assert wires[1].ask("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=9000).error_code == 0
    made = wires[3].ask("InitProducerId", 4, **asked)
    producer = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    old = {f"v3_and_below_{key}": value for key, value in producer.items()}
    for broker, code in ((1, NOT_COORDINATOR), (3, 0)):
        answer = wires[broker].ask(
            "AddPartitionsToTxn", 3, v3_and_below_transactional_id=name,
            v3_and_below_topics=[{"name": "a", "partitions": [0]}], **old,
        )  # fmt: skip
        assert answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == code
        asked = {"transactional_id": name, **producer}
        assert wires[broker].ask("AddOffsetsToTxn", 3, group_id="g", **asked).error_code == code
        assert wires[broker].ask("EndTxn", 3, committed=False, **asked).error_code == code
        rows = wires[broker].ask("ListTransactions", 0).transaction_states
        assert [row.transactional_id for row in rows] == ([] if code else [name])
    other = one_at(wires[1], 1, 1)
    rows = wires[1].ask("DescribeTransactions", 0, transactional_ids=[name, other]).transaction_states
    assert {row.transactional_id: row.error_code for row in rows} == {name: NOT_COORDINATOR, other: 105}


def test_requests_about_several_groups_are_answered_in_part(wires, topics):
    there, here = one_at(wires[1], 0, 2), one_at(wires[1], 0, 1)
    for group, broker in ((there, 2), (here, 1)):
        commit = {"topics": PLACES, "generation_id_or_member_epoch": -1, "member_id": ""}
        assert wires[broker].ask("OffsetCommit", 8, group_id=group, **commit).topics[0].partitions[0].error_code == 0
    for version in (8, 9):
        rows = wires[1].ask("OffsetFetch", version, groups=[{"group_id": one, "topics": None} for one in (there, here)])
        found = {row.group_id: (row.error_code, len(row.topics)) for row in rows.groups}
        assert found == {there: (NOT_COORDINATOR, 0), here: (0, 1)}
    for version in (0, 6):
        rows = wires[1].ask("DescribeGroups", version, groups=[there, here]).groups
        assert {row.group_id: row.error_code for row in rows} == {there: NOT_COORDINATOR, here: 0}
    rows = wires[1].ask("ConsumerGroupDescribe", 0, group_ids=[there, here]).groups
    assert {row.group_id: row.error_code for row in rows} == {there: NOT_COORDINATOR, here: 69}
    for version in (0, 5):
        assert [row.group_id for row in wires[1].ask("ListGroups", version).groups] == [here]
        assert [row.group_id for row in wires[2].ask("ListGroups", version).groups] == [there]
    rows = wires[1].ask("DeleteGroups", 2, groups_names=[there, here]).results
    assert {row.group_id: row.error_code for row in rows} == {there: NOT_COORDINATOR, here: 0}
    for api, asked in (
        ("ShareGroupDescribe", {"group_ids": [there, here]}),
        ("DescribeShareGroupOffsets", {"groups": [{"group_id": name, "topics": None} for name in (there, here)]}),
    ):
        codes = {row.group_id: row.error_code for row in wires[1].ask(api, 1, **asked).groups}
        assert codes[there] == NOT_COORDINATOR
        assert codes[here] != NOT_COORDINATOR
    rows = wires[3].ask("DeleteGroups", 2, groups_names=[there]).results
    assert [row.error_code for row in rows] == [NOT_COORDINATOR]


def test_a_moved_leader_has_a_new_epoch_and_ends_what_waits(kafka, wires, topics):
    sent = wires[1].send(
        "Fetch", 16, session_epoch=-1, max_wait_ms=60_000, min_bytes=1,
        topics=[{"topic_id": topics["b"], "partitions": [
            {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 99, "current_leader_epoch": 0}]}],
    )  # fmt: skip
    assert wires[1].is_silent()
    kafka.move_leader("b", 0, 3)
    answer = wires[1].receive(sent)
    row = answer.responses[0].partitions[0]
    assert (row.error_code, leader_of(row)) == (errors.FENCED_LEADER_EPOCH, (3, 1))
    assert ports(answer.node_endpoints) == [(3, wires.servers[3])]
    assert produce(wires[1], "b", 12)[0].error_code == NOT_LEADER
    assert produce(wires[3], "b", 12)[0].base_offset == 0
    assert kafka.leader("b") == 3
    kafka.move_leader("a", 0, 2)  # which had no replica
    row = metadata(wires[1], "a")[1]["a"][0]
    assert (row.leader_id, row.leader_epoch, row.replica_nodes, row.isr_nodes) == (2, 1, [2], [2])
    found = kc.log.read_cluster_metadata(f"{kafka.data}/__cluster_metadata-0").topics["b"]["partitions"][0]
    assert (found["leader"], found["leader_epoch"]) == (3, 1)
    assert int.from_bytes(fetch(wires[3], "b", 12)[0].records[12:16], "big") == 1


def test_a_stopped_broker_is_away_until_it_starts(kafka, wires, topics):
    produce(wires[1], "a", 12), produce(wires[1], "b", 12)
    wires[1].ask("Metadata", 1, topics=[])
    kafka.stop_broker(1)
    assert wires[1].frame() is None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(tuple(wires.servers[1].split(":")), timeout=30)
    answer, rows = metadata(wires[2], "a", "b")
    assert [row.node_id for row in answer.brokers] == [2, 3]
    a, b = rows["a"][0], rows["b"][0]
    assert (a.error_code, a.leader_id, a.leader_epoch) == (errors.LEADER_NOT_AVAILABLE, -1, 1)
    assert (a.replica_nodes, a.isr_nodes, a.offline_replicas) == ([1], [], [1])
    assert (b.error_code, b.leader_id, b.leader_epoch) == (0, 2, 1)
    assert (b.replica_nodes, b.isr_nodes, b.offline_replicas) == ([1, 2, 3], [2, 3], [1])
    described = wires[2].ask("DescribeTopicPartitions", 0, topics=[{"name": "a"}]).topics[0].partitions[0]
    assert (described.error_code, described.leader_id, described.isr_nodes) == (0, -1, [])
    assert (described.eligible_leader_replicas, described.last_known_elr) == ([1], [1])
    row, nodes = produce(wires[2], "a", 12)
    assert (row.error_code, leader_of(row), nodes) == (NOT_LEADER, (-1, 1), [])
    for broker in (2, 3):
        row, nodes = fetch(wires[broker], "b", 16, topics["b"], 0)
        assert (row.error_code, leader_of(row)) == (errors.FENCED_LEADER_EPOCH, (2, 1))
    found = wires[2].ask("DescribeCluster", 2, include_fenced_brokers=True).brokers
    assert [(row.broker_id, row.is_fenced) for row in found] == [(1, True), (2, False), (3, False)]
    elected = wires[2].ask("ElectLeaders", 2, election_type=0, timeout_ms=99, topic_partitions=[
        {"topic": name, "partitions": [0]} for name in "ab"])  # fmt: skip
    assert [code for code in codes_of(elected) if code] == [errors.PREFERRED_LEADER_NOT_AVAILABLE] * 2
    made = wires[2].ask("CreateTopics", 7, timeout_ms=99, topics=[
        {"name": "three", "num_partitions": 1, "replication_factor": 3}, assigned("four", [1])]).topics  # fmt: skip
    assert [row.error_code for row in made] == [0, errors.INVALID_REPLICA_ASSIGNMENT]
    wires[2].ask("IncrementalAlterConfigs", 1, resources=[{"resource_type": 2, "resource_name": "b", "configs": [
        {"name": "min.insync.replicas", "config_operation": 0, "value": "3"}]}])  # fmt: skip
    row, _ = produce(wires[2], "b", 12)
    assert (row.error_code, row.base_offset, row.log_start_offset) == (errors.NOT_ENOUGH_REPLICAS, -1, 0)
    assert produce(wires[2], "b", 12, acks=1)[0].base_offset == 1
    kafka.start_broker(1)
    wires._made.pop(1)
    answer, rows = metadata(wires[1], "a", "b")
    assert [row.node_id for row in answer.brokers] == [1, 2, 3]
    a, b = rows["a"][0], rows["b"][0]
    assert (a.leader_id, a.leader_epoch, a.isr_nodes) == (1, 2, [1])
    assert (b.leader_id, b.leader_epoch, sorted(b.isr_nodes)) == (2, 1, [1, 2, 3])
    assert produce(wires[1], "a", 12)[0].base_offset == 1
    assert produce(wires[2], "b", 12)[0].base_offset == 2
    elected = wires[2].ask("ElectLeaders", 2, election_type=0, timeout_ms=99, topic_partitions=[
        {"topic": "b", "partitions": [0]}])  # fmt: skip
    assert not any(codes_of(elected))
    assert kafka.leader("b") == 1
    assert fetch(wires[1], "b", 12)[0].high_watermark == 3


def test_replicas_are_reassigned_at_once(kafka, wires, topics):
    def reassign(replicas):
        rows = [{"partition_index": 0, "replicas": replicas}]
        answer = wires[2].ask(
            "AlterPartitionReassignments", 0, timeout_ms=99, topics=[{"name": "a", "partitions": rows}]
        )
        return answer.responses[0].partitions[0].error_code

    assert reassign([2]) == 0
    row = metadata(wires[1], "a")[1]["a"][0]
    assert (row.leader_id, row.leader_epoch, row.replica_nodes, row.isr_nodes) == (2, 1, [2], [2])
    assert reassign([2, 3]) == 0
    row = metadata(wires[1], "a")[1]["a"][0]
    assert (row.leader_id, row.leader_epoch, row.replica_nodes) == (2, 1, [2, 3])
    assert reassign([2, 2]) == reassign([]) == reassign([9]) == errors.INVALID_REPLICA_ASSIGNMENT


def test_coordinators_move(kafka, wires, topics):
    group = one_at(wires[1], 0, 2)
    commit = {"topics": PLACES, "generation_id_or_member_epoch": -1, "member_id": ""}
    wires[2].ask("OffsetCommit", 8, group_id=group, **commit)
    kafka.stop_broker(2)
    now = coordinators(wires[1], 0, [group])[group]
    assert now in (1, 3)
    rows = wires[now].ask("OffsetFetch", 8, groups=[{"group_id": group, "topics": None}]).groups
    assert rows[0].topics[0].partitions[0].committed_offset == 1
    for broker in {1, 3}:
        kafka.stop_broker(broker)
    assert kafka.leader("b") == -1
    for broker in (3, 1, 2):
        kafka.start_broker(broker)
    assert {kafka.leader(name) for name in "ab"} <= {1, 2, 3}


class Load:
    """A producer and a consumer of a group on threads, until `stop`."""

    def __init__(self, kafka, topic, group):
        self._servers, self._topic, self._group = kafka.bootstrap_servers, topic, group
        self._ended, self.sent, self.seen = threading.Event(), [], []
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._guarded, args=(run,)) for run in (self._produce, self._consume)]
        self.failure = None
        for thread in self._threads:
            thread.start()

    def _guarded(self, run):
        try:
            run()
        except BaseException as error:
            self.failure = error
            self._ended.set()
            with self._changed:
                self._changed.notify_all()

    def _produce(self):
        options = {"enable_idempotence": True, "retry_backoff_ms": 5, "retry_backoff_max_ms": 50, "linger_ms": 1}
        with Producer(self._servers, **options) as producer:
            number = 0
            while not self._ended.is_set():
                batch = [producer.send(self._topic, b"%d" % n, key=b"%d" % n) for n in range(number, number + 20)]
                number += len(batch)
                for delivery in batch:
                    delivery.result(SOON)
                self.sent += range(number - len(batch), number)

    def _consume(self):
        with Consumer(
            self._topic, bootstrap_servers=self._servers, group_id=self._group, auto_offset_reset="earliest",
            retry_backoff_ms=5, reconnect_backoff_ms=5,
        ) as consumer:  # fmt: skip
            while not (self._ended.is_set() and len(self.seen) >= len(self.sent) and not self._threads[0].is_alive()):
                for records in consumer.getmany(0.2).values():
                    self.seen += [int(record.value) for record in records]
                with self._changed:
                    self._changed.notify_all()

    def more(self, count=60):
        """Wait until so many more records were seen."""
        with self._changed:
            wanted = len(self.seen) + count
            assert self._changed.wait_for(lambda: len(self.seen) >= wanted or self.failure, 60)
        assert self.failure is None

    def stop(self):
        self._ended.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive()
        assert self.failure is None


def test_clients_go_on_through_moves_and_stops(kafka):
    topic = f"t-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 3)
    load = Load(kafka, topic, "g")
    try:
        load.more()
        for partition in range(3):
            kafka.move_leader(topic, partition, kafka.leader(topic, partition) % 3 + 1)
        load.more()
        for broker in (1, 2, 3):
            kafka.stop_broker(broker)
            load.more()
            kafka.start_broker(broker)
        for number in range(3):
            kafka.move_leader("__consumer_offsets", number, kafka.leader("__consumer_offsets", number) % 3 + 1)
        load.more()
    finally:
        load.stop()
    assert sorted(load.seen) == load.sent == list(range(len(load.sent)))
    assert sorted(map(int, kafka.records(topic)["value"])) == load.sent


def test_a_directory_goes_from_three_brokers_to_one_and_back(tmp_path):
    with kc.broker.serve(tmp_path, brokers=3, topics={"orders": 3}, config=SMALL) as kafka:
        for number in range(3):
            kafka.write("orders", [(None, b"%d" % number)], partition=number)
        kafka.stop_broker(3)
    with kc.broker.serve(tmp_path) as kafka, ExitStack() as stack:
        row = metadata(Wires(kafka, stack)[1], "orders")[1]["orders"][2]
        assert (row.leader_id, row.replica_nodes, row.isr_nodes) == (1, [1], [1])
        assert row.leader_epoch >= 1
        assert sorted(kafka.records("orders")["value"]) == [b"0", b"1", b"2"]
        found = kc.log.read_cluster_metadata(f"{kafka.data}/__cluster_metadata-0")
        assert list(found.brokers) == [1]
        assert {row["leader"] for row in found.topics["orders"]["partitions"].values()} == {1}
    with kc.broker.serve(tmp_path, brokers=2) as kafka:
        assert kafka.leader("orders", 2) == 1
        kafka.move_leader("orders", 2, 2)
        assert kafka.leader("orders", 2) == 2
        assert kafka.write("orders", [(None, b"3")], partition=2) == 1


def test_what_cannot_be_done(kafka):
    kafka.create_topic("orders")
    for call, error in (
        (lambda: kafka.move_leader("orders", 1, 1), KeyError),
        (lambda: kafka.move_leader("none", 0, 1), KeyError),
        (lambda: kafka.leader("none"), KeyError),
        (lambda: kafka.move_leader("orders", 0, 4), ValueError),
        (lambda: kafka.stop_broker(4), ValueError),
        (lambda: kafka.start_broker(1), ValueError),
    ):
        with pytest.raises(error):
            call()
    kafka.stop_broker(2)
    with pytest.raises(ValueError, match="does not run"):
        kafka.move_leader("orders", 0, 2)
    with kc.broker.serve() as one, pytest.raises(ValueError, match=r"stop\(\)"):
        one.stop_broker(1)
    with pytest.raises(KeyError, match="there is no topic 'order'; did you mean 'orders'"):
        kafka.records("order")
    with pytest.raises(KeyError, match="topic 'orders' has no partition 1"):
        kafka.leader("orders", 1)
    with pytest.raises(ValueError, match="brokers"):
        kc.broker.serve(brokers=0)
    for topics, error, message in (
        ("orders", TypeError, "a list of names or partitions by name, not 'orders'"),
        ({"orders": "3"}, TypeError, "the partitions of 'orders' must be an integer, not str"),
        ({"orders": -1}, ValueError, "the partitions of 'orders' is -1"),
    ):
        with pytest.raises(error, match=message):
            kc.broker.serve(topics=topics)
    with pytest.raises(ValueError, match=r"default\.replication\.factor"):
        kc.broker.serve(brokers=2, config={"default.replication.factor": 3})


def test_an_address_that_was_taken_meanwhile(kafka):
    host, port = kafka.bootstrap_servers.split(",")[1].split(":")
    kafka.stop_broker(2)
    with socket.create_server((host, int(port))), pytest.raises(OSError, match=port):
        kafka.start_broker(2)
    kafka.start_broker(2)


def test_in_an_event_loop():
    async def run():
        async with kc.broker.aio.serve(brokers=2, topics={"orders": 2}) as kafka:
            assert len(kafka.listeners) == 2
            await kafka.move_leader("orders", 0, 2)
            await kafka.stop_broker(1)
            assert await kafka.leader("orders", 0) == 2
            await kafka.start_broker(1)

    asyncio.run(run())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_clients_of_a_broker_that_listens_everywhere_are_told_the_address_that_they_have_reached(host):
    found = {}

    class Told(Session):
        def connection_made(self, transport):
            super().connection_made(transport)
            found["session"] = self

    with pytest.MonkeyPatch.context() as patch, kc.broker.serve() as broker:
        patch.setattr("kafkacodec.broker.host.listener.Session", Told)
        with kc.client.Admin(broker.bootstrap_servers) as admin:
            admin.list_topics()
            listener: Any = found["session"].listener
            patch.setattr(listener, "address", (host, listener.address[1]))
            (described,) = admin.describe_cluster().brokers
    assert (described.host, described.port) == ("127.0.0.1", int(broker.bootstrap_servers.rpartition(":")[2]))
