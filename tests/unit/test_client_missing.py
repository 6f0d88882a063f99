"""Topics and groups that do not exist: who waits for one is told, with the name that was probably meant."""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor

import click
import pytest

import kafkacodec as kc
from kafkacodec.cli.options.globs import refuse_strangers
from kafkacodec.client.aio import consumer_offsets
from kafkacodec.client.consuming import offset_lookup
from kafkacodec.client.core import missing
from kafkacodec.errors import DeadlineExceeded, ItemErrors, UnknownTopicOrPartitionError
from tests.patience import SOON, eventually


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
    """All but those that a broker has not answered for two seconds, which may come on a busy machine."""
    texts = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [text for text in texts if not text.startswith("waiting for broker")]


def test_records_for_a_partition_that_a_topic_has_no_longer_fail_soon(caplog):
    """A topic that was made again may have fewer; the records of its other partitions are delivered."""
    with kc.broker.serve(topics={"t": 4}) as broker, kc.client.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"to know the topic", partition=3).result(SOON)
        with kc.client.Admin(broker.bootstrap_servers) as admin:
            admin.delete_topics(["t"])
        broker.create_topic("t", 1)
        lost, kept = (producer.send("t", b"value", partition=number) for number in (3, 0))
        with pytest.raises(UnknownTopicOrPartitionError, match="t-3 is not there: topic 't' has only 1 partition now"):
            lost.result(SOON)
        assert kept.result(SOON).partition == 0


@pytest.mark.parametrize("options", [{}, {"group_id": "g"}, {"group_id": "h", "group_protocol": "consumer"}])
def test_a_consumer_that_waits_for_a_topic_says_so_once_and_does_not_create_it(server, options, caplog):
    with kc.client.Consumer("ordres", bootstrap_servers=server, **options) as consumer:
        eventually(lambda: consumer.getmany(0.1) or warnings(caplog))
        assert consumer.getmany(0.5) == {}
    assert warnings(caplog) == ["topic 'ordres' does not exist, and is waited for; did you mean 'orders'?"]
    with kc.client.Admin(server) as admin:
        assert list(admin.list_topics()) == ["orders", "returns"]


def test_a_topic_that_comes_soon_is_not_told(server, caplog, monkeypatch):
    monkeypatch.setattr(missing, "_WAIT_MS", SOON * 1000)  # a busy machine may need more than two seconds for it
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
        (("none", 0), "topic 'none' does not exist"),
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


LOOK_UPS = [
    (lambda c: c.partitions_for("ordres"), "topic 'ordres' does not exist; did you mean 'orders'?"),
    (lambda c: c.topic_id("ordres"), "topic 'ordres' does not exist; did you mean 'orders'?"),
    (lambda c: c.end_offsets([("ordres", 0), ("orders", 0)]), "topic 'ordres' does not exist; did you mean 'orders'?"),
    (lambda c: c.beginning_offsets([("orders", 7)]), "topic 'orders' has no partition 7: its highest is 1"),
    (lambda c: c.offsets_for_times({("ordres", 0): 5}), "topic 'ordres' does not exist; did you mean 'orders'?"),
    (lambda c: c.position("ordres", 0), "topic 'ordres' does not exist; did you mean 'orders'?"),
]


@pytest.fixture
def impatient(monkeypatch):
    for module in (consumer_offsets, offset_lookup):
        monkeypatch.setattr(module, "UNKNOWN_MS", 300.0)


@pytest.mark.parametrize(("call", "said"), LOOK_UPS)
def test_a_look_up_ends_soon_if_brokers_say_that_there_is_no_such_thing(server, impatient, call, said):
    with kc.client.Consumer(bootstrap_servers=server) as consumer:
        consumer.assign([("ordres", 0)])
        with pytest.raises(UnknownTopicOrPartitionError) as caught:
            call(consumer)
    assert str(caught.value) == said
    with kc.client.Admin(server) as admin:
        assert "ordres" not in admin.list_topics()


async def test_in_an_event_loop_too(server, impatient):
    async with kc.client.aio.Consumer(bootstrap_servers=server) as consumer:
        await consumer.assign([("ordres", 0)])
        for call, said in LOOK_UPS:
            with pytest.raises(UnknownTopicOrPartitionError) as caught:
                await call(consumer)
            assert str(caught.value) == said


def test_a_topic_that_comes_while_a_look_up_waits_is_found(server):
    with (
        kc.client.Consumer(bootstrap_servers=server) as consumer,
        kc.client.Admin(server) as admin,
        ThreadPoolExecutor(1) as pool,
    ):
        found = pool.submit(consumer.end_offsets, [("late", 0)])
        eventually(lambda: "late" in consumer._face._parts.network.cluster.topics)  # they have said that it is missing
        admin.create_topics({"late": 1})
        assert found.result() == {("late", 0): 0}
        admin.delete_topics(["late"])


def test_partitions_are_those_of_now(impatient):
    """What was learned before is not an answer: the topic may have been deleted, made again or extended since."""
    with (
        kc.broker.serve(topics={"t": 2}) as broker,
        kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer,
        kc.client.Admin(broker.bootstrap_servers) as admin,
    ):
        first = consumer.topic_id("t")
        assert consumer.partitions_for("t") == [0, 1]
        admin.create_partitions({"t": 4})
        assert consumer.partitions_for("t") == [0, 1, 2, 3]
        admin.delete_topics("t")
        for call in (consumer.partitions_for, consumer.topic_id):
            with pytest.raises(UnknownTopicOrPartitionError, match="topic 't' does not exist"):
                call("t")
        broker.create_topic("t", 1)
        assert consumer.partitions_for("t") == [0]
        assert consumer.topic_id("t") not in (first, None)


def test_partitions_are_told_while_an_older_request_is_answered():
    """Its answer is no news, so another request follows it."""
    with kc.broker.serve(topics={"t": 2}) as broker:
        for call in ("partitions_for", "topic_id"):
            with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
                consumer.assign_ranges({("t", 0): (0, 1)})
                assert getattr(consumer, call)("t", timeout=SOON)
