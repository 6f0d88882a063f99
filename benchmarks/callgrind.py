"""Count the instructions of calls in a Python program, with valgrind's callgrind.

`run` starts a module in valgrind, with instrumentation off. The module creates a `Counter` and passes it the calls to
count. Code outside of those calls is not counted and runs faster.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

SOURCE = Path(__file__).parent / "callgrind.c"
# The same string hashes in each run, and no threads started by libraries.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Counter:
    """Controls valgrind through the library that `build` made. For programs that run in valgrind."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)

    def count(self, calls: Iterable[tuple[str, Callable[[], object]]]) -> None:
        """Call each once, without garbage collection, and count its instructions under its name.

        What they have in common is translated once by valgrind, which begins anew in each call of `count`.
        """
        gc.collect()
        gc.disable()
        for name, call in calls:
            self._library.count_from_here()
            call()
            self._library.count_up_to_here(name.encode())
        self._library.count_no_more()
        gc.enable()


def build(directory: str) -> str:
    """Compile the library that controls valgrind; raises CalledProcessError if valgrind's header is missing."""
    path = os.path.join(directory, "callgrind.so")
    command = ["cc", "-shared", "-fPIC", "-O1", str(SOURCE), "-o", path]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return path


def run(module: str, *arguments: str, environment: Mapping[str, str] = {}) -> dict[str, list[int]]:
    """Run `python -m module LIBRARY DIRECTORY ARGUMENTS` in valgrind. Returns the counts by name, in any order.

    DIRECTORY is empty at first and is deleted afterwards.

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
