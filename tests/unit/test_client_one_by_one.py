"""Records that are sent one after the other: the work for each, and threads that wait for them."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.client.producing._delivery import Delivery
from kafkacodec.client.producing.outcome import Outcome, Part
from kafkacodec.errors import ClientClosed, LocalProtocolError
from tests.model_producer import ModelCluster
from tests.patience import SOON

RECORDS = 40
MOST_CALLS = 112  # of functions in Python, in both threads


class Counted:
    """Counts the calls of a method, between two calls of `next`."""

    def __init__(self, owner: Any, name: str) -> None:
        self.calls = 0
        self.counts: list[int] = []
        self._method = getattr(owner, name)
        setattr(owner, name, self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        return self._method(*arguments, **options)

    def next(self) -> None:
        self.counts.append(self.calls)
        self.calls = 0

    @property
    def usual(self) -> int:
        """The count that a quarter does not exceed: timers, and on a busy machine other answers, add to some."""
        return sorted(self.counts)[len(self.counts) // 4]


async def test_a_coroutine_that_waits_for_each_record_is_woken_in_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = kc.broker.aio.serve(topics={"t": 1})
    async with broker as kafka, kc.client.aio.Producer(kafka.bootstrap_servers, linger_ms=0) as producer:
        await (await producer.send("t", b"first"))
        assert producer._network is not None
        polls, others = Counted(producer._sender, "poll"), Counted(producer._network.cluster, "poll")
        threadsafe: list[Any] = []
        loop, schedule = asyncio.get_running_loop(), asyncio.BaseEventLoop.call_soon_threadsafe
        monkeypatch.setattr(
            type(loop),
            "call_soon_threadsafe",
            lambda self, call, *rest, **options: (threadsafe.append(call), schedule(self, call, *rest, **options))[1],
        )
        for number in range(RECORDS):
            assert (await (await producer.send("t", b"%d" % number))).offset == number + 1
            polls.next()
            others.next()
        assert not [call for call in threadsafe if call.__module__.startswith("kafkacodec.client")]
        assert polls.usual == 1
        assert others.usual == 0


def test_an_answer_after_which_nothing_is_left_costs_no_poll() -> None:
    options: Any = {"linger_ms": 0, "compression_type": "lz4"}  # compressed batches have no way past the loop
    with (
        kc.broker.serve(topics={"t": 1}) as kafka,
        kc.client.Producer(kafka.bootstrap_servers, **options) as producer,
    ):
        producer.send("t", b"first").result()
        polls = Counted(producer._face._sender, "poll")
        for number in range(RECORDS):
            assert producer.send("t", b"%d" % number).result().offset == number + 1
            polls.next()
        assert polls.usual == 1


def test_a_record_takes_few_calls_to_its_acknowledgement() -> None:
    calls, counts = 0, list[int]()
    mine = Path(kc.__file__).parent

    def count(frame: Any, event: str, _: object) -> None:
        nonlocal calls
        name = threading.current_thread().name
        if event == "call" and name in ("MainThread", "kafkacodec producer"):
            calls += mine in Path(frame.f_code.co_filename).parents

    with kc.broker.serve(topics={"t": 1}) as kafka:
        threading.setprofile(count)
        try:
            with kc.client.Producer(kafka.bootstrap_servers, linger_ms=0) as producer:
                producer.send("t", b"first").result()
                sys.setprofile(count)
                for _ in range(RECORDS):
                    calls = 0
                    producer.send("t", b"value").result()
                    counts.append(calls)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
    assert 0 < sorted(counts)[RECORDS // 4] < MOST_CALLS


def test_a_commit_polls_no_other_machine() -> None:
    with kc.broker.serve(topics={"t": 1}) as kafka:
        with kc.client.Producer(kafka.bootstrap_servers) as producer:
            producer.send("t", b"v").result()
        options: Any = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        with kc.client.Consumer("t", bootstrap_servers=kafka.bootstrap_servers, **options) as consumer:
            next(iter(consumer))
            consumer.commit()
            polls = Counted(consumer._parts.network.cluster, "poll")
            for offset in range(RECORDS):
                consumer.commit({("t", 0): offset})
                polls.next()
                assert consumer._parts.network.metrics.snapshot()["consumer.commits"] == offset + 2
            assert consumer.committed("t", 0) == RECORDS - 1
        assert polls.usual == 0


def test_a_transaction_begins_at_once_where_nothing_has_to_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with kc.broker.serve(topics={"t": 1}) as kafka:
        with kc.client.Producer(kafka.bootstrap_servers, transactional_id="x") as producer:
            producer.begin_transaction()  # it gets the producer's id first
            with pytest.raises(LocalProtocolError, match="in a transaction"):
                producer.begin_transaction()
            producer.send("t", b"aborted")
            producer.abort_transaction()
            with monkeypatch.context() as alone:
                alone.setattr(producer._thread, "run", None)
                producer.begin_transaction()
            producer.send("t", b"committed")
            producer.commit_transaction()
        with pytest.raises(ClientClosed):
            producer.begin_transaction()
        plain = kc.client.Producer(kafka.bootstrap_servers)
        with plain, pytest.raises(LocalProtocolError, match="no transactional_id"):
            plain.begin_transaction()
        options: Any = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        with kc.client.Consumer(bootstrap_servers=kafka.bootstrap_servers, **options) as consumer:
            consumer.assign([("t", 0)])
            assert next(iter(consumer)).value == b"committed"


def test_the_first_record_of_a_transaction_after_another_wakes_no_loop() -> None:
    options: Any = {"transactional_id": "x", "linger_ms": 60_000}
    with (
        kc.broker.serve(topics={"t": 1}) as kafka,
        kc.client.Producer(kafka.bootstrap_servers, **options) as producer,
    ):
        rings = Counted(producer._thread, "ring")
        for number in range(RECORDS):
            producer.begin_transaction()
            delivery = producer.send("t", b"%d" % number)
            producer.commit_transaction()
            assert delivery.result().offset == 2 * number
        assert rings.calls == 0


def test_records_of_a_transaction_after_another_are_sent_after_their_time() -> None:
    options: Any = {"transactional_id": "x", "linger_ms": 20}
    with (
        kc.broker.serve(topics={"t": 1}) as kafka,
        kc.client.Producer(kafka.bootstrap_servers, **options) as producer,
    ):
        for number in range(3):
            producer.begin_transaction()
            assert producer.send("t", b"%d" % number).result(SOON).offset == 2 * number
            producer.commit_transaction()


@pytest.mark.parametrize("linger_ms", [0, 1])
def test_many_threads_wait_for_their_own_records(linger_ms: int) -> None:
    found: list[tuple[int, bytes]] = []

    def some(number: int) -> None:
        for n in range(RECORDS):
            value = b"%d %d" % (number, n)
            found.append((producer.send("t", value).result(SOON).offset, value))

    with kc.broker.serve(topics={"t": 1}) as kafka:
        options: Any = {"linger_ms": linger_ms, "max_in_flight_requests_per_connection": 1}
        with kc.client.Producer(kafka.bootstrap_servers, **options) as producer:
            threads = [threading.Thread(target=some, args=(number,)) for number in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        values = kafka.records("t")["value"].tolist()
    assert [value for _, value in sorted(found)] == values
    assert [offset for offset, _ in sorted(found)] == [*range(6 * RECORDS)]


def test_threads_that_wait_are_woken_by_what_makes_their_record_known() -> None:
    outcome, got = Outcome(), []

    def wait(index: int) -> None:
        got.append(Delivery(outcome, index).result(SOON).offset)

    early, late = (threading.Thread(target=wait, args=(index,)) for index in (0, 5))
    for thread in (early, late):
        thread.start()
    while len(outcome.waiters or ()) < 2:
        threading.Event().wait(0.001)
    outcome.resolve(Part(5, 0, "t", 0, 100, -1, None))
    early.join(SOON)
    assert (got, [index for index, _ in outcome.waiters]) == ([100], [5])
    outcome.resolve(Part(9, 5, "t", 0, 200, -1, None))
    late.join(SOON)
    assert (got, outcome.waiters) == ([100, 200], [])


def test_a_thread_that_gives_up_leaves_nothing_behind() -> None:
    outcome = Outcome()
    for timeout in (0, 0.001):
        with pytest.raises(TimeoutError):
            Delivery(outcome, 0).result(timeout)
    assert outcome.waiters == []
    outcome.resolve(Part(1, 0, "t", 0, 7, -1, None))
    assert Delivery(outcome, 0).result(1e12).offset == 7


def test_headers_of_all_kinds_arrive_as_bytes() -> None:
    given: list[Any] = [
        [("trace", b"0123"), ("kind", "tést €")],
        {"null": None, "": ""},
        (("n" * 300, "€" * 200),),
        [["a list", bytearray(b"zz")]],
        [(b"name", memoryview(b"view"))],
        [(f"k{number}", f"v{number}") for number in range(40)],
    ]
    wrong: list[Any] = [[("a", b"1"), ("\ud800", b"")], [("a", "\ud800")], [("a", 5)], [("a",)], ["ab"], [(None, b"")]]
    with kc.broker.serve(topics={"t": 1}) as kafka:
        with kc.client.Producer(kafka.bootstrap_servers, linger_ms=1000) as producer:
            for headers in given:  # the first opens a batch
                producer.send("t", headers=headers)
                for refused in wrong:
                    with pytest.raises(kc.errors.EncodeError):
                        producer.send("t", headers=refused)
        with kc.client.Consumer(bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            for headers, record in zip(given, consumer, strict=False):
                pairs = headers.items() if isinstance(headers, dict) else headers
                assert [tuple(map(as_bytes, pair)) for pair in record.headers] == [
                    tuple(map(as_bytes, pair)) for pair in pairs
                ]


def as_bytes(part: Any) -> bytes | None:
    if part is None:
        return None
    return part.encode() if isinstance(part, str) else bytes(part)


def test_headers_that_change_while_a_record_is_added_are_those_of_one_time() -> None:
    before, after = [("name", b"value")], [["other", bytearray(b"x" * 99)], ("more", None)]
    headers: list[Any] = []

    def change(_phase: str, _info: object) -> None:
        headers[:] = after

    model = ModelCluster(1, linger_ms=10**6)
    kept, refused, thresholds = [model.produce(b"first", 0)], 0, gc.get_threshold()
    model.queues.make_ready(model.queues.topics["t"])
    taken = [Delivery(None) for _ in range(2000)]  # no dropped ones are left, so that each needs memory of its own
    gc.callbacks.append(change)
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(300):
            headers[:] = before
            try:
                kept.append(model.queues.append_open("t", None, b"", headers, 0, None))
            except kc.errors.EncodeError as error:
                refused += "another thread has changed the headers" in str(error)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(change)
    if sys.version_info < (3, 12):  # later ones collect garbage between the steps of a program only
        assert refused
    assert len(taken) == 2000
    model.finish()
    records = [record for stored in model.logs[0].batches for record in kc.iter_records(stored.data)]
    assert len(records) == len(kept) == 301 - refused
    one = [[("name", b"value")], [("other", b"x" * 99), ("more", None)]]
    assert all(list(record.headers) in one for record in records[1:])
