"""Every program of examples/ runs as it is, in an empty directory, and prints what it is to print."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

import kafkacodec as kc
from kafkacodec.log.sample import SAMPLE
from tests.integration import ready_python

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {
    "dead_cluster_to_duckdb": r"88 records from 2025-03-10 to 2025-03-10 are in kafka\.duckdb\n",
    "lag_of_a_backup": r"billing: orders-0 is 113 records behind\nbilling: orders-1 is 66 records behind\n(.+\n)*",
    "replay_into_another_cluster": r"600 records sent\nb'\{\"order\": 1001, .+\n",
    "exactly_once_pipeline": r"failed; begins again\n1000 results for 1000 orders\n",
    "spark_job": r"(?s).*\n600 orders\n",
    "test_with_a_broker": r"",
}


def run(directory: Path, *command: object) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(EXAMPLES.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_listed_and_tested() -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py")}
    assert programs == PRINTED.keys()
    linked = re.findall(r"\]\(([\w.]+)\)", (EXAMPLES / "README.md").read_text())
    assert sorted(linked) == sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PRINTED if not name.startswith(("spark", "test"))])
def test_programs(tmp_path: Path, name: str) -> None:
    assert re.fullmatch(PRINTED[name], run(tmp_path, EXAMPLES / f"{name}.py"))


@pytest.mark.slow
def test_a_topic_is_replayed_into_one_that_is_there_without_aborted_transactions(tmp_path: Path) -> None:
    with kc.broker.serve() as kafka:
        arguments = (SAMPLE, "payments", kafka.bootstrap_servers)
        for _ in range(2):
            assert run(tmp_path, EXAMPLES / "replay_into_another_cluster.py", *arguments) == "88 records sent\n"


@pytest.mark.slow
def test_a_log_without_timestamps_goes_to_duckdb(tmp_path: Path) -> None:
    with kc.log.LogWriter(tmp_path / "logs", "t", 0) as log:
        log.write([(b"k", b"v")])
    printed = run(tmp_path, EXAMPLES / "dead_cluster_to_duckdb.py", tmp_path / "logs", "t")
    assert printed == "1 records are in kafka.duckdb\n"


@pytest.mark.spark
def test_spark_job(tmp_path: Path) -> None:
    with patch.dict(os.environ):
        ready_python.use()
        assert re.fullmatch(PRINTED["spark_job"], run(tmp_path, EXAMPLES / "spark_job.py"))


def test_tests_with_a_broker(tmp_path: Path) -> None:
    (tmp_path / "test_with_a_broker.py").write_text((EXAMPLES / "test_with_a_broker.py").read_text())
    printed = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    assert "2 passed" in printed


def test_cells_of_the_notebook_run_in_order(tmp_path: Path) -> None:
    """Their assertions hold; what notebooks show of the last lines is HTML."""
    notebook = json.loads((EXAMPLES / "tutorial.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 7
    shown = "\nassert log._repr_html_().startswith('<div>') and orders.head(5)._repr_html_().startswith('<div>')\n"
    (tmp_path / "cells.py").write_text("\n".join(cells) + shown)
    run(tmp_path, tmp_path / "cells.py")
