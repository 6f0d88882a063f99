"""What the fuzz targets share: the loop that tries inputs, and the command line."""

from __future__ import annotations

import argparse
import faulthandler
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

import kafkacodec as kc
from tests.fuzz import counts

Input = TypeVar("Input")

# Of processor time, however busy the machine is: more than any input needs, sanitizers included.
HANG_SECONDS = 60
CACHE = Path(__file__).parent.parent.parent / ".cache"


class Finding(AssertionError):
    """A property that does not hold."""


class Target(Generic[Input]):
    """A way into the library.

    `run` holds an input to the properties and tells what came of it; `mutations` damages inputs without end; an input's
    text is what `parse` reads.
    """

    def __init__(
        self,
        name: str,
        seeds: Callable[[], Iterable[Input]],
        mutations: Callable[[list[Input], random.Random], Iterator[Input]],
        run: Callable[[Input], str],
        parse: Callable[[str], Input],
    ) -> None:
        self.name, self.seeds, self.mutations, self.run, self.parse = name, seeds, mutations, run, parse

    def fuzz(self, inputs: list[Input], rnd: random.Random, last: Path, seconds: float) -> int:
        """Damage inputs until the time is over, writing each to the file `last` first; how many were tried.

        One that has an outcome of its own joins them.
        """
        known: set[str] = set()
        stop = time.monotonic() + seconds
        with open(last, "wb", buffering=0) as file:
            for tried, new in enumerate(self.mutations(inputs, rnd)):
                if time.monotonic() > stop:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                    return tried
                signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
                file.seek(0)
                file.truncate()
                file.write(str(new).encode())
                outcome = self.run(new)
                if outcome not in known:
                    known.add(outcome)
                    inputs.append(new)
        raise AssertionError("mutations do not end")

    def main(self) -> None:
        """The command line."""
        parser = argparse.ArgumentParser(description=f"Fuzzes {self.name}.")
        parser.add_argument("--seconds", type=float, default=20)
        parser.add_argument("--seed", type=int, default=int(time.time()))
        parser.add_argument("cases", nargs="*", metavar="CASE", help="what to try instead, as .cache/fuzz-*.txt has it")
        options = parser.parse_args()
        faulthandler.enable()
        faulthandler.register(signal.SIGPROF, chain=True)  # say where it hangs, then end as the signal does
        for case in options.cases:
            print(self.run(self.parse(case)))
        if options.cases:
            return
        CACHE.mkdir(exist_ok=True)
        inputs = list(self.seeds())
        seeds = len(inputs)
        tried = self.fuzz(inputs, random.Random(options.seed), CACHE / f"fuzz-{self.name}.txt", options.seconds)
        kept = len(inputs) - seeds
        counts.add(self.name, tried)
        print(f"{self.name}, seed {options.seed}: {seeds} seeds, {tried} mutations passed, {kept} kept ({kc.__file__})")
