"""Runs a call in a separate process with limited address space, and returns its outcome."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

SECONDS = 60  # of processor time, since the machine may be busy


class Outcome(NamedTuple):
    """The outcome of a call: the class of its exception, or its result; "killed" with the signal."""

    kind: str
    detail: str


def address_space() -> int:
    """The address space of this process in bytes; 0 if the system does not tell."""
    with suppress(FileNotFoundError), open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
    return 0


def run_within(extra_bytes: int, call: Callable[[], object]) -> Outcome:
    """The outcome of `call` in a fork that may use `extra_bytes` more address space than this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _work(writing, extra_bytes, call)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Outcome("killed", signal.Signals(os.WTERMSIG(status)).name)
    return Outcome(*pickle.loads(answer)) if answer else Outcome("killed", f"exit {os.waitstatus_to_exitcode(status)}")


def _work(pipe: int, extra_bytes: int, call: Callable[[], object]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    limit = address_space() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        outcome = ("returned", str(call()))
    except SystemExit as error:
        outcome = ("exit", str(error.code))
    except BaseException as error:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome = (type(error).__name__, f"{str(error)[:300]} [{os.path.basename(place.filename)}:{place.lineno}]")
    os.write(pipe, pickle.dumps(outcome))
    os._exit(0)
