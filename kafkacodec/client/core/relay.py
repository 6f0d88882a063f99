"""Requests that a caller sends unchanged, each once, and their answers as they arrive."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from kafkacodec.client.core.calls import Answer, Place, Prepare, Send
from kafkacodec.datatypes import NamedTuple

if TYPE_CHECKING:
    from kafkacodec.messages import Message

__all__ = ["Relay", "Reply"]


class Reply(NamedTuple):
    """The outcome of a request.

    Attributes:
        request: the message that was sent, the same object; or the function that makes it.
        to: its destination.
        message: the response; None if there is an error, and for a Produce request with acks=0.
        error: why there is no response: ConnectionFailed, DeadlineExceeded, UnsupportedVersion, RemoteProtocolError...
        broker: the id of the broker that answered; None without an answer, negative for a bootstrap address.
        version: the version of the response; None without one.
    """

    request: Message | Prepare
    to: Place
    message: Any
    error: Exception | None
    broker: int | None
    version: int | None


class Relay:
    """A machine that sends given requests and keeps the replies until they are taken."""

    def __init__(self) -> None:
        self._unsent: list[Send] = []
        self._replies: deque[Reply] = deque()
        self._waiting = 0

    def add(self, to: Place, request: Message | Prepare) -> None:
        """Queue a request."""
        self._unsent.append(Send(to, request))
        self._waiting += 1

    @property
    def pending(self) -> int:
        """The number of requests whose replies have not arrived or not been taken."""
        return self._waiting + len(self._replies)

    @property
    def has_replies(self) -> bool:
        """Whether `take` would return any."""
        return bool(self._replies)

    def take(self) -> list[Reply]:
        """The replies since the last call, in order of arrival."""
        found = list(self._replies)
        self._replies.clear()
        return found

    def poll(self, now: float) -> list[Send]:
        """The requests added since the last call."""
        sends, self._unsent = self._unsent, []
        return sends

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Keep a response."""
        self._keep(Reply(send.request, send.to, answer.message, None, answer.node, answer.version))

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Keep an error."""
        self._keep(Reply(send.request, send.to, None, error, None, None))

    def next_deadline(self) -> float | None:
        """None: it acts only when it is given requests."""
        return None

    def _keep(self, reply: Reply) -> None:
        self._replies.append(reply)
        self._waiting -= 1
