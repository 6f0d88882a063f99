"""An operation on several items: one request per responsible broker, retried for the items that need it.

`Ask` defines how to request items and how to read the answer for each; `Job` is the machine that runs until each item
has a result or an error, or the deadline passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from kafkacodec.client.core.calls import ANY, CONTROLLER, Answer, Coordinator, Place, Send, Versions
from kafkacodec.client.core.missing import UNKNOWN_MS
from kafkacodec.client.core.retrying import COORDINATOR_MOVED
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import (
    LEADER_NOT_AVAILABLE,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_OR_PARTITION,
    AuthenticationFailed,
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
    error,
)
from kafkacodec.messages import APIS
from kafkacodec.protocol.releases import usable_version

if TYPE_CHECKING:
    from kafkacodec.client.core.backoff import Backoff
    from kafkacodec.client.core.cluster import Cluster

__all__ = ["Ask", "Job", "Leader", "refusal"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_LOOK_AGAIN_MS = 100  # before the next look-up of a missing leader or coordinator
_NO_CONTROLLER_MS = 1000  # Metadata of version 0 never names it


class Leader(NamedTuple):
    """The leader of a partition, as a destination."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Where: TypeAlias = "Place | Leader"


def refusal(code: int, message: str | None = None) -> BrokerError | None:
    """The error of a code in a response, with the broker's message; None for code 0."""
    if not code:
        return None
    kind = error(code)
    return kind(f"{kind.name}: {message}" if message else None)


def _controller(key: Any) -> Where:
    return CONTROLLER


@dataclass(frozen=True, kw_only=True)
class Ask(Generic[K, V]):
    """The requests to brokers for items of one kind.

    Args:
        api_key: the API.
        request: makes the request for some items in a version.
        read: returns the value or error of each item in a response.
        place: the destination that is responsible for an item. Default: the controller.
        least, most: the versions that can be used; `needs` says why a lower one cannot.
        final: error codes that are not retried although they are retriable in general.
        one_by_one: whether the API takes one item per request.
    """

    api_key: int
    request: Callable[[list[K], int], Any]
    read: Callable[[list[K], Answer], Iterable[tuple[K, V | BrokerError]]]
    place: Callable[[K], Where] = _controller
    least: int = 0
    most: int | None = None
    needs: str = ""
    final: frozenset[int] = frozenset()
    one_by_one: bool = False

    def prepare(self, keys: list[K], versions: Versions) -> tuple[Any, int]:
        """The request and its version for a broker with these versions."""
        version = usable_version(self.api_key, versions, self.least, self.most, self.needs)
        return self.request(keys, version), version


@dataclass(slots=True)
class _Attempt:
    """The state of an item."""

    failures: int = 0
    next_at: float = 0.0
    error: Exception | None = None
    unplaced: bool = False  # its destination is being looked up
    unanswered: bool = False  # a broker may have executed an earlier request without an answer
    unknown_since: float | None = None  # since when its topic, or the controller, is unknown


@dataclass(frozen=True, slots=True)
class _Batch(Generic[K]):
    """The context of a send."""

    keys: list[K]
    where: list[Where]


