"""Counts instructions of pieces of a Python program, under valgrind's callgrind.

`run` starts a module in valgrind, with instrumentation off. That module opens a `Counter` and calls whatever is to be
counted by `Counter.count`. What comes before and between costs little time and is not counted.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

SOURCE = Path(__file__).parent / "callgrind.c"
# Hashes of strings are the same in each run, and libraries start no threads of their own.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Counter:
    """Speaks to valgrind through the library that `build` made; for use inside of it."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)

    def count(self, name: str, call: Callable[[], object]) -> None:
        """Call it once, without garbage collection, and count that under `name`."""
        gc.collect()
        gc.disable()
        self._library.count_from_here()
        call()
        self._library.count_up_to_here(name.encode())
        gc.enable()


def build(directory: str) -> str:
    """The library that talks to valgrind; raises CalledProcessError where its header is missing."""
    path = os.path.join(directory, "callgrind.so")
    command = ["cc", "-shared", "-fPIC", "-O1", str(SOURCE), "-o", path]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return path


def run(module: str, *arguments: str, environment: Mapping[str, str] = {}) -> dict[str, list[int]]:
    """Run `python -m module LIBRARY DIRECTORY ARGUMENTS` in valgrind: the counts of each name, in no order.

    DIRECTORY is empty, and deleted afterwards.

    Raises:
        RuntimeError: the program failed.
    """
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as counts:
        command = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "-q", f"--callgrind-out-file={counts}/counts",
            sys.executable, "-m", module, build(counts), directory, *arguments,
        ]  # fmt: skip
        finished = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | ENVIRONMENT | dict(environment), check=False
        )
        if finished.returncode:
            raise RuntimeError(f"exit {finished.returncode}: {finished.stderr[-3000:]}")
        found: dict[str, list[int]] = {}
        for path in Path(counts).glob("counts.*"):
            text = path.read_text(errors="replace")
            name = re.search(r"^desc: Trigger: Client Request: (.*)", text, re.MULTILINE)
            total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
            if name and total:
                found.setdefault(name[1], []).append(int(total[1]))
        return found
