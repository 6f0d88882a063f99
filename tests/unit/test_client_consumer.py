"""What consumers refuse at the call, and how they end."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import kafkacodec as kc
from kafkacodec.client import Consumer, aio
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.core.metadata import Partition, Topic
from kafkacodec.errors import ClientClosed, DeadlineExceeded, LocalProtocolError, LogTruncated, NoOffset, error

MODERN = {"group_id": "g", "group_protocol": "consumer"}


@pytest.fixture(scope="module")
def nobody():
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def consumer(nobody):
    with Consumer(bootstrap_servers=nobody) as made:
        yield made


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"auto_ofset_reset": "latest"}, TypeError, "did you mean 'auto_offset_reset'"),
        ({"auto_offset_reset": "first"}, ValueError, "auto_offset_reset"),
        ({"isolation_level": "serializable"}, ValueError, "isolation_level must be"),
        ({"group_id": ""}, ValueError, "group_id is empty"),
        ({"group_id": 5}, TypeError, "group_id must be text"),
        ({"group_protocol": "modern"}, ValueError, "group_protocol"),
        ({"group_id": "g", "partition_assignment_strategy": "rang"}, ValueError, "did you mean 'range'"),
        ({"group_id": "g", "partition_assignment_strategy": [5]}, TypeError, "partition_assignment_strategy"),
        ({"group_id": "g", "group_remote_assignor": "uniform"}, ValueError, "no effect with group_protocol='classic'"),
        ({**MODERN, "session_timeout_ms": 10_000}, ValueError, "session_timeout_ms has no effect with group_protocol"),
        ({**MODERN, "heartbeat_interval_ms": 100}, ValueError, "heartbeat_interval_ms has no effect"),
        ({**MODERN, "partition_assignment_strategy": "sticky"}, ValueError, "leave it out, or use 'classic'"),
        ({"group_instance_id": "one"}, ValueError, "group_instance_id has no effect without group_id"),
        ({"max_poll_records": 0}, ValueError, "max_poll_records"),
        ({"prefetch_bytes": 0}, ValueError, "prefetch_bytes"),
        ({"fetch_max_wait_ms": "1"}, TypeError, "fetch_max_wait_ms"),
        ({"value_deserializer": "json"}, TypeError, "value_deserializer must be callable"),
    ],
)
@pytest.mark.parametrize("face", [Consumer, aio.Consumer])
def test_wrong_options(nobody, face, options, error, words):
    before = threading.active_count()
    with pytest.raises(error, match=words):
        face(bootstrap_servers=nobody, **options)
    assert threading.active_count() == before


@pytest.mark.parametrize("face", [Consumer, aio.Consumer])
def test_dotted_names(nobody, face):
    config = {
        "bootstrap.servers": nobody,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "fetch.wait.max.ms": "20",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor,range",
    }
    made = face.from_config(config)
    settings = made._settings
    assert (settings.group_id, settings.enable_auto_commit, settings.fetch_max_wait_ms) == ("g", False, 20)
    with pytest.raises(TypeError, match=r"unknown option 'group\.ids'; did you mean 'group\.id'"):
        face.from_config({"bootstrap.servers": nobody, "group.ids": "g"})
    if face is Consumer:
        made.close()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda c: c.subscribe("orders"), TypeError, "topics must be a list of names, not 'orders'"),
        (lambda c: c.subscribe(["or ders"]), ValueError, "illegal topic 'or ders'"),
        (lambda c: c.subscribe([".."]), ValueError, "illegal topic '..'"),
        (
            lambda c: c.assign_ranges({("t", 0): 5}),
            TypeError,
            "needs a first offset and an end, .*, not 5",
        ),
        (lambda c: c.subscribe([5]), TypeError, "a topic must be text"),
        (lambda c: c.subscribe(), ValueError, "either topics or a pattern"),
        (lambda c: c.subscribe(["a"], pattern="b"), ValueError, "either topics or a pattern"),
        (lambda c: c.subscribe(pattern="("), ValueError, "is not a regular expression"),
        (lambda c: c.subscribe(pattern=b"a"), TypeError, "pattern must be a regular expression"),
        (lambda c: c.subscribe(["a"], on_revoked=print), ValueError, "without group_id has no rebalances"),
        (lambda c: c.assign("orders"), TypeError, "partitions must be a list"),
        (lambda c: c.assign([("orders",)]), TypeError, "a pair of topic and number"),
        (lambda c: c.assign([("orders", -1)]), ValueError, "must not be negative"),
        (lambda c: c.assign([("orders", "0")]), TypeError, "must be an integer"),
        (lambda c: c.assign([("orders", True)]), TypeError, "must be an integer"),
        (lambda c: c.seek("orders", 0, 5), LocalProtocolError, "orders-0 is not assigned"),
        (lambda c: c.pause(("orders", 0)), LocalProtocolError, "is not assigned"),
        (lambda c: c.resume(("orders", 0)), LocalProtocolError, "is not assigned"),
        (lambda c: c.position("orders", 0), LocalProtocolError, "is not assigned"),
        (lambda c: c.seek_to_timestamp(-5), ValueError, "timestamp must be from 0"),
        (lambda c: c.offsets_for_times({("orders", 0): 1.5}), TypeError, "timestamp must be milliseconds"),
        (
            lambda c: c.offsets_for_times([("orders", 0)]),
            TypeError,
            r"timestamps must be a dict by .*, not list",
        ),
        (
            lambda c: c.assign_ranges([("orders", 0)]),
            TypeError,
            r"ranges must be a dict by .*, not list",
        ),
        (lambda c: c.commit(), LocalProtocolError, "commit needs a group: give the consumer a group_id"),
        (lambda c: c.committed("orders", 0), LocalProtocolError, "needs a group"),
        (lambda c: c.group_metadata(), LocalProtocolError, "needs a group"),
        (lambda c: c.getmany(), LocalProtocolError, r"nothing to read: call subscribe\(\) or assign\(\) first"),
        (lambda c: next(iter(c)), LocalProtocolError, "nothing to read"),
        (lambda c: next(c.columns()), LocalProtocolError, "nothing to read"),
        (lambda c: c.columns(max_rows=0), ValueError, "max_rows must be from 1"),
        (lambda c: c.columns(timeout=-1), ValueError, "timeout must not be negative"),
        (lambda c: c.columns(timeout="1"), TypeError, "timeout must be seconds"),
        (lambda c: c.getmany(max_records=2.5), TypeError, "max_records must be an integer"),
    ],
)
def test_wrong_calls(consumer, call, error, words):
    with pytest.raises(error, match=words):
        call(consumer)
    assert consumer.assignment() == []


def test_topics_and_partitions_exclude_each_other(consumer):
    consumer.assign([("orders", 0)])
    with pytest.raises(LocalProtocolError, match=r"call unsubscribe\(\) before subscribe"):
        consumer.subscribe(["orders"])
    consumer.unsubscribe()
    consumer.subscribe(["orders"])
    assert consumer.subscription() == ["orders"]
    with pytest.raises(LocalProtocolError, match=r"call unsubscribe\(\) before assign"):
        consumer.assign([("orders", 0)])
    with Consumer("orders", bootstrap_servers="127.0.0.1:1") as other:
        assert other.subscription() == ["orders"]


def test_seeking_and_pausing_need_no_broker(consumer):
    consumer.assign([("orders", 0), ("orders", 1)])
    consumer.seek("orders", 0, 5)
    assert consumer.position("orders", 0) == 5
    consumer.pause(("orders", 1))
    assert consumer.paused() == [("orders", 1)]
    assert consumer.lag() == {}
    assert consumer.metrics()["consumer.assigned_partitions"] == 2


def test_nobody_answers(nobody):
    options = {"bootstrap_servers": nobody, "default_api_timeout_ms": 300}
    with Consumer("orders", **options) as consumer:
        for read in (lambda: consumer.getmany(0.2), lambda: list(consumer.columns(timeout=0.2))):
            with pytest.raises(DeadlineExceeded, match=r"no broker answers: .*(refused|connect)"):
                read()
        assert consumer.getmany(0) == {}
        with pytest.raises(DeadlineExceeded) as caught:
            consumer.end_offsets([("orders", 0)])
        assert caught.value.__cause__ is not None


def test_a_closed_consumer(nobody):
    consumer = Consumer("orders", bootstrap_servers=nobody)
    records = iter(consumer)
    consumer.close()
    consumer.close()
    for call in (consumer.getmany, lambda: next(records), lambda: consumer.seek("a", 0, 0), consumer.unsubscribe):
        with pytest.raises(ClientClosed):
            call()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("error")
def test_a_closed_member_awaits_nothing(nobody):
    consumer = Consumer("orders", bootstrap_servers=nobody, group_id="billing")
    with pytest.raises(TypeError, match=r"offsets must be a dict by \(topic, number\), not list"):
        consumer.commit([("orders", 0)])
    consumer.close()
    for call in (consumer.commit, lambda: consumer.seek("orders", 0, 5)):
        with pytest.raises(ClientClosed):
            call()
    gc.collect()  # a coroutine that was never awaited would warn


def test_a_forked_process_has_no_consumer(nobody):
    code = f"""
