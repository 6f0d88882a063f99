"""Producers that wait, for metadata, memory or the end of a transaction, while something else happens; no broker."""

from __future__ import annotations

import asyncio
import logging

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.client.core.calls import Coordinator, Send
from kafkacodec.client.core.metadata import Partition, Topic
from kafkacodec.client.producing.transactions import State
from kafkacodec.errors import BrokerError, ClientClosed, DeadlineExceeded, LocalProtocolError, RemoteProtocolError
from tests.patience import SOON

NOBODY = "127.0.0.1:1"


def know(producer, topic="t"):
    """As if metadata had named a topic whose leader cannot be reached."""
    producer._network.cluster.topics[topic] = Topic(topic, partitions={0: Partition(0, None)})
    producer._network.cluster.generation += 1
    producer._progress()


def begin(producer, started=False):
    """As if a coordinator had answered; `started`: it has to be told of the end."""
    own = producer._transactions
    own.initialize()
    own._version_2, own.current, own.state = True, (9, 0), State.READY
    own.begin()
    own._started = started
    return own


@pytest.mark.parametrize("columns", [False, True], ids=["send", "send_columns"])
async def test_a_record_that_waits_while_its_transaction_ends_is_not_in_the_next_one(columns):
    async with kc.client.aio.Producer(NOBODY, transactional_id="x") as producer:
        begin(producer)
        call = producer.send_columns(pa.table({"value": ["v"]}), topic="t") if columns else producer.send("t", b"v")
        sending = asyncio.create_task(call)
        await asyncio.sleep(0)
        await producer.abort_transaction()
        producer._transactions.begin()
        know(producer)
        with pytest.raises(LocalProtocolError, match="the transaction to which the record belongs has ended"):
            await sending
        assert not producer._queues.pending
        await producer.commit_transaction()


async def test_a_record_that_waits_while_its_transaction_is_committed_is_refused():
    async with kc.client.aio.Producer(NOBODY, transactional_id="x") as producer:
        begin(producer)
        sending = asyncio.create_task(producer.send("t", b"v"))
        await asyncio.sleep(0)
        await producer.commit_transaction()
        know(producer)
        with pytest.raises(LocalProtocolError, match="it is between transactions"):
            await sending


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_an_end_that_succeeds_after_its_deadline(commit):
    async with kc.client.aio.Producer(NOBODY, transactional_id="x", max_block_ms=20) as producer:
        own = begin(producer, started=True)
        end = producer.commit_transaction if commit else producer.abort_transaction
        with pytest.raises(DeadlineExceeded, match=r"no success for transactional id 'x' within 0\.02 s"):
            await end()
        own._ended(messages.EndTxnResponse())
        await end()
        with pytest.raises(LocalProtocolError, match="it is between transactions"):
            await end()


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_closing_waits_for_the_end_of_the_transaction(commit):
    producer = kc.client.aio.Producer(NOBODY, transactional_id="x")
    await producer.start()
    own = begin(producer, started=True)
    ending = asyncio.create_task(producer.commit_transaction() if commit else producer.abort_transaction())
    await asyncio.sleep(0)
    closing = asyncio.create_task(producer.close())
    await asyncio.sleep(0.02)
    assert not closing.done()
    own._ended(messages.EndTxnResponse())
    producer._progress()
    await asyncio.gather(ending, closing)


async def test_closing_a_producer_whose_transaction_does_not_end_in_time(caplog):
    producer = kc.client.aio.Producer(NOBODY, transactional_id="x")
    await producer.start()
    begin(producer, started=True)
    ending = asyncio.create_task(producer.commit_transaction())
    await asyncio.sleep(0)
    with caplog.at_level(logging.WARNING, "kafkacodec.client.producer"):
        await producer.close(0.02)
    assert "although the transaction has not ended: it is committing" in caplog.text
    with pytest.raises(ClientClosed):
        await ending


async def test_a_commit_that_is_aborted_while_it_sends_does_not_succeed():
    async with kc.client.aio.Producer(NOBODY, transactional_id="x") as producer:
        begin(producer)
        know(producer)
        delivery = await producer.send("t", b"v")
        committing = asyncio.create_task(producer.commit_transaction())
        await asyncio.sleep(0)
        await producer.abort_transaction()
        with pytest.raises(LocalProtocolError, match="aborted before it was committed"):
            await committing
        with pytest.raises(ClientClosed, match="aborted before the record was sent"):
            delivery.result(0)


def _drop(producer):
    """Leave nothing for closing to wait for."""
    producer._sender.discard(ClientClosed("dropped"))
    producer._transactions._fail(ClientClosed("dropped"))


def _fenced(producer):
    producer._transactions._fail(BrokerError("another producer is newer"))


