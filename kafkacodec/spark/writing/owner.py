"""The driver that owns a staging directory, and whether it has ended.

Spark runs no Python process for as long as a job lasts, so no lock can stand for the job. The JVM of the driver can: it
is identified by its number and the time when it started, which together are unique on a running machine. Needs
Linux's ``/proc``; elsewhere, and for drivers of other machines or containers, the answer is that it is not known.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from kafkacodec.datatypes import NamedTuple

__all__ = ["driver", "has_ended"]

_JVM = "java"
_MOST_ANCESTORS = 16


class _Process(NamedTuple):
    name: str
    state: str
    parent: int
    started: str


def driver(started: int | None = None) -> str:
    """The identity of the driver's process, an empty string if it is not known.

    It is the nearest JVM that has started this process, or without one this process, unless it is a worker of Spark's.

    Args:
        started: the number of another process that the driver has started, by default this one.
    """
    machine, number = _machine(), os.getpid() if started is None else started
    if not machine:
        return ""
    for _ in range(_MOST_ANCESTORS):
        process = _process(number)
        if process is None:
            break
        if process.name == _JVM:
            return f"{machine} {number} {process.started}"
        number = process.parent
    process = _process(os.getpid())
    if process is None or "pyspark.worker_util" in sys.modules:
        return ""
    return f"{machine} {os.getpid()} {process.started}"


def has_ended(identity: str) -> bool | None:
    """Whether the process with this identity (of `driver`) has ended; None if that is not known here."""
    machine, number, started = (["", "", *identity.rsplit(" ", 2)])[-3:]
    if not machine or machine != _machine() or not number.isdecimal():
        return None
    process = _process(int(number))
    return process is None or process.started != started or process.state in "ZX"


def _machine() -> str:
    """The running system and its name space of process numbers; empty if unknown."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    return ""


def _process(number: int) -> _Process | None:
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
        name, _, fields = text.partition("(")[2].rpartition(")")
        # proc(5): after the name come state and parent; the time of the start is field 22 of all.
        state, parent, *others = fields.split()
        return _Process(name, state, int(parent), others[22 - 5])
    return None
