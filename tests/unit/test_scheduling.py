"""The order of tests, and workers that crash at the same time: run by pytest in processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scheduling import SLICE, SLICE_SECONDS, arranged, durations

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests.scheduling import Groups, arranged
def pytest_xdist_make_scheduler(config):
    return Groups(config, arranged)
"""
# Two workers end at the same time: each waits for the other's file.
CRASHES = """
import os, time
from pathlib import Path
import pytest
def test_before(): pass
def test_crash():
    Path(__file__ + ".here").touch()
    while not Path({other!r} + ".here").exists():
        time.sleep(0.01)
    os._exit(3)
@pytest.mark.parametrize("n", range(5))
def test_after(n): pass
"""


@pytest.mark.slow
def test_workers_that_crash_are_replaced_and_their_tests_are_named(tmp_path: Path) -> None:
    tests = tmp_path / "tests" / "integration"
    tests.mkdir(parents=True)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name, other in (("one", "two"), ("two", "one")):
        (tests / f"test_{name}.py").write_text(CRASHES.format(other=str(tests / f"test_{other}.py")))
    (tests / "test_sound.py").write_text("def test_sound(): pass\n")
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", "."]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        environment.pop(name, None)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 13 passed" in done.stdout
    for name in ("one", "two"):
        assert f"crashed while running 'tests/integration/test_{name}.py::test_crash'" in done.stdout


def test_files_with_brokers_stay_together_and_spark_has_one_session() -> None:
    files = ["tests/unit/test_a.py"] * (SLICE + 1) + ["README.md", "tests/integration/test_b.py"]
    files += [f"tests/integration/test_spark_{name}.py" for name in ("source", "sql", "sql", "kills")]
    groups = [[files[index] for index in indices] for indices in arranged([f"{file}::test" for file in files], {})]
    spark = ["source", "sql", "sql"]
    assert groups == [
        [f"tests/integration/test_spark_{name}.py" for name in spark],
        ["tests/integration/test_b.py"],
        ["tests/integration/test_spark_kills.py"],
        ["tests/unit/test_a.py"] * SLICE,
        ["tests/unit/test_a.py"],
        ["README.md"],
    ]


def test_files_that_share_the_brokers_of_all_ages_are_one_group() -> None:
    files = ["brokers_of_all_ages", "cli", "client_consumer_old", "client_producer_ages", "clients_of_all_ages"]
    for file in files:
        assert (ROOT / "tests" / "integration" / f"test_{file}.py").exists()
    names = [f"tests/integration/test_{file}.py::test[0.8.2]" for file in files]
    assert arranged(names, {}) == [[0, 2, 3, 4], [1]]


def test_what_takes_longest_begins_first_and_alone() -> None:
    took = {"tests/integration/test_b.py": 100.0, "tests/limits/test_c.py": 4 * 3.0 * SLICE_SECONDS}
    files = ["tests/unit/test_a.py"] * 3 + ["tests/limits/test_c.py"] * 12 + ["tests/integration/test_b.py"] * 2
    groups = [[files[index] for index in indices] for indices in arranged([f"{file}::test" for file in files], took)]
    assert groups == [
        ["tests/integration/test_b.py"] * 2,
        *[["tests/limits/test_c.py"]] * 12,
        ["tests/unit/test_a.py"] * 3,
    ]


def test_the_table_names_files_that_exist() -> None:
    assert [file for file in durations() if not (ROOT / file).is_file()] == []
