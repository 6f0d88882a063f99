"""The topics that a client wants metadata of, and which of them to request next: new ones at once, others later.

Topics that are wanted together are requested together, without any that are already known. Topics missing from an
answer are requested again after increasing waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.datatypes import dataclass, field

__all__ = ["Group", "Wanted"]

_COMES_UP_MS = 10.0  # the first wait for a new topic


@dataclass(eq=False, slots=True)
class Group:
    """Unknown topics that share a request.

    Attributes:
        create: whether brokers may create them.
        next_at: the earliest time of the next request.
        asking: whether a request is in flight.
    """

    names: set[str] = field(default_factory=set)
    create: bool = False
    failures: int = 0
    next_at: float = 0.0
    asking: bool = False


class Wanted:
    """Topics by name.

    Args:
        backoff: the waits after requests that did not return what is wanted.

    Attributes:
        names: all wanted topics.
        new: those to request at the next call of `due`.
        groups: other unknown ones. Without groups and new ones, nothing is due.
    """

    def __init__(self, backoff: Backoff) -> None:
        self.names: set[str] = set()
        self.groups: list[Group] = []
        self._backoff = backoff
        self.new: set[str] = set()
        self._group_of: dict[str, Group] = {}
        self._creatable: set[str] = set()
        self._used_at: dict[str, float | None] = {}  # of topics not kept; None: since the last `idle`

    @property
    def all_missing(self) -> bool:
        """Whether something is wanted and all of it is still unknown."""
        return bool(self.groups) and len(self._group_of) == len(self.names)

    def want(self, name: str, *, keep: bool) -> None:
        """Want a topic until `forget`, or, unless it is kept, until it has not been wanted for a while."""
        if not keep and (name not in self.names or name in self._used_at):
            self._used_at[name] = None
        elif keep:
            self._used_at.pop(name, None)
        self.names.add(name)

    def keeps(self, name: str) -> bool:
        """Whether a topic is wanted until `forget`."""
        return name in self.names and name not in self._used_at

    def ask(self, name: str, *, create: bool = False) -> None:
        """Request a topic at once, unless it is requested already; until it is found, brokers may `create` it."""
        if create and name not in self._creatable:
            self._creatable.add(name)
            self._leave(name)
        if name not in self._group_of:
            self.new.add(name)

    def forget(self, name: str) -> None:
        """Stop wanting a topic."""
        self.names.discard(name)
        self.new.discard(name)
        self._creatable.discard(name)
        self._used_at.pop(name, None)
        self._leave(name)

    def idle(self, now: float, limit_ms: float) -> list[str]:
        """The topics that are not kept and have not been wanted for `limit_ms`."""
        found = []
        for name, at in self._used_at.items():
            if at is None:
                self._used_at[name] = now
            elif now - at >= limit_ms:
                found.append(name)
        return found

    def known(self) -> frozenset[str]:
        """The topics that are not in a group."""
        return frozenset(self.names - self._group_of.keys())

    def due(self, now: float) -> list[Group]:
        """The groups to request now."""
        new, self.new = self.new, set()
        self._gather(new, now)
        due = [group for group in self.groups if not group.asking and group.next_at <= now]
        for group in due:
            group.asking = True
        return due

    def next_at(self) -> float | None:
        """The time of the next request for a group."""
        if self.new:
            return 0.0
        return min((group.next_at for group in self.groups if not group.asking), default=None)

    def later(self, names: Iterable[str], next_at: float, failures: int = 0) -> None:
        """Request topics after a wait, unless they are requested already."""
        self._gather(names, next_at, failures)

    def settle(self, group: Group, left: Iterable[str], now: float) -> None:
        """Handle the answer to a group's request; `left` are the topics that it did not return."""
        left = group.names.intersection(left)
        for name in group.names - left:
            self.found(name)
        group.names, group.asking = left, False
        group.failures += 1
        group.next_at = now + self._wait(group)
        self._join(group)
        self._tidy()

    def _wait(self, group: Group) -> float:
        """The wait until the next request. One that created topics has not failed: they will appear soon."""
        wait = self._backoff.after(group.failures)
        return min(wait, _COMES_UP_MS * 2.0 ** min(group.failures - 1, 30)) if group.create else wait

    def found(self, name: str) -> None:
        """Record that a topic is known, from any request."""
        self._creatable.discard(name)
        self._leave(name)

    def _gather(self, names: Iterable[str], next_at: float, failures: int = 0) -> None:
        """Group the topics that have no group yet."""
        made: dict[bool, Group] = {}
        for name in names:
            if name in self.names and name not in self._group_of:
                create = name in self._creatable
                group = made.setdefault(create, Group(create=create, next_at=next_at, failures=failures))
                group.names.add(name)
                self._group_of[name] = group
        self.groups += made.values()

    def _join(self, group: Group) -> None:
        """Merge other groups that wait for about the same time into this one, to send fewer requests."""
        slack = self._backoff.first_ms
        for other in self.groups:
            alike = other.create == group.create and not other.asking and other.failures
            if other is not group and alike and abs(other.next_at - group.next_at) <= slack:
                group.next_at = max(group.next_at, other.next_at)
                group.failures = max(group.failures, other.failures)
                group.names |= other.names
                self._group_of.update(dict.fromkeys(other.names, group))
                other.names = set()

    def _leave(self, name: str) -> None:
        group = self._group_of.pop(name, None)
        if group is not None:
            group.names.discard(name)
            self._tidy()

    def _tidy(self) -> None:
        self.groups = [group for group in self.groups if group.names or group.asking]
