"""Counts the instructions of each family at n, 2n and 4n, under callgrind: `python -m tests.limits.complexity`.

Runs itself in valgrind and prints a line for each family: its name, the first count and how the counts grow.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
DOUBLINGS = (1, 2, 4)


def build(directory: str) -> str:
    """The library that talks to valgrind; raises CalledProcessError where its header is missing."""
    path = os.path.join(directory, "callgrind.so")
    command = ["cc", "-shared", "-fPIC", "-O1", str(HERE / "callgrind.c"), "-o", path]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return path


def count(part: int, of: int, *, all_of_them: bool = False) -> dict[str, list[int]]:
    """The counts of every family of one part of them."""
    with tempfile.TemporaryDirectory() as directory:
        library = build(directory)
        command = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "-q", f"--callgrind-out-file={directory}/counts",
            sys.executable, "-m", "tests.limits.complexity", "inside", library, directory,
            str(part), str(of), str(int(all_of_them)),
        ]  # fmt: skip
        environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        environment |= {"OPENBLAS_NUM_THREADS": "1"}
        finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if finished.returncode:
            raise RuntimeError(f"exit {finished.returncode}: {finished.stderr[-3000:]}")
        found: dict[str, list[int]] = {}
        for path in Path(directory).glob("counts.*"):
            text = path.read_text(errors="replace")
            name = re.search(r"^desc: Trigger: Client Request: (.*)", text, re.MULTILINE)
            total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
            if name and total:
                family, _, at = name[1].rpartition(" @")
                found.setdefault(family, [0, 0, 0])[int(at)] = int(total[1])
        return found


def work(library: str, directory: str, part: int, of: int, all_of_them: int) -> None:
    """What runs in valgrind."""
    from tests.limits.families import FAMILIES

    counter = ctypes.CDLL(library)
    chosen = [(name, family) for name, family in sorted(FAMILIES.items()) if all_of_them or not family.long]
    for number, (name, family) in enumerate(chosen):
        if number % of != part:
            continue
        for at, times in enumerate(DOUBLINGS):
            place = Path(directory) / f"{number}-{at}"
            place.mkdir()
            call = family.make(family.units * times, place)
            if not at:
                call()  # what is loaded at the first use
            gc.collect()
            gc.disable()
            counter.count_from_here()
            call()
            counter.count_up_to_here(f"{name} @{at}".encode())
            gc.enable()


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        work(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
    else:
        for name, (first, second, third) in sorted(count(0, 1, all_of_them=True).items()):
            print(f"{name:64} {first:12,} {second / first:5.2f} {third / second:5.2f}")
