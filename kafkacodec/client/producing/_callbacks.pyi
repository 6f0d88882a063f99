import asyncio
from collections.abc import Callable
from typing import Any

class Callback:
    @property
    def _outcome(self) -> Any: ...
    @property
    def _index(self) -> int: ...

class Callbacks:
    """Functions to be called once the outcome of a record is known.

    Args:
        loop: the client's.

    Attributes:
        parts: what is known.
        is_own: whether this process made it, not one that this was forked from.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None: ...
    @property
    def parts(self) -> list[Any]: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop | None: ...
    @property
    def is_own(self) -> bool: ...
    def find(self, index: int) -> Any:
        """The part that has a record; None if it is not known. The parts are in order, and do not overlap."""

    def add(self, index: int, function: Callable[[], object] | Callback) -> None:
        """Have a function called once the record of this index is known."""

    def due(self, first: int, end: int) -> list[Callback]:
        """Take the functions of the records [first, end), in the order of these."""

    def call(self, due: list[Callback]) -> None:
        """Call functions. What ends the program does so in the loop, after the others."""

def forked() -> None:
    """Note that this process was forked from another one."""

def index_of(one: Callback) -> int:
    """The index of its record."""

def end_loop(error: BaseException) -> None:
    """End the event loop that calls this."""
