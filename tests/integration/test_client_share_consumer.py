"""Share consumers with a real broker: records go to one member each, and come again until they are acknowledged."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import uuid
from typing import Any

import pytest

import kafkacodec as kc
from tests.integration.kafka_jvm import Broker
from tests.patience import LATE, SOON, until

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS = {
    "group_share_heartbeat_interval_ms": "300",
    "group_share_min_heartbeat_interval_ms": "300",
    "group_share_record_lock_duration_ms": "15000",
    "group_share_min_record_lock_duration_ms": "1000",
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Broker(tmp_path_factory.mktemp("broker"), "newest", **SETTINGS)
    made.start()
    yield made.server
    made.kill()


@pytest.fixture
def topic(server):
    """A topic of two partitions with ten records, whose name is also that of a group that reads it from the start."""
    name = f"jobs-{uuid.uuid4().hex}"
    with kc.client.Admin(server) as admin:
        admin.create_topics([kc.client.NewTopic(name, 2)])
        admin.incremental_alter_configs(
            {kc.client.ConfigResource("group", name): {"share.auto.offset.reset": "earliest"}}
        )
    with kc.client.Producer(server) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number, partition=number % 2)
    return name


def read(consumer, count):
    found = []
    while len(found) < count:
        records = consumer.getmany(SOON)
        assert records, f"{len(found)} of {count} came"
        found += records
    return found


def test_what_is_released_comes_again_and_what_is_rejected_does_not(server, topic):
    options = {"bootstrap_servers": server, "group_id": topic, "share_acknowledgement_mode": "explicit"}
    with kc.client.ShareConsumer(topic, **options) as consumer:
        found = read_all = {record.value: record for record in acknowledged(consumer, 10)}
        assert sorted(read_all) == [b"%d" % n for n in range(10)]
        assert {record.delivery_count for record in found.values()} == {1}
        (again,) = consumer.getmany(SOON)
        assert (again.value, again.delivery_count) == (b"7", 2)
        with pytest.raises(kc.LocalProtocolError, match="1 records are not acknowledged"):
            consumer.getmany(0)
        consumer.acknowledge(again)
        with pytest.raises(kc.LocalProtocolError, match="does not wait"):
            consumer.acknowledge(again)
        assert consumer.commit() == {(topic, 1): None}
        assert consumer.getmany(1) == []


def acknowledged(consumer, count):
    """Read records: accept them, but release 7 and reject 4."""
    found = []
    while len(found) < count:
        for record in consumer.getmany(SOON):
            consumer.acknowledge(record, {b"7": "release", b"4": "reject"}.get(record.value, "accept"))
            found.append(record)
    consumer.commit()
    return found


def test_a_record_is_kept_longer(server, topic):
    """Renewed before its time is over, a record is not delivered again; one that is not renewed is."""
    with kc.client.Admin(server) as admin:
        group = kc.client.ConfigResource("group", topic)
        admin.incremental_alter_configs({group: {"share.record.lock.duration.ms": "6000"}})
    options = {"bootstrap_servers": server, "group_id": topic, "share_acknowledgement_mode": "explicit"}
    with kc.client.ShareConsumer(topic, **options) as consumer:
        kept, late, *others = consumer.getmany(SOON)
        for record in others:
            consumer.acknowledge(record)
        for _ in range(4):
            consumer.acknowledge(kept, "renew")
            assert set(consumer.commit().values()) == {None}
            time.sleep(1.7)  # together longer than the lock, each far shorter
        with pytest.raises(kc.LocalProtocolError, match="records are not acknowledged"):
            consumer.getmany(0)
        consumer.acknowledge(kept, "renew")
        consumer.acknowledge(kept)
        assert consumer.commit() == {(topic, kept.partition): None}
        consumer.acknowledge(late)
        assert isinstance(consumer.commit()[topic, late.partition], kc.errors.error(121))
        again = [record for record in consumer.getmany(SOON) if record.delivery_count == 2]
        assert [record.value for record in again] == [late.value]
    with (
        kc.client.ShareConsumer(topic, bootstrap_servers=server, group_id=topic) as consumer,
        pytest.raises(kc.LocalProtocolError, match="explicit"),
    ):
        consumer.acknowledge(kept, "renew")


def test_commit_reports_what_an_earlier_fetch_sent(server, topic):
    with kc.client.Admin(server) as admin:
        group = kc.client.ConfigResource("group", topic)
        admin.incremental_alter_configs({group: {"share.record.lock.duration.ms": "1000"}})
    options = {"bootstrap_servers": server, "group_id": topic, "share_acknowledgement_mode": "explicit"}
    with kc.client.ShareConsumer(topic, **options) as consumer:
        late = consumer.getmany(SOON)
        time.sleep(2)
        for record in late:
            consumer.acknowledge(record)
        for record in consumer.getmany(SOON):
            consumer.acknowledge(record)
        found = consumer.commit()
        for record in late:
            assert isinstance(found[record.topic, record.partition], kc.errors.error(121))
        assert consumer.commit() == {}


def test_a_close_that_is_cancelled_ends_the_connections(server, topic):
    def sockets() -> set[str]:
        targets = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd")]
        return {target for target in targets if target.startswith("socket:")}

    async def cancelled() -> None:
        before = sockets()
        consumer = kc.client.aio.ShareConsumer(topic, bootstrap_servers=server, group_id=topic)
        await consumer.getmany(SOON)
        assert sockets() > before
        closing = asyncio.create_task(consumer.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await until(lambda: sockets() == before)  # the loop closes them

    asyncio.run(cancelled())


def test_asking_for_more_accepts_and_closing_releases(server, topic):
    options = {"bootstrap_servers": server, "group_id": topic, "max_poll_records": 1}
    with kc.client.ShareConsumer(topic, **options) as consumer:
        records = iter(consumer)
        accepted = [next(records).value for _ in range(3)]
        unfinished = next(records).value
    with kc.client.ShareConsumer(topic, **options) as consumer:
        found = read(consumer, 7)
    assert sorted(accepted + [record.value for record in found]) == [b"%d" % n for n in range(10)]
    assert {record.value: record.delivery_count for record in found}[unfinished] == 2


def test_members_share_the_records(server, topic):
    async def member(found):
        async with kc.client.aio.ShareConsumer(
            topic, bootstrap_servers=server, group_id=topic, max_poll_records=1
        ) as consumer:
            while len(found) < 10:
                for record in await consumer.getmany(0.5, 1):
                    found.append(record.value)
                    await asyncio.sleep(0.05)
                await consumer.commit()

    async def run():
        found = []
        await asyncio.wait_for(asyncio.gather(member(found), member(found)), 2 * LATE)
        return found

    assert sorted(asyncio.run(run())) == [b"%d" % n for n in range(10)]


def test_records_that_cannot_be_deserialized_are_released(server, topic):
    def number(data):
        if data == b"3":
            raise ValueError("not this one")
        return int(data)

    options = {"bootstrap_servers": server, "group_id": topic}
    found, faults = [], []
    with kc.client.ShareConsumer(topic, value_deserializer=number, **options) as consumer:
        while len(found) < 9 or not faults:
            try:
                found += [record.value for record in consumer.getmany(SOON)]
            except ValueError as error:
                faults += error.__notes__
    assert sorted(found) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert set(faults) == {f"{topic}-1: the record at offset 1 was released"}
    with kc.client.ShareConsumer(topic, **options) as consumer:
        assert b"3" in [record.value for record in consumer.getmany(SOON)]


def test_misuse(server):
    wrong: dict[str, Any] = {"acknowledgement_mode": "implicit"}
    with pytest.raises(TypeError, match="did you mean 'share_acknowledgement_mode'"):
        kc.client.ShareConsumer("t", bootstrap_servers=server, group_id="g", **wrong)
    with pytest.raises(ValueError, match="group_id"):
        kc.client.ShareConsumer("t", bootstrap_servers=server, group_id="")
    before = threading.active_count()
    consumer = kc.client.ShareConsumer(bootstrap_servers=server, group_id="g")
    with pytest.raises(kc.LocalProtocolError, match="reads nothing"):
        consumer.getmany()
    consumer.close()
    consumer.close()
    assert threading.active_count() == before
    with pytest.raises(kc.ClientClosed):
        consumer.getmany()
