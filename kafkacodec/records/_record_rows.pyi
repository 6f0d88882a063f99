from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from kafkacodec.arrow._columns import Table

_R = TypeVar("_R")

class RecordIterator(Iterator[_R]):
    def __init__(self, chunks: Iterable[Table], cls: type[_R], recycle: bool = ...) -> None: ...
    def __next__(self) -> _R: ...

def consumer_records(
    found: list[_R],
    chunk: Table,
    cls: type[_R],
    topic: str,
    partition: int,
    key_of: Callable[[bytes], Any] | None = None,
    value_of: Callable[[bytes], Any] | None = None,
) -> None: ...
