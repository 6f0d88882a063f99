"""The clients with librdkafka's mock cluster, which confluent-kafka brings along: a broker that is not Kafka's.

It refuses newer versions of ApiVersions in a layout of its own, and adds bytes to some answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import kafkacodec as kc
from tests.patience import SOON

confluent_kafka: Any = pytest.importorskip("confluent_kafka")


@pytest.fixture
def mock_cluster() -> Iterator[str]:
    """The addresses of three mock brokers; they live as long as the producer that they belong to."""
    owner = confluent_kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 3, "log_level": 0})
    brokers = owner.list_topics(timeout=60).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner


def test_records_go_to_a_mock_cluster_and_come_back(mock_cluster: str) -> None:
    values = [b"%d" % n for n in range(200)]
    with kc.client.Producer(mock_cluster) as producer:
        deliveries = [producer.send("orders", value, key=value, headers={"name": b"x"}) for value in values]
        assert all(delivery.result(SOON).offset >= 0 for delivery in deliveries)
    found: list[Any] = []
    with kc.client.Consumer("orders", bootstrap_servers=mock_cluster, auto_offset_reset="earliest") as consumer:
        while len(found) < len(values) and (records := consumer.getmany(20)):
            found += [record for batch in records.values() for record in batch]
    assert sorted(record.value for record in found) == sorted(values)
    assert {tuple(record.headers) for record in found} == {(("name", b"x"),)}
    with kc.client.Admin(mock_cluster) as admin:
        assert list(admin.list_topics()) == ["orders"]


def test_a_transaction_in_a_mock_cluster(mock_cluster: str) -> None:
    with kc.client.Producer(mock_cluster, transactional_id="audit") as producer, producer.transaction():
        delivery = producer.send("ledger", b"record")
    assert delivery.result(0).offset == 0
