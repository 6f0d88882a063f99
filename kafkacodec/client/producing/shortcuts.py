"""Where a sending thread may write a batch itself and take the answer: what the loop knows before it sleeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkacodec.client.core.calls import Answer, Machine, Send
from kafkacodec.client.producing._shortcut import MOST_ANSWER, Shortcut, Way
from kafkacodec.messages.keys import PRODUCE
from kafkacodec.protocol.frames import encode_request, encode_response

if TYPE_CHECKING:
    from kafkacodec.client.core.cluster import Cluster
    from kafkacodec.client.core.metrics import Metrics
    from kafkacodec.client.producing.identity import Identity
    from kafkacodec.client.producing.queue import PartitionQueue, Queues

__all__ = ["Line", "Shortcuts", "shortcuts_of"]

_LEAST_VERSION: Final = 5  # of Produce, whose answers have all fields that differ from one to the next
_MOST_WAYS: Final = 256
_DIFFERING: Final = ("base_offset", "log_append_time_ms", "log_start_offset")


class Line(Protocol):
    """A connection that a sending thread may use while the loop sleeps.

    Attributes:
        number: the broker's id.
        fd, epoll: the file descriptors of its socket, and of what the loop sleeps in.
        connection, node, network: where the thread notes what it does.
        is_free: whether nothing is under way, as of the last `look`.
        is_over: whether it has ended.
    """

    number: int
    fd: int
    epoll: int
    connection: Any
    node: Any
    network: Any
    is_free: bool

    @property
    def is_over(self) -> bool:
        """See the class."""

    def look(self, now: float) -> None:
        """See `is_free`."""

    def adopt(self, send: Send, machine: Machine, number: int, sent_at: float, size: int, rest: bytes | None) -> None:
        """Wait for the answer to a request of `size` bytes that was written past the loop, but for `rest`."""


class Shortcuts:
    """Offers ways to sending threads, from an answer after which nothing is under way until the loop wakes.

    All is in the loop's thread.

    Args:
        queues, cluster, identity: the parts of the same producer.
        shortcut: what the threads use.
        line: the line to a broker, if there is one.

    Attributes:
        shortcut: as given.
    """

    def __init__(
        self,
        queues: Queues,
        cluster: Cluster,
        identity: Identity,
        shortcut: Shortcut,
        line: Callable[[int], Line | None],
    ) -> None:
        self._cluster, self._identity, self._line = cluster, identity, line
        self.shortcut = shortcut
        self._lines: dict[int, Line] = {}
        self._known: Any = None  # what all ways depend on
        queues.shortcut = shortcut

    def offer(self, queue: PartitionQueue, answer: Answer, now: float) -> None:
        """Offer the ways that are known, and that of a batch that was just acknowledged."""
        if not self.shortcut.wants():
            return
        ways, known = self.shortcut.ways, (self._cluster.generation, self._identity.current)
        if known != self._known or len(ways) >= _MOST_WAYS or any(line.is_over for line in self._lines.values()):
            self._known = known
            self._lines.clear()
            ways.clear()
        if queue not in ways:
            ways[queue] = self._way(queue, answer)
        for line in self._lines.values():
            line.look(now)
        self.shortcut.offered = True

    def _way(self, queue: PartitionQueue, answer: Answer) -> Way | None:
        if answer.version < _LEAST_VERSION or queue.producer is None or queue.producer != self._identity.current:
            return None
        line = self._lines.get(answer.node) or self._line(answer.node)
        usual = None if line is None else _usual(answer)
        if line is None or usual is None:
            return None
        self._lines[answer.node] = line
        frame = partial(_around, answer.request, answer.version, line.connection.client_id)
        return Way(line, queue.producer, frame, *usual)


def _around(request: Any, version: int, client_id: str | None, size: int) -> tuple[bytes, bytes, int]:
    """What comes before and after `size` bytes of records in a request like another one of one batch."""
    (topic,) = request.topic_data
    (part,) = topic.partition_data
    frames = []
    for byte in (b"\0", b"\xff"):
        part.records = byte * size
        frames.append(encode_request(request, version, 0, client_id))
    part.records = b""
    at = _differ(*frames)
    return frames[0][:at], frames[0][at + size :], size


def _usual(answer: Answer) -> tuple[bytes, int, int, int] | None:
    """An answer like this one, and where what differs from one to the next is in it. None if it is not usual."""
    message = answer.message
    parts = [part for topic in message.responses for part in topic.partition_responses]
    if len(parts) != 1 or parts[0].error_code or message.throttle_time_ms:
        return None
    usual, places = encode_response(message, answer.version, 0), []
    if answer.frame is None or len(usual) != answer.frame.nbytes or len(usual) > MOST_ANSWER:
        return None
    for name in _DIFFERING:
        value = getattr(parts[0], name)
        setattr(parts[0], name, ~value)  # each of its bytes is another one
        places.append(_differ(usual, encode_response(message, answer.version, 0)))
        setattr(parts[0], name, value)
    return usual, places[0], places[1], places[2]


def _differ(one: bytes, other: bytes) -> int:
    """Where two texts of one length differ first."""
    return next(at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])


def shortcuts_of(
    queues: Queues,
    cluster: Cluster,
    identity: Identity,
    metrics: Metrics,
    *,
    adopt: Callable[..., None],
    line: Callable[[int], Line | None],
    ring: Callable[[], object],
    limit_ms: float,
) -> Shortcuts:
    """The ways past the loop for these parts of a producer. The others are as for `Shortcut`, and `line` for
    `Shortcuts`."""
    counts = metrics.requests_of(PRODUCE), metrics.acknowledged_batches()
    shortcut = Shortcut(queues, queues.lock, *counts, adopt, ring, limit_ms)
    return Shortcuts(queues, cluster, identity, shortcut, line)
