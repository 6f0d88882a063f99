"""Functions that a group calls: they may close their consumer, and raise anything, without leaving anything behind."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kafkacodec.client import Consumer
from kafkacodec.client.aio.called import Called
from kafkacodec.errors import ClientClosed, LocalProtocolError
from tests.patience import until
from tests.reference.group_broker import GroupBroker
from tests.unit.test_client_consumer_group import FAST, count, member

ENDS = pytest.mark.parametrize("end", ["close", "unsubscribe"])
SOON = 25  # seconds; a client that waits for itself takes 30


def tasks():
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


@ENDS
@pytest.mark.parametrize("when", ["on_assigned", "on_revoked"])
async def test_a_consumer_ends_in_its_own_callback(end, when):
    told, over = [], asyncio.Event()

    async def assigned(partitions):
        told.append("assigned")
        if when == "on_assigned":
            await getattr(consumer, end)()
            over.set()

    async def revoked(partitions):
        told.append("revoked")
        if when == "on_revoked":
            await asyncio.create_task(getattr(consumer, end)())
            over.set()

    async with GroupBroker({"t": 1}) as broker:
        broker.write("t", 0, 10)
        before = tasks()
        consumer = member(broker)
        await consumer.subscribe(["t"], on_assigned=assigned, on_revoked=revoked)
        async with asyncio.timeout(SOON):
            if when == "on_revoked":
                assert await count(consumer) == 10
                await getattr(consumer, end)()
            await over.wait()
            await consumer.close()
            assert broker.members_gone == 1
            await until(lambda: tasks() <= before)
    assert told == ["assigned", "revoked"]


@ENDS
@pytest.mark.parametrize("when", ["on_assigned", "on_revoked"])
async def test_a_blocking_consumer_ends_in_its_own_callback(end, when):
    told = []

    def read():
        consumer = Consumer(bootstrap_servers=broker.address, group_id="g", **FAST)

        def assigned(partitions):
            told.append("assigned")
            if when == "on_assigned":
                getattr(consumer, end)()
                if end == "close":
                    raise LookupError("after close")

        def revoked(partitions):
            told.append("revoked")
            if when == "on_revoked":
                getattr(consumer, end)()

        consumer.subscribe(["t"], on_assigned=assigned, on_revoked=revoked)
        if when == "on_revoked":
            assert sum(map(len, consumer.getmany(SOON).values())) == 10
            getattr(consumer, end)()
        elif end == "close":
            with pytest.raises(LookupError):  # there is nobody else to tell
                consumer.getmany(SOON)
            with pytest.raises(ClientClosed):
                consumer.getmany(SOON)
        else:
            with pytest.raises(LocalProtocolError, match="nothing to read"):
                list(iter(lambda: consumer.getmany(0.05), None))
        consumer.close()

    async with GroupBroker({"t": 1}) as broker:
        broker.write("t", 0, 10)
        before = threading.active_count()
        async with asyncio.timeout(SOON):
            await asyncio.to_thread(read)
        assert threading.active_count() <= before + 1  # to_thread keeps its own
        assert broker.members_gone == 1
    assert told == ["assigned", "revoked"]


@pytest.mark.parametrize("as_coroutine", [True, False])
@pytest.mark.parametrize("kind", [asyncio.CancelledError, GeneratorExit])
async def test_a_callback_that_raises_what_is_for_nobody(kind, as_coroutine):
    def raises(partitions):
        raise kind("it failed")

    async def raises_later(partitions):
        await asyncio.sleep(0)
        raise kind("it failed")

    async with GroupBroker({"t": 1}) as broker:
        broker.write("t", 0, 10)
        async with asyncio.timeout(SOON), member(broker) as consumer:
            await consumer.subscribe(["t"], on_assigned=raises_later if as_coroutine else raises)
            with pytest.raises(RuntimeError, match=f"raises.* raised {kind.__name__}"):
                await consumer.getmany(SOON)
            assert await count(consumer) == 10
        assert broker.members_gone == 1


@pytest.mark.parametrize("as_coroutine", [True, False])
async def test_a_callback_that_ends_the_program_leaves_the_group(as_coroutine):
    def exits(partitions):
        raise SystemExit(3)

    async def exits_later(partitions):
        await asyncio.sleep(0)
        raise SystemExit(3)

    async def main():
        async with member(broker) as consumer:
            await consumer.subscribe(["t"], on_assigned=exits_later if as_coroutine else exits)
            await asyncio.sleep(60)

    def program():
        with pytest.raises(SystemExit):
            asyncio.run(main())  # cancels all tasks, also those of the consumer, which closes then

    async with GroupBroker({"t": 1}) as broker, asyncio.timeout(SOON):
        await asyncio.to_thread(program)
        assert broker.members_gone == 1


async def test_a_close_that_is_cancelled_leaves_nothing_behind():
    async with GroupBroker({"t": 1}) as broker:
        broker.write("t", 0, 10)
        before = tasks()
        for steps in range(12):
            consumer = member(broker, "t")
            assert await count(consumer) == 10 - len(broker.committed) * 10
            closing = asyncio.create_task(consumer.close())
            for _ in range(steps):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            await consumer.close()
            await until(lambda: tasks() <= before)
            with pytest.raises(ClientClosed):
                await consumer.getmany()
            broker.committed.clear()
            for name in list(broker.coordinator.members):
                broker.coordinator.expire(name)
            broker.progress()


async def test_a_second_close_waits_for_the_first():
    async with GroupBroker({"t": 1}) as broker:
        broker.write("t", 0, 10)
        consumer = member(broker, "t")
        assert await count(consumer) == 10
        first = asyncio.create_task(consumer.close())
        await asyncio.sleep(0)
        await consumer.close()
        assert broker.members_gone == 1
        await first


async def test_a_call_is_known_to_all_that_it_starts_but_not_to_other_groups():
    found = []

    async def function(argument):
        found.append(await asyncio.create_task(look()))
        found.append(await asyncio.to_thread(Called.here, "owner"))
        return argument

    async def look():
        return Called.here("owner"), Called.here("another")

    called = Called(function, "owner")
    await called.over(lambda call, argument: call(argument), 5)
    assert found == [(called, None), called]
    assert Called.here("owner") is None
