"""Consumers read from real brokers what other clients wrote, in the same way as other clients read it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any

import confluent_kafka
import pytest

import kafkacodec as kc
from kafkacodec import errors
from kafkacodec.client import Admin, Consumer, NewTopic, Producer
from kafkacodec.client.groups.offsets import CommittedOffset
from tests.integration.kafka_jvm import Broker
from tests.patience import LATE, SOON

pytestmark = [pytest.mark.java, pytest.mark.slow]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 3


@pytest.fixture(scope="module")
def broker(tmp_path_factory: Any) -> Iterator[Broker]:
    settings = {
        "log_cleaner_backoff_ms": "100",
        "group_consumer_heartbeat_interval_ms": "300",
        "group_consumer_min_heartbeat_interval_ms": "300",
    }
    made = Broker(tmp_path_factory.mktemp("broker"), "newest", **settings)
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.server) as made:
        yield made


def new_topic(admin: Admin, **configs: str) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    admin.create_topics(NewTopic(name, PARTITIONS, 1, configs=configs))
    places = [(name, number) for number in range(PARTITIONS)]
    eventually(lambda: len(admin.describe_topics([name])[name].partitions) == PARTITIONS)
    with Consumer(bootstrap_servers=admin._face._settings.bootstrap_servers) as consumer:
        assert set(consumer.end_offsets(places).values()) == {0}
        assert consumer.partitions_for(name) == list(range(PARTITIONS))
    return name


def eventually(holds: Callable[[], bool], seconds: float = LATE) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if holds():
                return
        except errors.KafkaCodecError:
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end, "that does not come about"
        time.sleep(0.05)


def write(server: str, topic: str, count: int, *, seed: int = 1, **options: Any) -> None:
    """Records with and without keys, values, headers, by librdkafka."""
    rnd = random.Random(seed)
    producer = confluent_kafka.Producer({"bootstrap.servers": server, "linger.ms": 20, **options})
    for number in range(count):
        producer.produce(
            topic,
            key=rnd.choice([None, b"k%d" % (number % 50)]),
            value=rnd.choice([None, b"", b"v%d" % number, rnd.randbytes(300)]),
            partition=number % PARTITIONS,
            timestamp=1_700_000_000_000 + number,
            headers=[("h", b"%d" % number), ("none", None)] if number % 7 == 0 else [],
        )
        producer.poll(0)
    assert producer.flush(30) == 0


def as_others_read(server: str, topic: str, **options: Any) -> dict[int, list[Any]]:
    """What librdkafka reads of each partition, to its end."""
    config = {"bootstrap.servers": server, "group.id": "other", "enable.partition.eof": True, "check.crcs": True}
    consumer = confluent_kafka.Consumer(config | {"auto.offset.reset": "earliest", **options})
    consumer.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
    found: dict[int, list[Any]] = {n: [] for n in range(PARTITIONS)}
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            ended.add(message.partition())
            continue
        found[message.partition()].append(
            (
                message.offset(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                tuple(message.headers() or ()),
            )
        )
    consumer.close()
    return found


def of_columns(server: str, topic: str, count: int, **options: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {n: [] for n in range(PARTITIONS)}
    with Consumer(topic, bootstrap_servers=server, auto_offset_reset="earliest", **options) as consumer:
        for table in consumer.columns(timeout=LATE if sum(map(len, found.values())) < count else 0.5):
            assert set(table["topic"].tolist()) == {topic}
            columns = (table[name].tolist() for name in ("partition", "offset", "key", "value", "headers"))
            times = table["timestamp"].astype("int64").tolist()
            for (number, offset, key, value, headers), at in zip(zip(*columns, strict=True), times, strict=True):
                found[number].append((offset, at, key, value, headers))
            if sum(map(len, found.values())) >= count:
                break
    return found


def of_records(server: str, topic: str, count: int, **options: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {n: [] for n in range(PARTITIONS)}
    with Consumer(topic, bootstrap_servers=server, auto_offset_reset="earliest", **options) as consumer:
        for record in consumer:
            assert record.topic == topic
            found[record.partition].append((record.offset, record.timestamp, record.key, record.value, record.headers))
            count -= 1
            if not count:
                return found
    raise AssertionError


def of_lists(server: str, topic: str, count: int, **options: Any) -> dict[int, list[Any]]:
    async def read() -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {n: [] for n in range(PARTITIONS)}
        aio = kc.client.aio.Consumer(topic, bootstrap_servers=server, auto_offset_reset="earliest", **options)
        async with aio as consumer:
            while sum(map(len, found.values())) < count:
                lists = await consumer.getmany(SOON, max_records=1000)
                assert lists
                for (_, number), records in lists.items():
                    found[number] += [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]
        return found

    return asyncio.run(read())


def of_aio_records(server: str, topic: str, count: int, **options: Any) -> dict[int, list[Any]]:
    async def read() -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {n: [] for n in range(PARTITIONS)}
        aio = kc.client.aio.Consumer(topic, bootstrap_servers=server, auto_offset_reset="earliest", **options)
        async with aio as consumer:
            left = count
            async for record in consumer:
                row = (record.offset, record.timestamp, record.key, record.value, record.headers)
                found[record.partition].append(row)
                left -= 1
                if not left:
                    return found
        raise AssertionError

    return asyncio.run(read())


WAYS = [of_columns, of_records, of_lists, of_aio_records]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec(broker: Broker, admin: Admin, codec: str) -> None:
    topic = new_topic(admin)
    write(broker.server, topic, 3000, **{"compression.type": codec})
    expected = as_others_read(broker.server, topic)
    assert sum(map(len, expected.values())) == 3000
    for way in WAYS:
        assert way(broker.server, topic, 3000) == expected
    small = {"max_partition_fetch_bytes": 500, "fetch_max_bytes": 2000, "prefetch_bytes": 10_000}
    assert of_columns(broker.server, topic, 3000, **small) == expected


def test_transactions(broker: Broker, admin: Admin) -> None:
    topic = new_topic(admin)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.server, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    for number in range(10):
        producer.begin_transaction()
        for n in range(30):
            producer.produce(topic, value=b"%d-%d" % (number, n), partition=n % PARTITIONS, timestamp=number + 1)
        if number % 3:
            producer.commit_transaction(30)
        else:
            assert producer.flush(30) == 0  # an abort throws away what has not been sent
            producer.abort_transaction(30)
    expected = as_others_read(broker.server, topic, **{"isolation.level": "read_committed"})
    assert sum(map(len, expected.values())) == 180
    for way in WAYS:
        assert way(broker.server, topic, 180, isolation_level="read_committed") == expected
    everything = as_others_read(broker.server, topic, **{"isolation.level": "read_uncommitted"})
    assert sum(map(len, everything.values())) == 300
    assert of_columns(broker.server, topic, 300) == everything
    with Consumer(
        topic, bootstrap_servers=broker.server, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        rows = 0
        for table in consumer.columns(timeout=LATE):
            rows += len(table)
            if rows >= 180:
                break
        ends = consumer.end_offsets(consumer.assignment())
        places = consumer.assignment()
        eventually(  # after the last markers
            lambda: consumer.getmany(0.1) == {} and {key: consumer.position(*key) for key in places} == ends
        )
        assert rows == 180


def test_a_compacted_topic(broker: Broker, admin: Admin) -> None:
    configs = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    topic = new_topic(admin, **configs, **{"max.compaction.lag.ms": "1000", "segment.ms": "1000"})
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.server})
    for number in range(600):
        producer.produce(topic, key=b"%d" % (number % 9), value=b"v%d" % number, partition=number % PARTITIONS)
    producer.flush(30)
    time.sleep(1.2)
    for number in range(PARTITIONS):  # starts another segment, so that the first one may be cleaned
        producer.produce(topic, key=b"last", value=b"x", partition=number)
    producer.flush(30)
    eventually(lambda: sum(map(len, as_others_read(broker.server, topic).values())) < 100)
    expected = as_others_read(broker.server, topic)
    total = sum(map(len, expected.values()))
    assert total < 100
    for way in WAYS:
        assert way(broker.server, topic, total) == expected


def test_positions_and_offsets(broker: Broker, admin: Admin) -> None:
    topic = new_topic(admin)
    write(broker.server, topic, 300)
    first = (topic, 0)
    with Consumer(bootstrap_servers=broker.server, auto_offset_reset="earliest") as consumer:
        with pytest.raises(errors.LocalProtocolError, match=r"subscribe\(\) or assign\(\) first"):
            consumer.getmany()
        consumer.assign([first])
        with pytest.raises(errors.LocalProtocolError, match="is not assigned"):
            consumer.seek(topic, 1, 5)
        assert consumer.beginning_offsets([first]) == {first: 0}
        assert consumer.end_offsets([first, (topic, 1)]) == {first: 100, (topic, 1): 100}
        at = 1_700_000_000_000 + 3 * 40
        assert consumer.offsets_for_times({first: at, (topic, 2): at + 10**6})[first][:2] == (40, at)
        consumer.seek(topic, 0, 90)
        assert [r.offset for r in consumer.getmany(SOON)[first]] == list(range(90, 100))
        assert consumer.lag() == {first: 0}
        consumer.seek_to_timestamp(at)
        assert consumer.position(topic, 0) == 40
        assert next(iter(consumer)).offset == 40
        assert consumer.position(topic, 0) == 41
        consumer.seek_to_end(first)
        assert consumer.position(topic, 0) == 100
        assert consumer.getmany(0.6) == {}
        consumer.seek_to_beginning()
        consumer.pause(first)
        assert consumer.paused() == [first]
        assert consumer.getmany(0.6) == {}
        consumer.resume(first)
        assert len(consumer.getmany(SOON, max_records=30)[first]) == 30
        admin.delete_records({first: 60})
        consumer.seek(topic, 0, 10)
        assert consumer.getmany(SOON)[first][0].offset == 60
    with Consumer(bootstrap_servers=broker.server, auto_offset_reset="none") as consumer:
        consumer.assign([first])
        with pytest.raises(errors.NoOffset, match=f"{topic}-0"):
            consumer.getmany(SOON)
        consumer.seek(topic, 0, 10)
        with pytest.raises(errors.BrokerError, match="does not have offset 10") as caught:
            consumer.getmany(SOON)
        assert caught.value.name == "OFFSET_OUT_OF_RANGE"
        consumer.seek(topic, 0, 70)
        assert consumer.getmany(SOON)[first][0].offset == 70


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_members_of_a_group(broker: Broker, admin: Admin, protocol: str) -> None:
    """Records are shared; when a member leaves, the other one goes on where it stopped."""
    topic, group = new_topic(admin), f"g-{uuid.uuid4().hex[:8]}"
    options: dict[str, Any] = {
        "bootstrap_servers": broker.server,
        "group_id": group,
        "group_protocol": protocol,
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 100,
    }
    seen: list[tuple[int, int, str]] = []
    stop = threading.Event()
    calls: list[tuple[str, list[Any]]] = []

    def other() -> None:
        with Consumer(topic, **options) as consumer:
            while not stop.is_set():
                for records in consumer.getmany(0.2, max_records=10).values():
                    seen.extend((r.partition, r.offset, "other") for r in records)

    def note(records: dict[Any, list[Any]]) -> None:
        seen.extend((r.partition, r.offset, "first") for part in records.values() for r in part)

    with Consumer(**options) as consumer:
        consumer.subscribe(
            [topic],
            on_assigned=lambda partitions: calls.append(("assigned", partitions)),
            on_revoked=lambda partitions: calls.append(("revoked", partitions)),
        )
        write(broker.server, topic, 90)
        eventually(lambda: note(consumer.getmany(0.2, max_records=7)) or len(seen) == 90)
        assert sorted(consumer.assignment()) == [(topic, n) for n in range(PARTITIONS)]
        thread = threading.Thread(target=other)
        thread.start()
        eventually(lambda: note(consumer.getmany(0.1)) or 0 < len(consumer.assignment()) < PARTITIONS)
        write(broker.server, topic, 90)
        eventually(lambda: note(consumer.getmany(0.1)) or len(seen) == 180)
        assert {who for _, _, who in seen[90:]} == {"first", "other"}
        stop.set()
        thread.join()
        eventually(lambda: note(consumer.getmany(0.1)) or len(consumer.assignment()) == PARTITIONS)
        write(broker.server, topic, 90)
        eventually(lambda: note(consumer.getmany(0.1)) or len(seen) == 270)
        note(consumer.getmany(0.3))
    assert sorted((p, o) for p, o, _ in seen) == [(p, o) for p in range(PARTITIONS) for o in range(90)]
    assert calls[0] == ("assigned", [(topic, n) for n in range(PARTITIONS)])
    assert any(kind == "revoked" and partitions for kind, partitions in calls)
    with Consumer(**options) as consumer:
        assert [consumer.committed(topic, n) for n in range(PARTITIONS)] == [90] * PARTITIONS


def test_a_group_with_librdkafka(broker: Broker, admin: Admin) -> None:
    topic, group = new_topic(admin), f"g-{uuid.uuid4().hex[:8]}"
    write(broker.server, topic, 60)
    config = {"bootstrap.servers": broker.server, "group.id": group, "auto.offset.reset": "earliest"}
    other = confluent_kafka.Consumer({**config, "partition.assignment.strategy": "range"})
    seen: list[tuple[int, int]] = []

    def poll_both() -> bool:
        for message in other.consume(100, 0.05):
            assert not message.error()
            seen.append((message.partition(), message.offset()))
        for records in consumer.getmany(0.05).values():
            seen.extend((r.partition, r.offset) for r in records)
        return bool(other.assignment()) and len(consumer.assignment()) > 0

    settings = {"partition_assignment_strategy": "range", "auto_offset_reset": "earliest"}
    with Consumer(topic, bootstrap_servers=broker.server, group_id=group, **settings) as consumer:
        eventually(lambda: not poll_both() and len(consumer.assignment()) == PARTITIONS)
        eventually(lambda: not poll_both() and len(seen) == 60)
        consumer.commit()
        other.subscribe([topic])
        eventually(poll_both)
        write(broker.server, topic, 60)
        eventually(lambda: poll_both() and len(seen) == 120)
        other.close()
    assert sorted(seen) == [(p, o) for p in range(PARTITIONS) for o in range(40)]


@pytest.mark.parametrize("gap", [0, 0.5], ids=["at_once", "later"])
@pytest.mark.parametrize("protocol", ["classic", "consumer", None])
def test_a_topic_that_is_created_again(broker: Broker, admin: Admin, protocol: str | None, gap: float) -> None:
    """All records of the new topic are read, though the old one's position exists in it."""
    topic = new_topic(admin)
    options: dict[str, Any] = {"auto_offset_reset": "earliest", "allow_auto_create_topics": False}
    if protocol is not None:
        options |= {"group_id": f"of-{topic}", "group_protocol": protocol, "auto_commit_interval_ms": 100}

    def produce(*values: bytes) -> None:
        with kc.client.Producer(broker.server) as producer:
            for value in values:
                producer.send(topic, value, partition=0)

    def read(consumer: Consumer, count: int, seconds: float = 20) -> list[bytes]:
        found: list[bytes] = []
        end = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < end:
            try:
                found += [record.value for records in consumer.getmany(0.1).values() for record in records]
            except errors.UnknownTopicOrPartitionError:  # between the two
                time.sleep(0.05)
        return found

    produce(b"old")
    with Consumer(topic, bootstrap_servers=broker.server, **options) as consumer:
        assert read(consumer, 1) == [b"old"]
        admin.delete_topics(topic)
        eventually(lambda: topic not in admin.list_topics())
        assert read(consumer, 1, gap) == []
        admin.create_topics(NewTopic(topic, PARTITIONS, 1))
        eventually(lambda: topic in admin.list_topics())
        new = [b"new-0", b"new-1", b"new-2"]
        produce(*new)
        assert read(consumer, 3) == new


