"""Makes the log directory of `kafkacodec.sample` with a real broker of Kafka, on the loopback interface.

    python -m tools.sample DIRECTORY

It has a day of orders, in all codecs; payments in transactions, some of which were aborted and the last is open;
customers, which the cleaner compacts; and two consumer groups. Times and contents are the same in each run, apart from
what the broker itself writes.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.integration.kafka_jvm import Broker

START = 1_741_564_800_000  # 2025-03-10 00:00:00 UTC
HOUR = 3_600_000
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
ITEMS = ("apples", "bread", "coffee", "dates", "eggs", "figs", "Grütze", "honey")
SMALL_SEGMENTS = {"segment.bytes": "6144"}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "2048", "min.cleanable.dirty.ratio": "0.01"}

Message = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]


def _json(**fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def orders(rnd: random.Random, hour: int) -> Iterator[Message]:
    """The orders of an hour: time, key, value, headers."""
    for n in range(25):
        number, customer = 1000 + hour * 25 + n, f"c{rnd.randrange(40):02}"
        item, count = rnd.choice(ITEMS), rnd.randrange(1, 9)
        value = _json(order=number, customer=customer, item=item, count=count, price=round(rnd.uniform(1, 90), 2))
        headers = [("source", rnd.choice([b"web", b"app", b"shop"])), ("trace", rnd.randbytes(8).hex().encode())]
        when = START + hour * HOUR + n * HOUR // 25 + rnd.randrange(9000)
        yield when, customer.encode(), value, headers[: rnd.randrange(3)]


async def write_orders(server: str, rnd: random.Random) -> None:
    """A producer for each hour, with the next codec."""
    for hour in range(24):
        producer = AIOKafkaProducer(
            bootstrap_servers=server, compression_type=CODECS[hour % len(CODECS)], linger_ms=50, client_id="shop"
        )
        await producer.start()
        for when, key, value, headers in orders(rnd, hour):
            await producer.send("orders", value, key=key, headers=headers, timestamp_ms=when)
        await producer.stop()


async def write_payments(server: str, rnd: random.Random) -> AIOKafkaProducer:
    """Transactions, of which every fourth is aborted; the last is not ended, and its producer is returned."""
    producer = AIOKafkaProducer(bootstrap_servers=server, transactional_id="payments-1", compression_type="lz4")
    await producer.start()
    for part in range(15):
        await producer.begin_transaction()
        for n in range(8):
            number = 1000 + part * 8 + n
            value = _json(order=number, amount=round(rnd.uniform(5, 400), 2), method=rnd.choice(["card", "cash"]))
            when = START + part * HOUR + n * 60_000
            await producer.send("payments", value, key=str(number).encode(), timestamp_ms=when)
        if part == 14:
            await producer.flush()
        elif part % 4 == 2:
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()
    return producer


async def write_customers(server: str, rnd: random.Random) -> None:
    """Changes of customers and, as null values, removals."""
    producer = AIOKafkaProducer(bootstrap_servers=server)
    await producer.start()
    for n in range(160):
        customer = f"c{rnd.randrange(40):02}"
        value = _json(customer=customer, city=rnd.choice(["Basel", "Köln", "Lyon", "Oslo"]), points=n)
        removed = n > 100 and rnd.random() < 0.15
        when = START + n * HOUR // 8
        await producer.send_and_wait("customers", None if removed else value, key=customer.encode(), timestamp_ms=when)
    await producer.stop()


async def commit_offsets(server: str) -> AIOKafkaConsumer:
    """A group that is done, and one that is behind, whose member is returned: it is there when the broker stops."""
    for group, share in (("reports", 1.0), ("billing", 0.6)):
        consumer = AIOKafkaConsumer("orders", bootstrap_servers=server, group_id=group, client_id=f"{group}-1")
        await consumer.start()
        partitions = [TopicPartition("orders", n) for n in range(3)]
        ends = await consumer.end_offsets(partitions)
        await consumer.commit({place: int(end * share) for place, end in ends.items()})
        if group == "reports":
            await consumer.stop()
    return consumer


async def write(broker: Broker) -> None:
    """All topics and groups; stops the broker."""
    server = broker.server
    admin = AIOKafkaAdminClient(bootstrap_servers=server)
    await admin.start()
    topics = [("orders", 3, SMALL_SEGMENTS), ("payments", 1, SMALL_SEGMENTS), ("customers", 1, COMPACTED)]
    await admin.create_topics([NewTopic(name, n, 1, topic_configs=config) for name, n, config in topics])
    await admin.close()
    rnd = random.Random(20250310)
    await write_orders(server, rnd)
    await write_customers(server, rnd)
    await asyncio.sleep(5)  # the cleaner runs
    members = [await write_payments(server, rnd), await commit_offsets(server)]
    await asyncio.to_thread(broker.stop)
    assert members  # neither has left


def main() -> None:
    """Write the directory given on the command line; replaces it."""
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        settings = {"log_retention_ms": "-1", "log_cleaner_backoff_ms": "500", "transaction_max_timeout_ms": "900000"}
        broker = Broker(Path(scratch), **settings)
        broker.start()
        try:
            asyncio.run(write(broker))
        except BaseException:
            broker.kill()
            raise
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(
            broker.logs, target, ignore=shutil.ignore_patterns(".lock", ".kafka_cleanshutdown", "*.deleted")
        )


if __name__ == "__main__":
    main()
