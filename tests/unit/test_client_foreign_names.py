"""Names that other clients have, and those of the classes here: what an AttributeError or TypeError says."""

from __future__ import annotations

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
