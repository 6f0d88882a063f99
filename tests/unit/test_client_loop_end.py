"""Event loops that end while a client is open: nothing is started any more, and nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from kafkacodec.client import aio
from kafkacodec.net.loop import LoopEnd

NOBODY = "127.0.0.1:1"
STALL = 0.3  # seconds: more than any backoff after one failure

MAKE: dict[str, Callable[[], Any]] = {
    "producer": lambda: aio.Producer(NOBODY),
    "consumer": lambda: aio.Consumer("orders", bootstrap_servers=NOBODY),
    "member": lambda: aio.Consumer("orders", bootstrap_servers=NOBODY, group_id="workers"),
    "share": lambda: aio.ShareConsumer("orders", bootstrap_servers=NOBODY, group_id="workers"),
    "connection": lambda: aio.KafkaConnection(NOBODY),
}


async def due_at_the_end(client):
    """The process stalls, so that the next attempt is due when the loop ends."""
    await asyncio.sleep(0.02)
    time.sleep(STALL)


async def cancelled(client):
    """The end of an attempt that is cancelled comes with the next one due."""
    for _ in range(3):
        await asyncio.sleep(0)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.add_done_callback(lambda task: time.sleep(STALL))
        task.cancel()


async def dropped(client):
    """Its last reference goes with the program."""


@pytest.mark.usefixtures("left_open")
@pytest.mark.parametrize("how", [due_at_the_end, cancelled, dropped])
@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_nothing_stays_behind(make, how, caplog, recwarn):
    async def program():
        client = make()
        await client.__aenter__()
        await how(client)
        return None if how is dropped else client

    client = asyncio.run(program())
    gc.collect()
    assert client is None or repr(client).endswith("open>")
    del client
    gc.collect()
    assert not [record.getMessage() for record in caplog.records if record.name == "asyncio"]
    assert not [text for w in recwarn if "was not closed" not in (text := str(w.message))]


@pytest.mark.parametrize("kind", ["producer", "connection"])
def test_a_client_that_is_left_open_still_warns(kind):
    async def program():
        client = MAKE[kind]()
        await client.__aenter__()
        return client

    client = asyncio.run(program())
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        del client
        gc.collect()
    assert ["was not closed" in str(w.message) for w in found] == [True]


def test_what_is_to_be_done_at_the_end_is_done_once_or_cancelled():
    done = []

    async def last():
        await asyncio.sleep(0)
        done.append(1)

    async def program(cancel):
        end = LoopEnd(last)
        if cancel:
            end.cancel()
            end.cancel()
        return end

    kept = asyncio.run(program(False))
    assert done == [1]
    kept.cancel()
    asyncio.run(program(True))
    assert done == [1]
