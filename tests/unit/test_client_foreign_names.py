"""Names that other clients have, and those of the classes here: what an AttributeError or TypeError says."""

from __future__ import annotations

import asyncio

import pytest

import kafkacodec as kc
from kafkacodec.client import aio

SERVER = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("client", "name", "said"),
    [
        (kc.client.Producer, "produce", "send(topic, value"),
        (kc.client.Producer, "poll", "not needed"),
        (aio.Producer, "send_and_wait", "send(topic, value)"),
        (kc.client.Consumer, "poll", "getmany(timeout=1)"),
        (aio.Consumer, "getone", "anext(consumer)"),
        (kc.client.Admin, "list_consumer_groups", "list_groups()"),
        (kc.client.Producer, "start", "not needed: the first use starts it, and `with` closes it"),
        (aio.Consumer, "start", "and `async with` closes it"),
        (aio.Consumer, "reader", "columns(), an asynchronous iterator over tables"),
        (aio.Admin, "stop", "close()"),
        (kc.client.ShareConsumer, "poll", "getmany(timeout=1)"),
        (aio.ShareConsumer, "start", "and `async with` closes it"),
    ],
)
def test_a_method_of_another_client_is_said(client, name, said):
    assert not hasattr(client, name)
    with pytest.raises(AttributeError, match=f"has no method '{name}'") as caught:
        getattr(client, name)
    assert said in str(caught.value)


def test_names_of_other_clients_are_not_offered():
    with kc.client.Producer(SERVER) as producer:
        assert {"produce", "poll"}.isdisjoint(dir(producer))
        assert "send" in dir(producer)
        with pytest.raises(AttributeError, match="'made_up'"):
            producer.made_up  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("module", "name", "place"),
    [
        (kc, "Producer", "kafkacodec.client.Producer"),
        (kc.client, "AIOKafkaProducer", "kafkacodec.client.aio.Producer"),
        (kc.client, "KafkaConsumer", "kafkacodec.client.Consumer"),
        (kc, "AdminClient", "kafkacodec.client.Admin"),
    ],
)
def test_a_class_elsewhere_is_said(module, name, place):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; use {place}$"):
        getattr(module, name)


def test_options_of_the_other_kind_of_client_are_said():
    with pytest.raises(TypeError, match=r"unknown option 'group\.id'; an option of consumers"):
        kc.client.Producer.from_config({"bootstrap.servers": SERVER, "group.id": "billing"})
    with pytest.raises(TypeError, match=r"unknown option 'linger\.ms'; an option of producers"):
        kc.client.Consumer.from_config({"bootstrap.servers": SERVER, "linger.ms": 5})


def test_a_configuration_in_place_of_topics_is_said():
    with pytest.raises(TypeError, match=r"go to Consumer.from_config\(\{...\}\)"):
        kc.client.Consumer({"bootstrap.servers": SERVER})  # type: ignore[call-arg]


def test_options_of_calls_that_other_clients_have_are_said():
    with kc.client.Producer(SERVER) as producer:
        with pytest.raises(TypeError, match=r"^unknown option 'timestamp_ms'; did you mean 'timestamp'\?$"):
            producer.send("t", b"", timestamp_ms=5)  # type: ignore[arg-type]
        for name in ("callback", "on_delivery"):
            with pytest.raises(TypeError, match=f"^unknown option '{name}'; send.. returns a delivery, whose add_done"):
                producer.send("t", b"", **{name: print})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"unknown option 'topics'; did you mean 'topic'"):
            producer.partitions_for(topics="t")  # type: ignore[call-arg]
    with (
        kc.client.Consumer("t", bootstrap_servers=SERVER) as consumer,
        pytest.raises(TypeError, match=r"^unknown option 'timeout_ms'; did you mean 'timeout', in seconds\?$"),
    ):
        consumer.getmany(timeout_ms=1000)  # type: ignore[call-arg]


