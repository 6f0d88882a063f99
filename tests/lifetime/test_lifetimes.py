"""The matrix and failing allocations on the interpreter of the tests; for `make pythons`, the matrix on others."""

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


def others() -> dict[str, Path]:
    """The interpreters that `make pythons` or `make lifetimes PYTHONS=...` has prepared: the newest of each version."""
    return {python.parts[-3].split("-")[1]: python for python in sorted(ENVIRONMENTS.glob("cpython-*-*/bin/python"))}


@pytest.mark.parametrize("way", ["success", "fault", "cycle", "fork", "thread", "end"])
def test_matrix(way: str) -> None:
    run(sys.executable, "-m", "tests.lifetime.matrix", "--ways", way)


@pytest.mark.skipif("KAFKACODEC_MATRIX" not in os.environ, reason="other Pythons: a part of `make full`")
@pytest.mark.parametrize("version", others())
def test_another_python(version: str) -> None:
    """Two of the ways."""
    # Spark's tests, in the same process, set the path to this tree, whose extensions are for another version.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run(others()[version], "-m", "tests.lifetime.matrix", "--ways", "cycle,end", cwd=ENVIRONMENTS, env=env)


def test_no_memory() -> None:
    pytest.importorskip("_testcapi", reason="needs _testcapi, of CPython's own tests")
    run(sys.executable, "-m", "tests.lifetime.no_memory")
