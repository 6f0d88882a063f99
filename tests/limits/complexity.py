"""Counts the instructions of each family at n, 2n and 4n, under callgrind: `python -m tests.limits.complexity`.

Runs itself in valgrind and prints a line for each family: its name, the first count and how the counts grow.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from benchmarks import callgrind

DOUBLINGS = (1, 2, 4)


def count(part: int, of: int, *, all_of_them: bool = False) -> dict[str, list[int]]:
    """The counts of the families of one part."""
    counts = callgrind.run("tests.limits.complexity", str(part), str(of), str(int(all_of_them)))
    found: dict[str, list[int]] = {}
    for name, (total,) in counts.items():
        family, _, at = name.rpartition(" @")
        found.setdefault(family, [0, 0, 0])[int(at)] = total
    return found


def work(library: str, directory: str, part: int, of: int, all_of_them: int) -> None:
    """The program that runs in valgrind."""
    from tests.limits.families import FAMILIES

    counter = callgrind.Counter(library)
    gc.freeze()  # the counter collects garbage before each family, which takes long in valgrind
    chosen = [(name, family) for name, family in sorted(FAMILIES.items()) if all_of_them or not family.long]
    for number, (name, family) in enumerate(chosen):
        if number % of != part:
            continue
        calls = []
        for at, times in enumerate(DOUBLINGS):
            place = Path(directory) / f"{number}-{at}"
            place.mkdir()
            calls.append((f"{name} @{at}", family.make(family.units * times, place)))
        calls[0][1]()  # loads modules on first use
        counter.count(calls)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
    else:
        for name, (first, second, third) in sorted(count(0, 1, all_of_them=True).items()):
            print(f"{name:64} {first:12,} {second / first:5.2f} {third / second:5.2f}")
