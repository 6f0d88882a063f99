"""Clients in Go use this broker: all that franz-go, kafka-go and sarama can do with one."""

from __future__ import annotations

import pytest

from tests.integration import other_clients

pytestmark = [pytest.mark.go, pytest.mark.slow]

BEFORE = ["admin", "codecs", "seek by timestamp", "large messages", "group"]
PARTS = {
    "franz-go": [
        *BEFORE, "group of KIP-848", "static members", "share group", "transactions", "exactly once", "deletion",
    ],
    "kafka-go": [*BEFORE, "deletion"],
    "sarama": [*BEFORE, "static members", "transactions", "exactly once", "deletion"],
}  # fmt: skip


@pytest.mark.parametrize("library", PARTS)
def test_a_library_does_all_that_it_can(library: str) -> None:
    command = other_clients.go()
    with other_clients.serving() as broker:
        other_clients.assert_parts([*command, library, broker.bootstrap_servers], PARTS[library])
        other_clients.stored(broker, f"{library}-codecs")