def test_commits(broker: Broker, admin: Admin) -> None:
    topic, group = new_topic(admin), f"g-{uuid.uuid4().hex[:8]}"
    write(broker.server, topic, 30)
    options: dict[str, Any] = {"bootstrap_servers": broker.server, "group_id": group, "enable_auto_commit": False}
    with Consumer(**options, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        assert consumer.committed(topic, 0) is None
        records = iter(consumer)
        assert [next(records).offset for _ in range(4)] == [0, 1, 2, 3]
        consumer.commit()
        assert consumer.committed(topic, 0) == 4
        consumer.commit({(topic, 1): 7, (topic, 2): (8, "note")})
        found = consumer.committed_offsets([(topic, n) for n in range(PARTITIONS)])
        assert [found[topic, n].offset for n in range(PARTITIONS)] == [4, 7, 8]
        assert found[topic, 2].metadata == "note"
        with pytest.raises(errors.BrokerError):
            consumer.commit({("no-such-topic", 0): 1})
    with Consumer(**options) as consumer:
        consumer.assign([(topic, n) for n in range(PARTITIONS)])
        assert [consumer.position(topic, n) for n in range(PARTITIONS)] == [4, 7, 8]


def test_a_member_that_does_not_read_leaves_in_time(broker: Broker, admin: Admin) -> None:
    """After ``max_poll_interval_ms`` from its last read, even if that brought nothing; and comes back when it reads."""

    async def run() -> None:
        topic, lost = new_topic(admin), asyncio.Event()
        options: dict[str, Any] = {"group_id": f"of-{topic}", "max_poll_interval_ms": 3000}
        async with kc.client.aio.Consumer(bootstrap_servers=broker.server, **options) as consumer:
            await consumer.subscribe([topic], on_lost=lambda partitions: lost.set())
            while not consumer.assignment():
                await consumer.getmany(0.05)
            for _ in range(2):
                read_at = time.monotonic()
                await consumer.getmany(0.05)
                await asyncio.sleep(2)
                assert not lost.is_set() or time.monotonic() - read_at > 3  # the machine was so busy
                lost.clear()
            while not consumer.assignment():
                await consumer.getmany(0.05)
            await consumer.getmany(0.05)
            read_at = time.monotonic()
            await asyncio.wait_for(lost.wait(), LATE)
            assert 2.9 < time.monotonic() - read_at < LATE
            while not consumer.assignment():
                await consumer.getmany(0.05)

    asyncio.run(run())


def test_what_was_not_processed_is_not_committed(broker: Broker, admin: Admin) -> None:
    """Neither in time, nor at the end: a with block that ends by an exception leaves the record to the next member."""
    topic, group = new_topic(admin), f"g-{uuid.uuid4().hex[:8]}"
    write(broker.server, topic, 30)
    options: dict[str, Any] = {
        "bootstrap_servers": broker.server,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 50,
    }

    def fail_at(count: int) -> None:
        with Consumer(**options) as consumer:
            consumer.assign([(topic, 0)])
            for record in consumer:
                if record.offset == count:
                    time.sleep(0.3)
                    assert consumer.committed(topic, 0) == count
                    raise KeyError

    for count in (0, 4):
        with pytest.raises(KeyError):
            fail_at(count)
    with Consumer(**options) as consumer:
        consumer.assign([(topic, 0)])
        assert consumer.position(topic, 0) == 4
        assert len(consumer.getmany(SOON, max_records=3)[topic, 0]) == 3
        consumer.commit({(topic, 1): 5}, wait=False)
    with Consumer(**options) as consumer:
        assert [consumer.committed(topic, n) for n in range(PARTITIONS)] == [7, 5, None]


def test_callbacks_use_the_consumer(broker: Broker, admin: Admin) -> None:
    topic, group = new_topic(admin), f"g-{uuid.uuid4().hex[:8]}"
    write(broker.server, topic, 30)

    def rewind(partitions: list[tuple[str, int]]) -> None:
        for place in partitions:
            consumer.seek(*place, 8)

    def commit(partitions: list[tuple[str, int]]) -> None:
        consumer.commit(dict.fromkeys(partitions, 5))

    with Consumer(bootstrap_servers=broker.server, group_id=group, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], on_assigned=rewind, on_revoked=commit)
        seen: list[int] = []
        eventually(lambda: seen.extend(r.offset for v in consumer.getmany(0.2).values() for r in v) or len(seen) == 6)
        assert sorted(seen) == [8, 8, 8, 9, 9, 9]

    def fails(partitions: list[tuple[str, int]]) -> None:
        raise KeyError("listener")

    with Consumer(bootstrap_servers=broker.server, group_id=group) as consumer:
        assert [consumer.committed(topic, n) for n in range(PARTITIONS)] == [5] * PARTITIONS
        consumer.subscribe([topic], on_assigned=fails)
        with pytest.raises(KeyError, match="listener"):
            consumer.getmany(SOON)


