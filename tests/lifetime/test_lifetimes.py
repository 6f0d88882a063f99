"""The matrix and failing allocations on the interpreter of the tests; the matrix on other interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
ENVIRONMENTS = TREE / ".cache" / "lifetimes"


def run(*command: str | Path, cwd: Path = TREE, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=1200)
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
    # Spark's tests, in the same process, set the path to this tree, whose extensions are for another version.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run(found[-1], "-m", "tests.lifetime.matrix", "--ways", "cycle,end", cwd=ENVIRONMENTS, env=env)


def test_no_memory() -> None:
    pytest.importorskip("_testcapi", reason="needs _testcapi, of CPython's own tests")
    run(sys.executable, "-m", "tests.lifetime.no_memory")
