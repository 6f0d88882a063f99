"""The words between decisions and the driver: requests with the place they go to, answers, and machines.

A *machine* is a part of a client that decides and does no I/O: the cluster's metadata, a producer's queues, a group's
membership. It gives out `Send`s, and gets an `Answer` or an error for each of them, together with the time. The driver
owns the sockets; it runs any number of machines over the same connections.

Times are milliseconds of a monotonic clock, as float. One driver uses one clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, get_args

from kafkacodec.arguments import one_of
from kafkacodec.protocol.versions import highest_common

if TYPE_CHECKING:
    from kafkacodec.messages import Message

__all__ = [
    "ANY",
    "CONTROLLER",
    "Answer",
    "Anywhere",
    "Coordinator",
    "CoordinatorKind",
    "Machine",
    "Place",
    "Prepare",
    "Received",
    "Send",
    "Versions",
    "prepared",
]

Versions: TypeAlias = Mapping[int, range]
"""The versions of each API that a broker and this library have in common, by API key."""

Prepare: TypeAlias = "Callable[[Versions], tuple[Message, int]]"
"""Makes a request for the versions of the broker that gets it, when it is about to be sent. It may raise
UnsupportedVersion, EncodeError or LocalProtocolError: then nothing is sent and the send fails with it."""

CoordinatorKind = Literal["group", "transaction", "share"]


@dataclass(frozen=True, slots=True)
class Anywhere:
    """Any broker; a name in errors."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group or a transactional id; it is looked up when it is not known.

    Raises:
        TypeError, ValueError: no such kind, or a key that is not text.
    """

    kind: CoordinatorKind
    key: str

    def __post_init__(self) -> None:
        one_of("kind", self.kind, get_args(CoordinatorKind))
        if not isinstance(self.key, str):
            raise TypeError(f"key must be text, not {type(self.key).__name__}")

    def __repr__(self) -> str:
        return f"coordinator of {self.kind} {self.key!r}"


ANY: Final = Anywhere("any broker")
"""Any broker: one that is connected, else any that can be."""

CONTROLLER: Final = Anywhere("the controller")
"""The controller, as metadata names it."""

Place: TypeAlias = int | Anywhere | Coordinator
"""Where a request goes: a broker's id, `ANY`, `CONTROLLER` or a `Coordinator`."""


@dataclass(eq=False, slots=True)
class Send:
    """A request to be sent once; retrying is the machine's decision.

    Attributes:
        to: the place.
        request: a message, sent in the highest common version, or what makes message and version for a broker.
        timeout_ms: how long to wait for the answer, from now on, connecting included. None: the client's
            ``request_timeout_ms``.
        context: anything, for the machine.
        holds: the broker may hold its answer back, and with it all that comes after it on the connection: later
            requests take another one.
        given_up: the machine sets it when it has no use for the answer any more, and gets none or fails then: the
            connection may be closed for other requests.
    """

    to: Place
    request: Message | Prepare
    timeout_ms: float | None = None
    context: Any = None
    holds: bool = False
    given_up: bool = False


class Received(Protocol):
    """The memory of a received frame, in which the bytes and records of its message are."""

    @property
    def nbytes(self) -> int:
        """The bytes of memory that it takes."""

    def release(self) -> None:
        """Give the memory back for later frames. The views in the message must not be used any more."""


@dataclass(eq=False, slots=True)
class Answer:
    """A response.

    Attributes:
        message: the response; None for a Produce request with acks=0, as soon as it is written to the socket.
        version: of the request and the response.
        node: the id of the broker that answered; negative for a bootstrap address.
        frame: the memory of the frame that the message's views are in. Who has read them may release it; else
            garbage collection does.
        request: the request that was sent.
    """

    message: Any
    version: int
    node: int
    frame: Received | None = None
    request: Any = None


class Machine(Protocol):
    """A part of a client that decides. The driver calls it from one thread.

    After every call the driver polls the machine again and reads `next_deadline`. A machine whose state changed by
    other calls asks for that with the driver's ``wake()``.
    """

    def poll(self, now: float) -> list[Send]:
        """What to send now. Requests for the same broker are written in this order, but not behind one that `holds`."""

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """The response to `send`. An error code in it is the machine's to read."""

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """There will be no response to `send`.

        `error` is ConnectionFailed (also AuthenticationFailed), DeadlineExceeded, RemoteProtocolError,
        UnsupportedVersion, EncodeError or ClientClosed. ``error.sent`` of ConnectionFailed and DeadlineExceeded tells
        whether the broker may have got the request.
        """

    def next_deadline(self) -> float | None:
        """The time at which `poll` is needed next even if nothing happens; None if never."""


def prepared(request: Message | Prepare, versions: Versions) -> tuple[Message, int]:
    """A request and its version for a broker. Raises UnsupportedVersion if there is no common version."""
    if callable(request):
        return request(versions)
    key: Any = request.api_key
    return request, highest_common(key, versions)
