"""One request with retries until a deadline, as a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import CONTROLLER, Answer, Coordinator, Place, Prepare, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.errors import (
    COORDINATOR_NOT_AVAILABLE,
    NOT_CONTROLLER,
    NOT_COORDINATOR,
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    RemoteProtocolError,
    error,
)
from kafkacodec.messages import Message

__all__ = ["COORDINATOR_MOVED", "Call", "first_error", "worth_repeating"]

COORDINATOR_MOVED: Final = frozenset({COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
"""The error codes after which a coordinator is looked up again."""


def first_error(message: Any) -> int:
    """The error code at the top of a response; 0 if it has none."""
    return getattr(message, "error_code", 0)


def worth_repeating(error: Exception) -> bool:
    """Whether a request without an answer may succeed when it is sent again."""
    if isinstance(error, AuthenticationFailed):
        return False
    return isinstance(error, ConnectionFailed | DeadlineExceeded | RemoteProtocolError)


class Call:
    """A request that is retried while its errors are temporary.

    Args:
        request: the message, or a function that makes it for a broker's versions.
        to: its destination, looked up again when the broker is not (or no longer) the right one.
        cluster: for controllers and coordinators.
        deadline: when to give up, ms of the clock.
        attempt_ms: the time limit of each attempt.
        backoff: the waits between attempts.
        error_of: returns the error code of a response that decides about another attempt; 0 for none.

    Attributes:
        answer: the final response, if there is one.
        error: why there is none.
    """

    def __init__(
        self,
        request: Message | Prepare,
        to: Place,
        *,
        cluster: Cluster,
        deadline: float,
        attempt_ms: float,
        backoff: Backoff,
        error_of: Callable[[Any], int] = first_error,
    ) -> None:
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self._request, self._to = request, to
        self._cluster, self._backoff = cluster, backoff
        self._deadline, self._attempt_ms = deadline, attempt_ms
        self._error_of = error_of
        self._sending: Send | None = None
        self._failures = 0
        self._next_at = 0.0
        self._last: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether there is an answer or an error."""
        return self.answer is not None or self.error is not None

    def poll(self, now: float) -> list[Send]:
        """The next attempt, if it is time for it."""
        if self.done or self._sending is not None:
            return []
        self.error = self._cluster.absence.reason
        if self.error is None and now >= self._deadline:
            self._give_up()
        if self.error is not None:
            return []
        if now < self._next_at:
            return []
        self._sending = Send(self._to, self._request, min(self._attempt_ms, self._deadline - now))
        return [self._sending]

    def next_deadline(self) -> float | None:
        """The time of the next attempt or of the call's deadline."""
        if self.done or self._sending is not None:
            return None
        return min(self._next_at, self._deadline)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take the answer, unless its error is temporary."""
        code = self._error_of(answer.message)
        kind = error(code) if code else None
        moved = kind is not None and self._look_again(kind.code)
        if kind is None or not (kind.retriable or moved):
            self.answer = answer
            return
        what = type(answer.message).__name__.removesuffix("Response")
        self._cluster.hindrances.refused(f"{what} is refused", kind.code, now)
        self._again(kind(), now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Retry after a broken connection or a missing answer; other errors are final."""
        passes = isinstance(error, (ConnectionFailed, DeadlineExceeded)) and not isinstance(error, AuthenticationFailed)
        if not passes:
            self.error = error
            return
        if isinstance(self._to, Coordinator):
            self._cluster.coordinators.lost(self._to)
        elif self._to is CONTROLLER:
            self._cluster.refresh()
        self._again(error, now)

    def _look_again(self, code: int) -> bool:
        """Have the destination looked up again if the broker says that it is not the right one."""
        if code == NOT_CONTROLLER and self._to is CONTROLLER:
            self._cluster.refresh()
            return True
        if code in COORDINATOR_MOVED and isinstance(self._to, Coordinator):
            self._cluster.coordinators.lost(self._to)
            return True
        return False

    def _again(self, cause: Exception, now: float) -> None:
        self._sending, self._last = None, cause
        self._failures += 1
        self._next_at = now + self._backoff.after(self._failures)
        if self._next_at >= self._deadline:
            self._give_up()

    def _give_up(self) -> None:
        reason = f": {self._last}" if self._last is not None else ""
        self.error = DeadlineExceeded(
            f"no answer from {_shown(self._to)} in time, after {max(self._failures, 1)} attempts{reason}",
            sent=getattr(self._last, "sent", self._last is not None),
        )
        self.error.__cause__ = self._last


def _shown(place: Place) -> str:
    return f"broker {place}" if isinstance(place, int) else repr(place)
