"""The interface between a service and its host: requests in, appends and replies out.

A service decides and does no I/O: no sockets, no files, no clock. A host has those and decides nothing. Every call of a
service returns an `Effect`, and the host executes it in this order: it appends, waits until the appends are as durable
as asked, and only then sends the replies. So no answer leaves before its promise holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Final, Protocol

from kafkacodec.net._effects import Append, Effect, Reply

__all__ = [
    "CLOSE",
    "NOTHING",
    "NO_ANSWER",
    "Append",
    "Codec",
    "Effect",
    "Fate",
    "FilePart",
    "Reply",
    "Service",
    "together",
]


class Fate(Enum):
    """The outcome of a request without a response."""

    NO_ANSWER = "it gets none"
    CLOSE = "its connection is closed, after the answers to the requests before it"


NO_ANSWER: Final = Fate.NO_ANSWER
CLOSE: Final = Fate.CLOSE


class FilePart:
    """Bytes of an open file as a piece of a response: the system sends them, and nobody reads them.

    Args:
        file: an open file, with `fileno`.
        position, count: of its bytes.
        view: the bytes in memory, for the part that the system does not take at once.
    """

    __slots__ = ("_view", "count", "file", "position")

    def __init__(self, file: Any, position: int, count: int, view: Callable[[], memoryview]) -> None:
        self.file, self.position, self.count, self._view = file, position, count, view

    def __len__(self) -> int:
        return self.count

    def view(self) -> memoryview:
        """The bytes, mapped."""
        return self._view()


NOTHING: Final = Effect()


class Service(Protocol):
    """A server's side of a protocol, without I/O.

    All times are milliseconds since 1970, of one clock that does not go back.
    """

    def receive(self, request: Any, session: Any, to: Any, now: float) -> Effect:
        """Takes a request of a session. Exactly one Reply to `to` follows, in this effect or a later one."""

    def disconnected(self, session: Any, now: float) -> Effect:
        """Note the end of a session. The host drops later replies to its requests."""

    def tick(self, now: float) -> Effect:
        """Do what is due."""

    def next_deadline(self) -> float | None:
        """Return when `tick` is needed even if nothing arrives; None if nothing waits for time."""

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """Note that an append is as durable as asked; `result` is the store's."""

    def not_appended(self, token: Any, error: Exception, now: float) -> Effect:
        """Note that an append failed, with an OSError or an error of the store. Nothing of it was kept."""


class Codec(Protocol):
    """One connection's bytes to requests, and responses to bytes.

    Attributes:
        in_order: whether answers leave in the order of their requests; otherwise each leaves when it is ready.
        answers_last: whether a client that has stopped sending still gets the answers to what it has sent.
    """

    in_order: bool
    answers_last: bool

    @property
    def waits(self) -> bool:
        """Whether a request that begins waits for memory: nothing is received until ``received(0)`` changes that."""

    def buffer(self) -> memoryview:
        """Return memory for the next received bytes."""

    def received(self, count: int) -> list[Any]:
        """Takes `count` bytes in `buffer`; returns the requests that they complete, in order.

        Raises:
            KafkaCodecError: the bytes violate the protocol. Requests before them were returned, or are in `events`.
        """

    def response(self, request: Any, response: Any) -> Sequence[bytes | memoryview | FilePart]:
        """The bytes of a response, to be written one piece after another; those of a file are 128 KiB at least."""

    def settled(self, request: Any) -> bool:
        """Return whether the next request may begin, though this one, the last, has no answer yet."""

    def rest(self, request: Any) -> float:
        """Return the pause of a connection in ms after the answer to a request; infinite closes it."""

    def release(self, request: Any) -> None:
        """Note that a request was answered: its memory may be used again."""

    def drop(self) -> None:
        """Frees the memory of an incomplete request."""


def together(effects: Iterable[Effect]) -> Effect:
    """Combine several effects. They stay separate: none waits for another, or fails with it."""
    found = [effect for effect in effects if effect]
    if len(found) == 1:
        return found[0]
    return Effect((), (), found) if found else NOTHING
