"""A member's steps from its tasks to its target, as in the consumer protocol.

A member first gives up tasks outside its target, then moves to the epoch of the target, then gets its new tasks when
others have given them up. A process has a task in one role only, since its members share a directory of states. A
member changes the role of a task at once, and keeps a copy until it gets the task itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacodec.broker.state.streams.member import STABLE, UNKNOWN, UNRELEASED, UNREVOKED, StreamsMember
from kafkacodec.broker.state.streams.tasks import NO_TASKS, Task, Tasks, TaskSet
from kafkacodec.datatypes import replace

__all__ = ["Holders", "moved"]


class Holders:
    """Who has each task in each role, or has not given it up yet.

    Args:
        members: all members of the group.
    """

    def __init__(self, members: Iterable[StreamsMember]) -> None:
        self._active: dict[Task, str] = {}
        self._copies: tuple[dict[Task, set[str]], dict[Task, set[str]]] = ({}, {})  # standby, warm-up
        for member in members:
            for tasks in (member.assigned, member.revoking):
                self._active.update(dict.fromkeys(tasks.active, member.process))
                for held, each in zip(self._copies, tasks[1:], strict=True):
                    for task in each:
                        held.setdefault(task, set()).add(member.process)

    def free(self, wanted: Tasks, member: StreamsMember) -> Tasks:
        """Return the tasks that a member can get now."""
        process, had = member.process, member.assigned

        def copied_beside(role: int, task: Task) -> bool:
            """Whether another member of the process has a copy."""
            return process in self._copies[role].get(task, ()) and task not in had[1 + role]

        def runs(task: Task) -> bool:
            return self._active.get(task) == process

        def copied(role: int, task: Task) -> bool:
            return process in self._copies[role].get(task, ())

        return Tasks(
            frozenset(
                task
                for task in wanted.active
                if task not in self._active and not copied_beside(0, task) and not copied_beside(1, task)
            ),
            frozenset(
                task
                for task in wanted.standby
                if not (runs(task) and task not in had.active) and not copied(0, task) and not copied_beside(1, task)
            ),
            frozenset(
                task for task in wanted.warmup if not runs(task) and not copied_beside(0, task) and not copied(1, task)
            ),
        )


def moved(member: StreamsMember, target: Tasks, epoch: int, holders: Holders, owned: Tasks | None) -> StreamsMember:
    """Return a member after a heartbeat.

    Args:
        member: the member before.
        target: its target.
        epoch: of the target.
        holders: of all tasks of the group.
        owned: the tasks that it reports; None if it reports none.
    """
    if member.settled(epoch):
        return member
    if member.state == UNREVOKED:
        if owned is None or owned.overlaps(member.revoking):
            return member
        return _next(member, member.epoch + 1, target, epoch, holders, owned)
    stays = epoch if member.state == UNKNOWN else member.epoch
    return _next(member, stays, target, epoch, holders, owned)


def _next(
    member: StreamsMember, stays: int, target: Tasks, epoch: int, holders: Holders, owned: Tasks | None
) -> StreamsMember:
    had = member.assigned
    kept = [mine & wanted for mine, wanted in zip(had, target, strict=True)]
    leaving = [mine - wanted for mine, wanted in zip(had, target, strict=True)]
    wanted = Tasks(*(mine - given for mine, given in zip(target, kept, strict=True)))
    new = [*holders.free(wanted, member)]
    waits = wanted != Tasks(*new)
    _change_roles(had, kept, leaving, new)
    for role in (1, 2):  # a copy stays until the task itself comes
        leaving[role] -= target.active
    revoking = Tasks(*leaving)
    must_revoke = revoking != NO_TASKS and (owned is None or owned.overlaps(revoking))
    for role in (1, 2):
        kept[role] |= (had[role] & target.active) - (frozenset() if must_revoke else new[0])
    if must_revoke:
        return _at(member, stays, UNREVOKED, Tasks(*kept), revoking, epoch)
    assigned = Tasks(*(mine | more for mine, more in zip(kept, new, strict=True)))
    return _at(member, epoch, UNRELEASED if waits else STABLE, assigned, NO_TASKS, epoch)


def _change_roles(had: Tasks, kept: list[TaskSet], leaving: list[TaskSet], new: list[TaskSet]) -> None:
    """Assign a task that the member has in another role now: nobody else has to give it up."""
    stops = new[1] & had.active  # it is given up as an active task as well
    kept[1] |= stops
    new[1] -= stops
    for before, after in ((1, 2), (2, 1)):
        turned = new[after] & had[before]
        kept[after] |= turned
        new[after] -= turned
        leaving[before] -= turned


def _at(
    member: StreamsMember, epoch: int, state: int, assigned: Tasks, revoking: Tasks, target_epoch: int
) -> StreamsMember:
    had = member.assigned.active
    epochs = {task: member.epochs[task] if task in had else target_epoch for task in assigned.active | revoking.active}
    return replace(
        member, epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, revoking=revoking,
        epochs=epochs,
    )  # fmt: skip
