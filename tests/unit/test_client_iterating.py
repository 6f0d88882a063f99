"""`async for` over records: what is awaited behaves like a coroutine, and takes a record only when it is awaited."""

from __future__ import annotations

import asyncio
import collections.abc
from typing import Any

import pytest

from kafkacodec.client.consuming._iterating import Iterating, NextRecord


class Numbers(Iterating):
    """Gives lists of numbers one after the other, each after a wait; `None` is a wait without an end."""

    def __init__(self, *lists: list[int] | Exception | None) -> None:
        self.lists = list(lists)
        self.waits = 0

    async def _more(self) -> Any:
        self.waits += 1
        found = self.lists.pop(0) if self.lists else StopAsyncIteration()
        await asyncio.sleep(0)
        if isinstance(found, Exception):
            raise found
        if found is None:
            await asyncio.Event().wait()
        self._records = iter(found or ())  # type: ignore[assignment]
        return next(self._records)  # type: ignore[arg-type]


async def test_all_records_in_order() -> None:
    numbers = Numbers([1, 2, 3], [4], [5, 6])
    assert [number async for number in numbers] == [1, 2, 3, 4, 5, 6]
    assert numbers.waits == 4
    assert [number async for number in numbers] == []


async def test_named_tuples_are_returned_whole() -> None:
    numbers = Numbers()
    numbers._records = iter([(1, 2), ()])  # type: ignore[assignment]
    assert [record async for record in numbers] == [(1, 2), ()]


async def test_nothing_is_taken_before_it_is_awaited() -> None:
    numbers = Numbers([1, 2])
    for _ in range(3):
        anext(numbers)
    ahead = anext(numbers)
    assert await anext(numbers) == 1
    assert await ahead == 2
    with pytest.raises(RuntimeError, match="already awaited"):
        await ahead
    with pytest.raises(StopAsyncIteration):
        await anext(numbers)


async def test_tasks_and_limits() -> None:
    numbers = Numbers([1, 2, 3], None, [4])
    assert await asyncio.create_task(anext(numbers)) == 1
    assert await asyncio.wait_for(anext(numbers), 60) == 2
    assert await asyncio.gather(anext(numbers)) == [3]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(numbers), 0.01)
    assert await anext(numbers, "none") == 4
    assert await anext(numbers, "none") == "none"


async def test_a_cancelled_wait_takes_nothing() -> None:
    numbers = Numbers(None, [1])
    task = asyncio.ensure_future(anext(numbers))
    while not numbers.waits:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await anext(numbers) == 1


async def test_errors_come_once() -> None:
    numbers = Numbers(ValueError("damaged"), [1])
    with pytest.raises(ValueError, match="damaged"):
        await anext(numbers)
    assert await anext(numbers) == 1
    broken = Numbers()
    broken._records = iter(int(text) for text in ("1", "x"))  # type: ignore[assignment]
    assert await anext(broken) == 1
    with pytest.raises(ValueError, match="invalid literal"):
        await anext(broken)


async def test_the_methods_of_a_coroutine() -> None:
    numbers = Numbers([1, 2], [8], [9], [3])
    step = anext(numbers)
    assert isinstance(step, collections.abc.Coroutine)
    assert isinstance(step, NextRecord)
    assert step.send(None) is None  # asyncio.sleep(0)
    with pytest.raises(StopIteration) as stop:
        step.send(None)
    assert stop.value.value == 1
    with pytest.raises(StopIteration) as stop:
        next(anext(numbers))
    assert stop.value.value == 2
    closed = anext(numbers)
    closed.close()
    with pytest.raises(RuntimeError, match="already awaited"):
        closed.send(None)
    begun = anext(numbers)
    begun.send(None)
    begun.close()
    begun.close()
    for waits in (False, True):
        step = anext(numbers)
        if waits:
            step.send(None)
        with pytest.raises(KeyError):
            step.throw(KeyError("from outside"))
        with pytest.raises(RuntimeError, match="already awaited"):
            step.throw(KeyError("again"))
    assert [number async for number in numbers] == [3]
