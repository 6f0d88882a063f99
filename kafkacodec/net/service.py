"""What a service and its host say to each other: requests in, what is to be appended and answered out.

A service decides and does no I/O: no sockets, no files, no clock. A host has those and decides nothing. Every call of a
service returns an `Effect`, and the host carries it out in this order: it appends, waits until what it appended is as
durable as asked, and only then sends the replies. So no answer can leave before what it promises is kept.
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
    """What becomes of a request instead of a response."""

    NO_ANSWER = "it gets none"
    CLOSE = "its connection is closed, after the answers to the requests before it"


NO_ANSWER: Final = Fate.NO_ANSWER
CLOSE: Final = Fate.CLOSE


class FilePart:
    """Bytes of an open file as a piece of a response: the system sends them, and nobody reads them.

    Args:
        file: an open file, with `fileno`.
        position, count: where its bytes are.
        view: them as memory, for what the system does not take at once.
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
        """Notes that a session ended. Replies to its requests are dropped from now on."""

    def tick(self, now: float) -> Effect:
        """Does what is due."""

    def next_deadline(self) -> float | None:
        """When `tick` is needed even if nothing arrives; None if nothing waits for time."""

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """Notes that an append is as durable as asked; `result` is what the store returned for it."""

    def not_appended(self, token: Any, error: Exception, now: float) -> Effect:
        """Notes that an append failed, with an OSError or an error of the store. Nothing of it was kept."""


class Codec(Protocol):
    """One connection's bytes to requests, and responses to bytes.

    Attributes:
        in_order: whether answers leave in the order of their requests; else each leaves when it is there.
    """

    in_order: bool

    def buffer(self) -> memoryview:
        """Where the next received bytes go."""

    def received(self, count: int) -> list[Any]:
        """Takes `count` bytes in `buffer`; returns the requests that they complete, in order.

        Raises:
            KafkaCodecError: the bytes violate the protocol. Requests before them were returned, or are in `events`.
        """

    def response(self, request: Any, response: Any) -> Sequence[bytes | memoryview | FilePart]:
        """The bytes of a response, to be written one piece after another; those of a file are 128 KiB at least."""

    def rest(self, request: Any) -> float:
        """For how many ms nothing more of a connection is begun after the answer to a request; infinite: close it."""

    def release(self, request: Any) -> None:
        """Notes that a request was answered: its memory may be used again."""

    def drop(self) -> None:
        """Frees the memory of an incomplete request."""


def together(effects: Iterable[Effect]) -> Effect:
    """Several effects as one. They stay apart: none waits for another, or fails with it."""
    found = [effect for effect in effects if effect]
    if len(found) == 1:
        return found[0]
    return Effect((), (), found) if found else NOTHING
