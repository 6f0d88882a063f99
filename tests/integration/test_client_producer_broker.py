"""Producers write to real brokers, and another client reads what they wrote."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.errors import ClientClosed, DeadlineExceeded, EncodeError
from tests.integration.kafka_jars import RELEASES
from tests.integration.kafka_jvm import Broker
from tests.integration.test_protocol_broker import Client, create_topic
from tests.patience import SOON

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module", params=RELEASES)
def broker(request: Any, tmp_path_factory: Any) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("broker"), request.param)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic with three partitions."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    client = Client(broker.server)
    create_topic(client, name, partitions=3)
    client.socket.close()
    return name


def read(server: str, topic: str, count: int) -> dict[int, list[Any]]:
    """What aiokafka reads of each partition: pairs of key and value, timestamps and headers."""
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def everything() -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {0: [], 1: [], 2: []}
        consumer = AIOKafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest", check_crcs=True)
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, n) for n in found])
            while sum(map(len, found.values())) < count:
                for message in await _one(consumer):
                    found[message.partition].append(message)
        finally:
            await consumer.stop()
        return found

    async def _one(consumer: Any) -> list[Any]:
        lists = await consumer.getmany(timeout_ms=10_000)
        assert lists, "fewer records than were acknowledged"
        return [message for messages in lists.values() for message in messages]

    return asyncio.run(everything())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_in_every_codec_arrive_where_and_as_the_deliveries_say(broker: Broker, topic: str, codec: str) -> None:
    rnd = random.Random(codec)
    rows = [
        (None if rnd.random() < 0.3 else b"k%d" % n, rnd.randbytes(rnd.randrange(60)), [("h", b"%d" % n)] * (n % 3))
        for n in range(3000)
    ]
    with kc.client.Producer(broker.server, compression_type=codec, batch_size=5000) as producer:
        sent = [
            producer.send(topic, value, key=key, headers=headers, timestamp=1_700_000_000_000 + n)
            for n, (key, value, headers) in enumerate(rows)
        ]
        producer.flush(30)
        places = [delivery.result(0) for delivery in sent]
    found = read(broker.server, topic, len(rows))
    for n, (row, place) in enumerate(zip(rows, places, strict=True)):
        message = found[place.partition][place.offset]
        assert (message.key, message.value, list(message.headers)) == row
        assert message.timestamp == place.timestamp == 1_700_000_000_000 + n
    keyed = [(row[0], place.partition) for row, place in zip(rows, places, strict=True) if row[0] is not None]
    assert [kc.partition([key], 3)[0] for key, _ in keyed] == [partition for _, partition in keyed]
    for partition in range(3):  # in the order in which they were sent
        assert [p.offset for p in places if p.partition == partition] == list(range(len(found[partition])))


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_acks(broker: Broker, topic: str, acks: Any) -> None:
    with kc.client.Producer(broker.server, acks=acks) as producer:
        delivery = producer.send(topic, b"v", partition=1)
        assert delivery.result(SOON)[:2] == (topic, 1)
        assert delivery.offset == (-1 if acks == 0 else 0)
    assert [m.value for m in read(broker.server, topic, 1)[1]] == [b"v"]


def test_coroutines(broker: Broker, topic: str) -> None:
    async def produce() -> list[Any]:
        async with kc.client.aio.Producer(broker.server, value_serializer=str.encode) as producer:
            assert await producer.partitions_for(topic) == [0, 1, 2]
            sent = [await producer.send(topic, f"v{n}", partition=n % 3) for n in range(300)]
            with pytest.raises(EncodeError, match="no partition 3"):
                await producer.send(topic, "v", partition=3)
            with pytest.raises(ValueError, match="illegal topic"):
                await producer.send("not a topic", "v")
            return await asyncio.gather(*sent)

    results = asyncio.run(produce())
    assert [(r.partition, r.offset) for r in results] == [(n % 3, n // 3) for n in range(300)]
    found = read(broker.server, topic, 300)
    assert [m.value for m in found[2]] == [b"v%d" % n for n in range(2, 300, 3)]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_tables(broker: Broker, topic: str, codec: str) -> None:
    count = 20_000
    rnd = random.Random(1)
    keys = [None if rnd.random() < 0.1 else b"k%d" % rnd.randrange(500) for _ in range(count)]
    values = [rnd.randbytes(20) for _ in range(count)]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    with kc.client.Producer(broker.server, compression_type=codec, batch_size=10_000) as producer:
        result = producer.send_columns(table, topic=topic).result(SOON)
        assert result.rows == count
        explicit = pa.table({"topic": [topic] * 4, "partition": [2, 0, 2, 0], "value": ["a", "b", "c", "d"]})
        again = producer.send_columns(explicit).result(SOON)
    found = read(broker.server, topic, count + 4)
    for (name, partition), ranges in result.offsets.items():
        assert name == topic
        assert [r.first for r in ranges] == [sum(r.rows for r in ranges[:n]) for n in range(len(ranges))]
        end = ranges[-1].first + ranges[-1].rows
        rows = [n for n in range(count) if keys[n] is not None and kc.partition([keys[n]], 3)[0] == partition]
        keyed = [m for m in found[partition][:end] if m.key is not None]
        assert [(m.key, m.value) for m in keyed] == [(keys[n], values[n]) for n in rows]
        assert again.offsets.get((topic, partition), [(end, 2)]) == [(end, 2)]
    assert sorted(m.value for messages in found.values() for m in messages if m.key is None) == sorted(
        [values[n] for n in range(count) if keys[n] is None] + [b"a", b"b", b"c", b"d"]
    )
    assert [m.value for m in found[0][-2:]] == [b"b", b"d"]


def test_a_batch_that_a_topic_does_not_take_is_sent_in_parts(broker: Broker) -> None:
    name = f"small-{uuid.uuid4().hex[:8]}"
    client = Client(broker.server)
    create_topic(client, name, partitions=3, configs={"max.message.bytes": "2000"})
    client.socket.close()
    with kc.client.Producer(broker.server, linger_ms=100) as producer:
        sent = [producer.send(name, b"%04d" % n * 50, partition=0) for n in range(200)]
        large = producer.send(name, b"x" * 3000, partition=0)
        after = producer.send(name, b"after", partition=0)
        assert [d.result(SOON).offset for d in sent] == list(range(200))
        with pytest.raises(kc.errors.MessageTooLargeError):
            large.result(SOON)
        assert after.result(SOON).offset == 200
    assert [m.value[:4] for m in read(broker.server, name, 201)[0]] == [b"%04d" % n for n in range(200)] + [b"afte"]


def test_closed_and_unreachable(broker: Broker, topic: str) -> None:
    producer = kc.client.Producer(broker.server)
    delivery = producer.send(topic, b"v")
    producer.close()
    assert delivery.done()
    producer.close()
    for call in (lambda: producer.send(topic, b"v"), producer.flush):
        with pytest.raises(ClientClosed):
            call()
    with kc.client.Producer("127.0.0.1:1", max_block_ms=300) as lost, pytest.raises(DeadlineExceeded) as caught:
        lost.send("t", b"v")
    assert "no metadata of topic 't' within 0.3 s" in str(caught.value)
    assert "127.0.0.1:1" in str(caught.value)


def test_full_memory_does_not_wait_for_more_records(broker: Broker, topic: str) -> None:
    """What has to be sent to make room is sent at once, however long batches may wait for records."""
    options: Any = {"linger_ms": 600_000, "buffer_memory": 50_000, "max_block_ms": 3000}
    with kc.client.Producer(broker.server, **options) as producer:
        producer.send(topic, b"first", partition=0)
        producer.flush()  # nothing but memory wakes the client from now on
        deliveries = [producer.send(topic, b"x" * 1000, partition=0) for _ in range(200)]
    assert [delivery.offset for delivery in deliveries] == list(range(1, 201))


def test_partitions_that_are_added_while_a_producer_is_used(broker: Broker, topic: str) -> None:
    """Brokers are asked before one is refused, and nothing is sent of a table that is refused."""
    values = [b"%d" % n for n in range(10)]

    def table(*numbers: int) -> pa.Table:
        places = [numbers[n % len(numbers)] for n in range(10)]
        return pa.table({"value": values, "partition": pa.array(places, pa.int32())})

    with kc.client.Producer(broker.server) as producer, kc.client.Admin(broker.server) as admin:
        producer.send(topic, b"a", partition=2)
        admin.create_partitions({topic: 4})
        assert producer.send(topic, b"b", partition=3).result(SOON).partition == 3
        admin.create_partitions({topic: 6})
        assert producer.send_columns(table(0, 5), topic=topic).result(SOON).rows == 10
        for wrong in (6, -1):
            with pytest.raises(EncodeError, match=f"topic '{topic}' has no partition {wrong}") as refused:
                producer.send_columns(table(1, wrong), topic=topic)
            assert refused.value.path == "records[1].partition"
        with pytest.raises(EncodeError, match=f"topic '{topic}' has no partition 6"):
            producer.send(topic, b"c", partition=6)
        producer.flush()
        ends = admin.list_offsets({(topic, n): "latest" for n in range(6)})
    assert [end.offset for _, end in sorted(ends.items())] == [5, 0, 1, 1, 0, 5]
