"""The demo, and Spark on a machine without Java."""

import os
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from tests.corpus import ROOT

pytestmark = pytest.mark.spark

LOGS = ROOT / "logs" / "kraft-4.1.0"


@pytest.fixture
def no_java(tmp_path):
    """An environment with all tools except java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for name in os.listdir(directory) if os.path.isdir(directory) else []:
            if not name.startswith("java") and not (tools / name).is_symlink():  # its target may be missing
                (tools / name).symlink_to(os.path.join(directory, name))
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    return {**environment, "PATH": str(tools)}


def test_demo_without_a_java_on_the_machine(no_java, tmp_path):
    assert shutil.which("java", path=no_java["PATH"]) is None
    command = [sys.executable, "-m", "kafkacodec.cli", "demo", str(LOGS), "-o", str(tmp_path / "out")]
    finished = subprocess.run(command, capture_output=True, text=True, env=no_java, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    table = pq.read_table(tmp_path / "out")
    assert f"{len(table):,} records" in finished.stdout
    assert "partitions" in finished.stdout
    assert str(tmp_path / "out") in finished.stdout
    assert len(set(zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True))) > 30
