"""What aiokafka writes this client reads and the reverse; a group has members of both and of two Java consumers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

import kafkacodec as kc
from tests.integration import kafka_jars, kafka_jvm
from tests.integration.kafka_jvm import Broker
from tests.patience import LATE, SOON

pytestmark = [pytest.mark.java, pytest.mark.slow]

HEADERS = [("name", b"value")]
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def test_what_one_writes_the_other_reads(broker: Broker) -> None:
    """Each codec, with headers and timestamps; committed and aborted transactions."""

    async def written_by_aiokafka() -> None:
        for codec in (None, "gzip", "snappy", "lz4", "zstd"):
            async with AIOKafkaProducer(bootstrap_servers=broker.server, compression_type=codec) as producer:
                for n in range(20):
                    await producer.send("theirs", b"%d" % n, key=b"k", partition=0, timestamp_ms=n, headers=HEADERS)
        async with AIOKafkaProducer(bootstrap_servers=broker.server, transactional_id="theirs") as producer:
            for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
                await producer.begin_transaction()
                await producer.send_and_wait("theirs", end.__name__.encode(), partition=0)
                await end()

    async def read_by_us() -> list[Any]:
        options: Any = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        async with kc.client.aio.Consumer(bootstrap_servers=broker.server, **options) as consumer:
            await consumer.assign([("theirs", 0)])
            found: list[Any] = []
            while len(found) < 102:
                batch = await consumer.getmany(SOON)
                assert batch
                found += batch["theirs", 0]
            assert await consumer.getmany(1) == {}
            return found

    async def written_by_us() -> None:
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            async with kc.client.aio.Producer(broker.server, compression_type=codec) as producer:
                for n in range(20):
                    await producer.send("ours", b"%d" % n, key=b"k", partition=0, timestamp=n, headers=HEADERS)
        async with kc.client.aio.Producer(broker.server, transactional_id="ours") as producer:
            for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
                await producer.begin_transaction()
                await (await producer.send("ours", end.__name__.encode(), partition=0))
                await end()

    async def read_by_aiokafka() -> list[Any]:
        options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        async with AIOKafkaConsumer(bootstrap_servers=broker.server, **options) as consumer:
            consumer.assign([TopicPartition("ours", 0)])
            found: list[Any] = []
            while len(found) < 102:
                batch = await consumer.getmany(timeout_ms=20_000)
                assert batch
                found += batch[TopicPartition("ours", 0)]
            assert await consumer.getmany(timeout_ms=1000) == {}
            return found

    async def main() -> None:
        await written_by_aiokafka()
        await written_by_us()
        for found in (await read_by_us(), await read_by_aiokafka()):
            for number, record in enumerate(found[:100]):
                n = number % 20
                assert (record.offset, record.timestamp, record.key, record.value) == (number, n, b"k", b"%d" % n)
                assert list(record.headers) == HEADERS
            assert [record.value for record in found[100:]] == [b"commit_transaction"] * 2

    asyncio.run(main())


def test_a_group_of_three_clients(broker: Broker, tmp_path: Path) -> None:
    """Each of them leads a partition; when the Java member leaves, the others get what it has not committed."""
    kafka_jvm.create_topic(broker.server, "shared", 3)
    output = tmp_path / "java.out"
    seen: dict[tuple[int, int], str] = {}

    async def main() -> int:
        async with kc.client.aio.Producer(broker.server) as producer:
            for n in range(300):
                await producer.send("shared", b"%d" % n, partition=n % 3)
        arguments = (broker.server, "group", "java", "shared", 5, "classic")
        java = kafka_jvm.background("read", *arguments, output=output, program="GroupTool")
        await until(lambda: output.read_text().strip())
        options: Any = {"bootstrap_servers": broker.server, "group_id": "group", "auto_offset_reset": "earliest"}
        theirs = AIOKafkaConsumer(
            "shared", partition_assignment_strategy=[RangePartitionAssignor], max_poll_records=10, **options
        )
        ours = kc.client.aio.Consumer("shared", partition_assignment_strategy="range", max_poll_records=10, **options)
        async with theirs, ours:

            async def read() -> None:
                for record in [r for rs in (await theirs.getmany(timeout_ms=100)).values() for r in rs]:
                    seen[record.partition, record.offset] = "aiokafka"
                for record in [r for rs in (await ours.getmany(0.1)).values() for r in rs]:
                    seen[record.partition, record.offset] = "kafkacodec"

            await until(lambda: len(theirs.assignment()) == len(ours.assignment()) == 1, read)
            java.communicate(b"\n", timeout=60)
            await until(lambda: len(theirs.assignment()) + len(ours.assignment()) == 3, read)
            count = 300 - int(output.read_text())
            await until(lambda: len(seen) == count, read)
        return count

    count = asyncio.run(main())
    assert len(seen) == count
    assert set(seen.values()) == {"aiokafka", "kafkacodec"}


def test_a_group_with_the_console_consumer(broker: Broker, tmp_path: Path) -> None:
    """Records that come while it shares the group with ours go to one of them; ours gets all when it leaves."""
    kafka_jvm.create_topic(broker.server, "shared", 3)
    output = tmp_path / "console.out"

    def printed() -> list[int]:
        return sorted(map(int, output.read_text().split()))

    async def main() -> None:
        async with kc.client.aio.Producer(broker.server) as producer:

            async def produce(numbers: range) -> None:
                for n in numbers:
                    await producer.send("shared", b"%d" % n, partition=n % 3)
                await producer.flush()

            await produce(range(300))
            options = ("--topic", "shared", "--group", "group", "--from-beginning")
            arguments = ("--bootstrap-server", broker.server, *options)
            console = kafka_jvm.background(*arguments, output=output, program=CONSOLE, jars=[kafka_jars.tools()])
            await until(lambda: printed() == [*range(300)])
            reading: Any = {"bootstrap_servers": broker.server, "group_id": "group"}
            async with kc.client.aio.Consumer("shared", partition_assignment_strategy="range", **reading) as ours:
                seen: list[int] = []

                async def read() -> None:
                    for records in (await ours.getmany(0.1)).values():
                        seen.extend(int(record.value or b"") for record in records)

                await until(lambda: 0 < len(ours.assignment()) < 3, read)
                await produce(range(300, 600))
                await until(lambda: len(printed()) + len(seen) == 600, read)
                assert seen
                assert len(printed()) > 300
                console.terminate()
                console.communicate(timeout=60)
                await until(lambda: len(ours.assignment()) == 3, read)
                await produce(range(600, 700))
                await until(lambda: len(printed()) + len(seen) == 700, read)
                assert sorted(printed() + seen) == [*range(700)]

    asyncio.run(main())


async def until(condition: Any, step: Any = None) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(LATE):
        while not condition():
            await (step() if step is not None else asyncio.sleep(0.1))
