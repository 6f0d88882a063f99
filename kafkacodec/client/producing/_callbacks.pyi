import asyncio
from collections.abc import Callable
from threading import Lock
from typing import Any

from kafkacodec.client.producing.given_up import Unseen

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
        resolved, failure: how many records are known, and the first reason why one was not delivered.
        queued, whole: of the rows of a table, how many are queued, and whether these are all.
        waiters: of threads, the index that each waits for, and a lock that is released once it is known; None if there
            were none.
        shortcut: the `Shortcut` by which its batch is under way past the loop; None if it is not.
        unseen: the records that were given up, and whether somebody has looked at them; None without such records.
    """

    resolved: int
    failure: Exception | None
    unseen: Unseen | None
    queued: int
    whole: bool
    waiters: list[tuple[int, Lock]] | None
    shortcut: Any
    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None: ...
    @property
    def parts(self) -> list[Any]: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop | None: ...
    @property
    def is_own(self) -> bool: ...
    def find(self, index: int) -> Any:
        """The part that has a record; None if it is not known. The parts are in order, and do not overlap."""

    def add(self, index: int, function: Callable[[], object] | Callback) -> Callback:
        """Have a function called once the record of this index is known."""

    def discard(self, made: Callback) -> None:
        """Call a function no more that `add` returned."""

    @property
    def asks(self) -> bool:
        """Whether the outcome of rows is only looked at by `ask`: until `watch`, as nobody may want to be told."""

    def ask(self) -> None:
        """Look at the outcome of rows, up to one that is not known. Needs the lock of outcomes."""

    def watch(self) -> None:
        """From now on the outcome of rows is told. Needs the lock of outcomes."""

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
