"""The interface between decisions and the driver: requests with their destinations, answers, and machines.

A *machine* is a part of a client that decides and does no I/O: the cluster's metadata, a producer's queues, a group's
membership. It returns `Send`s, and receives an `Answer` or an error for each, together with the time. The driver owns
the sockets and runs any number of machines over the same connections.

Times are milliseconds of a monotonic clock, as float. One driver uses one clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, get_args

from kafkacodec.arguments import one_of
from kafkacodec.datatypes import NamedTuple, dataclass
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
    "Watcher",
    "prepared",
]

Versions: TypeAlias = Mapping[int, range]
"""The versions of each API that a broker and this library have in common, by API key."""

Prepare: TypeAlias = "Callable[[Versions], tuple[Message, int]]"
"""Makes a request for the versions of the receiving broker, just before it is sent. It may raise UnsupportedVersion,
EncodeError or LocalProtocolError: nothing is sent then, and the send fails with that error."""

CoordinatorKind = Literal["group", "transaction", "share"]


class Anywhere(NamedTuple):
    """A destination without an id; `name` is shown in errors."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The coordinator of a group or a transactional id, looked up when unknown.

    Raises:
        TypeError, ValueError: the kind does not exist, or the key is not text.
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
"""Any broker, preferably a connected one."""

CONTROLLER: Final = Anywhere("the controller")
"""The controller named by the metadata."""

Place: TypeAlias = int | Anywhere | Coordinator
"""The destination of a request: a broker id, `ANY`, `CONTROLLER` or a `Coordinator`."""


@dataclass(eq=False, slots=True)
class Send:
    """A request to send once; the machine decides about retries.

    Attributes:
        to: the destination.
        request: a message, sent in the highest common version, or a function that makes message and version.
        timeout_ms: how long to wait for the answer, including the time to connect. None: the client's
            ``request_timeout_ms``.
        context: any object, for the machine's own use.
        holds: whether the broker may delay its answer, and so all later answers on the connection: later requests
            use another connection.
        given_up: set by the machine when it no longer needs the answer. The connection may then be closed for the
            sake of other requests, and the send may fail or get no answer.
        settles: set by the machine in `answered`: nothing follows from the answer for any machine, so the driver need
            not poll now.
    """

    to: Place
    request: Message | Prepare
    timeout_ms: float | None = None
    context: Any = None
    holds: bool = False
    given_up: bool = False
    settles: bool = False


class Received(Protocol):
    """The memory of a received frame, which holds the bytes and records of its message."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""

    def release(self) -> None:
        """Return the memory for later frames. The views in the message must no longer be used."""


@dataclass(eq=False, slots=True)
class Answer:
    """A response.

    Attributes:
        message: the response; None for a Produce request with acks=0, as soon as it is written to the socket.
        version: the version of request and response.
        node: the id of the broker that answered; negative for a bootstrap address.
        frame: the memory that the message's views point into. It may be released once they have been read; otherwise
            garbage collection frees it.
        request: the request that was sent.
    """

    message: Any
    version: int
    node: int
    frame: Received | None = None
    request: Any = None


class Machine(Protocol):
    """A part of a client that makes decisions. The driver calls it from one thread.

    After every call the driver polls the machine again and reads `next_deadline`, but not after an answer that
    `settles` its send. When other calls change a machine's state, it requests a poll with the driver's ``wake()``.
    """

    def poll(self, now: float) -> list[Send]:
        """What to send now. Requests to one broker are written in this order, but none waits for one that `holds`."""

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take the response to `send`. The machine reads any error code in it."""

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Learn that there will be no response to `send`.

        `error` is ConnectionFailed (also AuthenticationFailed), DeadlineExceeded, RemoteProtocolError,
        UnsupportedVersion, EncodeError or ClientClosed. ``error.sent`` of ConnectionFailed and DeadlineExceeded tells
        whether the broker may have received the request.
        """

    def next_deadline(self) -> float | None:
        """The time of the next `poll` even if nothing happens; None for never."""


class Watcher:
    """A machine that sends nothing, such as one that warns."""

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Do nothing."""

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Do nothing."""


def prepared(request: Message | Prepare, versions: Versions) -> tuple[Message, int]:
    """The request and its version for a broker. Raises UnsupportedVersion if there is no common version."""
    if callable(request):
        return request(versions)
    key: Any = request.api_key
    return request, highest_common(key, versions)
