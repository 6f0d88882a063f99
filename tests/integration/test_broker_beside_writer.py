"""A writer and a real broker cannot use a log directory at the same time."""

from __future__ import annotations

from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.log.files.locks import DirectoryLock
from kafkacodec.log.formats import layout
from tests.integration import kafka_jvm
from tests.integration.kafka_jvm import Broker

pytestmark = pytest.mark.java


def test_one_of_them_at_a_time(broker: Broker) -> None:
    kafka_jvm.create_topic(broker.server, "orders", 1)
    with pytest.raises(BlockingIOError, match=r"process \d+ \(java\) has locked the log directory") as caught:
        kc.log.LogWriter(broker.logs, "orders", 0, append=True)
    assert caught.value.filename == str(broker.logs)
    lock = DirectoryLock(str(broker.logs))
    with pytest.raises(BlockingIOError, match=r"process \d+ \(java\) has locked the log directory"):
        lock.acquire()
    broker.stop()
    lock.acquire()
    with pytest.raises(AssertionError):  # it ends at once
        broker.start()
    broker.stop()
    lock.release()
    with kc.log.LogWriter(broker.logs, "orders", 0, append=True) as writer:
        writer.write([(None, b"value")] * 3)
        with pytest.raises(AssertionError):  # it ends at once
            broker.start()
        broker.stop()
    # Leftovers of a killed job do not keep it from starting.
    (broker.logs / layout.staging_name("0123456789abcdef" * 2) / "0" / "t-0").mkdir(parents=True)
    broker.start()
    read: list[Any] = kafka_jvm.records(kafka_jvm.tool("consume", broker.server, "orders", 1, "read_uncommitted"))
    assert [record.value for record in read] == [b"value"] * 3