def test_callbacks_of_asyncio(broker: Broker, admin: Admin) -> None:
    topic, group = new_topic(admin), f"g-{uuid.uuid4().hex[:8]}"
    write(broker.server, topic, 30)
    calls: list[Any] = []

    async def assigned(partitions: list[tuple[str, int]]) -> None:
        await consumer.seek(topic, 0, 9)
        calls.append(("assigned", partitions))

    async def revoked(partitions: list[tuple[str, int]]) -> None:
        await consumer.commit()
        calls.append(("revoked", partitions))

    async def read() -> list[tuple[int, int]]:
        await consumer.subscribe([topic], on_assigned=assigned, on_revoked=revoked)
        found: list[tuple[int, int]] = []
        async for record in consumer:
            found.append((record.partition, record.offset))
            if len(found) == 21:
                break
        await consumer.close()
        return sorted(found)

    consumer = kc.client.aio.Consumer(bootstrap_servers=broker.server, group_id=group, auto_offset_reset="earliest")
    assert asyncio.run(read()) == [(0, 9), *((p, o) for p in (1, 2) for o in range(10))]
    assert [kind for kind, _ in calls] == ["assigned", "revoked"]


def test_ranges_of_offsets(broker: Broker, admin: Admin) -> None:
    topic = new_topic(admin)
    write(broker.server, topic, 300)
    ranges = {(topic, 0): (10, 60), (topic, 1): (0, 5), (topic, 2): (100, 100)}
    wanted = [(number, offset) for (_, number), (start, end) in ranges.items() for offset in range(start, end)]
    with Consumer(bootstrap_servers=broker.server) as consumer:
        consumer.assign_ranges(ranges)
        tables = list(consumer.columns(columns=["value", "partition"], max_rows=7))
        assert {tuple(table.column_names) for table in tables} == {("partition", "offset", "value")}
        found = [pair for t in tables for pair in zip(t["partition"].tolist(), t["offset"].tolist(), strict=True)]
        assert sorted(found) == wanted
        assert [consumer.position(*key) for key in ranges] == [60, 5, 100]
        consumer.assign_ranges(ranges)
        assert sorted((r.partition, r.offset) for r in consumer) == wanted
        assert consumer.getmany(None) == {}
        consumer.assign([(topic, 0)])  # has no end any more
        assert [r.offset for r in consumer.getmany(SOON)[topic, 0]] == list(range(60, 100))
        with pytest.raises(ValueError, match="unknown column 'values'"):
            consumer.columns(columns=["values"])

    async def asynchronously() -> list[tuple[int, int]]:
        async with kc.client.aio.Consumer(bootstrap_servers=broker.server) as consumer:
            await consumer.assign_ranges(ranges)
            return [(record.partition, record.offset) async for record in consumer]

    assert sorted(asyncio.run(asynchronously())) == wanted


