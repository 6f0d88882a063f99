"""Topics that are deleted while clients know them: they stay deleted until something is sent to them again."""

from __future__ import annotations

from typing import Any

import pytest

import kafkacodec as kc
from tests.integration.kafka_jvm import Server
from tests.patience import SOON, eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]


def refreshed(client: Any, times: int) -> None:
    """Wait until a client has asked for metadata so often."""
    asked = client.metrics().get("requests.Metadata", 0)
    eventually(lambda: client.metrics().get("requests.Metadata", 0) >= asked + times)


def test_only_sending_brings_a_deleted_topic_back(broker: Server) -> None:
    options = {"bootstrap_servers": broker.server, "metadata_max_age_ms": 200}
    with (
        kc.client.Producer(**options) as producer,
        kc.client.Consumer(**options) as asking,
        kc.client.Consumer("orders", auto_offset_reset="earliest", **options) as reading,
        kc.client.Admin(broker.server) as admin,
    ):
        producer.send("orders", b"first").result(SOON)
        assert asking.partitions_for("orders") == [0]
        assert asking.end_offsets([("orders", 0)]) == {("orders", 0): 1}
        assert [r.value for records in reading.getmany(SOON).values() for r in records] == [b"first"]
        before = admin.list_topics()["orders"].topic_id
        admin.delete_topics("orders")
        for client in (producer, asking, reading):
            refreshed(client, 5)
        assert "orders" not in admin.list_topics()
        producer.send("orders", b"second").result(SOON)
        assert admin.list_topics()["orders"].topic_id != before
