"""The matrix and failing allocations on the interpreter of the tests; for `make pythons`, the matrix on others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lifetime import unset

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


@pytest.mark.slow
@pytest.mark.unsanitized
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is missing: it follows what was set")
def test_no_result_depends_on_memory_that_was_not_set() -> None:
    run(sys.executable, "-m", "tests.lifetime.unset")


def test_memory_that_was_not_set_is_noticed() -> None:
    """As of valgrind; what is found is a produced batch whose check had not set one of its options."""
    at_python = "==7==    at 0x6E: PyObject_Vectorcall (call.c:299)"
    said = [
        "==7== Use of uninitialised value of size 8", at_python, "==7== ",
        "entry one",
        "==7== Conditional jump or move depends on uninitialised value(s)",
        "==7==    at 0x4E: bcmp (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)",
        "==7==    by 0x5E: kc_decoder_run (in /x/kafkacodec/_core/libkafkacodec.so)", "==7== ",
        "entry two",
        "==7== Use of uninitialised value of size 8", at_python, "==7== ",
    ]  # fmt: skip
    [report] = unset.reports("\n".join(said))
    assert report.splitlines()[::2] == ["entry one", "kc_decoder_run (in /x/kafkacodec/_core/libkafkacodec.so)"]


def test_no_memory() -> None:
    pytest.importorskip("_testcapi", reason="needs _testcapi, of CPython's own tests")
    run(sys.executable, "-m", "tests.lifetime.no_memory")
