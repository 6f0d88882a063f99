"""Search for a rare text in the values of a record set, checksums included."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import kafkacodec as kc
from benchmarks.cases import Case, values
from benchmarks.contest import Contest

COMPARED = ("none", "none, 1 KiB values", "lz4")
COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")


def processor_time() -> float:
    """That of this thread and of finished child processes, in seconds."""
    times = os.times()
    return time.thread_time() + times.children_user + times.children_system


@contextmanager
def contest(case: Case, data: bytes) -> Iterator[Contest]:
    """Bytes of values per second; grep gets the values alone, a line each, in a file that is in memory."""
    wanted = values(case.value_bytes)[0][:12] + b"4711"  # no record has it, but many have its start
    search, expression = kc.Search(grep=wanted), kc.Search(grep=rb"[0-9a-f]+ 4711\b", regex=True)

    def found_by(search: kc.Search) -> int:
        return sum(int(search.mask(chunk).sum()) for chunk in kc.iter_columns(data, columns=COLUMNS))

    def found_by_pyarrow() -> int:
        chunks = kc.iter_columns(data, columns=COLUMNS)
        columns = (pa.record_batch(chunk).column("value") for chunk in chunks)
        return sum(pc.sum(pc.match_substring(column, wanted)).as_py() for column in columns)

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "values")
        total = _write_values(path, case)

        def grep() -> None:
            subprocess.run(["grep", "-acF", wanted, path], env={"LC_ALL": "C"}, stdout=subprocess.DEVNULL, check=False)

        competitors: dict[str, Callable[[], object]] = {
            "Search, bytes": lambda: found_by(search),
            "Search, expression": lambda: found_by(expression),
            "pyarrow.compute.match_substring": found_by_pyarrow,
        }
        if shutil.which("grep"):
            competitors["grep -c of the values alone"] = grep
        yield Contest(f"search, {case.name}", "bytes", float(total), competitors)


def _write_values(path: Path, case: Case) -> int:
    bodies = values(case.value_bytes)
    with open(path, "wb") as file:
        for i in range(case.num_records):
            file.write(bodies[i % len(bodies)] + b"\n")
    return case.num_records * case.value_bytes
