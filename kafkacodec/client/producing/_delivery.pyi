from collections.abc import Callable, Generator
from types import GenericAlias
from typing import Any, Generic, Self, TypeVar

from kafkacodec.client.producing._callbacks import Callback
from kafkacodec.client.producing.outcome import Outcome, RecordMetadata, TableMetadata

_Result = TypeVar("_Result")

class Awaitable(Callback, Generic[_Result]):
    """Waiting and callbacks, for both kinds of deliveries.

    Args:
        outcome: shared with others.
        index: of the record there.
        timestamp: the record's, in ms since 1970.
    """

    def __dir__(self) -> list[str]: ...
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
    def __init__(self, outcome: Outcome, index: int = 0, timestamp: int = -1) -> None: ...
    def done(self) -> bool: ...
    def _result(self) -> _Result: ...
    def result(self, timeout: float | None = None) -> _Result: ...
    def add_done_callback(self, function: Callable[[Self], object]) -> None: ...
    def __await__(self) -> Generator[Any, None, _Result]: ...

class Delivery(Awaitable[RecordMetadata]):
    """A record given to a producer. Also awaitable.

    Deliveries share the state of their batch, so keeping many costs little.
    """

    @property
    def error(self) -> Exception | None: ...
    @property
    def offset(self) -> int | None: ...
    @property
    def timestamp(self) -> int: ...

class TableDelivery(Awaitable[TableMetadata]):
    """The rows of a table given to a producer; done when all rows are. Also awaitable."""

    @property
    def error(self) -> Exception | None: ...
