"""Topics and groups that do not exist: who waits for one is told, with the name that was probably meant."""

from __future__ import annotations

import logging
import re

import click
import pytest

import kafkacodec as kc
from kafkacodec.cli.options.globs import refuse_strangers
from kafkacodec.errors import DeadlineExceeded, ItemErrors
from tests.patience import eventually


@pytest.fixture(scope="module")
def server():
    with kc.broker.serve(topics={"orders": 2, "returns": 1}, config={"auto.create.topics.enable": True}) as broker:
        with kc.client.Consumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, group_id="billing", auto_offset_reset="earliest"
        ) as consumer:
            eventually(lambda: consumer.getmany(0.1) or len(consumer.assignment()) == 2)
            consumer.commit({("orders", 0): 0})
        yield broker.bootstrap_servers


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("options", [{}, {"group_id": "g"}, {"group_id": "h", "group_protocol": "consumer"}])
def test_a_consumer_that_waits_for_a_topic_says_so_once_and_does_not_create_it(server, options, caplog):
    with kc.client.Consumer("ordres", bootstrap_servers=server, **options) as consumer:
        eventually(lambda: consumer.getmany(0.1) or warnings(caplog))
        assert consumer.getmany(0.5) == {}
    assert warnings(caplog) == ["topic 'ordres' does not exist, and is waited for; did you mean 'orders'?"]
    with kc.client.Admin(server) as admin:
        assert list(admin.list_topics()) == ["orders", "returns"]


def test_a_topic_that_comes_soon_is_not_told(server, caplog):
    with (
        kc.client.Consumer("soon", bootstrap_servers=server, auto_offset_reset="earliest") as consumer,
        kc.client.Admin(server) as admin,
    ):
        assert consumer.getmany(0.2) == {}
        admin.create_topics({"soon": 1})
        with kc.client.Producer(server) as producer:
            producer.send("soon", b"value")
        eventually(lambda: consumer.getmany(0.1))
        admin.delete_topics(["soon"])
    assert warnings(caplog) == []


def test_a_producer_that_may_not_create_topics_says_what_it_waits_for(server, caplog):
    with (
        kc.client.Producer(server, allow_auto_create_topics=False, max_block_ms=3000) as producer,
        pytest.raises(DeadlineExceeded),
    ):
        producer.send("retruns", b"value")
    assert "topic 'retruns' does not exist, and is waited for; did you mean 'returns'?" in warnings(caplog)


@pytest.mark.parametrize(
    ("call", "wrong", "right"),
    [
        (lambda admin: admin.describe_topics("ordres"), "ordres", "orders"),
        (lambda admin: admin.delete_topics(["orders-", "retruns"]), "retruns", "returns"),
        (lambda admin: admin.create_partitions({"ordres": 3}), "ordres", "orders"),
        (lambda admin: admin.describe_configs([("topic", "ordres")]), ("topic", "ordres"), "orders"),
        (lambda admin: admin.describe_groups("biling"), "biling", "billing"),
        (lambda admin: admin.delete_groups("biling"), "biling", "billing"),
    ],
)
def test_errors_of_the_admin_client_have_the_name_that_was_meant(server, call, wrong, right):
    with kc.client.Admin(server) as admin, pytest.raises(ItemErrors) as caught:
        call(admin)
    assert str(caught.value.errors[wrong]).endswith(f"; did you mean {right!r}?")


def test_globs_that_choose_nothing():
    names = ["orders", "returns"]
    refuse_strangers("topic", [], names)
    refuse_strangers("topic", ["ord*", "x*"], names)
    for globs, told in [
        (["ordres"], "no topic 'ordres'; did you mean 'orders'?"),
        (["orders", "retruns"], "no topic 'retruns'; did you mean 'returns'?"),
        (["x*"], "no topic 'x*'; topics are orders, returns"),
    ]:
        with pytest.raises(click.ClickException) as caught:
            refuse_strangers("topic", globs, names)
        assert caught.value.message == told
    with pytest.raises(click.ClickException, match=r"^data: no group 'g'; there are no groups$"):
        refuse_strangers("group", ["g"], [], "data")
    with pytest.raises(click.ClickException, match=r"^no topic 'x'; there are 20 topics$"):
        refuse_strangers("topic", ["x"], [f"t{number:02}" for number in range(20)])


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (("t", 9), "topic 't' has no partition 9: its highest is 0"),
        (("none", 0), "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_partitions_that_do_not_exist_are_named(key, reason):
    with (
        kc.broker.serve(topics={"t": 1}) as broker,
        kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, default_api_timeout_ms=400) as consumer,
    ):
        consumer.assign([key])
        for call in (lambda: consumer.end_offsets([key]), lambda: consumer.position(*key)):
            with pytest.raises(DeadlineExceeded, match=re.escape(reason)):
                call()
