"""Configurations of the broker that change while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.client import Admin, ConfigResource
from kafkacodec.errors import BrokerError

_BROKER = ConfigResource("broker", "1")
_TOPIC = ConfigResource("topic", "orders")
_MIB = 1 << 20


def _alter(broker: kc.broker.Broker, **configs: str) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.incremental_alter_configs({_BROKER: {key.replace("_", "."): value for key, value in configs.items()}})


def _segments(broker: kc.broker.Broker) -> int:
    return len(list((Path(broker.data) / "orders-0").glob("*.log")))


def _write(broker: kc.broker.Broker, batches: int) -> None:
    for _ in range(batches):
        broker.write("orders", [(None, bytes(600_000))])


def test_a_default_of_topics_applies_at_once_and_after_a_restart(tmp_path):
    with kc.broker.serve(tmp_path, topics=["orders"]) as broker:
        _write(broker, 2)
        assert _segments(broker) == 1
        _alter(broker, log_segment_bytes=str(_MIB))
        _write(broker, 2)
        assert _segments(broker) == 3
        with Admin(broker.bootstrap_servers) as admin:
            entry = admin.describe_configs([_TOPIC])[_TOPIC]["segment.bytes"]
        assert (entry.value, entry.source) == (str(_MIB), "dynamic_broker")
    with kc.broker.serve(tmp_path) as broker:
        _write(broker, 2)
        assert _segments(broker) == 5


def test_the_topics_own_configuration_is_stronger():
    with kc.broker.serve(config={"log.segment.bytes": 2 * _MIB}) as broker:
        broker.create_topic("orders", 1, {"segment.bytes": str(8 * _MIB)})
        _alter(broker, log_segment_bytes=str(_MIB))
        _write(broker, 6)
        assert _segments(broker) == 1


def test_the_broker_has_the_limits_of_groups():
    group = ConfigResource("group", "workers")
    short = {group: {"share.record.lock.duration.ms": "3000"}}
    with kc.broker.serve() as broker, Admin(broker.bootstrap_servers) as admin:
        with pytest.raises(ExceptionGroup) as raised:
            admin.incremental_alter_configs(short)
        assert "must be from 15000 to 60000" in str(raised.value.exceptions[0])
    config = {"group.share.min.record.lock.duration.ms": 1000}
    with kc.broker.serve(config=config) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.incremental_alter_configs(short)
        entry = admin.describe_configs([group])[group]["share.record.lock.duration.ms"]
        assert entry.value == "3000"


def test_a_group_shows_what_the_broker_says():
    """Values, sources and synonyms are those of Apache Kafka 4.4.0."""
    group = ConfigResource("group", "workers")
    locks, session = "share.record.lock.duration.ms", "share.session.timeout.ms"
    of_broker = [(f"group.{session}", "50000", "static_broker"), (f"group.{session}", "45000", "default")]
    with kc.broker.serve(config={f"group.{session}": 50_000}) as broker, Admin(broker.bootstrap_servers) as admin:
        shown = admin.describe_configs([group], include_synonyms=True)[group]
        assert (shown[session].value, shown[session].source) == ("50000", "static_broker")
        assert [tuple(row) for row in shown[session].synonyms] == of_broker
        assert [tuple(row) for row in shown[locks].synonyms] == [(f"group.{locks}", "30000", "default")]
        level = "share.isolation.level"
        assert [tuple(row) for row in shown[level].synonyms] == [(level, "read_uncommitted", "default")]
        admin.incremental_alter_configs({group: {session: "46000"}})
        shown = admin.describe_configs([group], include_synonyms=True)[group]
        assert (shown[session].value, shown[session].source) == ("46000", "dynamic_group")
        assert [tuple(row) for row in shown[session].synonyms] == [(session, "46000", "dynamic_group"), *of_broker]


def test_a_silent_member_of_the_consumer_protocol_goes_when_the_broker_says():
    config = {"group.consumer.session.timeout.ms": 3000}
    with kc.broker.serve(topics=["orders"], config=config, clock="manual") as broker:
        servers = broker.bootstrap_servers
        options = {"bootstrap_servers": servers, "group_id": "workers", "group_protocol": "consumer"}
        with Admin(servers) as admin, kc.client.Consumer("orders", **options, auto_offset_reset="earliest") as consumer:
            broker.write("orders", [(None, b"one")])
            assert next(iter(consumer)).value == b"one"
            assert len(admin.describe_groups(["workers"])["workers"].members) == 1
            with broker.inject("ConsumerGroupHeartbeat", drop=True, times=None):
                broker.advance(4)
                assert admin.describe_groups(["workers"])["workers"].members == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("log.segment.bytes", "many", "not a number"),
        ("log.segment.bytes", "1", "must be from"),
        ("log.cleaner.backoff.ms", "often", "not a number"),
        ("log.cleaner.backoff.ms", "-1", "must be from 0"),
        ("log.cleaner.threads", "2147483648", "must be from 0 to 2147483647"),
        ("producer.id.expiration.ms", "0", "must be from 1"),
        ("num.partitions", "3", "Cannot update"),
    ],
)
def test_wrong_values_are_refused(name, value, said):
    with kc.broker.serve() as broker, Admin(broker.bootstrap_servers) as admin:
        with pytest.raises(ExceptionGroup) as raised:
            admin.incremental_alter_configs({_BROKER: {name: value}})
        (error,) = raised.value.exceptions
        assert isinstance(error, BrokerError)
        assert said in str(error)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("log.cleaner.backoff.ms", "often", "not a number"),
        ("log.retention.hours", "long", "not a number"),
        ("num.partitions", 1.5, "not a number"),
        ("producer.id.expiration.ms", 0, "must be from 1"),
    ],
)
def test_wrong_values_that_a_broker_is_given_are_named(name, value, said):
    with pytest.raises(ValueError, match=f"config {name}='{value}': {said}"):
        kc.broker.serve(config={name: value})


def test_retention_of_minus_one_hour_has_no_limit():
    config = {"log.retention.hours": -1}
    with kc.broker.serve(topics=["orders"], config=config) as broker, Admin(broker.bootstrap_servers) as admin:
        found = admin.describe_configs([("topic", "orders")])
        assert found["topic", "orders"]["retention.ms"].value == "-1"


@pytest.mark.parametrize(
    "name",
    ["num.partitions", "offsets.topic.num.partitions", "log.retention.check.interval.ms", "group.max.size",
     "group.consumer.session.timeout.ms", "group.streams.min.heartbeat.interval.ms", "transaction.max.timeout.ms"],
)  # fmt: skip
def test_a_broker_starts_only_with_numbers_that_kafka_takes(name):
    with pytest.raises(ValueError, match=f"{name}='0': must be from 1"):
        kc.broker.serve(config={name: 0})
