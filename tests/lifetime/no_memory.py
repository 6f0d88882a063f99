"""Every allocation of CPython fails once, in every entry point.

    python -m tests.lifetime.no_memory [--only TEXT]

The outcome is the correct result or MemoryError, and no exports or memory of the core remain. (References are not
compared: CPython leaks some if it has no memory for the arguments of a call.) A process that has loaded everything
forks for each entry point. Failures are printed, and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import signal
import sys
import tempfile
import warnings
from typing import Any

import kafkacodec as kc
from tests.lifetime.arrow import ARROW_ENTRIES
from tests.lifetime.entries import ENTRIES
from tests.lifetime.matrix import entry_of, export_of, learn, wanted

try:
    from _testcapi import remove_mem_hooks, set_nomemory  # type: ignore[import-not-found]
except ImportError:  # the modules for Python's tests are not installed
    set_nomemory = remove_mem_hooks = None

SECONDS = 300
"""Timeout of an entry point."""

PYTHONS_OWN = ("can't allocate lock", "can't start new thread")
"""RuntimeErrors that CPython raises if it has no memory."""

LOSES = frozenset({"kafka07.decode_request"})
"""CPython up to 3.12 leaks an argument, a view, if it has no memory for the keyword arguments of a call."""

LEFT_OUT = frozenset(
    {
        "decode in threads",
        "iter_columns in threads",
        "iter_columns in threads suspended",
        "iter_columns of views in threads",
    }
)
"""CPython waits forever for a thread that had no memory to start."""

QUIET = 40
"""After this many failed allocations in a row without effect, the call has ended."""


def outcome(call: Any, data: Any, n: int) -> Any:
    """The result of a call whose allocation `n` failed, or its exception."""
    result: Any = None
    set_nomemory(n, n + 1)
    try:
        result = call(data)
    except BaseException as error:
        remove_mem_hooks()
        return error.with_traceback(None)
    finally:
        remove_mem_hooks()
    return result


def injected(name: str, progress: Any) -> int:
    """The number of allocations that failed; AssertionError for an outcome that is not allowed."""
    entry = entry_of(name)
    export = export_of(name, "pyarrow array" if name in ARROW_ENTRIES else "bytearray", entry.good)
    entry.show(entry.call(export.data))  # creates caches
    gc.collect()
    live = kc.memory_in_use().live
    n = quiet = 0
    while quiet < QUIET:
        progress.seek(0)
        progress.write(f"allocation {n:6}")
        progress.flush()
        result = outcome(entry.call, export.data, n)
        if isinstance(result, BaseException):
            quiet = 0
            assert isinstance(result, MemoryError) or str(result) in PYTHONS_OWN, f"allocation {n}: {result!r}"
        else:
            quiet += 1
            assert entry.show(result) == wanted[name], f"allocation {n}: another result"
        result = None
        n += 1
    gc.collect()
    assert kc.memory_in_use().live == live, f"{kc.memory_in_use().live - live} bytes of memory are held"
    if name not in LOSES:
        export.require_free()
    return n - QUIET


def run(name: str) -> tuple[int, str]:
    """Exit status of a process for one entry point; the number of failed allocations, or the failure."""
    with tempfile.TemporaryFile("w+") as log, tempfile.TemporaryFile("w+") as progress:
        pid = os.fork()
        if pid == 0:
            os.dup2(log.fileno(), 2)
            signal.alarm(SECONDS)
            faulthandler.enable()
            try:
                progress.write(f"\n{injected(name, progress)} allocations")
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
            progress.flush()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        log.seek(0)
        progress.seek(0)
        text = progress.read()
        return status, text.split()[-2] if status == 0 else f"{text} {log.read()[-2000:]}".strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="entry points whose name has this text")
    options = parser.parse_args()
    if set_nomemory is None:
        print("this Python has no _testcapi")
        return 2
    warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads
    names = [name for name in (*ENTRIES, *ARROW_ENTRIES) if options.only in name and name not in LEFT_OUT]
    learn(names)
    gc.collect()
    gc.freeze()
    failed = total = 0
    for name in names:
        status, report = run(name)
        if status:
            failed += 1
            print(f"{name}: exit {status}, {report}", flush=True)
        else:
            total += int(report)
    print(f"{len(names)} entry points, {total} allocations, {failed} failed; Python {sys.version.split()[0]}")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
