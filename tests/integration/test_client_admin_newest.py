"""Calls of the admin client that only the newest brokers have: offsets of share groups, streams groups, voters."""

from __future__ import annotations

import subprocess
import time
import uuid

import pytest

from kafkacodec import errors, messages
from kafkacodec.client import Admin, Coordinator, KafkaConnection, NewTopic, Producer, ShareConsumer
from tests.integration.kafka_jars import java
from tests.integration.kafka_jvm import Broker, Server, free_port
from tests.patience import SOON, eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS = {
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
}
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Broker(tmp_path_factory.mktemp("broker"), "newest", **SETTINGS)
    made.start()
    yield made.server
    made.kill()


@pytest.fixture(scope="module")
def admin(server):
    with Admin(server) as made:
        yield made


@pytest.fixture
def topic(admin, server, request):
    """A topic of two partitions with five records each."""
    name = request.node.name
    admin.create_topics(NewTopic(name, 2))
    with Producer(server) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number, partition=number % 2)
    return name


def refused(call, *arguments):
    with pytest.raises(errors.ItemErrors) as caught:
        call(*arguments)
    return {item: getattr(found, "name", repr(found)) for item, found in caught.value.errors.items()}


def values(server, group, topic, count):
    """What a share group reads next, and accepts."""
    with ShareConsumer(topic, bootstrap_servers=server, group_id=group) as consumer:
        found = []
        while len(found) < count:
            found += [record.value for record in consumer.getmany(SOON)]
        consumer.commit()
    return sorted(found)


def test_offsets_of_share_groups(admin, server, topic):
    group = f"group-{topic}"
    admin.incremental_alter_configs({("group", group): {"share.auto.offset.reset": "earliest"}})
    assert len(values(server, group, topic, 10)) == 10

    def starts():
        return {key: offset.start_offset for key, offset in admin.list_share_group_offsets(group).items()}

    eventually(lambda: [found.lag for found in admin.list_share_group_offsets(group).values()] == [0, 0])
    assert admin.list_share_group_offsets(group, [(topic, 1)]).keys() == {(topic, 1)}
    eventually(lambda: admin.describe_groups(group)[group].state == "Empty")
    admin.alter_share_group_offsets(group, {(topic, 0): 3, (topic, 1): 5})
    assert starts() == {(topic, 0): 3, (topic, 1): 5}
    assert values(server, group, topic, 2) == [b"6", b"8"]
    eventually(lambda: admin.describe_groups(group)[group].state == "Empty")
    admin.delete_share_group_offsets(group, topic)
    assert starts() == {}


def test_refused_offsets_of_share_groups(admin, server, topic):
    group = f"group-{topic}"
    with ShareConsumer(topic, bootstrap_servers=server, group_id=group) as consumer:
        consumer.getmany(1)
        eventually(lambda: admin.describe_groups(group)[group].members)
        assert refused(admin.alter_share_group_offsets, group, {(topic, 0): 3}) == {(topic, 0): "NON_EMPTY_GROUP"}
        assert refused(admin.delete_share_group_offsets, group, topic) == {topic: "NON_EMPTY_GROUP"}
    assert admin.list_share_group_offsets("none") == {}


