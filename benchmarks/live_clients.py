"""What each client does in the live contests, in a process of its own.

    python -m benchmarks.live_clients CLIENT produce|consume HOST:PORT TOPIC CODEC

prints the number of records and the seconds that they took: the processor's, of all threads of the process, and the
clock's. They begin after the first record, or the first table, so that connecting is not measured, nor the import of
modules for tables. All check checksums; producers wait for `acks=all`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

KEY_BYTES, VALUE_BYTES = 10, 100
LINGER_MS = 5
PARTITION_FETCH_BYTES = 4 << 20
CHUNK = 100_000
FIRST_ROWS = 20_000  # of a table that is sent before the clock starts
# Records of one run: about the same time for each client.
AMOUNTS = {
    "kafkacodec, columns": {"produce": 2_000_000, "consume": 2_000_000},
    "kafkacodec": {"produce": 300_000, "consume": 1_000_000},
    "aiokafka": {"produce": 100_000, "consume": 500_000},
    "confluent-kafka": {"produce": 300_000, "consume": 1_000_000},
    "kafka-python": {"produce": 50_000, "consume": 200_000},
    "franz-go": {"produce": 1_000_000, "consume": 2_000_000},
    "rust-rdkafka": {"produce": 1_000_000, "consume": 2_000_000},
}
FILLED = max(amounts["consume"] for amounts in AMOUNTS.values())

Work = Callable[[str, str, str, int], None]


class Stopwatch:
    """The seconds since it was made."""

    def __init__(self) -> None:
        self._processor, self._wall = time.process_time(), time.perf_counter()

    def stop(self, records: int) -> None:
        """Print the number of records and the seconds."""
        print(records, time.process_time() - self._processor, time.perf_counter() - self._wall)


def key(number: int) -> bytes:
    return b"k%0*d" % (KEY_BYTES - 1, number)


def some_value() -> bytes:
    return os.urandom(VALUE_BYTES // 2).hex().encode()


def tables(count: int) -> list[Any]:
    import pyarrow as pa

    values = [some_value() for _ in range(1000)]
    return [
        pa.table({"key": [key(n) for n in range(i, i + CHUNK)], "value": [values[n % 1000] for n in range(CHUNK)]})
        for i in range(0, count, CHUNK)
    ]


def produce_columns(server: str, topic: str, codec: Any, count: int) -> None:
    import kafkacodec as kc

    made = tables(count)
    with kc.client.Producer(bootstrap_servers=server, compression_type=codec, linger_ms=LINGER_MS) as producer:
        producer.send_columns(made[0].slice(0, FIRST_ROWS), topic=topic).result()
        watch = Stopwatch()
        for table in made:
            producer.send_columns(table, topic=topic)
        producer.flush()
        watch.stop(count)


def produce(server: str, topic: str, codec: Any, count: int) -> None:
    import kafkacodec as kc

    value = some_value()
    with kc.client.Producer(bootstrap_servers=server, compression_type=codec, linger_ms=LINGER_MS) as producer:
        producer.send(topic, b"").result()
        watch = Stopwatch()
        for i in range(count):
            producer.send(topic, value, key=key(i))
        producer.flush()
        watch.stop(count)


def produce_aiokafka(server: str, topic: str, codec: str, count: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def main() -> None:
        value, compression = some_value(), None if codec == "none" else codec
        producer = AIOKafkaProducer(
            bootstrap_servers=server, compression_type=compression, linger_ms=LINGER_MS, acks="all"
        )
        await producer.start()
        await producer.send_and_wait(topic, b"")
        watch = Stopwatch()
        for i in range(count):
            await producer.send(topic, value, key=key(i))
        await producer.flush()
        watch.stop(count)
        await producer.stop()

    asyncio.run(main())


def produce_confluent(server: str, topic: str, codec: str, count: int) -> None:
    from confluent_kafka import Producer

    value = some_value()
    producer = Producer(
        {
            "bootstrap.servers": server,
            "compression.type": codec,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.produce(topic, b"")
    producer.flush(60)
    watch = Stopwatch()
    for i in range(count):
        producer.produce(topic, value, key=key(i))
    left = producer.flush(60)
    watch.stop(count)
    assert left == 0


def produce_kafka_python(server: str, topic: str, codec: str, count: int) -> None:
    from kafka import KafkaProducer

    value, compression = some_value(), None if codec == "none" else codec
    producer = KafkaProducer(bootstrap_servers=server, compression_type=compression, linger_ms=LINGER_MS, acks="all")
    producer.send(topic, b"").get(60)
    watch = Stopwatch()
    for i in range(count):
        producer.send(topic, value, key=key(i))
    producer.flush()
    watch.stop(count)
    producer.close()


def consume_columns(server: str, topic: str, _codec: str, count: int) -> None:
    import kafkacodec as kc

    with kc.client.Consumer(bootstrap_servers=server, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        tables = consumer.columns(timeout=20)
        before = found = len(next(tables))
        watch = Stopwatch()
        for columns in tables:
            found += len(columns)
            if found >= count:
                break
        watch.stop(found - before)


def consume(server: str, topic: str, _codec: str, count: int) -> None:
    import kafkacodec as kc

    with kc.client.Consumer(bootstrap_servers=server, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        records = iter(consumer)
        next(records)
        watch = Stopwatch()
        watch.stop(_sizes(records, count - 1))


def _sizes(records: Iterable[Any], count: int) -> int:
    """Read the values of so many records; their number."""
    found = total = 0
    for record in records:
        found += 1
        total += len(record.value)
        if found == count:
            break
    assert total >= found * VALUE_BYTES
    return found


def consume_aiokafka(server: str, topic: str, _codec: str, count: int) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def main() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=server,
            enable_auto_commit=False,
            max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
            check_crcs=True,
        )
        await consumer.start()
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        await consumer.getone()
        watch, found = Stopwatch(), 0
        while found < count:
            for part in (await consumer.getmany(timeout_ms=1000, max_records=10_000)).values():
                found += _sizes(part, len(part))
        watch.stop(found)
        await consumer.stop()

    asyncio.run(main())


def consume_confluent(server: str, topic: str, _codec: str, count: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": server,
            "group.id": "unused",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.message.max.bytes": PARTITION_FETCH_BYTES,
            "queued.max.messages.kbytes": 131_072,
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.consume(1, 30)
    watch, found, total = Stopwatch(), 0, 0
    while found < count:
        for message in consumer.consume(10_000, 1):
            found += 1
            total += len(message.value())
    watch.stop(found)
    assert total >= found * VALUE_BYTES
    consumer.close()


def consume_kafka_python(server: str, topic: str, _codec: str, count: int) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=server,
        enable_auto_commit=False,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        check_crcs=True,
    )
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    next(consumer)
    watch, found = Stopwatch(), 0
    while found < count:
        for part in consumer.poll(timeout_ms=1000, max_records=10_000).values():
            found += _sizes(part, len(part))
    watch.stop(found)
    consumer.close()


def program(language: str, work: str) -> Work:
    """The program of that language, in place of this process."""

    def run(server: str, topic: str, codec: str, count: int) -> None:
        from benchmarks.programs import GO_PROGRAM, RUST_PROGRAM

        path = {"Go": GO_PROGRAM, "Rust": RUST_PROGRAM}[language]
        os.execv(path, [str(path), work, server, topic, codec, str(count)])

    return run


WORK: dict[str, dict[str, Work]] = {
    "kafkacodec, columns": {"produce": produce_columns, "consume": consume_columns},
    "kafkacodec": {"produce": produce, "consume": consume},
    "aiokafka": {"produce": produce_aiokafka, "consume": consume_aiokafka},
    "confluent-kafka": {"produce": produce_confluent, "consume": consume_confluent},
    "kafka-python": {"produce": produce_kafka_python, "consume": consume_kafka_python},
    "franz-go": {"produce": program("Go", "produce"), "consume": program("Go", "consume")},
    "rust-rdkafka": {"produce": program("Rust", "produce"), "consume": program("Rust", "consume")},
}


if __name__ == "__main__":
    _, client, work, server, topic, codec = sys.argv
    WORK[client][work](server, topic, codec, AMOUNTS[client][work])
