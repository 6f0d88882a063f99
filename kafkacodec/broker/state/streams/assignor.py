"""The sticky assignor of streams groups: equally many tasks for each member, which keep theirs as far as that allows.

A task goes to the member that had it, then to one that has a copy of its state, then to the process with the fewest
tasks for its members. Standby copies come after the active tasks, on other processes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kafkacodec.broker.state.streams.tasks import Task, Tasks
from kafkacodec.datatypes import NamedTuple

__all__ = ["STICKY", "Assigned", "sticky"]

STICKY: Final = "sticky"
"""Its name."""


class Assigned(NamedTuple):
    """What the assignor knows of a member.

    Attributes:
        process: its process.
        tasks: its tasks.
        offsets: how much of the state of each task it has on its disk.
    """

    process: str
    tasks: Tasks
    offsets: Mapping[Task, int]


class _Quota:
    """How many tasks a member may have so that all are divided; those that have so many no longer count."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self._set()

    def _set(self) -> None:
        self.limit = -(-self._tasks // self._members) if self._members else 0

    def reached(self, count: int) -> None:
        """A member has so many tasks now."""
        if count == self.limit:
            self._members -= 1
            self._tasks -= count
            self._set()


class _Process:
    """A process, its members, and the tasks that they get."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[str, int] = {}  # by member
        self.tasks: set[Task] = set()
        self._given = 0
        self._by_count: list[tuple[int, str]] = []  # with former counts of members

    @property
    def load(self) -> float:
        """Tasks for each member."""
        return self._given / len(self.counts)

    def join(self, member: str) -> None:
        """Add a member."""
        self._count(member, 0)

    def add(self, member: str, task: Task) -> int:
        """Give a task to a member; returns how many it has."""
        self.tasks.add(task)
        self._given += 1
        return self._count(member, self.counts[member] + 1)

    def least_loaded(self) -> str:
        """The member with the fewest tasks."""
        while self._by_count[0][0] != self.counts[self._by_count[0][1]]:
            heapq.heappop(self._by_count)
        return self._by_count[0][1]

    def _count(self, member: str, count: int) -> int:
        self.counts[member] = count
        heapq.heappush(self._by_count, (count, member))
        return count


class _Division:
    """The state of a division of tasks."""

    def __init__(self, members: Mapping[str, Assigned], active: int, standby: int) -> None:
        self._processes: dict[str, _Process] = {}
        self._of: dict[str, _Process] = {}
        self._had: dict[Task, str] = {}  # who had a task
        self._copies: dict[Task, list[tuple[bool, int, str]]] = {}  # who has some of its state, the best first
        self.active: dict[str, set[Task]] = {member: set() for member in members}
        self.standby: dict[str, set[Task]] = {member: set() for member in members}
        self._of_active = _Quota(active, len(members))
        self._of_all = _Quota(active + standby, len(members))
        for member, known in sorted(members.items()):
            self._of[member] = self._processes.setdefault(known.process, _Process(known.process))
            self._of[member].join(member)
            self._had.update(dict.fromkeys(known.tasks.active, member))
            for task in known.tasks.standby | known.offsets.keys():
                copy = task not in known.tasks.standby, -known.offsets.get(task, 0), member
                self._copies.setdefault(task, []).append(copy)
        for copies in self._copies.values():
            copies.sort()

    def divide_active(self, tasks: Sequence[Task]) -> None:
        """Assign each task once."""
        left = []
        for task in sorted(tasks, key=_by_partition):
            had = self._had.get(task)
            if had is None or not self._takes(had, self._of_active):
                left.append(task)
            else:
                self._give_active(had, task)
        rest = []
        for task in left:
            near = self._nearest(task, beside=False)
            if near is None or not self._takes(near, self._of_active):
                rest.append(task)
            else:
                self._give_active(near, task)
        queue = self._queue()
        for task in sorted(rest):
            process = self._processes[queue[0][1]]
            self._give_active(process.least_loaded(), task)
            heapq.heapreplace(queue, (process.load, process.name))

    def divide_standby(self, tasks: Sequence[Task], copies: int) -> None:
        """Assign so many copies of each task, to processes without it, as far as there are any."""
        left: list[tuple[Task, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            for number in range(copies):
                member = self._copier(task)
                if member is None:
                    left.append((task, copies - number))
                    break
                self._give_standby(member, task)
        queue = self._queue()
        for task, count in sorted(left, reverse=True):
            for _ in range(count):
                if not self._copy_anywhere(task, queue):
                    break

    def _copier(self, task: Task) -> str | None:
        """Who had the task, or a copy, and can have a copy now."""
        had = self._had.get(task)
        if had is not None and task not in self._of[had].tasks and self._takes(had, self._of_all):
            return had
        near = self._nearest(task, beside=True)
        return near if near is not None and self._takes(near, self._of_all) else None

    def _copy_anywhere(self, task: Task, queue: list[tuple[float, str]]) -> bool:
        passed = []
        while queue and task in self._processes[queue[0][1]].tasks:
            passed.append(heapq.heappop(queue))
        if queue:
            process = self._processes[queue[0][1]]
            self._give_standby(process.least_loaded(), task)
            heapq.heapreplace(queue, (process.load, process.name))
        found = bool(queue)
        for entry in passed:
            heapq.heappush(queue, entry)
        return found

    def _takes(self, member: str, quota: _Quota) -> bool:
        return self._of[member].counts[member] < quota.limit

    def _nearest(self, task: Task, *, beside: bool) -> str | None:
        """The member with the most of a task's state; another only if its process and it have less to do.

        `beside` leaves out processes that have the task.
        """
        found: tuple[float, int, str] | None = None
        for _, _, member in self._copies.get(task, ()):
            process = self._of[member]
            if beside and task in process.tasks:
                continue
            load, count = process.load, process.counts[member]
            if found is None or (load < found[0] and count < found[1]):
                found = load, count, member
        return None if found is None else found[2]

    def _give_active(self, member: str, task: Task) -> None:
        count = self._of[member].add(member, task)
        self.active[member].add(task)
        self._of_active.reached(count)
        self._of_all.reached(count)

    def _give_standby(self, member: str, task: Task) -> None:
        self._of_all.reached(self._of[member].add(member, task))
        self.standby[member].add(task)

    def _queue(self) -> list[tuple[float, str]]:
        queue = [(process.load, name) for name, process in self._processes.items()]
        heapq.heapify(queue)
        return queue


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]


def sticky(
    tasks: Mapping[str, int], stateful: Iterable[str], members: Mapping[str, Assigned], copies: int
) -> dict[str, Tasks]:
    """Return each member's target.

    Args:
        tasks: the number of tasks of each subtopology.
        stateful: the subtopologies with states.
        members: all members.
        copies: the number of standby copies of each state.
    """
    if not members:
        return {}
    active = [(name, number) for name, count in tasks.items() for number in range(count)]
    with_state = [(name, number) for name in stateful for number in range(tasks[name])] if copies else []
    division = _Division(members, len(active), len(with_state) * copies)
    division.divide_active(active)
    division.divide_standby(with_state, copies)
    return {
        member: Tasks(frozenset(division.active[member]), frozenset(division.standby[member])) for member in members
    }
