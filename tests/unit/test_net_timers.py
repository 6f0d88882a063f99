"""One timer for all deadlines, on a real loop."""

import asyncio

from kafkacodec.net.timers import DeadlineTimer


class Calls:
    """Counts calls, and waits for the next one."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.times = []
        self.timer = DeadlineTimer(self.loop, self.due)
        self._called = asyncio.Event()

    def due(self):
        self.times.append(self.now())
        self._called.set()

    def now(self):
        return self.loop.time() * 1000

    async def next(self):
        await self._called.wait()
        self._called.clear()


async def test_it_calls_not_before_the_deadline_and_once():
    calls = Calls()
    at = calls.now() + 10
    calls.timer.set(at)
    await calls.next()
    assert calls.times[0] >= at
    calls.timer.set(calls.now() + 5)
    await calls.next()
    assert len(calls.times) == 2


async def test_an_earlier_deadline_replaces_a_later_one():
    calls = Calls()
    calls.timer.set(calls.now() + 3_600_000)
    calls.timer.set(calls.now() + 5)
    await calls.next()
    assert len(calls.times) == 1


async def test_a_later_deadline_keeps_the_timer_that_is_set():
    calls = Calls()
    calls.timer.set(calls.now() + 5)
    calls.timer.set(calls.now() + 3_600_000)
    await calls.next()
    assert len(calls.times) == 1


async def test_a_cancelled_timer_calls_nothing():
    calls = Calls()
    other = Calls()
    at = calls.now() + 5
    calls.timer.set(at)
    other.timer.set(at + 5)
    calls.timer.cancel()
    await other.next()
    assert calls.times == []
