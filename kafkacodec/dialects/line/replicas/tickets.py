"""Answers about a topic's groups, which wait until their leader is known to have been the leader.

A leader numbers the requests about groups; the number is a ticket. Followers ask for changes since a ticket, and so
confirm that they have stored everything up to it, and serve no newer leader. An answer leaves when enough followers
have confirmed its ticket, and the leader's own disk has it: then no other broker leads, and enough disks have the
answer's state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from kafkacodec.datatypes import NamedTuple

__all__ = ["Answer", "Tickets"]


class Answer(NamedTuple):
    """An answer that waits for its ticket."""

    ticket: int
    connection: Hashable
    correlation_id: str
    line: str
    deadline: int


class Tickets:
    """The requests about the groups of one topic, while the broker leads it.

    Args:
        needed: the number of followers that must have a ticket.

    Attributes:
        last: the ticket of the last request.
        changed: the ticket of the last request with a change.
        kept_here: the last ticket whose changes are on its own disk.
        waiting: the answers, in order.
    """

    def __init__(self, needed: int) -> None:
        self._needed = needed
        self.last = self.changed = self.kept_here = 0
        self.waiting: deque[Answer] = deque()
        self._kept: dict[int, int] = {}

    def take(self, *, changes: bool) -> int:
        """The ticket of a request."""
        self.last += 1
        if changes:
            self.changed = self.last
        return self.last

    def kept(self, replica_id: int, ticket: int) -> None:
        """A follower has kept everything up to a ticket."""
        self._kept[replica_id] = max(ticket, self._kept.get(replica_id, ticket))

    def due(self) -> list[Answer]:
        """Return the answers that may leave now."""
        kept = sorted(self._kept.values(), reverse=True)
        sure = self.last if not self._needed else kept[self._needed - 1] if len(kept) >= self._needed else -1
        sure = min(sure, self.kept_here)
        found = []
        while self.waiting and self.waiting[0].ticket <= sure:
            found.append(self.waiting.popleft())
        return found
