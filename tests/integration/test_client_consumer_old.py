"""Consumers and brokers of releases before KRaft: old record formats and fetch versions, groups, positions."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import errors, messages
from kafkacodec.client import Consumer
from tests.integration.kafka_jars import OLD_RELEASES
from tests.integration.kafka_jvm import Server
from tests.integration.test_brokers_of_all_ages import Plain
from tests.patience import SOON

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.parametrize("release", OLD_RELEASES, indirect=True, scope="session"),
]

BY_TIME = [release for release in OLD_RELEASES if release not in ("0.8.2", "0.9.0")]


def formats(release: str) -> list[tuple[int, int]]:
    """Magic, and the version of Produce for it."""
    known = [(0, 0)]
    if release in BY_TIME:
        known.append((1, 2))
    if release not in ("0.8.2", "0.9.0", "0.10.2"):
        known.append((2, 3))
    return known


def write(server: Server, topic: str, release: str) -> list[tuple[int, bytes | None, bytes]]:
    """Batches in every format and codec, one of them larger than small limits; offsets, keys and values."""
    client = Plain(server.server)
    client.lead(topic, 0)
    expected: list[tuple[int, bytes | None, bytes]] = []
    for magic, version in formats(release):
        for codec in ("none", "gzip", "snappy", "lz4"):
            rows = [(b"k" if n % 2 else None, b"%d %d %s" % (magic, n, codec.encode())) for n in range(20)]
            rows.append((b"large", b"x" * 60_000))
            for part in (rows[:10], rows[10:]):
                send(client, topic, kc.encode(part, magic=magic, codec=codec, batch_bytes=1 << 20), version)
                expected += [(len(expected) + n, key, value) for n, (key, value) in enumerate(part)]
    client.socket.close()
    return expected


def send(client: Plain, topic: str, records: bytes, version: int) -> None:
    data = messages.ProduceRequest.PartitionProduceData(index=0, records=records)
    entry = messages.ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    for _ in range(300):
        response = client.ask(messages.ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[entry]), version)
        (part,) = response.responses[0].partition_responses
        if part.error_code == 0:
            return
        assert errors.error(part.error_code).retriable, part
    raise AssertionError(part)


def test_every_format(server: Server, release: str) -> None:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    expected = write(server, topic, release)
    small = {"max_partition_fetch_bytes": 1000, "fetch_max_bytes": 3000}
    for options in ({}, small):
        made: dict[str, Any] = {"bootstrap_servers": server.server, "auto_offset_reset": "earliest", **options}
        with Consumer(topic, **made) as consumer:
            found: list[Any] = []
            for table in consumer.columns(timeout=5):
                found += zip(*(table[name].tolist() for name in ("offset", "key", "value")), strict=True)
                if len(found) >= len(expected):
                    break
            assert found == expected
            assert consumer.position(topic, 0) == len(expected)
            assert consumer.getmany(0.3) == {}
            consumer.seek(topic, 0, 5)  # in the middle of what may be one compressed message
            records = consumer.getmany(SOON, max_records=3)[topic, 0]
            assert [(r.offset, r.key, r.value) for r in records] == expected[5:8]
            assert consumer.end_offsets([(topic, 0)]) == {(topic, 0): len(expected)}
            assert consumer.beginning_offsets([(topic, 0)]) == {(topic, 0): 0}
            if release in BY_TIME:
                assert consumer.offsets_for_times({(topic, 0): 2**60}) == {(topic, 0): None}
            else:
                with pytest.raises(errors.UnsupportedVersion, match="ListOffsets"):
                    consumer.offsets_for_times({(topic, 0): 0})


def test_committed_positions(server: Server, release: str) -> None:
    topic, group = f"t-{uuid.uuid4().hex[:8]}", f"g-{uuid.uuid4().hex[:8]}"
    expected = write(server, topic, release)
    options: dict[str, Any] = {"bootstrap_servers": server.server, "group_id": group, "auto_offset_reset": "earliest"}
    if release == "0.8.2":  # it keeps offsets, and has no groups
        with Consumer(topic, **options) as consumer, pytest.raises(errors.UnsupportedVersion, match="JoinGroup"):
            consumer.getmany(SOON)
    for first, last in ((0, 7), (7, 12)):
        with Consumer(**options) as consumer:
            if release == "0.8.2":
                consumer.assign([(topic, 0)])
            else:
                consumer.subscribe([topic])
            found: list[Any] = []
            while len(found) < last - first:
                lists = consumer.getmany(SOON, max_records=last - first - len(found))
                found += [(r.offset, r.key, r.value) for r in lists[topic, 0]]
            assert found == expected[first:last]
    with Consumer(**options) as consumer:
        assert consumer.committed(topic, 0) == 12
