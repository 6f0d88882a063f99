"""Share groups of this broker, judged by Apache Kafka: its share consumer reads, and its broker takes them over."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import client
from tests.integration.kafka_jars import java, tools
from tests.integration.kafka_jvm import SOON_BACK, Broker
from tests.integration.test_broker_taken_over import Ours

pytestmark = [pytest.mark.java, pytest.mark.slow]

READER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SHARE = {
    **SOON_BACK,
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
    "group_share_heartbeat_interval_ms": "300",
    "group_share_min_heartbeat_interval_ms": "300",
}


def from_the_start(server: str) -> None:
    with client.Admin(server) as admin:
        admin.incremental_alter_configs({("group", "g"): {"share.auto.offset.reset": "earliest"}})


def test_the_share_consumer_of_java() -> None:
    """It releases, rejects and accepts; what it released comes again, to it and to this library's share consumer."""
    with kc.broker.serve(topics={"jobs": 1}, config={"group.share.heartbeat.interval.ms": 300}) as broker:
        from_the_start(broker.bootstrap_servers)
        for number in range(6):
            broker.write("jobs", [(None, b"%d" % number)])

        def read(*options: str) -> list[str]:
            command = [*java("newest", tools("newest")), READER, "--bootstrap-server", broker.bootstrap_servers]
            command += ["--topic", "jobs", "--group", "g", *options]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            assert ended.returncode == 0, ended.stderr[-2000:]
            return ended.stdout.split()

        assert read("--max-messages", "2", "--release") == ["0", "1"]
        assert read("--max-messages", "3", "--reject") == ["0", "1", "2"]
        assert read("--max-messages", "1") == ["3"]
        with client.ShareConsumer("jobs", bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
            assert [record.value for _, record in zip(range(2), consumer, strict=False)] == [b"4", b"5"]
            consumer.commit()
        with client.Admin(broker.bootstrap_servers) as admin:
            assert admin.list_share_group_offsets("g")["jobs", 0].lag == 0


def work(server: str, count: int, **kinds: Any) -> dict[bytes, int]:
    """Read records and acknowledge each in its way; how often they were delivered."""
    options: Any = {"group_id": "g", "share_acknowledgement_mode": "explicit"}
    found: dict[bytes, int] = {}
    with client.ShareConsumer("jobs", bootstrap_servers=server, **options) as consumer:
        while len(found) < count:
            records = consumer.getmany(60)
            assert records, f"{found} of {count} came"
            for record in records:
                consumer.acknowledge(record, kinds.get((record.value or b"").decode(), "accept"))
                found[record.value or b""] = record.delivery_count
        assert set(consumer.commit().values()) == {None}
    return found


def write(server: str, *values: bytes) -> None:
    with client.Producer(server) as producer:
        for value in values:
            producer.send("jobs", value, partition=0)


def test_apache_kafka_goes_on_with_what_members_have_said(tmp_path: Path) -> None:
    kafka = Broker(tmp_path, "newest", **SHARE)
    shutil.rmtree(kafka.logs)
    ours = Ours(kafka.logs)
    with client.Admin(ours.server) as admin:
        admin.create_topics([client.NewTopic("jobs", 1)])
    from_the_start(ours.server)
    write(ours.server, b"a", b"b", b"c", b"d")
    assert work(ours.server, 4, b="release", c="reject") == {b"a": 1, b"b": 1, b"c": 1, b"d": 1}
    ours.end(signal.SIGKILL)
    kafka.start()
    try:
        write(kafka.server, b"e", b"f")
        assert work(kafka.server, 3, f="release") == {b"b": 2, b"e": 1, b"f": 1}
    finally:
        kafka.kill()
    ours = Ours(kafka.logs)
    write(ours.server, b"g")
    assert work(ours.server, 2, g="release") == {b"f": 2, b"g": 1}
    with client.Admin(ours.server) as admin:
        assert (admin.describe_groups(["g"])["g"].type, admin.list_share_group_offsets("g")["jobs", 0].lag) == (
            "share",
            1,
        )
    ours.end(signal.SIGTERM)
    kafka.start()
    try:
        assert work(kafka.server, 1) == {b"g": 2}
    finally:
        kafka.stop()
