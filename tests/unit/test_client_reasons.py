"""Errors of clients say what is wrong and which option or configuration it is about."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec import errors
from tests.patience import SOON


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve(topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def test_a_fenced_member_raises_at_each_commit_that_it_is_fenced(broker):
    options = {"group_id": "g", "group_instance_id": "i", "auto_offset_reset": "earliest"}
    made = {"bootstrap_servers": broker.bootstrap_servers, "heartbeat_interval_ms": 100, **options}
    with kc.client.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"v").result()
    with kc.client.Consumer("t", **made) as first:
        assert first.getmany(timeout=SOON)
        with kc.client.Consumer("t", **made) as second:
            assert second.getmany(timeout=SOON)
            with pytest.raises(errors.error(errors.FENCED_INSTANCE_ID)):
                first.getmany(timeout=SOON)
            for offsets in (None, {("t", 0): 1}):
                for wait in (True, False):
                    with pytest.raises(errors.error(errors.FENCED_INSTANCE_ID)):
                        first.commit(offsets, wait=wait)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (kc.client.Producer, "transactional_id"),
        (kc.client.Producer, "client_id"),
        (kc.client.Consumer, "group_id"),
        (kc.client.Consumer, "group_instance_id"),
        (kc.client.ShareConsumer, "group_id"),
    ],
)
def test_names_are_at_most_as_long_as_a_string_of_the_protocol(make, name):
    others = {"group_id": "g"} if name == "group_instance_id" else {}
    with pytest.raises(ValueError, match=rf"^{name} is too long: 32,768 bytes, but Kafka's texts have at most 32,767$"):
        make(bootstrap_servers="127.0.0.1:1", **{name: "é" * 16384}, **others)
    settings = {kc.client.Producer: kc.client.ProducerSettings, kc.client.Consumer: kc.client.ConsumerSettings}
    settings.get(make, kc.client.ShareConsumerSettings)(
        bootstrap_servers="127.0.0.1:1", **{name: "x" * 32767}, **others
    )


def test_a_record_too_large_for_the_topic_names_its_limit():
    with (
        kc.broker.serve(config={"message.max.bytes": 1000}, topics={"t": 1}) as broker,
        kc.client.Producer(broker.bootstrap_servers) as producer,
        pytest.raises(errors.error(errors.MESSAGE_TOO_LARGE), match=r"larger than max\.message\.bytes of the topic"),
    ):
        producer.send("t", b"v" * 2000).result(SOON)


def test_a_response_too_large_for_the_client_names_its_option(broker):
    with (
        kc.client.Admin(broker.bootstrap_servers, receive_message_max_bytes=20) as admin,
        pytest.raises(errors.KafkaCodecError, match="exceeds the limit of 20, which is receive_message_max_bytes"),
    ):
        admin.list_topics()


def test_a_callback_that_waits_for_another_record_is_told_so(broker):
    with kc.client.Producer(broker.bootstrap_servers, linger_ms=60_000) as producer:
        told, late = [], []

        def ask(delivery):
            late.append(producer.send("t", b"late"))
            try:
                late[0].result()
            except errors.LocalProtocolError as error:
                told.append(str(error))

        producer.send("t", b"v").add_done_callback(ask)
        producer.flush()
    assert len(told) == 1
    assert told[0].startswith("result() would wait for ever")


def test_partitions_in_another_form_show_the_right_one(broker):
    with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([("t", 0)])
        with pytest.raises(TypeError, match=r"not \[\('t', 0\)\]: give each pair as an argument of its own$"):
            consumer.pause([("t", 0)])
        with pytest.raises(TypeError, match=r"\('t', 0\) is one of them: put it into a list"):
            consumer.assign(("t", 0))
