"""The metadata log of a real KRaft broker, while it runs, against what the broker says of itself."""

import base64
import json
import shutil
import time
import uuid

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.cli.__main__ import DONE, run
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.protocol import terms
from tests.integration import kafka_jvm
from tests.integration.kafka_jars import RELEASES
from tests.integration.test_protocol_broker import Client

pytestmark = [pytest.mark.java, pytest.mark.slow]
AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module", params=RELEASES)
def rounds(request, tmp_path_factory):
    """After each of two rounds of changes, with a restart between them: what the broker reported, a copy of its log."""
    home = tmp_path_factory.mktemp("cluster")
    broker = kafka_jvm.Broker(home, request.param, **AUTHORIZER, metadata_log_max_record_bytes_between_snapshots="2500")
    found = []
    for number in (1, 2):
        broker.start()
        try:
            kafka_jvm.tool("change", broker.server, number, program="AdminTool")
            described = json.loads(*kafka_jvm.tool("describe", broker.server, program="AdminTool"))
            epochs = leader_epochs(broker.server)
            wait_for_snapshot(broker.logs / "__cluster_metadata-0")
            copied = shutil.copytree(broker.logs / "__cluster_metadata-0", home / str(number) / "__cluster_metadata-0")
        finally:
            broker.stop()
        found.append((described, epochs, copied.parent))
    return found


def wait_for_snapshot(directory):
    """Brokers write snapshots some time after the records that they hold."""
    deadline = time.monotonic() + 30
    while not list(directory.glob("*.checkpoint")):
        assert time.monotonic() < deadline, "no snapshot"
        time.sleep(0.1)


def leader_epochs(server):
    client = Client(server)
    response = client.ask(messages.MetadataRequest(topics=None))
    client.socket.close()
    return {(topic.name, p.partition_index): p.leader_epoch for topic in response.topics for p in topic.partitions}


def as_reported(state):
    """The state in the form of `describe` of the Java program, which does not tell epochs and ids of entries."""
    partition_facts = ("leader", "replicas", "isr")
    return {
        "topics": {
            name: {
                "topic_id": base64.urlsafe_b64encode(uuid.UUID(str(topic["topic_id"])).bytes).decode().rstrip("="),
                "partitions": {
                    str(number): {fact: partition[fact] for fact in partition_facts}
                    for number, partition in topic["partitions"].items()
                },
            }
            for name, topic in state["topics"].items()
        },
        "configs": state["configs"],
        "acls": sorted(state["acls"].values(), key=str),
        "brokers": {str(broker): facts["endpoints"] for broker, facts in state["brokers"].items()},
        "features": state["features"],
    }


def expected(described):
    order = ["resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"]
    acls = [{name: acl[name] for name in order} for acl in described["acls"]]
    return described | {"acls": sorted(acls, key=str)}


@pytest.mark.parametrize("snapshots", [True, False])
@pytest.mark.parametrize("number", [0, 1])
def test_the_log_is_what_the_broker_tells(rounds, number, snapshots, tmp_path):
    described, epochs, directory = rounds[number]
    if not snapshots:
        ignored = shutil.ignore_patterns("*.checkpoint")
        directory = shutil.copytree(directory, tmp_path / "log", ignore=ignored)
    assert bool(list(directory.glob("*/*.checkpoint"))) == snapshots
    state = read_cluster_metadata(directory)
    assert as_reported(vars(state)) == expected(described)
    found = {
        (name, n): p["leader_epoch"] for name, topic in state.topics.items() for n, p in topic["partitions"].items()
    }
    assert found == epochs
    assert not any(facts["fenced"] for facts in state.brokers.values())


