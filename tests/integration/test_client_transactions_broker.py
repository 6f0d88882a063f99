"""Transactions of producers with real brokers, with version 1 and 2 of them: others read exactly what was committed."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.errors import LocalProtocolError
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
    create_topic(client, name, partitions=3, configs={"max.message.bytes": "100000"})
    client.socket.close()
    return name


def committed(server: str, topic: str, group: str | None = None) -> tuple[list[bytes], dict[int, Any]]:
    """What aiokafka reads with read_committed, and the group's offsets."""
    from aiokafka import AIOKafkaConsumer, TopicPartition

    places = [TopicPartition(topic, n) for n in range(3)]

    async def everything() -> tuple[list[bytes], dict[int, Any]]:
        options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed", "enable_auto_commit": False}
        consumer = AIOKafkaConsumer(bootstrap_servers=server, group_id=group, **options)
        await consumer.start()
        try:
            consumer.assign(places)
            offsets = {p.partition: await consumer.committed(p) for p in places} if group else {}
            await consumer.seek_to_end()
            ends = {p: await consumer.position(p) for p in places}
            await consumer.seek_to_beginning()
            values = []
            while any([await consumer.position(p) < ends[p] for p in places]):
                for messages in (await consumer.getmany(timeout_ms=200)).values():
                    values += [message.value for message in messages]
            return sorted(values), offsets
        finally:
            await consumer.stop()

    return asyncio.run(everything())


def aborted(producer: Any, topic: str, number: int) -> list[Any]:
    """The deliveries of a transaction that an exception ends."""
    sent = []
    try:
        with producer.transaction():
            sent.append(producer.send(topic, b"dropped", partition=number % 3))
            if number % 2:
                producer.flush()
            sent.append(producer.send(topic, b"dropped too", partition=number % 3))
            raise ZeroDivisionError
    except ZeroDivisionError:
        return sent
    raise AssertionError("the exception has to leave the block")


def test_committed_and_aborted(broker: Broker, topic: str) -> None:
    with kc.client.Producer(broker.server, transactional_id=topic) as producer:
        with pytest.raises(LocalProtocolError, match="not initialized"):
            producer.send(topic, b"v")
        for n in range(6):
            with producer.transaction():
                for partition in range(3):
                    producer.send(topic, b"kept %d" % n, partition=partition)
            written, unsent = aborted(producer, topic, n)
            assert written.error is None or not n % 2
            assert unsent.done()
        with producer.transaction():
            pass
    assert committed(broker.server, topic)[0] == sorted(b"kept %d" % n for n in range(6) for _ in range(3))


def test_offsets_of_a_group_are_committed_with_the_records(broker: Broker, topic: str) -> None:
    group = f"group-{topic}"
    with kc.client.Producer(broker.server, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"a")
            producer.send_offsets_to_transaction({(topic, 0): 5, (topic, 2): 7}, group)
        producer.begin_transaction()
        producer.send_offsets_to_transaction({(topic, 0): 6}, group)
        producer.abort_transaction()
        with pytest.raises(LocalProtocolError, match="between transactions"):
            producer.send_offsets_to_transaction({(topic, 0): 6}, group)
    assert committed(broker.server, topic, group) == ([b"a"], {0: 5, 1: None, 2: 7})


def prepared(broker: Broker, topic: str, name: str, **options: Any) -> kc.client.PreparedTransaction:
    """A transaction with one record, prepared by a producer that is closed then."""
    transactional_id = f"{topic}-{name}"
    with kc.client.Producer(broker.server, transactional_id=transactional_id, **options) as producer:
        producer.begin_transaction()
        if name != "empty":
            producer.send(topic, name.encode())
        found = producer.prepare_transaction()
        with pytest.raises(LocalProtocolError, match="prepared"):
            producer.send(topic, b"too late")
    assert found.transactional_id == transactional_id
    return found


def test_prepared_transactions_are_ended_together_by_somebody_else(broker: Broker, topic: str) -> None:
    kept = [prepared(broker, topic, name) for name in ("a", "b", "empty")]
    dropped = [prepared(broker, topic, name) for name in ("c", "d")]
    lost = prepared(broker, topic, "lost")
    with kc.client.Admin(broker.server) as admin:
        for _ in range(2):  # somebody may not know whether the first call succeeded
            admin.end_transactions(kept, commit=True)
            admin.end_transactions(dropped, commit=False)
        admin.fence_producers([lost.transactional_id])
        more = prepared(broker, topic, "e")
        with pytest.raises(kc.errors.ItemErrors) as raised:
            admin.end_transactions([lost, more], commit=True)
        assert [*raised.value.errors] == [lost.transactional_id]
    assert committed(broker.server, topic)[0] == [b"a", b"b", b"e"]


def test_a_producer_ends_what_it_prepared(broker: Broker, topic: str) -> None:
    with kc.client.Producer(broker.server, transactional_id=topic) as producer:
        for number, end in enumerate([producer.commit_transaction, producer.abort_transaction] * 2):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number)
            assert producer.prepare_transaction() == producer.prepare_transaction()
            end()
    assert committed(broker.server, topic)[0] == [b"0", b"2"]


def test_a_newer_producer_fences_an_older_one_and_ends_its_transaction(broker: Broker, topic: str) -> None:
    with (
        kc.client.Producer(broker.server, transactional_id=topic) as old,
        kc.client.Producer(broker.server, transactional_id=topic) as new,
    ):
        old.begin_transaction()
        old.send(topic, b"of the old").result(SOON)
        new.init_transactions()
        old.send(topic, b"also")
        with pytest.raises((kc.errors.ProducerFencedError, LocalProtocolError, kc.errors.InvalidProducerEpochError)):
            old.commit_transaction()
        with pytest.raises((kc.errors.ProducerFencedError, kc.errors.InvalidProducerEpochError)):
            old.abort_transaction()
        with pytest.raises((kc.errors.ProducerFencedError, kc.errors.InvalidProducerEpochError)):
            old.begin_transaction()
        with new.transaction():
            new.send(topic, b"of the new")
    assert committed(broker.server, topic)[0] == [b"of the new"]


def test_a_transaction_that_lost_a_record_cannot_be_committed_and_the_next_can(broker: Broker, topic: str) -> None:
    with kc.client.Producer(broker.server, transactional_id=topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"fine", partition=0)
        lost = producer.send(topic, b"x" * 200_000, partition=0)
        with pytest.raises(LocalProtocolError, match="MESSAGE_TOO_LARGE"):
            producer.commit_transaction()
        producer.abort_transaction()
        assert isinstance(lost.error, kc.errors.MessageTooLargeError)
        for n in range(3):
            with producer.transaction():
                producer.send(topic, b"after %d" % n, partition=0)
    assert committed(broker.server, topic)[0] == [b"after 0", b"after 1", b"after 2"]


def test_coroutines(broker: Broker, topic: str) -> None:
    async def produce() -> None:
        async with kc.client.aio.Producer(broker.server, transactional_id=topic) as producer:
            async with producer.transaction():
                sent = [await producer.send(topic, b"%d" % n) for n in range(100)]
            assert all(delivery.error is None for delivery in sent)
            await producer.begin_transaction()
            (await (await producer.send(topic, b"open")))

    asyncio.run(produce())
    assert committed(broker.server, topic)[0] == sorted(b"%d" % n for n in range(100))
