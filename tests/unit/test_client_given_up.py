"""Records that a producer gives up and nobody asks about: the log says so, and is quiet about all others."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import suppress

import pytest

import kafkacodec as kc
from kafkacodec.client.producing.given_up import GivenUp
from kafkacodec.client.producing.outcome import Outcome
from tests.patience import eventually

pa = pytest.importorskip("pyarrow")
TOO_LARGE = kc.errors.error(kc.errors.MESSAGE_TOO_LARGE)


def lost(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING and "gave up" in r.getMessage()]


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve(topics={"t": 1, "u": 1}) as broker:
        yield broker


def refusing(broker, error="TOPIC_AUTHORIZATION_FAILED"):
    return broker.inject("Produce", error, times=None)


def test_records_that_nobody_looks_at_are_told_with_topic_number_and_error(broker, caplog):
    with refusing(broker), kc.client.Producer(broker.bootstrap_servers, linger_ms=1000) as producer:
        for topic in "ttu":
            producer.send(topic, b"v")
        producer.flush()
    assert sorted(lost(caplog)) == [
        "gave up 1 record of topic 'u', and nobody has asked for the outcome: TOPIC_AUTHORIZATION_FAILED: u-0",
        "gave up 2 records of topic 't', and nobody has asked for the outcome: TOPIC_AUTHORIZATION_FAILED: t-0",
    ]


def test_records_that_were_retried_in_vain_are_told(broker, caplog):
    options = {"delivery_timeout_ms": 300, "request_timeout_ms": 200, "linger_ms": 0}
    with refusing(broker, "NOT_ENOUGH_REPLICAS"), kc.client.Producer(broker.bootstrap_servers, **options) as producer:
        producer.send("t", b"v")
        producer.flush()
    (text,) = lost(caplog)
    assert text.startswith("gave up 1 record of topic 't', and nobody has asked for the outcome: not delivered to t-0 ")
    assert text.endswith("within 300 ms: NOT_ENOUGH_REPLICAS: t-0")


def test_the_first_one_is_told_before_the_producer_is_closed(broker, caplog):
    with refusing(broker), kc.client.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"v")
        eventually(lambda: lost(caplog))


def test_asyncio(broker, caplog):
    async def run():
        with refusing(broker):
            async with kc.client.aio.Producer(broker.bootstrap_servers) as producer:
                await producer.send("t", b"v")
                seen = await producer.send("u", b"v")
                with suppress(kc.errors.BrokerError):
                    await seen

    asyncio.run(run())
    (text,) = lost(caplog)
    assert "1 record of topic 't'" in text


def ask(producer, delivery):
    with pytest.raises(kc.errors.BrokerError):
        delivery.result()


LOOKS = {
    "result": ask,
    "error": lambda producer, delivery: (producer.flush(), delivery.error),
    "callback": lambda producer, delivery: delivery.add_done_callback(lambda delivery: None),
    "late callback": lambda producer, delivery: (producer.flush(), delivery.add_done_callback(lambda delivery: None)),
}


@pytest.mark.parametrize("table", [False, True], ids=["record", "table"])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_who_looks_is_not_told(broker, caplog, look, table):
    with refusing(broker), kc.client.Producer(broker.bootstrap_servers) as producer:
        if table:
            made = producer.send_columns(pa.table({"value": [b"1", b"2"]}), topic="t")
        else:
            made = producer.send("t", b"v")
        look(producer, made)
        del made
        producer.flush()
    gc.collect()
    assert lost(caplog) == []


@pytest.mark.parametrize("rows", [3, 5000])
@pytest.mark.parametrize("kept", [False, True])
def test_a_table_that_nobody_looks_at(broker, caplog, rows, kept):
    with refusing(broker), kc.client.Producer(broker.bootstrap_servers) as producer:
        made = producer.send_columns(pa.table({"value": [b"v"] * rows}), topic="t")
        if not kept:
            del made
        producer.flush()
    (text,) = lost(caplog)
    assert f"{rows:,} records of topic 't'" in text


def test_delivered_records_and_those_of_a_transaction_are_not_told(broker, caplog):
    with kc.client.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"v")
    with kc.client.Producer(broker.bootstrap_servers, transactional_id="x") as producer:
        producer.init_transactions()
        with refusing(broker), pytest.raises(kc.errors.LocalProtocolError), producer.transaction():
            producer.send("t", b"v")
    assert lost(caplog) == []


def given_up_in(machine, topic, records, reason=None):
    """A batch of which only some records have been looked at."""
    outcome = Outcome()
    machine.note(outcome, 0, records + 1, topic, reason or TOO_LARGE("MESSAGE_TOO_LARGE: t-0"))
    outcome.unseen.look(0)


def test_there_is_a_line_a_minute_for_each_topic_and_error(caplog):
    woken = []
    machine = GivenUp(lambda: woken.append(True))

    def told(now):
        assert machine.poll(now) == []
        texts = [text.split(",")[0].removeprefix("gave up ") for text in lost(caplog)]
        caplog.clear()
        return texts

    given_up_in(machine, "a", 2)
    assert woken
    assert machine.next_deadline() is None
    assert told(0) == ["2 records of topic 'a'"]
    given_up_in(machine, "a", 3)
    given_up_in(machine, "b", 1)
    given_up_in(machine, "a", 1, ValueError("x"))
    assert told(1000) == ["1 record of topic 'b'", "1 record of topic 'a'"]
    given_up_in(machine, "a", 4)
    assert machine.next_deadline() == 60_000
    assert told(59_000) == []
    assert told(60_000) == ["7 records of topic 'a'"]
    assert told(200_000) == []
    given_up_in(machine, "a", 0)
    assert told(300_000) == []
    for number in range(150):
        given_up_in(machine, f"t{number}", 1)
    assert len(texts := told(400_000)) == 101
    assert "50 records of other topics" in texts
    given_up_in(machine, "a", 1)
    machine.close()
    assert told(400_001) == ["1 record of other topics"]