def test_the_rounds_differ_as_they_should(rounds):
    """The changes have happened: nothing here compares two empty states."""
    (first, before, _), (second, after, directory) = rounds
    assert set(first["topics"]) - set(second["topics"]) == {"gone"}
    assert first["topics"]["again.and-again_1"]["topic_id"] != second["topics"]["again.and-again_1"]["topic_id"]
    assert len(second["topics"]["orders"]["partitions"]) == 5
    assert (len(first["configs"]), len(second["configs"])) == (7, 5)
    assert (len(first["acls"]), len(second["acls"])) == (3, 3)
    assert first["features"] != second["features"]
    assert (before["orders", 0], after["orders", 0]) == (0, 2)
    snapshots = sorted(int(path.name.partition("-")[0]) for path in directory.glob("*/*.checkpoint"))
    assert 0 < snapshots[-1] <= read_cluster_metadata(directory).offset  # equal: no record since the last one


def add_to_bootstrap(checkpoint, *records):
    """Add records to those that a formatted directory begins with: between its batches of data and its last one."""
    data = checkpoint.read_bytes()
    *_, last = kc.scan(data)["position"].tolist()
    first = int(kc.scan(data)["base_offset"][-1])
    rows = [(None, bytes([1, record.api_key, version]) + record.encode(version)) for record, version in records]
    more = kc.encode(rows, base_offset=first)
    checkpoint.write_bytes(data[:last] + more + (first + len(rows)).to_bytes(8, "big") + data[last + 8 :])


def test_records_of_a_directory_before_its_first_start_count_once(tmp_path):
    """The controller of 4.4 copies them into the log, and the file with them stays."""
    broker = kafka_jvm.Broker(tmp_path, "newest", **AUTHORIZER)
    topic_id, directory = uuid.UUID(int=77), kc.log.read_properties(broker.logs / "meta.properties")["directory.id"]
    checkpoint = broker.logs / f"__cluster_metadata-0/{0:020}-{0:010}.checkpoint"
    partition = messages.PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=4,
        directories=[uuid.UUID(bytes=base64.urlsafe_b64decode(f"{directory}=="))],
    )
    retention = messages.ConfigRecord(resource_type=2, resource_name="moved", name="retention.ms", value="-1")
    add_to_bootstrap(
        checkpoint, (messages.TopicRecord(name="moved", topic_id=topic_id), 0), (partition, 2), (retention, 0)
    )
    broker.start()
    try:
        described = json.loads(*kafka_jvm.tool("describe", broker.server, program="AdminTool"))
        copied = shutil.copytree(broker.logs / "__cluster_metadata-0", tmp_path / "copy" / "__cluster_metadata-0")
    finally:
        broker.stop()
    assert (copied / checkpoint.name).exists()
    assert list(described["topics"]) == ["moved"]
    state = as_reported(vars(read_cluster_metadata(copied.parent)))
    assert state == expected(described)
    assert described["configs"]["topic:moved"] == {"retention.ms": "-1"}


def test_command(rounds, capsys):
    described, _, directory = rounds[1]
    assert run(["metadata", str(directory), "--json"]) == DONE
    assert as_reported(json.loads(capsys.readouterr().out)) == expected(described)
    assert run(["metadata", str(directory / "__cluster_metadata-0")]) == DONE
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["User:*", "10.0.0.1", "DENY", "ALTER_CONFIGS", "CLUSTER", "LITERAL", "kafka-cluster"] in shown
    assert ["User:bob", "10.0.0.1", "ALLOW", "WRITE", "TRANSACTIONAL_ID", "LITERAL", "t"] in shown
    assert ["User:álice", "10.0.0.1", "ALLOW", "READ", "TOPIC", "LITERAL", "orders"] in shown


def test_names_of_access_control():
    """The names are those that Kafka has."""
    names = {"PERMISSIONS": {}, "OPERATIONS": {}, "RESOURCES": {}, "PATTERNS": {}}
    for line in kafka_jvm.tool("names", program="AdminTool"):
        table, number, name = line.split()
        if name != "UNKNOWN":
            names[table][name.lower()] = int(number)
    for table, found in names.items():
        # Two-phase commit came after this release.
        assert {name: n for name, n in getattr(terms, table).items() if name != "two_phase_commit"} == found