def test_topics_by_pattern_and_later(broker: Broker, admin: Admin) -> None:
    prefix = f"p{uuid.uuid4().hex[:6]}"
    options = {"bootstrap_servers": broker.server, "auto_offset_reset": "earliest", "metadata_max_age_ms": 300}
    with Consumer(**options) as consumer:
        consumer.subscribe(pattern=f"{prefix}-.*")
        assert consumer.getmany(0.3) == {}
        for name in (f"{prefix}-a", f"x-{prefix}"):
            admin.create_topics(NewTopic(name, PARTITIONS, 1))
            eventually(lambda name=name: name in admin.list_topics())
            write(broker.server, name, 9)
        found: list[Any] = []
        eventually(lambda: found.extend(consumer.getmany(0.2)) or len(found) == PARTITIONS)
        assert {topic for topic, _ in found} == {f"{prefix}-a"}
        consumer.unsubscribe()
        assert consumer.assignment() == []


def test_topics_and_partitions_that_do_not_exist(broker: Broker, admin: Admin, caplog: Any) -> None:
    topic = new_topic(admin)
    with Consumer(bootstrap_servers=broker.server, allow_auto_create_topics=False) as consumer:
        consumer.assign([(topic, 0), (topic, PARTITIONS)])
        with pytest.raises(errors.UnknownTopicOrPartitionError, match=f"no partition {PARTITIONS}: its highest is"):
            consumer.getmany(5)  # raises at its end
        consumer.assign([(topic, 0)])
        assert consumer.getmany(0.5) == {}
        consumer.assign([("absent", 0)])
        with pytest.raises(errors.UnknownTopicOrPartitionError, match="topic 'absent'"):
            consumer.getmany(5)  # raises at its end
    with Consumer("absent", bootstrap_servers=broker.server, allow_auto_create_topics=False) as consumer:
        for _ in range(2):
            assert list(consumer.columns(timeout=2)) == []
    missing = {text for text in caplog.messages if "absent" in text}
    assert missing == {"topic 'absent' does not exist, and is waited for"}


