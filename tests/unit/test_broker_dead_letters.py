"""What share groups give up, and the configurations of all groups that may be changed while the broker runs.

Expected values are answers of Apache Kafka 4.4.0; tests/differential/scripts/group_settings.py has more of them.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import client
from kafkacodec.errors import ItemErrors
from tests.patience import SOON, eventually

TOPIC = "errors.deadletterqueue.topic.name"
CONFIG = {"group.share.heartbeat.interval.ms": 200, "errors.deadletterqueue.auto.create.topics.enable": True}


def configure(broker: Any, kind: str, name: str, **settings: str) -> None:
    wanted = {setting.replace("_", "."): value for setting, value in settings.items()}
    with client.Admin(broker.bootstrap_servers) as admin:
        admin.incremental_alter_configs({client.ConfigResource(kind, name): wanted})


def group(broker: Any, name: str = "g", **settings: str) -> Any:
    configure(broker, "group", name, share_auto_offset_reset="earliest", **settings)
    return client.ShareConsumer(
        "jobs", bootstrap_servers=broker.bootstrap_servers, group_id=name, share_acknowledgement_mode="explicit"
    )


def read(consumer: Any, count: int, kind: str) -> None:
    found: list[Any] = []
    while len(found) < count:
        records = consumer.getmany(SOON)
        assert records, f"{len(found)} of {count} came"
        for record in records:
            consumer.acknowledge(record, kind)
        found += records
    assert set(consumer.commit().values()) == {None}


def letters(broker: Any, topic: str = "dlq.jobs") -> list[tuple[Any, ...]]:
    """Key, value, offset, deliveries and reason of each."""
    found = []
    for record in broker.records(topic):
        said = dict(record.headers)
        assert (said["__dlq.errors.topic"], said["__dlq.errors.partition"]) == (b"jobs", b"0")
        deliveries, reason = said["__dlq.errors.delivery.count"], said["__dlq.errors.message"]
        found.append((record.key, record.value, said["__dlq.errors.offset"], deliveries, reason))
    return found


def test_a_topic_is_made_for_what_is_rejected_and_for_locks_that_end(tmp_path: Path) -> None:
    late, rejected = b"Offset delivery count exceeded the threshold.", b"Offset rejected by client."
    copies = {"errors_deadletterqueue_copy_record_enable": "true", "errors_deadletterqueue_topic_name": "dlq.jobs"}
    with kc.broker.serve(tmp_path, topics=["jobs"], config=CONFIG, clock="manual") as broker:
        broker.write("jobs", [(b"k", b"a")])
        with group(broker, share_delivery_count_limit="2", **copies) as consumer:
            read(consumer, 1, "reject")
            assert letters(broker) == [(b"k", b"a", b"0", b"1", rejected)]
            broker.write("jobs", [(None, b"b")])
        with group(broker) as slow, group(broker) as other:
            for one in (slow, other):
                next(iter(one))
                broker.advance(31)
            assert letters(broker)[1:] == [(None, b"b", b"1", b"2", late)]
        with client.Admin(broker.bootstrap_servers) as admin:
            configs = admin.describe_configs([("topic", "dlq.jobs")])
        (entries,) = configs.values()
        assert entries["errors.deadletterqueue.group.enable"].value == "true"
    features = kc.log.read_cluster_metadata(tmp_path).features
    assert features["share.version"] == 2  # with which Apache Kafka goes on


def test_large_records_go_out_one_by_one_and_what_is_too_large_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with kc.broker.serve(topics={"jobs": 1}, config=CONFIG) as broker:
        settings = {"errors.deadletterqueue.group.enable": "true", "max.message.bytes": "100000"}
        broker.create_topic("dlq.jobs", 1, settings)
        values = [b"a" * 60_000, b"b" * 60_000, b"c" * 200_000, b"d"]
        broker.write("jobs", [(None, value) for value in values])
        copies = {"errors_deadletterqueue_copy_record_enable": "true", "errors_deadletterqueue_topic_name": "dlq.jobs"}
        with group(broker, **copies) as consumer, caplog.at_level(logging.WARNING, "kafkacodec.broker"):
            read(consumer, 4, "reject")
        assert [row[1] for row in letters(broker)] == [values[0], values[1], values[3]]
    assert "gave up 1 records, about which topic 'dlq.jobs' gets nothing: it refuses them" in caplog.text


def test_the_beginning_of_names_and_intervals_may_be_changed_for_all() -> None:
    config = {**CONFIG, "group.consumer.max.assignment.interval.ms": 3_600_000}
    with kc.broker.serve(topics={"jobs": 2}, config=config) as broker:
        configure(broker, "broker", "", errors_deadletterqueue_topic_name_prefix="dead-",
                  group_consumer_assignment_interval_ms="3600000")  # fmt: skip
        with pytest.raises(ItemErrors):
            configure(broker, "broker", "", group_share_assignment_interval_ms="-1")
        broker.write("jobs", [(None, b"a")])
        with group(broker, errors_deadletterqueue_topic_name="dead-jobs") as consumer:
            read(consumer, 1, "reject")
        assert [row[2] for row in letters(broker, "dead-jobs")] == [b"0"]
        options: Any = {"bootstrap_servers": broker.bootstrap_servers, "group_id": "c", "group_protocol": "consumer"}
        with client.Admin(broker.bootstrap_servers) as admin, client.Consumer("jobs", **options) as first:
            eventually(lambda: first.getmany(0.05) or first.assignment())
            with client.Consumer("jobs", **options) as second:  # which joins after the first has its partitions
                eventually(lambda: second.getmany(0.05) or len(admin.describe_groups(["c"])["c"].members) == 2)
                assert admin.describe_groups(["c"])["c"].state == "Assigning"


@pytest.mark.parametrize("name", ["auto.create.topics.enable", "errors.deadletterqueue.auto.create.topics.enable"])
def test_truth_values_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match=rf"config {name}='maybe': must be one of true, false"):
        kc.broker.serve(config={name: "maybe"})
