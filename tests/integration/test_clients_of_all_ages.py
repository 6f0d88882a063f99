"""Producers and consumers with brokers of eight releases, 0.8.2 to the newest."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.integration.kafka_jvm import Server
from tests.patience import LATE, SOON

pytestmark = [pytest.mark.java, pytest.mark.slow]

BEFORE_TRANSACTIONS = ("0.8.2", "0.9.0", "0.10.2")
FENCED = (kc.errors.ProducerFencedError, kc.errors.InvalidProducerEpochError)
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def has_zstd(release: str) -> bool:
    """Kafka 2.1 was the first."""
    return release not in ("0.8.2", "0.9.0", "0.10.2", "0.11.0")


async def everything(server: str, topic: str, count: int, **options: Any) -> pa.Table:
    """The records of partition 0: so many, unless 20 seconds bring no more."""
    options = {"auto_offset_reset": "earliest", **options}
    tables: list[pa.Table] = []
    async with kc.client.aio.Consumer(bootstrap_servers=server, **options) as consumer:
        await consumer.assign([(topic, 0)])
        async for table in consumer.columns(timeout=20):
            tables.append(pa.table(table))
            if sum(map(len, tables)) >= count:
                break
    return pa.concat_tables(tables)


@pytest.mark.parametrize("codec", CODECS)
def test_a_producer_of_each_codec(server: Server, release: str, codec: str) -> None:
    old = release in ("0.8.2", "0.9.0", "0.10.2")
    topic, count = f"made-{codec}", 300
    headers = [] if old else [("name", b"value")]

    async def main() -> None:
        async with kc.client.aio.Producer(server.server, compression_type=codec, batch_size=2000) as producer:
            deliveries = [
                await producer.send(
                    topic, b"value %d" % n, key=b"%d" % n, partition=0, headers=headers, timestamp=1_700_000_000_000 + n
                )
                for n in range(count)
            ]
            if codec == "zstd" and not has_zstd(release):
                with pytest.raises(kc.errors.UnsupportedVersion, match=r"zstd needs Kafka 2\.1"):
                    await deliveries[0]
                return
            assert [(await delivery).offset for delivery in deliveries] == list(range(count))
        found = await everything(server.server, topic, count)
        assert found["offset"].to_pylist() == list(range(count))
        assert found["key"].to_pylist() == [b"%d" % n for n in range(count)]
        assert found["value"].to_pylist() == [b"value %d" % n for n in range(count)]
        without_times = release in ("0.8.2", "0.9.0")
        times = [None if without_times else 1_700_000_000_000 + n for n in range(count)]
        assert found["timestamp"].cast("int64").to_pylist() == times
        pairs = [[(header["key"], header["value"]) for header in entry] for entry in found["headers"].to_pylist()]
        assert pairs == [headers] * count

    asyncio.run(main())


def test_a_table(server: Server, release: str) -> None:
    table = pa.table({"key": [b"k%d" % n for n in range(5000)], "value": [b"v%d" % n for n in range(5000)]})

    async def main() -> None:
        async with kc.client.aio.Producer(server.server, compression_type="gzip") as producer:
            result = await (await producer.send_columns(table, topic="table"))
            assert result.rows == 5000
        found = await everything(server.server, "table", 5000)
        assert found.select(["key", "value"]).to_pylist() == table.to_pylist()

    asyncio.run(main())


# Consumers


async def fill(server: str, topic: str, count: int, *, first: int = 0) -> None:
    """Numbered records in partition 0."""
    async with kc.client.aio.Producer(server, batch_size=2000) as producer:
        for n in range(first, first + count):
            await producer.send(topic, b"%d" % n, key=b"k", partition=0)


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % n for n in range(first, end)]


def test_a_consumer_without_a_group(server: Server, release: str) -> None:
    """All records, from the middle on, from the end on."""

    async def main() -> None:
        await fill(server.server, "read", 500)
        async with kc.client.aio.Consumer(
            "read", bootstrap_servers=server.server, auto_offset_reset="earliest"
        ) as consumer:
            tables: list[pa.Table] = []
            async for table in consumer.columns(timeout=LATE):
                tables.append(pa.table(table))
                if sum(map(len, tables)) >= 500:
                    break
            found = pa.concat_tables(tables)
            assert found["value"].to_pylist() == numbers(0, 500)
            assert found["offset"].to_pylist() == list(range(500))
            assert await consumer.position("read", 0) == 500
            await consumer.seek("read", 0, 490)
            seen = []
            async for record in consumer:
                seen.append(record.value)
                if len(seen) == 10:
                    break
            assert seen == numbers(490, 500)
            assert await consumer.end_offsets([("read", 0)]) == {("read", 0): 500}
            assert await consumer.beginning_offsets([("read", 0)]) == {("read", 0): 0}

    asyncio.run(main())


def test_a_group_goes_on_where_it_committed(server: Server, release: str) -> None:
    """0.8.2 keeps offsets of groups whose members choose their partitions."""
    subscribes = release != "0.8.2"

    async def read(count: int) -> list[bytes]:
        options: Any = {"group_id": "readers", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = kc.client.aio.Consumer(*["counted"] * subscribes, bootstrap_servers=server.server, **options)
        async with consumer:
            if not subscribes:
                await consumer.assign([("counted", 0)])
            found: list[bytes] = []
            while len(found) < count:
                for records in (await consumer.getmany(SOON, count - len(found))).values():
                    found += [record.value or b"" for record in records]
                assert found, "no record within 20 s"
            await consumer.commit()
            assert await consumer.committed("counted", 0) == int(found[-1]) + 1
            return found

    async def main() -> None:
        await fill(server.server, "counted", 100)
        assert await read(60) == numbers(0, 60)
        assert await read(40) == numbers(60, 100)

    asyncio.run(main())


def test_brokers_that_are_too_old(server: Server, release: str) -> None:
    """What is missing is said at once: groups in 0.8.2, idempotence and transactions before 0.11."""

    async def transactional() -> None:
        async with kc.client.aio.Producer(server.server, transactional_id="t") as producer:
            await producer.init_transactions()

    async def idempotent() -> None:
        async with kc.client.aio.Producer(server.server, enable_idempotence=True) as producer:
            await (await producer.send("alone", b"v"))

    async def member() -> None:
        await fill(server.server, "alone", 1)
        async with kc.client.aio.Consumer("alone", bootstrap_servers=server.server, group_id="g") as consumer:
            await consumer.getmany(SOON)

    missing = {"0.8.2": [member, transactional, idempotent], "0.9.0": [transactional, idempotent]}
    missing["0.10.2"] = missing["0.9.0"]
    for work in missing.get(release, []):
        with pytest.raises(kc.errors.UnsupportedVersion, match=r"JoinGroup|0\.11"):
            asyncio.run(asyncio.wait_for(work(), LATE))


# Idempotence and transactions


def test_transactions(server: Server, release: str) -> None:
    """Committed, aborted, committed; offsets of a group go with them."""
    if release in BEFORE_TRANSACTIONS:
        return  # see test_brokers_that_are_too_old

    async def main() -> None:
        async with kc.client.aio.Producer(server.server, transactional_id="writer", batch_size=100) as producer:
            await producer.init_transactions()
            for first, fails in [(0, False), (10, True), (20, False)]:
                try:
                    async with producer.transaction():
                        for n in range(first, first + 10):
                            await producer.send("ledger", b"%d" % n, partition=0)
                        await producer.flush()  # an abort drops what was not sent yet
                        await producer.send_offsets_to_transaction({("ledger", 0): first + 10}, f"g{first}")
                        assert not fails, "on purpose"
                except AssertionError:
                    assert fails
                assert await committed(f"g{first}", aborted=fails) == (None if fails else first + 10)
        found = await everything(server.server, "ledger", 20, isolation_level="read_committed")
        assert found["value"].to_pylist() == numbers(0, 10) + numbers(20, 30)
        found = await everything(server.server, "ledger", 30)
        assert found["value"].to_pylist() == numbers(0, 30)

    async def committed(group: str, *, aborted: bool) -> int | None:
        async with kc.client.aio.Consumer(bootstrap_servers=server.server, group_id=group) as consumer:
            await consumer.assign([("ledger", 0)])
            for _ in range(1 if aborted else 600):  # a marker may not be written yet
                found = await consumer.committed("ledger", 0)
                if found is not None:
                    break
                await asyncio.sleep(0.05)
            return found

    asyncio.run(main())


def test_offsets_of_a_topic_that_does_not_exist(server: Server, release: str) -> None:
    """Brokers answer with an error that passes when the topic comes; the error names it when time is over."""
    if release in BEFORE_TRANSACTIONS:
        return

    async def main() -> None:
        async with kc.client.aio.Producer(server.server, transactional_id="first") as producer:
            await producer.init_transactions()  # the first one waits for the coordinator's topic
        async with kc.client.aio.Producer(server.server, transactional_id="lost", max_block_ms=2000) as producer:
            with pytest.raises(kc.errors.DeadlineExceeded, match="in a transaction: UNKNOWN_TOPIC_OR_PARTITION"):
                async with producer.transaction():
                    await producer.send_offsets_to_transaction({("nothing", 0): 1}, "group")

    asyncio.run(main())


def test_an_older_producer_of_the_same_id_is_fenced(server: Server, release: str) -> None:
    if release in BEFORE_TRANSACTIONS:
        return  # see test_brokers_that_are_too_old

    async def main() -> None:
        async with kc.client.aio.Producer(server.server, transactional_id="one") as old:
            await old.begin_transaction()
            await (await old.send("fenced", b"old", partition=0))
            async with kc.client.aio.Producer(server.server, transactional_id="one") as new:
                await new.init_transactions()
                with pytest.raises(FENCED):
                    await old.commit_transaction()
                async with new.transaction():
                    await new.send("fenced", b"new", partition=0)
        found = await everything(server.server, "fenced", 1, isolation_level="read_committed")
        assert found["value"].to_pylist() == [b"new"]

    asyncio.run(main())