def test_a_closed_consumer_leaves_no_thread(broker: Broker, admin: Admin) -> None:
    topic = new_topic(admin)
    before = threading.active_count()
    consumer = Consumer(topic, bootstrap_servers=broker.server)
    assert consumer.getmany(0.5) == {}
    consumer.close()
    consumer.close()
    assert threading.active_count() == before
    with pytest.raises(errors.ClientClosed):
        consumer.getmany()
    with pytest.raises(errors.ClientClosed):
        consumer.assign([(topic, 0)])


def test_a_broker_before_kafka_4(tmp_path: Path) -> None:
    """Its group protocol of KIP-848 is a preview, which is off."""
    broker = Broker(tmp_path, "jars")
    broker.start()
    try:
        options: dict[str, Any] = {"bootstrap_servers": broker.server, "group_id": "g"}
        with Consumer("t", **options, group_protocol="consumer") as refused:
            for _ in range(2):
                with pytest.raises(errors.UnsupportedVersion, match='does not offer group_protocol="consumer"'):
                    refused.getmany(SOON)
        with Admin(broker.server) as admin:
            topic = new_topic(admin)
        write(broker.server, topic, 300, **{"compression.type": "zstd"})
        expected = as_others_read(broker.server, topic)
        for way in WAYS:
            assert way(broker.server, topic, 300) == expected
        with Consumer(topic, **options, auto_offset_reset="earliest") as consumer:
            assert sum(map(len, consumer.getmany(SOON, max_records=300).values())) > 0
        with Consumer(**options) as consumer:
            assert any(consumer.committed(topic, n) for n in range(PARTITIONS))
    finally:
        broker.kill()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_commit_of_positions_that_were_lost_is_no_success(broker: Broker, admin: Admin, protocol: Any) -> None:
    topic = new_topic(admin)
    with Producer(broker.server) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0)
    options = {"max_poll_interval_ms": 500, "enable_auto_commit": False}
    if protocol == "classic":
        options["heartbeat_interval_ms"] = 100
    group = f"late-{topic}"
    with Consumer(
        topic, bootstrap_servers=broker.server, group_id=group, auto_offset_reset="earliest",
        group_protocol=protocol, **options,
    ) as consumer:  # fmt: skip
        assert consumer.getmany(SOON, max_records=5)
        eventually(lambda: not consumer.assignment())  # too long without another call
        with pytest.raises(errors.UnknownMemberIdError, match=f"{topic}-0.* were not committed before group '{group}'"):
            consumer.commit()
        consumer.commit()  # said once
        records = consumer.getmany(SOON, max_records=5)[topic, 0]
        assert [record.offset for record in records] == [0, 1, 2, 3, 4]
        for place in consumer.assignment():
            consumer.position(*place)
        consumer.commit()
        assert consumer.committed(topic, 0) == 5
        eventually(lambda: not consumer.assignment())
        consumer.commit()  # all was committed


