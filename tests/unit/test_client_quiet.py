"""How often clients log that a broker cannot be reached."""

from __future__ import annotations

import logging
from collections import Counter

import kafkacodec as kc
from kafkacodec.client.driver.quiet import QUIET_MS, Quiet
from tests.patience import SOON, eventually


def test_a_warning_is_due_once_a_minute():
    quiet = Quiet()
    assert quiet.wants("a: refused", 0)
    assert quiet.wants("b: refused", 1)
    assert not quiet.wants("a: refused", QUIET_MS - 1)
    assert quiet.wants("a: refused", QUIET_MS)


def test_many_different_warnings_take_no_memory():
    quiet = Quiet()
    assert all(quiet.wants(str(n), 0) for n in range(10_000))
    assert len(quiet._until) <= 100
    assert quiet.wants("new", QUIET_MS)
    assert not quiet.wants("new", QUIET_MS + 1)


def test_all_connections_to_a_broker_that_is_gone_are_told_together(caplog):
    """A member of a group has one for its coordinator, and others for fetches and metadata."""
    kafka = kc.broker.serve(topics={"t": 1})
    options = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": "g", "reconnect_backoff_max_ms": 20}
    with kc.client.Consumer("t", auto_offset_reset="earliest", **options) as consumer:
        with kc.client.Producer(kafka.bootstrap_servers) as producer:
            producer.send("t", b"v").result(SOON)
        assert consumer.getmany(timeout=60)
        kafka.stop()
        failed = consumer.metrics().get("connections_failed", 0)
        eventually(lambda: consumer.metrics().get("connections_failed", 0) > failed + 20)
    told = Counter(record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert told[f"broker {kafka.bootstrap_servers}: connection refused"] == 1
    assert max(told.values()) == 1
