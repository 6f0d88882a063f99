"""KafkaJS uses this broker: producer, groups, transactions, admin."""

from __future__ import annotations

import pytest

from tests.integration import other_clients

pytestmark = [pytest.mark.node, pytest.mark.slow]

PARTS = [
    "admin", "codecs", "seek by timestamp", "large messages", "group", "transactions", "exactly once", "deletion",
]  # fmt: skip


def test_kafkajs_does_all_that_it_can() -> None:
    command = other_clients.script()
    with other_clients.serving() as broker:
        other_clients.assert_parts([*command, broker.bootstrap_servers], PARTS)
        other_clients.stored(broker, "kafkajs-codecs")
