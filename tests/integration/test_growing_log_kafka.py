"""Apache Kafka takes over a directory of growing logs, and the other way round."""

from __future__ import annotations

from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.log.growing.directory import GrowingDirectory
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.settings import LogConfig
from tests.integration import kafka_jvm
from tests.integration.kafka_jvm import Broker

pytestmark = pytest.mark.java

START = 1_700_000_000_000


def fill(log: PartitionLog, epoch: int) -> tuple[list[bytes], list[bytes]]:
    """Append batches with and without transactions; the values of all records, and of those that were not aborted."""
    values: list[bytes] = []
    committed: list[bytes] = []
    for n in range(40):
        rows = [(i, START + n, 0, b"key", b"%d-%d-%d" % (log.end_offset, n, i) * 9, []) for i in range(5)]
        options: dict[str, Any] = {"codec": ("none", "zstd", "gzip", "lz4", "snappy")[n % 5]}
        if n % 4:
            options |= {"producer_id": 900 + n % 2, "producer_epoch": epoch, "base_sequence": 5 * n}
            options |= {"is_transactional": True}
        log.append(bytearray(kc.encode(rows, **options)), leader_epoch=epoch)
        values += [row[4] for row in rows]
        aborted = n % 4 and n % 8 >= 4
        committed += [] if aborted else [row[4] for row in rows]
        if n % 4 == 3:
            for producer in (900, 901):
                kind = "abort" if aborted else "commit"
                marker = kc.control_batch(
                    kind, offset=0, producer_id=producer, producer_epoch=epoch, timestamp=START + n
                )
                log.append(bytearray(marker), leader_epoch=epoch)
    return values, committed


def test_a_broker_takes_over_and_hands_over(broker: Broker) -> None:
    kafka_jvm.create_topic(broker.server, "orders", 1)
    kafka_jvm.tool("produce", broker.server, "orders", 1, text="61\n" * 7)
    broker.stop()
    logs = GrowingDirectory(broker.logs)
    assert logs.was_clean
    log = logs.open("orders", 0, LogConfig(segment_bytes=4000, index_interval_bytes=300))
    before = log.end_offset
    assert before > 0
    values, committed = fill(log, log.leader_epoch)
    logs.close()
    broker.start()
    read: list[Any] = kafka_jvm.records(kafka_jvm.tool("consume", broker.server, "orders", 1, "read_uncommitted"))
    assert [record.value for record in read if record.offset >= before] == values
    read = kafka_jvm.records(kafka_jvm.tool("consume", broker.server, "orders", 1, "read_committed"))
    assert [record.value for record in read if record.offset >= before] == committed
    kafka_jvm.tool("produce", broker.server, "orders", 1, text="62\n" * 3)
    broker.kill()  # not in good order
    logs = GrowingDirectory(broker.logs)
    assert not logs.was_clean
    again = logs.open("orders", 0)
    assert again.loss is None
    assert again.end_offset > log.end_offset
    assert kc.log.Partition(again.path).verify().ok
    logs.abandon()