import os, sys
from kafkacodec.client import Consumer
from kafkacodec.errors import ClientClosed
consumer = Consumer("orders", bootstrap_servers={nobody!r})
child = os.fork()
if not child:
    try:
        consumer.getmany()
    except ClientClosed as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
consumer.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "7\n"


@pytest.mark.parametrize("read", ["next(iter(consumer))", "consumer.getmany(None)", "next(consumer.columns())"])
def test_an_interrupt_ends_a_wait(nobody, read):
    code = f"""
import signal
import threading
from kafkacodec.client import Consumer
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
try:
    with Consumer("orders", bootstrap_servers={nobody!r}) as consumer:
        print("reading", flush=True)
        {read}
except KeyboardInterrupt:
    print(threading.active_count())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "reading\n"
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60)[0] == "1\n"
        finally:
            process.kill()
    assert process.returncode == 0


def test_one_event_loop(nobody):
    consumer = aio.Consumer(bootstrap_servers=nobody)  # needs no loop yet

    async def use():
        await consumer.assign([("orders", 0)])

    with asyncio.Runner() as first:
        first.run(use())
        with pytest.raises(ClientClosed, match="another event loop"):
            asyncio.run(use())
        first.run(consumer.close())
        with pytest.raises(ClientClosed, match="closed"):
            first.run(use())


def test_no_secret_is_shown(nobody):
    settings = ConsumerSettings(bootstrap_servers=nobody, sasl_plain_password="hunter2", ssl_password="hunter2")
    assert "hunter2" not in repr(settings)
    with Consumer(bootstrap_servers=nobody, group_id="billing") as consumer:
        assert repr(consumer) == f"<Consumer: {nobody}, group 'billing', open>"


def test_errors_survive_pickling():
    lost = pickle.loads(pickle.dumps(LogTruncated("t-0: gone", divergent_offset=7)))
    assert (str(lost), lost.divergent_offset) == ("t-0: gone", 7)
    assert str(pickle.loads(pickle.dumps(NoOffset("t-0")))) == "t-0"


def test_partitions_of_a_topic(nobody):
    with Consumer(bootstrap_servers=nobody, default_api_timeout_ms=200) as consumer:
        with pytest.raises(ValueError, match="illegal topic 'a b'"):
            consumer.partitions_for("a b")
        with pytest.raises(DeadlineExceeded, match=r"not in time: .*(refused|connect)"):
            consumer.partitions_for("orders")
        topics = consumer._face._parts.network.cluster.topics
        topics["orders"] = Topic("orders", partitions={1: Partition(1, None), 0: Partition(0, None)})
        with pytest.raises(DeadlineExceeded):  # it is of an earlier answer
            consumer.partitions_for("orders")
        consumer.assign([("orders", 0)])
        consumer.assign([])
        assert "orders" not in topics  # it may be another one when it is read again


def test_a_topic_that_may_not_be_read():
    with (
        kc.broker.serve(topics=["secret"]) as broker,
        broker.inject("Metadata", "TOPIC_AUTHORIZATION_FAILED", times=None),
        Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer,
        pytest.raises(error(29), match="topic 'secret': TOPIC_AUTHORIZATION_FAILED"),
    ):
        consumer.partitions_for("secret")