def _failed(producer):
    producer._transactions.given_up(BrokerError("too large"), sent=False)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda producer: producer._transactions.end(True), "it is committing"),
        (lambda producer: producer._transactions.end(False), "it is aborting"),
        (lambda producer: producer._transactions.prepare(), "a transaction that is prepared"),
        (_failed, "has failed, abort it: too large"),
        (_fenced, "another producer is newer"),
    ],
    ids=["commit", "abort", "prepare", "failed", "fenced"],
)
async def test_records_of_a_transaction_go_into_open_batches_until_it_ends(end, reason):
    """They need not ask for the state, since the end of the transaction leaves no topic ready."""
    async with kc.client.aio.Producer(NOBODY, transactional_id="x", linger_ms=600_000) as producer:
        begin(producer)
        know(producer)
        queues, rows = producer._queues, pa.table({"value": ["v"]})
        assert queues.append_open("t", b"v", None, (), None, None) is None
        for _ in range(2):  # the first is followed by a look at the metadata
            await producer.send("t", b"v")
        assert queues.append_open("t", b"v", None, (), None, None) is not None
        assert queues.few_rows("t", rows) is not None
        end(producer)
        assert queues.append_open("t", b"v", None, (), None, None) is None
        assert queues.few_rows("t", rows) is None
        for call in (lambda: producer.send("t", b"v"), lambda: producer.send_columns(rows, topic="t")):
            with pytest.raises((LocalProtocolError, BrokerError), match=reason):
                await call()
        _drop(producer)


async def test_a_transaction_that_fails_while_a_record_is_added_leaves_no_topic_ready(monkeypatch):
    async with kc.client.aio.Producer(NOBODY, transactional_id="x") as producer:
        begin(producer)
        know(producer)
        make_ready = producer._queues.make_ready

        def fail(own):
            _failed(producer)
            make_ready(own)

        monkeypatch.setattr(producer._queues, "make_ready", fail)
        await producer.send("t", b"v")
        assert not producer._queues.ready
        _drop(producer)


def test_a_small_table_of_a_transaction_that_ends_meanwhile_is_not_in_the_next_one(monkeypatch):
    with kc.client.Producer(NOBODY, transactional_id="x", linger_ms=600_000, batch_size=200) as producer:
        own = begin(producer._face)
        know(producer._face)
        producer.send("t", b"v")
        append = producer._append

        def late(*arguments):
            own.end(True)
            own.state = State.READY
            own.begin()
            return append(*arguments)

        monkeypatch.setattr(producer, "_append", late)
        with pytest.raises(LocalProtocolError, match="the transaction to which the record belongs has ended"):
            producer.send_columns(pa.table({"value": ["v" * 50] * 3}), topic="t")
        monkeypatch.undo()
        _drop(producer._face)
        producer.close(0)


async def test_who_waits_for_memory_is_not_overtaken():
    async with kc.client.aio.Producer(NOBODY, buffer_memory=1000, max_block_ms=60_000) as producer:
        know(producer)
        queues = producer._queues

        async def fill():
            while not queues.full:
                await producer.send("t", b"x" * 100)

        await fill()
        waiting = asyncio.create_task(producer.send("t", b"last"))
        await asyncio.sleep(0.01)
        producer._sender.discard(ClientClosed("dropped"))  # memory is free, and used up before the task goes on
        for _ in range(9):
            with queues.lock:
                queues.append(queues.topic("t"), None, None, b"x" * 100, (), 0)
        assert queues.full
        await asyncio.wait_for(waiting, SOON)
        producer._sender.discard(ClientClosed("dropped"))


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
async def test_an_end_that_is_answered_with_nonsense(commit, caplog):
    nonsense = RemoteProtocolError("broker h:1: unexpected correlation id 7")
    async with kc.client.aio.Producer(NOBODY, transactional_id="x") as producer:
        own = begin(producer, started=True)
        ending = asyncio.create_task(producer.commit_transaction() if commit else producer.abort_transaction())
        while own._asking is None:
            await asyncio.sleep(0)
        for _ in range(3):
            own.failed(Send(Coordinator("transaction", "x"), messages.EndTxnRequest()), nonsense, 0.0)
        with pytest.raises(RemoteProtocolError, match="unexpected correlation id 7"):
            await asyncio.wait_for(ending, SOON)
        own._ended(messages.EndTxnResponse())
        await (producer.commit_transaction() if commit else producer.abort_transaction())


def waiting(producer: kc.client.aio.Producer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows whenever a waiting task of the producer looks whether it may go on waiting."""
    woken: list[int] = []
    check = producer._check

    def counted() -> None:
        woken.append(1)
        check()

    monkeypatch.setattr(producer, "_check", counted)
    return woken


def test_answers_wake_only_waits_that_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        producer = kc.client.aio.Producer(NOBODY)
        woken, reached = waiting(producer, monkeypatch), set[str]()
        tasks = [
            asyncio.create_task(producer._until(lambda name=name: name in reached, None, for_records=True))
            for name in ("one", "two")
        ]
        for _ in range(5):
            await asyncio.sleep(0)
            producer._progress()
        assert len(woken) == 2
        reached.add("two")
        producer._progress()
        assert await tasks[1]
        assert not tasks[0].done()
        assert len(woken) == 2
        reached.add("one")
        producer._progress()
        assert await tasks[0]
        await producer.close()

    asyncio.run(main())


def test_a_wait_ends_with_the_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        producer = kc.client.aio.Producer(NOBODY)
        task = asyncio.create_task(producer._until(lambda: False, None, for_records=True))
        await asyncio.sleep(0)
        producer._broken = ValueError("a fault")
        producer._progress()
        with pytest.raises(ClientClosed, match="a fault"):
            await task
        await producer.close()

    asyncio.run(main())


def test_a_wait_that_took_too_long_is_forgotten() -> None:
    async def main() -> None:
        producer = kc.client.aio.Producer(NOBODY)
        assert not await producer._until(lambda: False, 0, for_records=True)
        producer._progress()
        assert not producer._waiters
        await producer.close()

    asyncio.run(main())
