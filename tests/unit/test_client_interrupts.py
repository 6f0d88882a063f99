"""An interrupt at any line of a blocking call leaves no coroutine and no task; the client can be used and closed."""

from __future__ import annotations

import asyncio
import gc
import linecache
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from kafkacodec.client import lifecycle
from kafkacodec.client.blocking import callbacks
from kafkacodec.client.blocking.callbacks import CallbackThread
from kafkacodec.client.lifecycle import BlockingClient, blocking
from kafkacodec.net import loop as thread_module
from kafkacodec.net.loop import LoopThread
from tests import interrupts
from tests.patience import SOON

FILES = {thread_module.__file__, lifecycle.__file__, callbacks.__file__}


class Interrupts(interrupts.Interrupts):
    def steps(self, frame, event):
        # What an interrupt that has come leads to is not interrupted once more.
        if frame.f_code.co_filename not in FILES or frame.f_code.co_name in ("give_up", "close"):
            return None
        # CPython looks for signals after calls, not where a block is left, which is an event of the line of `with`.
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        return event == "line" and not line.strip().startswith("with ")


class Face:
    def __init__(self):
        self.closed = 0

    async def work(self, seconds):
        await asyncio.sleep(seconds)
        return seconds

    async def close(self):
        await asyncio.sleep(0.001)
        self.closed += 1


class Client(BlockingClient):
    work = blocking(Face.work)

    def __init__(self, kind):
        self._face = Face()
        self._thread = kind("test loop")
        vars(self._thread)["wanted"] = True


def in_a_thread(function, *arguments):
    # CPython 3.11 may leave the thread with the exception that was being handled when a trace function raised.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(function, *arguments).result(10 * SOON)


def tasks_of(client):
    """How many tasks are left, once what was cancelled has ended."""

    async def others():
        for _ in range(1000):
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if not left:
                break
            await asyncio.sleep(0.001)
        return len(left)

    return client._thread.run(others)


def interrupt_each_line_of_a_call(kind):
    client = Client(kind)
    for at in count(1):
        interrupted = Interrupts(at)
        try:
            with interrupted:
                client.work(0.002)
        except KeyboardInterrupt:
            pass
        if interrupted.left > 0:
            break
        assert tasks_of(client) == 0
        assert client.work(0) == 0
    assert at > 10
    client.close()


def interrupt_each_line_of_close(kind):
    for at in count(1):
        client, interrupted = Client(kind), Interrupts(at)
        try:
            with interrupted:
                client.close()
        except KeyboardInterrupt:
            client.close()
        assert not client._thread._thread.is_alive()
        assert client._thread.loop.is_closed()
        if interrupted.left > 0:
            break
    assert at > 10


@pytest.mark.parametrize("kind", [LoopThread, CallbackThread])
@pytest.mark.parametrize("look", [interrupt_each_line_of_a_call, interrupt_each_line_of_close])
def test_an_interrupt_leaves_nothing(kind, look):
    before = threading.active_count()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        in_a_thread(look, kind)
        gc.collect()
    assert [str(warning.message) for warning in found if "never awaited" in str(warning.message)] == []
    assert threading.active_count() <= before
