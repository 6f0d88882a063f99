"""Runs a coordinator of `kafkacodec.broker.state`: keeps what it appends, and its replies by request."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from kafkacodec.broker.state.machine import Client, Machine, Question
from kafkacodec.broker.state.options import GroupOptions
from kafkacodec.net.service import Append, Effect

AT_ONCE = GroupOptions(
    group_initial_rebalance_delay_ms=0, group_consumer_assignment_interval_ms=0, group_share_assignment_interval_ms=0
)
"""Groups wait for nothing."""


class Asked:
    """A request; `answer` is None until its response has left."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.answer: Any = None

    @property
    def answered(self) -> bool:
        """Whether its response has left."""
        return self.answer is not None


class Bench:
    """A coordinator with a log, a clock and one client.

    Attributes:
        log: what was appended: topic, partition and `Records`.
        held: appends that are on their way, while `holds` is set.
        cluster: what the coordinator knows of topics, for tests to change.
        other: the coordinator that this one asks.
    """

    def __init__(self, make: Callable[[], Any], now: int = 1_700_000_000_000) -> None:
        self.make, self.now = make, now
        self.log: list[Append] = []
        self.held: list[Append] = []
        self.holds = False
        self.cluster: Any = None
        self.other: Bench | None = None
        self.machine: Any = make()
        self._do(self.machine.loaded(now))

    def ask(self, request: Any, version: int, client: str = "app") -> Any:
        """The answer to a request; None while it has none."""
        return self.send(request, version, client).answer

    def send(self, request: Any, version: int, client: str = "app") -> Asked:
        """A request whose answer may come later."""
        asked = Asked(version)
        request = type(request).decode(request.encode(version), version)
        self._do(self.machine.receive(request, version, Client(client), asked, self.now))
        return asked

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        end = self.now + milliseconds
        while (due := self.machine.next_deadline()) is not None and due <= end:
            self.now = max(self.now, int(due))
            self._do(self.machine.tick(self.now))
        self.now = end
        self._do(self.machine.tick(end))

    def release(self, error: Exception | None = None) -> None:
        """The oldest append on its way has arrived, or failed."""
        append = self.held.pop(0)
        if error is None:
            self.append(append)
        else:
            self._do(self.machine.not_appended(append.token, error, self.now))

    def restart(self) -> None:
        """The broker ends, and another starts with its log."""
        self.machine = self._loaded()
        self._do(self.machine.loaded(self.now))

    def restarted(self) -> Machine:
        """A coordinator that has loaded the log of this one, which goes on."""
        fresh = self._loaded()
        fresh.loaded(self.now)
        return fresh

    def _loaded(self) -> Machine:
        fresh: Machine = self.make()
        for append in self.log:
            for key, value in getattr(append.data, "rows", ()):
                fresh.load(key, value, append.data.producer_id)
        return fresh

    def append(self, append: Append) -> None:
        """Records arrive in the log, or a question is answered."""
        if isinstance(append.data, Question):
            assert self.other is not None
            answer = self.other.ask(*append.data)
            self._do(self.machine.appended(append.token, answer, self.now))
            return
        self.log.append(append)
        self._do(self.machine.appended(append.token, None, self.now))

    def _do(self, effect: Effect) -> None:
        assert not (effect.appends and effect.replies)
        for append in effect.appends:
            if self.holds:
                self.held.append(append)
            else:
                self.append(append)
        for to, response in effect.replies:
            assert to.answer is None, "answered twice"
            to.answer = type(response).decode(response.encode(to.version), to.version)


def numbered_ids() -> Callable[[], uuid.UUID]:
    """Ids that are 1, 2, and so on."""
    numbers = iter(range(1, 1_000_000))
    return lambda: uuid.UUID(int=next(numbers))


class Cluster:
    """Topics, as coordinators ask about them."""

    def __init__(self, **topics: int) -> None:
        self.ids = {name: uuid.UUID(int=100 + n) for n, name in enumerate(topics)}
        self.counts = dict(topics)

    def names(self) -> list[str]:
        """All topics."""
        return list(self.counts)

    def partitions(self, topic: str) -> int:
        """The number of partitions."""
        return self.counts.get(topic, 0)

    def id_of(self, topic: str) -> uuid.UUID | None:
        """The id of a topic."""
        return self.ids.get(topic)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        """The topic with this id."""
        return next((name for name, known in self.ids.items() if known == topic_id), None)
