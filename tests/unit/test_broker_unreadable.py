"""Read-only brokers over directories with files that the system does not read: they serve the other partitions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import errors
from kafkacodec.client import Consumer
from tests.broker_wire import wire_to

FIRST, LAST = (f"{offset:020d}.log" for offset in (0, 78))  # of orders-2


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return Path(kc.sample(tmp_path / "logs").path)


def hide(segment: Path) -> None:
    segment.unlink()
    segment.symlink_to("/nonexistent/disk")


def asked(wire, topic_id, number, offset):
    """The row of a partition in an answer to Fetch."""
    topic = {"topic_id": topic_id, "partitions": [{"partition": number, "fetch_offset": offset,
             "partition_max_bytes": 1 << 20, "current_leader_epoch": -1}]}  # fmt: skip
    answer = wire.ask("Fetch", 13, max_bytes=1 << 20, topics=[topic], session_epoch=-1)
    return answer.responses[0].partitions[0]


def rows_of(server, topic, numbers):
    with Consumer(bootstrap_servers=server, group_id=None, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, number) for number in numbers])
        ends = consumer.end_offsets([(topic, number) for number in numbers])
        found = []
        while any(consumer.position(*key) < end for key, end in ends.items()):
            found += [record for records in consumer.getmany(timeout=1).values() for record in records]
    return found


@pytest.mark.parametrize("name", [FIRST, LAST])
def test_the_others_are_served(logs, name, caplog):
    hide(logs / "orders-2" / name)
    with kc.broker.serve(logs, read_only=True) as broker, wire_to(broker) as wire:
        reason = f"{logs}/orders-2/{name}: the symbolic link leads to no file"
        assert caplog.messages == [f"orders-2 is not served: {reason}"]
        (topic,) = wire.ask("Metadata", 12, topics=[{"name": "orders"}]).topics
        partitions = {row.partition_index: row for row in topic.partitions}
        assert [partitions[n].leader_id for n in range(3)] == [1, 1, -1]
        assert partitions[2].error_code == errors.LEADER_NOT_AVAILABLE
        assert (partitions[2].replica_nodes, partitions[2].isr_nodes, partitions[2].offline_replicas) == ([1], [], [1])
        for _ in range(2):
            assert asked(wire, topic.topic_id, 2, 0).error_code == errors.KAFKA_STORAGE_ERROR
        assert asked(wire, topic.topic_id, 1, 0).error_code == errors.NONE
        assert len(rows_of(broker.bootstrap_servers, "orders", [0, 1])) == 445


def test_another_replica_is_served(logs, tmp_path, caplog):
    copy = Path(shutil.copytree(logs, tmp_path / "copy"))
    hide(logs / "orders-2" / LAST)
    with kc.broker.serve([logs, copy], read_only=True) as broker:
        assert len(rows_of(broker.bootstrap_servers, "orders", [0, 1, 2])) == 600
    assert caplog.messages == [f"orders-2 is not served: {logs}/orders-2/{LAST}: the symbolic link leads to no file"]


def test_internal_topics(logs, caplog):
    """Without the metadata, names come from directories; offsets that cannot be read are not taken as none."""
    for partition in ("__cluster_metadata-0", "__consumer_offsets-0"):
        for segment in (logs / partition).glob("*.log"):
            hide(segment)
    with kc.broker.serve(logs, read_only=True) as broker, wire_to(broker) as wire:
        answer = wire.ask("FindCoordinator", 4, key_type=0, coordinator_keys=["billing"])
        assert answer.coordinators[0].error_code == errors.COORDINATOR_NOT_AVAILABLE
        assert len(rows_of(broker.bootstrap_servers, "orders", [0, 1, 2])) == 600
    assert "__consumer_offsets-0 is not served: " in caplog.text


def test_a_file_that_vanishes_while_it_is_served(logs, caplog):
    with kc.broker.serve(logs, read_only=True) as broker, wire_to(broker) as wire:
        (topic,) = wire.ask("Metadata", 12, topics=[{"name": "orders"}]).topics
        os.rename(logs / "orders-2" / FIRST, logs / "kept")
        assert asked(wire, topic.topic_id, 2, 0).error_code == errors.KAFKA_STORAGE_ERROR
        asking = {"name": "orders", "partitions": [{"partition_index": 2, "timestamp": 0, "current_leader_epoch": -1}]}
        row = wire.ask("ListOffsets", 7, replica_id=-1, topics=[asking]).topics[0].partitions[0]
        assert row.error_code == errors.KAFKA_STORAGE_ERROR
        os.rename(logs / "kept", logs / "orders-2" / FIRST)
        assert asked(wire, topic.topic_id, 2, 0).error_code == errors.NONE
    assert f"orders-2 cannot be read: [Errno 2] No such file or directory: '{logs}/orders-2/{FIRST}'" in caplog.text
