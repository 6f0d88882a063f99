"""Both faces of a consumer on the model of a cluster: waits, ends, commits, and several threads."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import islice

import pytest

import kafkacodec as kc
from kafkacodec.client import Consumer, aio
from kafkacodec.client.blocking import callbacks
from kafkacodec.errors import ClientClosed, DeadlineExceeded, LocalProtocolError, UnknownTopicOrPartitionError
from tests.patience import SOON
from tests.reference.model_broker import ModelCluster
from tests.reference.model_traffic import SERVER, modelled

OPTIONS = {"bootstrap_servers": SERVER, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 20}


@pytest.fixture
def model(monkeypatch):
    return modelled(monkeypatch, ModelCluster(1, {"t": 2}))


def put(model, *values, partition=0, topic="t", **options):
    appended = model.logs[topic, partition].append(kc.encode([(None, value) for value in values], **options), 0)
    assert appended.code == 0


def in_both(face, work, **options):
    """Run a function that gets a consumer: a coroutine function for asyncio."""
    if face == "blocking":
        with Consumer(**OPTIONS, **options) as consumer:
            return work(consumer)

    async def run():
        async with aio.Consumer(**OPTIONS, **options) as consumer:
            return await work(consumer)

    return asyncio.run(run())


FACES = pytest.mark.parametrize("face", ["blocking", "asyncio"])


@FACES
@pytest.mark.parametrize("group", [None, "g"])
def test_reading_ends_when_the_start_is_beyond_the_end(model, face, group):
    for _ in range(10):
        put(model, b"x")
    model.logs["t", 0].delete_before(8)
    ranges = {("t", 0): (0, 5)}

    def blocking(consumer):
        consumer.assign_ranges(ranges)
        return [table["offset"].tolist() for table in consumer.columns()] + list(consumer)

    async def asynchronous(consumer):
        await consumer.assign_ranges(ranges)
        return [t async for t in consumer.columns()] + [r async for r in consumer]

    assert in_both(face, blocking if face == "blocking" else asynchronous, group_id=group) == []


@pytest.fixture
def markers(model):
    """Transactions without records end all the time."""
    ended = threading.Event()

    def run():
        while not ended.wait(0.02):
            model.logs["t", 0].append_marker(7, 0, commit=True, epoch=0)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    ended.set()
    thread.join()


@FACES
def test_a_wait_ends_in_time_whatever_comes_that_is_no_record(model, markers, face):
    def blocking(consumer):
        consumer.assign([("t", 0)])
        return consumer.getmany(0.2), list(consumer.columns(timeout=0.2)), consumer.position("t", 0)

    async def asynchronous(consumer):
        await consumer.assign([("t", 0)])
        tables = consumer.columns(timeout=0.2)
        return await consumer.getmany(0.2), [table async for table in tables], await consumer.position("t", 0)

    start = time.monotonic()
    lists, tables, position = in_both(face, blocking if face == "blocking" else asynchronous)
    assert time.monotonic() - start < SOON
    assert (lists, tables) == ({}, [])
    assert position > 2


@FACES
def test_times_that_never_end(model, face):
    put(model, b"x")

    def blocking(consumer):
        consumer.assign([("t", 0)])
        return consumer.getmany(float("inf"))

    async def asynchronous(consumer):
        await consumer.assign([("t", 0)])
        return await consumer.getmany(float("inf"))

    assert len(in_both(face, blocking if face == "blocking" else asynchronous)) == 1


def test_topics_that_do_not_exist_are_asked_for_no_more(model):
    with Consumer(**OPTIONS, retry_backoff_ms=5, retry_backoff_max_ms=5, default_api_timeout_ms=100) as consumer:
        consumer.assign([("t", 0)])
        for call in (consumer.end_offsets, consumer.beginning_offsets):
            with pytest.raises(DeadlineExceeded, match="topic 'missing' does not exist"):
                call([("missing", 0)])
        assert consumer.end_offsets([("t", 0)]) == {("t", 0): 0}
        time.sleep(0.05)
        before = sum(request.api_key == 3 for _, request, _ in model.requests)
        time.sleep(0.2)
        assert sum(request.api_key == 3 for _, request, _ in model.requests) - before < 5
        consumer.assign([("missing", 0)])
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.getmany(0.1)
        model.create("missing")
        put(model, b"x", topic="missing")
        assert len(consumer.getmany(SOON)["missing", 0]) == 1


class SlowEvent(threading.Event):
    """Much may happen before a wait."""

    def wait(self, timeout=None):
        time.sleep(0.05)
        return super().wait(timeout)


def test_a_thread_that_waits_takes_no_wake_from_another(monkeypatch):
    monkeypatch.setattr(threading, "Event", SlowEvent)
    thread = callbacks.CallbackThread("test")
    thread.wanted = True
    monkeypatch.undo()
    ended = threading.Event()

    def read():  # as a consumer does that has no records
        while not ended.is_set():
            thread.event.clear()
            thread.event.wait()

    reader = threading.Thread(target=read)
    caller = threading.Thread(target=lambda: thread.run(lambda: asyncio.sleep(0.01)), daemon=True)
    reader.start()
    time.sleep(0.1)
    caller.start()
    caller.join(SOON)
    left = caller.is_alive()
    ended.set()
    thread.event.set()
    reader.join()
    thread.close()
    assert not left


class Stop(Exception):
    """Of the application, in the middle of its work."""


READS = {
    "iteration": lambda consumer: ([record] for record in consumer),
    "lists": lambda consumer: iter(lambda: consumer.getmany(SOON, 2)[("t", 0)], None),
    "columns": lambda consumer: (list(table) for table in consumer.columns(max_rows=2)),
}


@pytest.mark.parametrize("how", READS)
@pytest.mark.parametrize("end", ["exception", "break", "commit"])
def test_what_is_committed(model, how, end):
    """Everything before what the application works on; all that it has, if it ends by itself."""
    for number in range(4):
        put(model, *(b"%d-%d" % (number, n) for n in range(3)))
    given = []
    try:
        with Consumer(group_id="g", **OPTIONS) as consumer:
            consumer.assign([("t", 0)])
            for records in READS[how](consumer):
                given.append([record.offset for record in records])
                if len(given) == 3 and end == "exception":
                    raise Stop
                if len(given) == 3:
                    if end == "commit":
                        consumer.commit()
                        assert model.committed == {("t", 0): given[-1][-1] + 1}
                    break
    except Stop:
        assert model.committed == {("t", 0): given[-1][0]}
    else:
        assert model.committed == {("t", 0): given[-1][-1] + 1}
    assert [offset for offsets in given for offset in offsets] == list(range(given[-1][-1] + 1))


@pytest.fixture
def filled():
    with kc.broker.serve(topics={"t": 1}) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            for number in range(100):
                producer.send("t", b"%d" % number)
        yield {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest", "group_id": "g"}


def test_of_commits_that_nobody_waits_for_the_newest_counts(filled):
    with kc.client.Consumer("t", **filled, enable_auto_commit=False) as consumer:
        for record in islice(consumer, 100):
            consumer.commit({("t", 0): record.offset + 1}, wait=False)
    with kc.client.Consumer("t", **filled) as consumer:
        assert consumer.committed("t", 0) == 100
    without = kc.client.Consumer("t", **{**filled, "group_id": None})
    with without, pytest.raises(LocalProtocolError, match="give the consumer a group_id"):
        without.commit(wait=False)
    with pytest.raises(ClientClosed):
        consumer.commit(wait=False)


@pytest.mark.parametrize("offsets", [None, {("t", 0): 7}])
def test_a_commit_that_waits_for_the_loop_leaves_out_what_is_taken_away_meanwhile(filled, offsets):
    async def given_up():
        consumer._face._group.offsets.taken_away([("t", 0)])

    with kc.client.Consumer("t", **filled, enable_auto_commit=False) as consumer:
        assert next(iter(consumer)).offset == 0
        later = []
        consumer._parts.soon, soon = later.append, consumer._parts.soon
        consumer.commit(offsets, wait=False)
        consumer._parts.soon = soon
        consumer._thread.run(given_up)
        consumer._thread.soon(*later)
        assert consumer.committed("t", 0) is None
        consumer.commit(offsets, wait=False)
        consumer.commit({})
        assert consumer.committed("t", 0) == (1 if offsets is None else 7)


def test_a_position_that_is_another_one_by_now_is_not_committed(filled):
    with kc.client.Consumer("t", **filled, enable_auto_commit=False) as consumer:
        assert next(iter(consumer)).offset == 0
        later = []
        consumer._parts.soon, soon = later.append, consumer._parts.soon
        consumer.commit(wait=False)
        consumer._parts.soon = soon
        consumer.seek("t", 0, 50)
        consumer._thread.soon(*later)
        assert consumer.committed("t", 0) is None