def test_a_group_without_a_common_assignor_says_so(broker: Broker, admin: Admin) -> None:
    topic = new_topic(admin)
    options: Any = {"bootstrap_servers": broker.server, "group_id": f"mixed-{topic}"}
    with Consumer(topic, partition_assignment_strategy="roundrobin", **options) as first:
        first.getmany(0)
        eventually(lambda: bool(first.assignment()))
        with (
            Consumer(topic, **options) as second,
            pytest.raises(errors.InconsistentGroupProtocolError, match="lack the assignors"),
        ):
            second.getmany(SOON)


@pytest.mark.parametrize("left", ["unread", "read", "awaited"])
def test_seeks_wait_for_no_fetch(broker: Broker, admin: Admin, left: str) -> None:
    topic = new_topic(admin)
    write(broker.server, topic, 300)
    with Consumer(bootstrap_servers=broker.server, fetch_max_wait_ms=60_000) as consumer:
        consumer.assign([(topic, number) for number in range(PARTITIONS)])
        begin = time.monotonic()
        for number in range(30):
            partition, offset = number % PARTITIONS, 60 + number % 40
            if number % 7 == 6:
                consumer.seek_to_beginning((topic, partition))
                offset = 0
            else:
                consumer.seek(topic, partition, offset)
            while (topic, partition) not in (records := consumer.getmany(timeout=50, max_records=1)):
                pass
            assert records[topic, partition][0].offset == offset
            while left != "unread" and consumer.getmany(timeout=0.01 if left == "awaited" else 0):
                pass
        assert time.monotonic() - begin < 60, "one of them waited for a fetch"


