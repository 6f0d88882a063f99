"""Clients for asyncio whose serializers and decoders wait for a schema registry: the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from contextlib import contextmanager

import fastavro
import pytest

import kafkacodec as kc
from kafkacodec.client import aio
from kafkacodec.errors import RegistryError, SchemaNotFound
from kafkacodec.values import Encoder, Registry, ValueDecoder
from tests.reference.model_broker import ModelCluster
from tests.reference.model_traffic import SERVER, modelled
from tests.registry_server import serving

OPTIONS = {"bootstrap_servers": SERVER, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 20}
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
SUBJECT = {"subject": "orders-value", "version": 1, "id": 7, "schema": ORDER, "schemaType": "AVRO"}
ANSWERS = {"/subjects/orders-value/versions/latest": SUBJECT, "/schemas/ids/7": {"schema": ORDER}}


def framed(number, value):
    written = io.BytesIO()
    fastavro.schemaless_writer(written, json.loads(ORDER), value)
    return b"\0" + number.to_bytes(4) + written.getvalue()


class Held:
    """A registry that answers a question only after a task of the loop has let it."""

    def __init__(self, state):
        self.url, self.requests = state.url, state.requests
        self._asked, self._let, self._answer = threading.Event(), threading.Event(), state.answer
        self._loop = None
        state.answer = self._wait

    def _wait(self, path):
        self._loop.call_soon_threadsafe(self.asked.set)
        assert self._let.wait(180)
        return self._answer(path)

    async def __aenter__(self):
        self._loop, self.asked = asyncio.get_running_loop(), asyncio.Event()
        return self

    async def __aexit__(self, *exception):
        self.let()

    def let(self):
        self._let.set()


@contextmanager
def held(answers=ANSWERS):
    with serving(answers) as state:
        registry = Held(state)
        try:
            yield registry
        finally:
            registry.let()


@pytest.fixture
def model(monkeypatch):
    return modelled(monkeypatch, ModelCluster(1, {"t": 1}))


def put(model, *numbers):
    records = [(None, framed(number, {"id": at})) for at, number in enumerate(numbers)]
    assert model.logs["t", 0].append(kc.encode(records), 0).code == 0


def run(work, answers=ANSWERS):
    """Runs a coroutine function with a registry that waits, within a time limit that a stopped loop exceeds."""

    async def limited(registry):
        async with registry:
            async with asyncio.timeout(180):
                return await work(registry)

    with held(answers) as registry:
        return asyncio.run(limited(registry))


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_producer_asks_beside_the_loop_once_for_all_records(model, wrapped):
    async def work(registry):
        encoder = Encoder(Registry(registry.url, timeout=60, retries=0), subject="orders-value")
        serializer = (lambda value: encoder(value)) if wrapped else encoder
        async with aio.Producer(SERVER, value_serializer=serializer) as producer:
            sends = [asyncio.create_task(producer.send("t", {"id": number})) for number in range(3)]
            await registry.asked.wait()
            assert not any(task.done() for task in sends)
            registry.let()
            for task in sends:
                await (await task)
        return registry.requests

    requests = run(work)
    assert [path for path, _ in requests] == ["/subjects/orders-value/versions/latest"]
    found = sorted(value for *_, value in model.logs["t", 0].records)
    assert found == [framed(7, {"id": number}) for number in range(3)]


def test_a_producer_raises_what_the_registry_says_and_asks_again(model):
    async def work(registry):
        registry.let()
        encoder = Encoder(Registry(registry.url, retries=0), subject="orders-value")
        async with aio.Producer(SERVER, value_serializer=encoder) as producer:
            with pytest.raises(RegistryError, match="HTTP 500"):
                await producer.send("t", {"id": 1})
            await (await producer.send("t", {"id": 1}))

    path = "/subjects/orders-value/versions/latest"
    run(work, {path: [(500, {}), SUBJECT]})


def test_a_cancelled_wait_leaves_the_answer_to_the_next_record(model):
    async def work(registry):
        encoder = Encoder(Registry(registry.url, timeout=60, retries=0), subject="orders-value")
        async with aio.Producer(SERVER, value_serializer=encoder) as producer:
            first = asyncio.create_task(producer.send("t", {"id": 1}))
            await registry.asked.wait()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            second = asyncio.create_task(producer.send("t", {"id": 2}))
            registry.let()
            await (await second)
        return registry.requests

    assert len(run(work)) == 1


def test_a_consumer_of_columns_asks_beside_the_loop(model):
    put(model, 7, 7, 7)

    async def work(registry):
        decoder = ValueDecoder(Registry(registry.url, timeout=60, retries=0))
        async with aio.Consumer("t", **OPTIONS) as consumer:
            tables = consumer.columns(values=decoder)
            first = asyncio.create_task(anext(tables))
            await registry.asked.wait()
            registry.let()
            table = await first
            await tables.aclose()  # type: ignore[attr-defined]
        return table.column("value").to_pylist(), registry.requests

    values, requests = run(work)
    assert values == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert len(requests) == 1


def test_a_consumer_asks_for_all_schemas_of_a_table_and_takes_no_for_an_answer_for_one_table(model):
    put(model, 7, 9, 7)

    async def work(registry):
        decoder = ValueDecoder(Registry(registry.url, timeout=60, retries=0), on_error="null")
        async with aio.Consumer("t", **OPTIONS) as consumer:
            registry.let()
            tables = consumer.columns(values=decoder)
            table = await anext(tables)
            put(model, 9)
            later = await anext(tables)
            await tables.aclose()  # type: ignore[attr-defined]
        found = [*table.column("value").to_pylist(), *later.column("value").to_pylist()]
        return found, [path for path, _ in registry.requests]

    answers = {**ANSWERS, "/schemas/ids/9": [(404, {}), {"schema": ORDER}]}
    values, requests = run(work, answers)
    assert values == [{"id": 0}, None, {"id": 2}, {"id": 0}]
    assert requests == ["/schemas/ids/7", "/schemas/ids/9", "/schemas/ids/9"]


def test_a_consumer_raises_what_the_registry_says_at_the_same_position(model):
    put(model, 9)

    async def work(registry):
        registry.let()
        decoder = ValueDecoder(Registry(registry.url, retries=0))
        async with aio.Consumer(**OPTIONS) as consumer:
            await consumer.assign([("t", 0)])
            with pytest.raises(SchemaNotFound):
                await anext(consumer.columns(values=decoder))
            assert await consumer.position("t", 0) == 0

    run(work)


def test_a_deserializer_asks_beside_the_loop(model):
    put(model, 7, 7)

    async def work(registry):
        decoder = ValueDecoder(Registry(registry.url, timeout=60, retries=0))

        def order(data):
            return decoder.decode([bytes(data)]).values[0].as_py()

        async with aio.Consumer("t", value_deserializer=order, **OPTIONS) as consumer:
            first = asyncio.create_task(consumer.getmany(None))
            await registry.asked.wait()
            registry.let()
            return [record.value for records in (await first).values() for record in records]

    assert run(work) == [{"id": 0}, {"id": 1}]


def test_schemas_in_memory_are_read_on_the_loop(model, monkeypatch):
    put(model, 7)
    monkeypatch.setattr(threading, "Thread", None)

    async def work():
        async with aio.Consumer("t", **OPTIONS) as consumer:
            tables = consumer.columns(values=ValueDecoder({7: ORDER}))
            table = await anext(tables)
            await tables.aclose()  # type: ignore[attr-defined]
            return table.column("value").to_pylist()

    assert asyncio.run(work()) == [{"id": 0}]
