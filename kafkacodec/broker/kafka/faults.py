"""Injected faults: rules that answer requests with errors, delay, drop or disconnect them; pause.

Rules apply before a request is dispatched. A waiting request holds up the requests behind it on its connection, since a
broker handles the requests of a connection one after another.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from kafkacodec.broker.kafka.refusals import refusal
from kafkacodec.datatypes import dataclass, field
from kafkacodec.messages import keys
from kafkacodec.net.service import CLOSE, NOTHING, Effect, Reply

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["Faults", "Rule"]

_log = logging.getLogger("kafkacodec.broker")


@dataclass(eq=False)
class Rule:
    """A fault for requests of an API.

    Attributes:
        key: of the API.
        code: the error in the answer; None for none.
        delay: in ms, before anything else happens.
        drops: never answer.
        closes: close the connection instead of answering.
        after: handle the request first; replace only the answer.
        left: the number of further requests that match; None for all.
        when: whether a request matches.
        noticed: called for each request that matches, and when `when` has failed.
        failure: what `when` raised first.
    """

    key: int
    code: int | None = None
    delay: float = 0.0
    drops: bool = False
    closes: bool = False
    after: bool = False
    left: int | None = None
    when: Callable[[Request], bool] | None = None
    noticed: Callable[[], None] | None = None
    failure: Exception | None = None

    def matches(self, request: Request) -> bool:
        """Whether it concerns a request."""
        try:
            return self.key == request.key and (self.when is None or self.when(request))
        except Exception as failure:
            self.failure = self.failure or failure
            if self.noticed is not None:
                self.noticed()
            raise


@dataclass(eq=False)
class _Line:
    """The waiting requests of a session, the first of them until a time."""

    until: float = 0.0
    first: tuple[Request, Rule] | None = None
    waiting: deque[Request] = field(default_factory=deque)


class Faults:
    """The rules of a broker, and the requests that they delay.

    Args:
        node: the broker.
        answer: handles a request without rules.

    Attributes:
        rules: in their order; the first that matches a request counts.
        lines: what waits, by session.
        paused: whether the broker answers nothing.
    """

    def __init__(self, node: Node, answer: Callable[[Request], Effect]) -> None:
        self.rules: list[Rule] = []
        self.paused = False
        self._node, self._answer = node, answer
        self.lines: dict[Any, _Line] = {}

    def receive(self, request: Request) -> Effect:
        """Handle a request as the rules say; without `rules`, `lines` and a pause it need not come here."""
        line = self.lines.get(request.session)
        if line is None and not self.paused:
            return self._begin(request)
        if line is None:
            line = self._line(request)
        line.waiting.append(request)
        return NOTHING

    def remove(self, rule: Rule) -> None:
        """Remove a rule. Requests that it dropped stay unanswered."""
        if rule in self.rules:
            self.rules.remove(rule)

    def forget(self, session: Any) -> None:
        """Drop the requests of a session."""
        self.lines.pop(session, None)

    def due(self, now: float) -> Effect:
        """Continue one request whose wait is over; its effect may change the next."""
        if not self.paused:
            for session, line in self.lines.items():
                if line.until <= now:
                    return self._step(session, line, now)
        return NOTHING

    def next_deadline(self) -> float | None:
        """Return when `due` has something to do."""
        if self.paused or not self.lines:
            return None
        found = min(line.until for line in self.lines.values())
        return None if found == inf else found

    def _step(self, session: Any, line: _Line, now: float) -> Effect:
        effect, request = NOTHING, None
        try:
            if line.first is not None:
                (request, rule), line.first = line.first, None
                request.received = now
                effect = self._end(request, rule)
            elif line.waiting:
                request = line.waiting.popleft()
                request.received = now
                effect = self._begin(request)
        except Exception:
            _log.exception("a delayed request failed; closing its connection")
            if request is not None:
                effect = Effect((), (Reply(request.to, CLOSE),))
        if line.first is None and not line.waiting and line.until != inf:
            self.lines.pop(session, None)
        return effect

    def _begin(self, request: Request) -> Effect:
        rule = self._concerned(request)
        if rule is None:
            return self._answer(request)
        if rule.drops:
            self._line(request).until = inf
            if rule.after:
                request.to = _Instead(request.to, None)
                return self._answer(request)
            return NOTHING
        if rule.delay > 0:
            line = self._line(request)
            line.until, line.first = request.received + rule.delay, (request, rule)
            return NOTHING
        return self._end(request, rule)

    def _line(self, request: Request) -> _Line:
        self._node.waiting.alarm.ring()
        return self.lines.setdefault(request.session, _Line())

    def _concerned(self, request: Request) -> Rule | None:
        for rule in self.rules:
            if rule.matches(request):
                if rule.left is not None:
                    rule.left -= 1
                    if rule.left <= 0:
                        self.rules.remove(rule)
                if rule.noticed is not None:
                    rule.noticed()
                return rule
        return None

    def _end(self, request: Request, rule: Rule) -> Effect:
        if rule.closes:
            response: Any = CLOSE
        elif rule.code is not None:
            response = refusal(self._node, request, rule.code)
        else:
            return self._answer(request)
        if rule.after and (rule.closes or request.key != keys.FETCH):  # a fetch changes nothing but its session
            request.to = _Instead(request.to, response)
            return self._answer(request)
        return Effect((), (Reply(request.to, response),))


class _Instead:
    """Replaces the address of a request's reply, and sends another answer than the broker's, or none."""

    __slots__ = ("_response", "_to")

    def __init__(self, to: Any, response: Any) -> None:
        self._to, self._response = to, response

    def answer(self, response: Any) -> None:
        """Take the broker's answer."""
        if self._response is not None:
            self._to.answer(self._response)
