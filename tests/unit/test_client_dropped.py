"""Clients that are dropped without close warn, and end: threads, tasks, descriptors, memberships."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import os
import pickle
import threading
import warnings
import weakref
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.errors import ClientClosed, DeadlineExceeded
from kafkacodec.messages import MetadataRequest
from tests.patience import SOON, eventually, until
from tests.reference.group_broker import GroupBroker
from tests.unit.test_client_consumer_group import FAST, count, member
from tests.unit.test_client_producer_faces import NOBODY, knowing

NAMES = ["Producer", "Consumer", "ShareConsumer", "Admin", "KafkaConnection"]


def made(package, name, server):
    """A client, and the line where it was made."""
    kind = getattr(package, name)
    options = {"bootstrap_servers": server} | ({"group_id": "g"} if name == "ShareConsumer" else {})
    return kind(**options), made.__code__.co_firstlineno + 4


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@contextlib.contextmanager
def warned(name, line=None):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
        gc.collect()
    [warning] = [w for w in found if issubclass(w.category, ResourceWarning)]
    assert f"{name}: " in str(warning.message)
    assert f", open> was not closed; it was created at {warning.filename}:{warning.lineno}" in str(warning.message)
    if line is not None:
        assert (warning.filename, warning.lineno) == (__file__, line)


@pytest.mark.parametrize("name", NAMES)
def test_a_blocking_client(name):
    gc.collect()
    before = threading.active_count(), descriptors()
    client, line = made(kc.client, name, NOBODY)
    client.itself = client  # a cycle
    if name == "KafkaConnection":
        client.poll(0, MetadataRequest())
    gone = weakref.ref(client)
    with warned(name, line):
        del client
    assert gone() is None
    eventually(lambda: (threading.active_count(), descriptors()) == before)


@pytest.mark.parametrize("name", NAMES)
async def test_a_client_for_asyncio(name):
    gc.collect()
    async with GroupBroker({"t": 1}) as broker:
        before = len(asyncio.all_tasks()), descriptors()
        client, line = made(kc.client.aio, name, broker.address)
        await client.__aenter__()
        await (client.poll(5, MetadataRequest()) if name == "KafkaConnection" else asyncio.sleep(0.05))
        gone = weakref.ref(client)
        with warned(name, line):
            del client
        await until(lambda: (len(asyncio.all_tasks()), descriptors()) == before)
        await until(lambda: gc.collect() is not None and gone() is None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("package", [kc.client, kc.client.aio])
@pytest.mark.filterwarnings("error")
def test_a_client_that_is_closed_or_was_never_used(name, package):
    client, _ = made(package, name, NOBODY)
    if package is kc.client:
        client.close()
    del client
    with pytest.raises(TypeError):
        getattr(package, name)()
    gc.collect()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("package", [kc.client, kc.client.aio])
def test_a_copy_does_not_close_the_client(name, package):
    client, _ = made(package, name, NOBODY)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=f"this {name} cannot be copied or pickled"):
            copied(client)
    if package is kc.client:
        client.close()


def test_what_a_dropped_producer_has_queued_becomes_known():
    producer = knowing(kc.client.Producer(NOBODY, delivery_timeout_ms=100))
    delivery = producer.send("t", b"v")
    producer.partitions_for("t")  # the thread has done what `send` wanted, so that the drop is here
    with pytest.warns(ResourceWarning):
        del producer
    with pytest.raises(DeadlineExceeded):  # it was tried until its time was over
        delivery.result(SOON)


async def test_a_dropped_consumer_leaves_its_group_although_its_callbacks_refer_to_it():
    told = []
    async with GroupBroker({"t": 1}) as broker:
        broker.write("t", 0, 10)
        consumer = member(broker)
        await consumer.subscribe(["t"], on_assigned=lambda parts, c=consumer: told.append(c.assignment()))
        assert await count(consumer, 5) == 5
        with warned("Consumer"):
            del consumer
        await until(lambda: broker.members_gone == 1, 20)
        assert (
            broker.committed.get(("t", 0), 0) == 0
        )  # the application did not ask for more, so it may not have processed these
    assert told == [[("t", 0)]]


async def test_a_dropped_blocking_consumer_leaves_its_group_although_a_callback_waits_for_its_thread():
    def use():
        consumer = kc.client.Consumer(bootstrap_servers=broker.address, group_id="g", **FAST)
        consumer.subscribe(["t"], on_assigned=lambda parts: consumer.pause(*parts), on_revoked=lambda parts: None)
        eventually(lambda: consumer._thread._calls)

    async with GroupBroker({"t": 1}) as broker:
        with warned("Consumer"):
            await asyncio.to_thread(use)
        await until(lambda: broker.members_gone == 1, 20)


async def test_a_client_that_only_its_waiting_task_refers_to_goes_on():
    got = []

    async def poll():
        connection = kc.client.aio.KafkaConnection(broker.address)
        got.append(await connection.poll(20, MetadataRequest()))
        await connection.close()

    async with GroupBroker({"t": 1}) as broker:
        waiting = weakref.ref(asyncio.create_task(poll()))
        while not got:
            gc.collect()
            await asyncio.sleep(0.001)
            assert got or waiting() is not None


def test_what_a_producer_of_a_cycle_has_queued_is_known_when_its_loop_ends():
    async def main():
        producer: Any = kc.client.aio.Producer(NOBODY)
        producer.itself = producer
        await producer.start()
        delivery = await knowing(producer).send("t", b"v")
        del producer
        gc.collect()
        return delivery

    with pytest.warns(ResourceWarning):
        delivery = asyncio.run(main())
    with pytest.raises(ClientClosed):
        delivery.result(0)


class Owner:
    """An application that has a client, and a method that the client calls with values."""

    def __init__(self, package, name):
        option = {"value_serializer" if name == "Producer" else "value_deserializer": self.convert}
        group = {"group_id": "g"} if name == "ShareConsumer" else {}
        self.client = getattr(package, name)(bootstrap_servers=NOBODY, **option, **group)

    def convert(self, value):
        return value


@pytest.mark.parametrize("name", ["Producer", "Consumer", "ShareConsumer"])
def test_a_client_that_calls_a_method_of_its_owner(name):
    before = threading.active_count()
    owner = Owner(kc.client, name)
    gone = weakref.ref(owner)
    with warned(name):
        del owner
    assert gone() is None
    eventually(lambda: threading.active_count() == before)


@pytest.mark.parametrize("name", ["Producer", "Consumer", "ShareConsumer"])
async def test_a_client_for_asyncio_that_calls_a_method_of_its_owner(name):
    owner = Owner(kc.client.aio, name)
    await owner.client.__aenter__()
    await asyncio.sleep(0.05)
    gone = weakref.ref(owner.client)
    with warned(name):
        del owner
    await until(lambda: gc.collect() is not None and gone() is None, 20)
