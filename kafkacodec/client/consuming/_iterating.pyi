from collections.abc import Coroutine, Iterator
from typing import Any, Self

from kafkacodec.client.consuming.record import ConsumerRecord

class NextRecord(Coroutine[Any, Any, ConsumerRecord]):
    """Takes the next record when it is awaited."""

    def __await__(self) -> Any: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, *exception: Any) -> Any: ...
    def close(self) -> None: ...

class Iterating:
    """An asynchronous iterator over records.

    A subclass has the coroutine function `_more`, which waits for records and returns the first one. It raises
    StopAsyncIteration if no more come.

    Attributes:
        _records: those that are there; None or empty: `_more` is asked.
    """

    _records: Iterator[ConsumerRecord] | None
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> NextRecord: ...