def test_offsets_that_were_committed_for_another_log(broker: Broker, admin: Admin, caplog: Any) -> None:
    topic, group = new_topic(admin), f"g-{uuid.uuid4().hex[:8]}"
    write(broker.server, topic, 300)
    options: Any = {"bootstrap_servers": broker.server, "group_id": group, "auto_offset_reset": "earliest"}
    options["enable_auto_commit"] = False
    with Consumer(**options) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        consumer.commit({(topic, 0): CommittedOffset(95, 20), (topic, 1): CommittedOffset(1000, 20)})
    with Consumer(**options) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        found: dict[int, list[int]] = {0: [], 1: []}
        while sum(map(len, found.values())) < 105:
            for (_, number), records in consumer.getmany(timeout=SOON).items():
                found[number] += [record.offset for record in records]
        assert found == {0: list(range(95, 100)), 1: list(range(100))}
    assert sum("never had leader epoch 20" in text for text in caplog.messages) == 2


def test_a_broker_that_hangs_after_it_was_reached(broker: Broker, admin: Admin, caplog: Any) -> None:
    topic = new_topic(admin)
    write(broker.server, topic, 30)
    limits: Any = {"request_timeout_ms": 1000, "socket_connection_setup_timeout_ms": 1000, "fetch_max_wait_ms": 100}
    options: Any = {"bootstrap_servers": broker.server, "default_api_timeout_ms": 2000, "auto_offset_reset": "earliest"}
    with Consumer(topic, **options, **limits) as consumer:
        while not consumer.getmany(timeout=10):
            pass
        broker.signal(SIGSTOP)
        try:
            with pytest.raises(errors.DeadlineExceeded, match=f"no broker answers: .*{broker.server}"):
                list(iter(lambda: consumer.getmany(timeout=0.2), None))
        finally:
            broker.signal(SIGCONT)
        assert any(broker.server in text and "did not answer in time" in text for text in caplog.messages)
        write(broker.server, topic, 30)
        found = 0
        while found < 30:  # it goes on when the broker does
            with contextlib.suppress(errors.DeadlineExceeded):
                found += sum(map(len, consumer.getmany(timeout=1).values()))


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_the_lag_of_paused_partitions(broker: Broker, admin: Admin, isolation_level: Any) -> None:
    topic = new_topic(admin)
    keys = [(topic, number) for number in range(PARTITIONS)]
    options: Any = {"auto_offset_reset": "earliest", "isolation_level": isolation_level}
    with Consumer(bootstrap_servers=broker.server, **options) as consumer:
        consumer.assign(keys)
        consumer.pause(*keys[:2])
        write(broker.server, topic, 30)
        while not consumer.getmany(timeout=1):
            pass
        eventually(lambda: consumer.lag() == {keys[0]: 10, keys[1]: 10, keys[2]: 0})
        write(broker.server, topic, 30)
        eventually(lambda: consumer.lag() == {keys[0]: 20, keys[1]: 20, keys[2]: 10})
        assert consumer.metrics()["consumer.lag"] == 50