async def test_coroutines_say_them_too():
    async with aio.Producer(SERVER) as producer:
        with pytest.raises(TypeError, match=r"^unknown option 'timestamp_ms'; did you mean 'timestamp'\?$"):
            await producer.send("t", b"", timestamp_ms=5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^unknown option 'on_delivery'; send\(\) returns a delivery"):
            await producer.send("t", b"", on_delivery=print)  # type: ignore[arg-type]
    async with aio.Consumer("t", bootstrap_servers=SERVER) as consumer:
        with pytest.raises(TypeError, match=r"^unknown option 'timeout_ms'; did you mean 'timeout', in seconds\?$"):
            await consumer.getmany(timeout_ms=1000)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"^unknown option 'max_row'; did you mean 'max_rows'"):
            consumer.columns(max_row=5)  # type: ignore[call-overload]
    async with aio.Admin(SERVER) as admin:
        with pytest.raises(TypeError, match=r"^delete_topics\(topics\): missing a required argument: 'topics'"):
            await admin.delete_topics()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "said"),
    [("get", r"result\(timeout\), in seconds"), ("add_callback", "add_done_callback"), ("exception", "error")],
)
def test_methods_of_other_futures_are_said(name, said):
    assert not hasattr(kc.client.Delivery, name)
    with kc.broker.serve(topics={"t": 1}) as kafka, kc.client.Producer(kafka.bootstrap_servers) as producer:
        sent = producer.send("t", b"v")
        with pytest.raises(AttributeError, match=f"a delivery has no method '{name}'; use {said}"):
            getattr(sent, name)
        assert name not in dir(sent)
        assert {"result", "offset", "error"} <= {*dir(sent)}


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (kc.client.NewTopic, {"name": "t", "partitions": 3}, "'partitions'; did you mean 'num_partitions'"),
        (kc.client.NewTopic, {"name": "t", "config": {}}, "'config'; did you mean 'configs'"),
        (kc.client.NewPartitions, {"total": 3, "assignment": []}, "'assignment'; did you mean"),
        (kc.client.AclFilter, {"operations": "READ"}, "'operations'; did you mean 'operation'"),
    ],
)
def test_arguments_of_terms_are_suggested(make, options, said):
    with pytest.raises(TypeError, match=f"unknown option {said}"):
        make(**options)


def test_an_address_among_topics_is_said():
    for client in (kc.client.Consumer, aio.Consumer):
        with pytest.raises(TypeError, match=rf"did you mean bootstrap_servers='{SERVER}'\?$"):
            client("orders", SERVER)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"missing a required argument: 'bootstrap_servers'$"):
        kc.client.Consumer("orders")  # type: ignore[call-arg]


async def _async_with(made):
    async with made:
        pass


async def _async_for(made):
    async for _ in made:
        pass


async def _with(made):
    with made:
        pass


async def _for(made):
    for _ in made:
        pass


@pytest.mark.parametrize("name", ["Producer", "Consumer", "ShareConsumer", "Admin", "KafkaConnection"])
def test_statements_of_the_other_kind_of_client_are_said(name):
    options = {"group_id": "g"} if name == "ShareConsumer" else {}
    with pytest.raises(TypeError, match=f"this {name} is for asyncio: write 'async with'$"):
        asyncio.run(_with(getattr(aio, name)(bootstrap_servers=SERVER, **options)))
    with getattr(kc.client, name)(bootstrap_servers=SERVER, **options) as client:
        with pytest.raises(TypeError, match=f"this {name} is for threads: use its namesake of .*, or write 'with'$"):
            asyncio.run(_async_with(client))
        if "Consumer" in name:
            with pytest.raises(TypeError, match=f"this {name} is for threads: .*, or write 'for'$"):
                asyncio.run(_async_for(client))
            with pytest.raises(TypeError, match=f"this {name} is for asyncio: write 'async for'$"):
                asyncio.run(_for(getattr(aio, name)(bootstrap_servers=SERVER, **options)))
        else:
            assert not hasattr(client, "__aiter__")


def test_statements_of_the_other_kind_of_broker_are_said():
    with kc.broker.serve() as broker, pytest.raises(TypeError, match="this Broker is for threads"):
        asyncio.run(_async_with(broker))
    with pytest.raises(TypeError, match="this Broker is for asyncio"):
        asyncio.run(_with(kc.broker.aio.serve()))


@pytest.mark.parametrize("partition", ["0", True, 1.5])
def test_a_partition_that_is_no_number_is_said(partition):
    with (
        kc.broker.serve(topics={"t": 1}) as broker,
        kc.client.Producer(broker.bootstrap_servers) as producer,
        pytest.raises(TypeError, match=f"partition must be an integer, not {type(partition).__name__}$"),
    ):
        producer.send("t", b"", partition=partition)
