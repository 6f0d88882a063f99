from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from kafkacodec.arrow._columns import Table

_R = TypeVar("_R")

class Rows: ...

class RecordIterator(Rows, Iterator[_R]):
    def __init__(self, chunks: Iterable[Table], cls: type[_R], recycle: bool = ...) -> None: ...
    def __next__(self) -> _R: ...

class ConsumerRecords(Rows, Iterator[_R]):
    """The rows of a table of one partition, one by one, each made when it is asked for.

    Args:
        chunk: has the columns of a record and `partition_leader_epoch`.
        cls: a named tuple of topic, partition, the six fields of a record, and leader epoch.

    Attributes:
        total: how many there are.
        taken: how many were asked for.
    """

    def __init__(self, chunk: Table, cls: type[_R], topic: str, partition: int) -> None: ...
    @property
    def total(self) -> int: ...
    @property
    def taken(self) -> int: ...
    def offset(self, row: int) -> int:
        """The offset of a record, taken or not."""

    def leader_epoch(self, row: int) -> int | None:
        """The leader epoch of a record, taken or not; None before Kafka 0.11's format."""

    def stop(self) -> None:
        """Leave out the records that are not taken yet. For any thread."""

    def deserialize(
        self, key_of: Callable[[bytes], Any] | None = None, value_of: Callable[[bytes], Any] | None = None
    ) -> None:
        """Make keys and values, those that are not null, of their bytes, before the first record is taken.

        What a function raises comes out; from then on there are only the records before.
        """

    def __length_hint__(self) -> int: ...
    def __next__(self) -> _R: ...
