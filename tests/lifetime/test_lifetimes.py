"""The matrix and failing allocations on the interpreter of the tests; the matrix on other interpreters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
ENVIRONMENTS = TREE / ".cache" / "lifetimes"


def run(*command: str | Path, cwd: Path = TREE) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("way", ["success", "fault", "cycle", "fork", "thread", "end"])
def test_matrix(way: str) -> None:
    run(sys.executable, "-m", "tests.lifetime.matrix", "--ways", way)


@pytest.mark.parametrize("version", ["312", "313", "314"])
def test_matrix_on_other_versions(version: str) -> None:
    found = sorted(ENVIRONMENTS.glob(f"cpython-{version}-*/bin/python"))
    if not found:
        pytest.skip(f"needs CPython {version[0]}.{version[1:]} in .cache/lifetimes: make lifetimes PYTHONS=/path/to/it")
    run(found[-1], "-m", "tests.lifetime.matrix", "--ways", "cycle,end", cwd=ENVIRONMENTS)


def test_no_memory() -> None:
    pytest.importorskip("_testcapi", reason="needs _testcapi, of CPython's own tests")
    run(sys.executable, "-m", "tests.lifetime.no_memory")
