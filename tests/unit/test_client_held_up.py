"""Consumers whose reads brokers refuse for a while say so, once a minute, with the error."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import kafkacodec as kc
from kafkacodec.client.core import held_up
from kafkacodec.client.core.held_up import HeldUp, HeldUpCalls, Hindrances
from kafkacodec.client.producing import undelivered
from kafkacodec.errors import COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, DeadlineExceeded


def told(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING and "keeps trying" in r.getMessage()]


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve(topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(held_up, "RECENT_MS", 300.0)
    monkeypatch.setattr(held_up, "LONG_MS", 300.0)
    monkeypatch.setattr(undelivered, "LONG_MS", 300.0)


@pytest.fixture
def said():
    """Is set by the first warning: whoever waits then for no time of their own does not fail on a busy machine."""
    event = threading.Event()

    class Heard(logging.Handler):
        def emit(self, record):
            if "keeps trying" in record.getMessage():
                event.set()

    logger, handler = logging.getLogger("kafkacodec"), Heard()
    logger.addHandler(handler)
    yield event
    logger.removeHandler(handler)


CASES = [
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", "the coordinator of group 'g' is not found"),
    ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", "group 'g' cannot be joined"),
    ("SyncGroup", "NOT_COORDINATOR", "group 'g' cannot be joined"),
    ("ListOffsets", "LEADER_NOT_AVAILABLE", "the position in t-0 is not found"),
    ("Fetch", "KAFKA_STORAGE_ERROR", "t-0 cannot be fetched"),
]


@pytest.mark.parametrize(("api", "error", "what"), CASES, ids=[case[0] for case in CASES])
def test_a_consumer_says_what_holds_it_up(broker, caplog, api, error, what):
    options = {"group_id": "g", "auto_offset_reset": "earliest"}
    with (
        broker.inject(api, error, times=None),
        kc.client.Consumer("t", bootstrap_servers=broker.bootstrap_servers, **options) as consumer,
    ):
        end = time.monotonic() + 20
        while not told(caplog) and time.monotonic() < end:
            assert consumer.getmany(timeout=0.2) == {}
        (text,) = told(caplog)
    assert text.startswith("records are waited for; for ")
    assert text.endswith(f" s {what}: {error}; the consumer keeps trying")


SHARED = [
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", "the coordinator of group 's' is not found"),
    ("ShareGroupHeartbeat", "COORDINATOR_LOAD_IN_PROGRESS", "group 's' cannot be joined"),
    ("ShareFetch", "KAFKA_STORAGE_ERROR", "cannot be"),
]


@pytest.mark.parametrize(("api", "error", "what"), SHARED, ids=[case[0] for case in SHARED])
def test_a_share_consumer_does_so_too(broker, caplog, api, error, what):
    with (
        broker.inject(api, error, times=None),
        kc.client.ShareConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="s") as consumer,
    ):
        end = time.monotonic() + 20
        while not told(caplog) and time.monotonic() < end:
            assert consumer.getmany(timeout=0.2) == []
        (text,) = told(caplog)
        assert what in text
        assert text.endswith(f": {error}; the consumer keeps trying")


LIMITED = {"default_api_timeout_ms": 30_000}
CALLS = [
    ("ListOffsets", "LEADER_NOT_AVAILABLE", "the offset in t-0 is not found",
     lambda o: kc.client.Consumer(**o, **LIMITED), lambda c: c.end_offsets([("t", 0)])),
    ("Metadata", "LEADER_NOT_AVAILABLE", "topic 't' is not available",
     lambda o: kc.client.Consumer(**o, **LIMITED), lambda c: c.partitions_for("t")),
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", "the coordinator of group 'g' is not found",
     lambda o: kc.client.Consumer(**o, **LIMITED, group_id="g"), lambda c: c.committed("t", 0)),
    ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", "OffsetFetch of group 'g' is refused",
     lambda o: kc.client.Consumer(**o, **LIMITED, group_id="g"), lambda c: c.committed("t", 0)),
    ("ListOffsets", "LEADER_NOT_AVAILABLE", "ListOffsets of t-0 is refused",
     lambda o: kc.client.Admin(**o, **LIMITED), lambda a: a.list_offsets({("t", 0): "latest"})),
    ("CreateTopics", "NOT_CONTROLLER", "CreateTopics of 'new' is refused",
     lambda o: kc.client.Admin(**o, **LIMITED), lambda a: a.create_topics("new")),
    ("InitProducerId", "CONCURRENT_TRANSACTIONS", "a request for transactional id 'x' is refused",
     lambda o: kc.client.Producer(**o, transactional_id="x", max_block_ms=30_000), lambda p: p.init_transactions()),
    ("Metadata", "LEADER_NOT_AVAILABLE", "topic 't' is not available",
     lambda o: kc.client.Producer(**o, max_block_ms=30_000), lambda p: p.send("t", b"v")),
]  # fmt: skip


@pytest.mark.parametrize(("api", "error", "what", "make", "call"), CALLS, ids=[f"{c[0]}-{c[2]}" for c in CALLS])
def test_a_call_that_waits_for_long_says_for_what(broker, caplog, said, api, error, what, make, call):
    with make({"bootstrap_servers": broker.bootstrap_servers}) as client, ThreadPoolExecutor(1) as pool:
        with broker.inject(api, error, times=None):
            waiting = pool.submit(call, client)
            assert said.wait(30)
        waiting.result()
    (text,) = (each for each in told(caplog) if each.startswith("a call"))  # the record of send may be told of, too
    assert re.fullmatch(
        rf"a call waits; for \d+ s {what}: {error}; the client keeps trying, for at most [123]?\d s more", text
    )


async def test_in_an_event_loop_too(broker, caplog, said):
    options = {"bootstrap_servers": broker.bootstrap_servers}
    async with kc.client.aio.Consumer(**options, **LIMITED) as consumer:
        with broker.inject("ListOffsets", "LEADER_NOT_AVAILABLE", times=None):
            calls = asyncio.gather(consumer.end_offsets([("t", 0)]), consumer.beginning_offsets([("t", 0)]))
            assert await asyncio.to_thread(said.wait, 30)
        assert [[*found] for found in await calls] == [[("t", 0)]] * 2
    (text,) = told(caplog)
    assert text.startswith("2 calls wait; for ")


RECORDS = [
    ("Produce", "NOT_ENOUGH_REPLICAS", "records of t-0 are refused", "NOT_ENOUGH_REPLICAS: t-0"),
    ("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS", "a producer id is refused",
     "no producer id: COORDINATOR_LOAD_IN_PROGRESS"),
]  # fmt: skip


@pytest.mark.parametrize("wait", [lambda p, d: p.flush(), lambda p, d: d.result(), lambda p, d: p.close()])
@pytest.mark.parametrize(("api", "error", "what"), [case[:3] for case in RECORDS], ids=[case[0] for case in RECORDS])
def test_records_that_are_refused_for_long_are_told(broker, caplog, said, api, error, what, wait):
    options = {"delivery_timeout_ms": 30_000, "request_timeout_ms": 20_000, "linger_ms": 0}
    with (
        kc.client.Producer(broker.bootstrap_servers, **options) as producer,
        ThreadPoolExecutor(1) as pool,
    ):
        with broker.inject(api, error, times=None):
            delivery = producer.send("t", b"v")
            waiting = pool.submit(wait, producer, delivery)
            assert said.wait(30)
        waiting.result()
        assert delivery.result().partition == 0
    (text,) = told(caplog)
    assert re.fullmatch(
        rf"1 record waits to be delivered; for \d+ s {what}: {error}; "
        r"the producer keeps trying, for at most [123]?\d s more",
        text,
    )


@pytest.mark.parametrize(("api", "error", "reason"), [(c[0], c[1], c[3]) for c in RECORDS], ids=[c[0] for c in RECORDS])
def test_records_that_were_refused_to_the_end_say_so(broker, api, error, reason):
    options = {"delivery_timeout_ms": 4000, "request_timeout_ms": 3000, "linger_ms": 0}
    with broker.inject(api, error, times=None), kc.client.Producer(broker.bootstrap_servers, **options) as producer:
        delivery = producer.send("t", b"v")
        with pytest.raises(DeadlineExceeded):
            delivery.result()
        assert str(delivery.error) == f"not delivered to t-0 within 4000 ms: {reason}"


def test_partitions_without_leader_are_told(caplog, said):
    options = {"delivery_timeout_ms": 30_000, "request_timeout_ms": 20_000, "linger_ms": 0}
    with kc.broker.serve(brokers=2) as cluster, ThreadPoolExecutor(1) as pool:
        servers = cluster.bootstrap_servers
        with kc.client.Admin(servers) as admin:
            admin.create_topics(kc.client.NewTopic("t", replica_assignments={0: [1], 1: [2]}))
        calls = [
            (kc.client.Producer(servers, **options), lambda p: p.send("t", b"v", partition=1).result()),
            (kc.client.Consumer(bootstrap_servers=servers, **LIMITED), lambda c: c.end_offsets([("t", 1)])),
            (kc.client.Admin(servers, **LIMITED), lambda a: a.list_offsets({("t", 1): "latest"})),
        ]
        for client, call in calls:
            with client:
                said.clear()
                cluster.stop_broker(2)
                waiting = pool.submit(call, client)
                assert said.wait(30)
                cluster.start_broker(2)
                waiting.result()
    texts = told(caplog)
    assert [t.partition(";")[0] for t in texts] == ["1 record waits to be delivered", "a call waits", "a call waits"]
    assert "t-1 has no leader: LEADER_NOT_AVAILABLE" in texts[0]
    assert "the offset in t-1 is not found: LEADER_NOT_AVAILABLE" in texts[1]
    assert "t-1 has no leader: LEADER_NOT_AVAILABLE" in texts[2]


def test_each_call_that_waits_alone_is_told_but_not_others_twice(caplog):
    hindrances, clock = Hindrances(1000), [0.0]
    machine = HeldUpCalls(hindrances, lambda: clock[0])

    def pass_time(seconds):
        for _ in range(int(seconds * 10)):
            clock[0] += 100.0
            hindrances.refused("a", COORDINATOR_NOT_AVAILABLE, clock[0])
            assert machine.poll(clock[0]) == []
        texts = told(caplog)
        caplog.clear()
        return texts

    assert pass_time(10) == []  # nobody waits
    with machine.waiting(60_000):
        assert pass_time(0.2) == []
        (text,) = pass_time(1)
        assert re.fullmatch(r"a call waits; for 10 s a: .*; the client keeps trying, for at most (59|60) s more", text)
        assert pass_time(50) == []
        with machine.waiting(math.inf):
            (text,) = pass_time(20)
            assert text == "2 calls wait; for 70 s a: COORDINATOR_NOT_AVAILABLE; the client keeps trying"
    with machine.waiting(1000):
        assert pass_time(0.2) == []  # the refusals before are not its own
        assert len(pass_time(0.3)) == 1


def test_a_request_to_an_unknown_coordinator_says_why_it_is_unknown(broker):
    options = {"group_id": "g", "default_api_timeout_ms": 500}
    with (
        broker.inject("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None),
        kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, **options) as consumer,
        pytest.raises(kc.errors.DeadlineExceeded, match=r"coordinator of group 'g' .*: COORDINATOR_NOT_AVAILABLE"),
    ):
        consumer.committed("t", 0)


def test_it_is_told_once_a_minute_while_it_lasts_and_somebody_waits(caplog):
    hindrances, asked = Hindrances(1000), [True]
    machine = HeldUp(hindrances, lambda: asked[0])

    def refused(seconds, code=COORDINATOR_NOT_AVAILABLE, what="a"):
        hindrances.refused(what, code, seconds * 1000)
        assert machine.poll(seconds * 1000) == []
        texts = told(caplog)
        caplog.clear()
        return texts

    assert refused(0) == refused(0.2) == []
    asked[0] = False
    assert refused(0.4) == []
    asked[0] = True
    assert refused(5) == ["records are waited for; for 5 s a: COORDINATOR_NOT_AVAILABLE; the consumer keeps trying"]
    for second in range(6, 65):
        assert refused(second, what=f"b{second % 2}") == []
        assert refused(second) == []
    assert refused(65, NOT_COORDINATOR) == [
        "records are waited for; for 65 s a: NOT_COORDINATOR, and 2 more; the consumer keeps trying"
    ]
    assert refused(200) == []  # after a pause it begins anew
    assert refused(201) == ["records are waited for; for 1 s a: COORDINATOR_NOT_AVAILABLE; the consumer keeps trying"]


def test_what_is_known_is_bounded(monkeypatch):
    monkeypatch.setattr(held_up, "_MOST", 10)
    hindrances = Hindrances(0)
    for number in range(100):
        hindrances.refused(str(number), COORDINATOR_NOT_AVAILABLE, number)
    assert len(hindrances._known) == 10