def test_streams_groups(admin, server, topic):
    heartbeat = messages.StreamsGroupHeartbeatRequest
    part = heartbeat.Subtopology(
        subtopology_id="0",
        source_topics=[topic],
        state_changelog_topics=[heartbeat.TopicInfo(name="app-counts-changelog", replication_factor=1)],
    )
    joining = heartbeat(
        group_id="app",
        member_id=str(uuid.uuid4()),
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        topology=heartbeat.Topology(epoch=0, subtopologies=[part]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
        user_endpoint=heartbeat.Endpoint(host="here", port=80),
        client_tags=[heartbeat.KeyValue(key="zone", value="a")],
    )
    with KafkaConnection(server, client_id="streams") as connection:
        (reply,) = connection.poll(20, (Coordinator("group", "app"), joining))
    assert reply.message.error_code == 0
    found = admin.describe_streams_groups("app", include_authorized_operations=True)["app"]
    assert (found.group_id, found.coordinator, found.topology_epoch) == ("app", 1, 0)
    (parts,) = found.subtopologies
    assert (parts.subtopology_id, parts.source_topics) == ("0", [topic])
    assert parts.state_changelog_topics == ["app-counts-changelog"]
    (member,) = found.members
    assert (member.member_id, member.client_id, member.process_id) == (joining.member_id, "streams", "process")
    assert (member.user_endpoint, member.client_tags, member.is_classic) == (("here", 80), {"zone": "a"}, False)
    assert set(member.target_assignment.active) <= {("0", 0), ("0", 1)}
    assert "describe" in found.authorized_operations
    assert refused(admin.describe_streams_groups, ["none", "app"]) == {"none": "GROUP_ID_NOT_FOUND"}


class Voter(Server):
    """A node of a cluster whose voters can change; the first one is also the broker."""

    def __init__(self, directory, number, first=None):
        directory.mkdir()
        properties = directory / "server.properties"
        super().__init__(directory, "newest", "kafka.Kafka", properties)
        self.controller = f"127.0.0.1:{free_port()}" if first is None else self.server
        listeners = [f"CONTROLLER://{self.controller}"]
        if first is None:
            listeners.append(f"PLAINTEXT://{self.server}")
        properties.write_text(
            f"""process.roles={"broker,controller" if first is None else "controller"}
node.id={number}
controller.quorum.bootstrap.servers={(first or self).controller}
listeners={",".join(listeners)}
controller.listener.names=CONTROLLER
log.dirs={self.logs}
"""
        )
        voters = "--standalone" if first is None else "--no-initial-controllers"
        formatting = ("format", "-t", CLUSTER, "-c", properties, voters)
        subprocess.run([*java("newest"), "kafka.tools.StorageTool", *formatting], check=True, capture_output=True)


def test_voters_of_the_metadata_log(tmp_path):
    first = Voter(tmp_path / "first", 1)
    second = Voter(tmp_path / "second", 2, first)
    try:
        first.launch()
        second.launch()
        first.wait()
        with Admin(first.server) as admin:
            check_voters(admin, second)
    finally:
        second.kill()
        first.kill()


def check_voters(admin, second):
    def replicas(which):
        return {entry.id: entry.directory_id for entry in getattr(admin.describe_metadata_quorum(), which)}

    eventually(lambda: 2 in replicas("observers"))
    directory = replicas("observers")[2]
    host, port = second.controller.split(":")
    endpoints = {"CONTROLLER": (host, int(port))}
    with pytest.raises(errors.BrokerError, match="INCONSISTENT_CLUSTER_ID"):
        admin.add_raft_voter(2, directory, endpoints, cluster_id="another")
    admin.add_raft_voter(2, directory, endpoints, cluster_id=CLUSTER)
    eventually(lambda: replicas("voters").keys() == {1, 2})
    with pytest.raises(errors.BrokerError, match="DUPLICATE_VOTER"):
        admin.add_raft_voter(2, directory, endpoints)
    admin.remove_raft_voter(2, directory)
    eventually(lambda: replicas("voters").keys() == {1})
    with pytest.raises(errors.BrokerError, match="VOTER_NOT_FOUND"):
        admin.remove_raft_voter(2, directory)


def test_offsets_by_name(admin, server, topic):
    place = (topic, 0)

    def offset(name, isolation_level="read_uncommitted"):
        return admin.list_offsets({place: name}, isolation_level=isolation_level)[place].offset

    names = ("earliest", "latest", "earliest_local", "latest_tiered", "earliest_pending_upload")
    assert [offset(name) for name in names] == [0, 5, 0, -1, -1]
    with Producer(server, transactional_id=topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"old", partition=0, timestamp=1)
        time.sleep(0.01)  # the marker's time is after that of all records
        producer.commit_transaction()
        eventually(lambda: offset("latest", "read_committed") == 7)
        assert [offset("max_timestamp", level) for level in ("read_uncommitted", "read_committed")] == [6, 6]
        producer.begin_transaction()
        producer.send(topic, b"new", partition=0, timestamp=int(time.time() * 1000) + 600_000).result()
        assert [offset("max_timestamp", level) for level in ("read_uncommitted", "read_committed")] == [7, -1]
        producer.abort_transaction()
