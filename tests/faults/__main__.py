"""Runs a program repeatedly, with a fault at the first, second, … system call, until no fault occurs.

    LD_PRELOAD=shim.so python -m tests.faults PROGRAM FAULT,FAULT DIRECTORY [RUNS]

RUNS is the maximum number of runs, evenly spread over the calls; by default one for each call. Each run is a separate
process. Afterwards its files are checked, and the program is run again without a fault. Failures are printed, and the
exit status is then 1.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.faults.programs import PROGRAMS, Program, Reported, State, clear

READ, WRITE, SYNC, NAME, REMOVE, LOOK, CLOSE = (1 << n for n in range(7))
KILL, HALF = -1, -2
MOST_CALLS = 1 << 30


class Fault(NamedTuple):
    """The fault, the kinds of calls that it affects, and whether it also affects all later calls."""

    what: int
    calls: int
    stays: bool


FAULTS = {
    "full": Fault(errno.ENOSPC, WRITE | NAME | SYNC, True),
    "error": Fault(errno.EIO, READ | WRITE | SYNC | NAME | REMOVE | CLOSE, False),
    "gone": Fault(errno.ESTALE, READ | WRITE | SYNC | NAME | REMOVE | LOOK | CLOSE, True),
    "short": Fault(HALF, READ | WRITE, False),
    "kill": Fault(KILL, READ | WRITE | SYNC | NAME | REMOVE | CLOSE, False),
}
DONE, FAILED, REPORTED, FOREIGN = 0, 10, 11, 12


class Outcome(NamedTuple):
    status: int
    said: str
    filename: str
    hit: str
    seen: int


def attempt(program: Program, fault: Fault, place: Path, number: int) -> Outcome:
    """Run a program in a child whose `number`-th call fails."""
    shim = ctypes.CDLL(None)
    shim.fault_seen.restype = ctypes.c_long
    shim.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int]
    shim.fault_hit.restype = ctypes.c_char_p
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status, said, filename = DONE, "", ""
        shim.fault_arm(os.fsencode(place), fault.what, number, fault.calls, fault.stays)
        try:
            program.action(place)
        except OSError as error:
            status, said, filename = FAILED, str(error), str(error.filename)
            if error.filename is None:
                last = traceback.extract_tb(error.__traceback__)[-1]
                said += f" at {last.filename}:{last.lineno}"
        except Reported as error:
            status, said, filename = REPORTED, str(error), str(error)
        except BaseException as error:
            status, said = FOREIGN, f"{type(error).__name__}: {error}"
        hit = (shim.fault_hit() or b"").decode()
        seen = str(shim.fault_seen())
        shim.fault_arm(b"/", 0, 0, 0, 0)
        os.write(write, "\0".join([said, filename, hit, seen]).encode())
        os._exit(status)
    os.close(write)
    with open(read) as answer:
        text = answer.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return Outcome(-os.WTERMSIG(status), "", "", "killed", 0)
    said, filename, hit, seen = text.split("\0")
    return Outcome(os.WEXITSTATUS(status), said, filename, hit, int(seen))


def leftovers(place: Path) -> list[str]:
    return [str(path) for path in place.rglob("*") if re.search(r"[0-9a-f]{16}\.tmp", path.name)]


def check(program: Program, states: list[State], fault: Fault, place: Path, outcome: Outcome) -> None:
    """Raise AssertionError if the files or the output are wrong."""
    state = program.look(place)
    assert state in states, f"between the states: {state}"
    if outcome.status == DONE:
        assert state == states[-1], f"said to be done, but is {state}"
    elif fault.what == KILL:
        assert outcome.status == -signal.SIGKILL, f"{outcome}"
    else:
        assert outcome.status in (FAILED, REPORTED), f"not an error of the system: {outcome.said}"
        assert str(place) in outcome.filename, f"names no file: {outcome.said}"
        if state == states[-1]:
            # The names exist, but perhaps not on disk, or only until the next job.
            told = "is in place" in outcome.said or "which the next write to the directory removes" in outcome.said
            assert told, f"failed, and yet done: {outcome.said}"
    if fault.what == errno.ENOSPC:
        assert not leftovers(place), f"left over: {leftovers(place)}"
        assert outcome.status in (FAILED, REPORTED), f"{outcome}"
    if fault.what == HALF:
        assert outcome.status == DONE, f"a short read or write is no error: {outcome.said}"
    expected = program.again(place, state)
    state = program.look(place)
    assert state == (states[-1] if expected is None else expected), f"after a second run: {state}"
    assert not [name for name in leftovers(place) if "/log/" in name], f"left over: {leftovers(place)}"


def main(name: str, kinds: str, directory: str, runs: int | None = None) -> int:
    """The exit status."""
    place = Path(directory).resolve() / "place"
    return max([try_fault(name, kind, place, runs) for kind in kinds.split(",")])


def try_fault(name: str, kind: str, place: Path, runs: int | None) -> int:
    """Whether the program fails with a fault, as an exit status; what it does then is printed."""
    program, fault = PROGRAMS[name], FAULTS[kind]
    clear(place)
    program.set_up(place)
    states = [state for state in program.states if state is not None]
    assert program.look(place) == states[0]
    undisturbed = attempt(program, fault, place, MOST_CALLS)
    assert undisturbed.status == DONE, undisturbed
    if None in program.states:
        states.append(program.look(place))
    assert program.look(place) == states[-1], "an undisturbed run does not lead to the last state"
    calls = undisturbed.seen
    step = 1.0 if runs is None else max(1.0, (calls - 1) / max(1, runs - 1))
    numbers = sorted({round(1 + i * step) for i in range(calls)} & set(range(1, calls + 1)))
    met: Counter[str] = Counter()
    faults = 0
    for number in numbers:
        clear(place)
        program.set_up(place)
        outcome = attempt(program, fault, place, number)
        met[outcome.hit] += 1
        try:
            check(program, states, fault, place, outcome)
        except Exception as error:
            faults += 1
            print(f"{name}, {kind} at call {number} ({outcome.hit}): {type(error).__name__}: {str(error)[:600]}")
    print(f"{name}, {kind}: {len(numbers)} runs over {calls} calls; {dict(met)}")
    return int(faults > 0 or calls == 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], runs=int(sys.argv[4]) if len(sys.argv) > 4 else None))