@dataclass(eq=False)
class Job(Generic[K, V]):
    """A machine that requests items until each has a result or an error.

    Args:
        ask: the kind of request.
        keys: the items; equal ones count once.
        cluster: knows leaders and coordinators.
        deadline: when to give up, in ms of the driver's clock.
        backoff: the waits between attempts.
        request_timeout_ms: the longest time for one answer.

    Attributes:
        results, errors: by item. When `done`, they have all items together.
    """

    ask: Ask[K, V]
    keys: Iterable[K]
    cluster: Cluster
    deadline: float
    backoff: Backoff
    request_timeout_ms: float
    results: dict[K, V] = field(default_factory=dict)
    errors: dict[K, Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._waiting: dict[K, _Attempt] = {key: _Attempt() for key in self.keys}
        self._sent: dict[Send, dict[K, _Attempt]] = {}
        self._looked_up: set[Leader | Coordinator] = set()

    @property
    def done(self) -> bool:
        """Whether every item has a result or an error."""
        return not self._waiting and not self._sent

    def poll(self, now: float) -> list[Send]:
        """One request per broker for the items whose time has come."""
        absent = self.cluster.absence.reason
        if absent is not None:
            self.errors.update(dict.fromkeys(self._waiting, absent))
            self._waiting.clear()
            return []
        if now >= self.deadline:
            for key, attempt in self._waiting.items():
                self.errors[key] = self._late(key, attempt)
            self._waiting.clear()
            return []
        refused = self.cluster.refused
        if refused is not None:  # no leader, coordinator or controller can be found
            for key in [key for key, attempt in self._waiting.items() if attempt.unplaced]:
                self._fail(key, refused)
        batches: dict[Place, _Batch[K]] = {}
        for key, attempt in list(self._waiting.items()):
            if attempt.unplaced or attempt.next_at <= now:
                self._assign(key, attempt, now, batches)
        return [self._send(place, batch, now) for place, whole in batches.items() for batch in self._split(whole)]

    def next_deadline(self) -> float | None:
        """The time of the next attempt for an item, or the deadline."""
        if not self._waiting:
            return None
        return min(self.deadline, min(attempt.next_at for attempt in self._waiting.values()))

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Record the broker's answer for each item."""
        attempts = self._sent.pop(send)
        where = dict(zip(send.context.keys, send.context.where, strict=True))
        for key, found in self.ask.read(send.context.keys, answer):
            attempt = attempts.pop(key, None)
            if attempt is None:
                continue
            if isinstance(found, BrokerError):
                self._refused(key, attempt, found, where[key], now)
            else:
                self.results[key] = found
        for key in attempts:
            name = APIS[self.ask.api_key].name
            self.errors[key] = RemoteProtocolError(f"broker {answer.node}: its {name} response lacks {key!r}")

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Ask again, unless that cannot help."""
        for (key, attempt), where in zip(self._sent.pop(send).items(), send.context.where, strict=True):
            unanswered = isinstance(error, (ConnectionFailed, DeadlineExceeded))
            if not unanswered or isinstance(error, AuthenticationFailed):
                self.errors[key] = error
                continue
            attempt.unanswered = attempt.unanswered or getattr(error, "sent", False)
            if isinstance(where, Coordinator):
                self.cluster.coordinators.lost(where)
            self.cluster.refresh()
            self._again(key, attempt, error, now)
            if isinstance(where, int) and self.cluster.brokers:
                self._absent(key, attempt, where, error, now)

    @property
    def topics(self) -> set[str]:
        """The topics whose leaders the cluster looked up for this job."""
        return {where.topic for where in self._looked_up if isinstance(where, Leader)}

    def release(self) -> None:
        """Stop the cluster from looking up what this job needed, and from remembering refusals.

        Topics with leaders stay known for later jobs; `topics` names them. Another job that needs what is forgotten
        asks for it again when it is polled.
        """
        for where in self._looked_up:
            if isinstance(where, Coordinator):
                self.cluster.coordinators.forget(where)
            elif self.cluster.leader(*where) is None:
                self.cluster.unwant([where.topic])

    # Items

    def _assign(self, key: K, attempt: _Attempt, now: float, batches: dict[Place, _Batch[K]]) -> None:
        """Add an item to the batch of its broker, or let it wait until the broker is known."""
        where = self.ask.place(key)
        place: Place | None = where if not isinstance(where, (Leader, Coordinator)) else None
        if isinstance(where, (Leader, Coordinator)):
            self._looked_up.add(where)
        if isinstance(where, Coordinator):
            place = self.cluster.node_of(where)
            refused = self.cluster.coordinators.refusal(where)
            if refused is not None:
                self._fail(key, refused)
                return
        elif isinstance(where, Leader):
            place = self._leader(key, attempt, where, now)
        elif where is CONTROLLER:
            place = self._controller(attempt, now)
        attempt.unplaced = place is None
        if place is not None:
            batch = batches.setdefault(place, _Batch([], []))
            batch.keys.append(key)
            batch.where.append(where)
        elif key in self._waiting:
            attempt.next_at = now + _LOOK_AGAIN_MS

    def _controller(self, attempt: _Attempt, now: float) -> Place | None:
        """The controller, or any broker if none is named: that will answer that it is not one or lacks the API."""
        node = self.cluster.node_of(CONTROLLER)
        if node is None and attempt.unknown_since is None:
            attempt.unknown_since = now
        waited = 0.0 if attempt.unknown_since is None else now - attempt.unknown_since
        return ANY if node is None and waited >= _NO_CONTROLLER_MS else node

    def _leader(self, key: K, attempt: _Attempt, where: Leader, now: float) -> int | None:
        if not self.cluster.want([where.topic]) and where.topic not in self.cluster.topics:
            return None
        topic = self.cluster.topics.get(where.topic)
        if topic is None:
            return None
        leader = self.cluster.leader(*where)
        if leader is not None:
            return leader
        self.cluster.refresh()
        if topic.refusal is not None:
            self._fail(key, topic.refusal(f"{topic.refusal.name}: topic {where.topic!r}"))
        elif where.partition not in topic.partitions:
            self._unknown(
                key,
                attempt,
                error(UNKNOWN_TOPIC_OR_PARTITION)(f"{error(UNKNOWN_TOPIC_OR_PARTITION).name}: {where}"),
                now,
            )
        else:
            attempt.error = error(LEADER_NOT_AVAILABLE)(f"{error(LEADER_NOT_AVAILABLE).name}: {where}")
            self.cluster.hindrances.refused(f"{where} has no leader", LEADER_NOT_AVAILABLE, now)
        return None

    def _refused(self, key: K, attempt: _Attempt, found: BrokerError, where: Where, now: float) -> None:
        if not found.retriable or found.code in self.ask.final:
            if attempt.unanswered:
                found.add_note("an earlier request timed out; the broker may have executed it")
            self.errors[key] = found
            return
        attempt.unanswered = attempt.unanswered or found.code == REQUEST_TIMED_OUT  # the broker may still execute it
        if found.code in COORDINATOR_MOVED and isinstance(where, Coordinator):
            self.cluster.coordinators.lost(where)
        if found.stale_metadata or found.code == NOT_CONTROLLER:
            self.cluster.refresh()
        self._again(key, attempt, found, now)
        self.cluster.hindrances.refused(f"{self._named(key)} is refused", found.code, now)
        if found.code == UNKNOWN_TOPIC_OR_PARTITION:
            self._unknown(key, attempt, found, now)

    def _unknown(self, key: K, attempt: _Attempt, found: BrokerError, now: float) -> None:
        """Handle an unknown topic: it may be new, so the error is not final at once."""
        attempt.error = found
        if attempt.unknown_since is None:
            attempt.unknown_since = now
        if now - attempt.unknown_since >= UNKNOWN_MS:
            self._fail(key, found)

    def _absent(self, key: K, attempt: _Attempt, node: int, found: Exception, now: float) -> None:
        """Handle a broker that did not answer; one missing from the metadata may be about to start."""
        if self.cluster.address(node) is not None:
            attempt.unknown_since = None
            return
        if attempt.unknown_since is None:
            attempt.unknown_since = now
        if now - attempt.unknown_since >= UNKNOWN_MS:
            self._fail(key, found)

    def _again(self, key: K, attempt: _Attempt, found: Exception, now: float) -> None:
        attempt.failures += 1
        attempt.error = found
        attempt.next_at = now + self.backoff.after(attempt.failures)
        self._waiting[key] = attempt

    def _fail(self, key: K, found: Exception) -> None:
        del self._waiting[key]
        self.errors[key] = found

    def _late(self, key: K, attempt: _Attempt) -> Exception:
        last = attempt.error or (self.cluster.last_error if attempt.unplaced else None)
        why = f"; last error: {last}" if last is not None else ""
        found = DeadlineExceeded(f"{self._named(key)} timed out{why}", sent=attempt.unanswered)
        found.__cause__ = last
        return found

    def _named(self, key: K) -> str:
        """The request for an item, for messages; "" is the only item of a call on the whole cluster."""
        shown = repr(key) if isinstance(key, str) else str(key)
        return APIS[self.ask.api_key].name + (f" of {shown}" if key != "" else "")

    # Requests

    def _split(self, batch: _Batch[K]) -> Iterable[_Batch[K]]:
        if not self.ask.one_by_one:
            return [batch]
        return [_Batch([key], [where]) for key, where in zip(batch.keys, batch.where, strict=True)]

    def _send(self, place: Place, batch: _Batch[K], now: float) -> Send:
        timeout = min(self.request_timeout_ms, self.deadline - now)
        send = Send(place, lambda versions: self.ask.prepare(batch.keys, versions), timeout, batch)
        self._sent[send] = {key: self._waiting.pop(key) for key in batch.keys}
        return send
