"""Share consumers from the first heartbeat to the end, with a model of a broker behind a socket."""

from __future__ import annotations

import asyncio

import pytest

import kafkacodec as kc
from kafkacodec.client import aio
from tests.patience import SOON
from tests.reference.group_broker import GroupBroker

FAST = {"retry_backoff_ms": 20, "retry_backoff_max_ms": 20}


def member(broker, *topics, **options):
    return aio.ShareConsumer(*topics, bootstrap_servers=broker.address, group_id="g", **FAST | options)


async def test_a_consumer_that_was_refused_can_subscribe_again():
    async with GroupBroker({"t": 1}) as broker, member(broker, "t") as consumer:
        broker.share.append(b"a")
        broker.refuse("ShareGroupHeartbeat", 30)
        for _ in range(2):
            with pytest.raises(kc.errors.error(30)):
                await consumer.getmany(SOON)
        await consumer.subscribe(["t"])
        (record,) = await consumer.getmany(SOON)
        assert record.value == b"a"


async def test_a_second_close_waits_for_the_first():
    async with GroupBroker({"t": 1}) as broker:
        broker.share.append(b"a")
        consumer = member(broker, "t")
        async with consumer:
            assert await consumer.getmany(SOON)
            first = asyncio.create_task(consumer.close())
            await asyncio.sleep(0)
            assert not first.done()
            await consumer.close()
            await asyncio.sleep(0)
            assert first.done()
        await first
