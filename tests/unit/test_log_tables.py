"""Committed offsets, groups and cluster metadata as Arrow tables, compared with the lists that they are made from."""

import datetime
import uuid

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.log.state.groups import CommittedOffset, Group, GroupMember, OwnedPartitions
from kafkacodec.log.state.metadata_image import ClusterMetadata
from tests.corpus import ROOT

pa = pytest.importorskip("pyarrow")

from kafkacodec.log.state.tables import GROUPS, METADATA, OFFSETS, groups_table, metadata_table, offsets_table  # noqa: E402


def test_offsets():
    commits = [
        CommittedOffset("billing", "orders", 3, 1 << 40, 5, "m\u00e9ta", 1_700_000_000_123, -1),
        CommittedOffset("old", "orders", 0, 0, -1, "", -1, 0),
    ]
    table = offsets_table(commits)
    assert table.schema == OFFSETS
    assert table.to_pylist() == [
        {
            "group": "billing",
            "topic": "orders",
            "partition": 3,
            "offset": 1 << 40,
            "leader_epoch": 5,
            "metadata": "m\u00e9ta",
            "commit_timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, datetime.UTC),
            "expire_timestamp": None,
        },
        {
            "group": "old",
            "topic": "orders",
            "partition": 0,
            "offset": 0,
            "leader_epoch": None,
            "metadata": "",
            "commit_timestamp": None,
            "expire_timestamp": datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
        },
    ]
    assert offsets_table([]).schema == OFFSETS


def test_groups():
    member = GroupMember("m-1", None, "client", "/10.0.0.1", ["orders", "returns"], [OwnedPartitions("orders", [0, 2])])
    table = groups_table([Group("billing", "classic", 7, "consumer", "range", "m-1", [member])])
    assert table.schema == GROUPS
    (row,) = table.to_pylist()
    assert (row["group"], row["kind"], row["generation"]) == ("billing", "classic", 7)
    assert row["members"] == [
        {
            "member_id": "m-1",
            "instance_id": None,
            "client_id": "client",
            "client_host": "/10.0.0.1",
            "topics": ["orders", "returns"],
            "owned": [{"topic": "orders", "partitions": [0, 2]}],
        }
    ]


def test_metadata_of_records():
    topic_id, acl_id = uuid.uuid4(), uuid.uuid4()
    state = ClusterMetadata()
    for record in (
        messages.TopicRecord(name="orders", topic_id=topic_id),
        messages.PartitionRecord(
            partition_id=2, topic_id=topic_id, replicas=[3, 1], isr=[1], leader=1, leader_epoch=4, partition_epoch=9
        ),
        messages.ConfigRecord(resource_type=2, resource_name="a:b", name="retention.ms", value="5"),
        messages.ConfigRecord(resource_type=4, resource_name="", name="log.cleaner.threads", value="2"),
        messages.AccessControlEntryRecord(
            id=acl_id,
            resource_type=2,
            resource_name="orders",
            pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        ),
        messages.FeatureLevelRecord(name="metadata.version", feature_level=27),
    ):
        state.apply(record)
    tables = {name: metadata_table(state, name) for name in METADATA}
    assert all(table.schema == METADATA[name] for name, table in tables.items())
    assert tables["topics"].to_pylist() == [{"topic": "orders", "topic_id": str(topic_id), "num_partitions": 1}]
    (partition,) = tables["partitions"].to_pylist()
    assert partition == {
        "topic": "orders",
        "partition": 2,
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 9,
        "replicas": [3, 1],
        "isr": [1],
    }
    assert [tuple(row.values()) for row in tables["configs"].to_pylist()] == [
        ("broker", "", "log.cleaner.threads", "2"),
        ("topic", "a:b", "retention.ms", "5"),
    ]
    assert tables["acls"].to_pylist() == [
        {
            "id": str(acl_id),
            "resource_type": 2,
            "resource_name": "orders",
            "pattern_type": 3,
            "principal": "User:alice",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
    ]
    assert tables["features"].to_pylist() == [{"feature": "metadata.version", "level": 27}]
    assert tables["brokers"].num_rows == 0
    with pytest.raises(ValueError, match="unknown table 'quotas'; tables are topics"):
        metadata_table(state, "quotas")


def test_numbers_beyond_their_types():
    topic_id, largest = uuid.uuid4(), 2**31 - 1
    state = ClusterMetadata()
    state.apply(messages.TopicRecord(name="orders", topic_id=topic_id))
    state.apply(messages.PartitionRecord(topic_id=topic_id, partition_id=0, leader_epoch=largest))
    state.apply(messages.PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=1))
    with pytest.raises(kc.CorruptRecord, match="out of range"):
        metadata_table(state, "partitions")


def test_metadata_of_a_cluster():
    state = read_cluster_metadata(ROOT / "logs" / "kraft-4.1.0")
    topics = metadata_table(state, "topics").to_pylist()
    on_disk = {path.name.rpartition("-")[0] for path in (ROOT / "logs" / "kraft-4.1.0").glob("*-[0-9]")}
    assert on_disk - {"__cluster_metadata"} <= {row["topic"] for row in topics}
    assert metadata_table(state, "partitions").num_rows == sum(row["num_partitions"] for row in topics)
    assert metadata_table(state, "brokers").column("broker").to_pylist() == [1]


def test_tables_keep_within_their_limit():
    commits = [CommittedOffset("g", f"topic-{i}", 0, i, -1, "", -1, -1) for i in range(10_000)]
    whole = offsets_table(commits)
    assert whole.num_rows == 10_000
    assert offsets_table(commits, max_total_bytes=whole.nbytes + 1000) == whole
    with pytest.raises(kc.LimitExceeded, match="max_total_bytes"):
        offsets_table(commits, max_total_bytes=whole.nbytes // 2)
    groups = [Group(f"group-{i}", "classic", 0, "", None, None, []) for i in range(5000)]
    with pytest.raises(kc.LimitExceeded, match="max_total_bytes"):
        groups_table(groups, max_total_bytes=1000)
    state = ClusterMetadata(features={f"feature-{i}": 1 for i in range(5000)})
    with pytest.raises(kc.LimitExceeded, match="max_total_bytes"):
        metadata_table(state, "features", max_total_bytes=1000)
    assert offsets_table([]).schema == OFFSETS
