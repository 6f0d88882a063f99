"""The transactions of a prefix that are open: of this job, and of others that were killed or failed.

Whoever waits for what is committed waits for each of them, for up to `transaction.timeout.ms`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from typing import Final

from kafkacodec.client import Admin

__all__ = ["abort_open", "abort_until_quiet"]

_QUIET_SECONDS: Final = 3.0
"""A task that Spark kills goes on until its Python process is killed: `spark.python.task.killTimeout` (2 s)."""
_MOST_SECONDS: Final = 60.0
_LOOK_AGAIN: Final = 0.25
_OPEN: Final = ("Ongoing",)
_BEGINNING: Final = ("Ongoing", "Empty")


def abort_open(admin: Admin, prefix: str, keep: Collection[str] = ()) -> list[str]:
    """Abort the open transactions of all tasks, however many there were, except those in `keep`.

    Returns:
        Their transactional ids.

    Raises:
        ItemErrors: by broker or transactional id: it is not known what is open, or that was not ended.
    """
    names = _listed(admin, prefix, _OPEN, keep)
    if names:
        admin.fence_producers(names)
    return names


def abort_until_quiet(admin: Admin, prefix: str, keep: Collection[str] = ()) -> None:
    """Like `abort_open` while tasks may still begin; returns when none has begun for some seconds."""
    fenced: dict[str, tuple[int, int]] = {}
    now = begun = time.monotonic()
    quiet = now + _QUIET_SECONDS
    while now < min(quiet, begun + _MOST_SECONDS):
        names = _listed(admin, prefix, _BEGINNING, keep)
        described = admin.describe_transactions(names)
        new = [
            name
            for name, found in described.items()
            if found.state in _BEGINNING and fenced.get(name) != (found.producer_id, found.producer_epoch)
        ]
        if new:
            fenced |= {name: (done[0], done[1]) for name, done in admin.fence_producers(new).items()}
            quiet = time.monotonic() + _QUIET_SECONDS
        time.sleep(_LOOK_AGAIN)
        now = time.monotonic()


def _listed(admin: Admin, prefix: str, states: Iterable[str], keep: Collection[str]) -> list[str]:
    of_a_task = re.compile(re.escape(prefix) + r"-[0-9]+")
    listed = admin.list_transactions(states=states)
    return [name for name in listed if of_a_task.fullmatch(name) and name not in keep]
