"""Consumers in a group: what is committed, who reads what, and who is called, while the group changes."""

from __future__ import annotations

import asyncio

import pytest

from kafkacodec.client import aio
from tests.reference.group_broker import GroupBroker

FAST = {
    "heartbeat_interval_ms": 20,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 20,
    "auto_offset_reset": "earliest",
}
T0, T1 = ("t", 0), ("t", 1)


def member(broker, *topics, **options):
    return aio.Consumer(*topics, bootstrap_servers=broker.address, group_id="g", **FAST | options)


async def until(holds, seconds=3.0):
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)


async def count(consumer, most=10):
    """How many records come at once."""
    found = await consumer.getmany(2, most)
    return sum(map(len, found.values()))


@pytest.mark.parametrize("modern", [False, True])
async def test_a_member_that_iterates_gives_partitions_up_with_the_next_record(modern):
    """A revocation waits until the application asks for more; it has to see that in an iteration too."""
    protocol = {"group_protocol": "consumer"} if modern else {}
    async with GroupBroker({"t": 2}, modern=modern) as broker, member(broker, "t", **protocol) as first:
        broker.write("t", 0, 200)
        broker.write("t", 1, 200)
        seen = [await anext(first)]
        async with member(broker, "t", **protocol) as second:
            reading = asyncio.create_task(second.getmany(None))
            async with asyncio.timeout(3):
                while not second.assignment():
                    seen.append(await anext(first))
                    await asyncio.sleep(0.01)
            (lost,) = second.assignment()
            # One record may have been given of it that was not processed yet: it is none of those that come now.
            ((_, number, offset),) = {c for c in broker.commits if c[:2] == lost} or {(*lost, 0)}
            assert offset == sum(record.partition == number for record in seen)
            for records in (await reading).values():
                assert records[0].offset == offset


async def test_what_a_list_has_is_not_processed_before_more_is_asked_for():
    """Also where the list goes on with what an iteration has begun."""
    async with GroupBroker({"t": 1}) as broker, member(broker, auto_commit_interval_ms=10) as consumer:
        broker.write("t", 0, 10)
        await consumer.assign([T0])
        await anext(consumer)
        assert await count(consumer, 4) == 4
        await until(lambda: broker.committed.get(T0))
        await asyncio.sleep(0.05)
        assert broker.committed == {T0: 1}
        assert await count(consumer, 2) == 2
        await until(lambda: broker.committed == {T0: 5})
        await anext(consumer)
        await until(lambda: broker.committed == {T0: 7})
