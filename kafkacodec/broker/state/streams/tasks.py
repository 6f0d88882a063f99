"""The tasks of a streams group: partitions of subtopologies, by what a member does with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkacodec.datatypes import NamedTuple

__all__ = ["NO_TASKS", "ROLES", "Task", "TaskSet", "Tasks", "task_rows", "tasks_of"]

Task = tuple[str, int]
"""A subtopology and a partition."""

TaskSet = frozenset[Task]

_NONE: TaskSet = frozenset()


class Tasks(NamedTuple):
    """Tasks that process records, standby copies of their states, and copies that will soon process records."""

    active: TaskSet = _NONE
    standby: TaskSet = _NONE
    warmup: TaskSet = _NONE

    def overlaps(self, other: Tasks) -> bool:
        """Whether both have a task in the same role."""
        return any(mine & theirs for mine, theirs in zip(self, other, strict=True))

    def contains(self, other: Tasks) -> bool:
        """Whether it has all tasks of the other in the same roles."""
        return all(mine >= theirs for mine, theirs in zip(self, other, strict=True))


ROLES = Tasks._fields
"""The roles, in the order of all messages."""

NO_TASKS = Tasks()


def tasks_of(struct: Any, fields: str = "{}_tasks") -> Tasks:
    """Return the tasks of a message's lists, whose names have the role in this place."""
    return Tasks(*(_set_of(getattr(struct, fields.format(role))) for role in ROLES))


def _set_of(rows: Iterable[Any]) -> TaskSet:
    return frozenset((row.subtopology_id, number) for row in rows for number in row.partitions)


def task_rows(row: Any, tasks: Iterable[Task], epochs: Mapping[Task, int] | None = None) -> list[Any]:
    """Return structs of a subtopology and its partitions, in order; `epochs` adds when each was assigned."""
    found: dict[str, list[int]] = {}
    for subtopology, number in sorted(tasks):
        found.setdefault(subtopology, []).append(number)
    rows = [row(subtopology_id=subtopology, partitions=numbers) for subtopology, numbers in found.items()]
    for each in rows if epochs is not None else ():
        each.assignment_epochs = [epochs[each.subtopology_id, number] for number in each.partitions]  # type: ignore[index]
    return rows
