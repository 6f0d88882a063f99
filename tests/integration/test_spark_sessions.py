"""What `kc.spark.session` leaves behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import LATE, eventually

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.spark

PROGRAM = """
import os, sys
import kafkacodec as kc

before = os.environ.get("JAVA_HOME")
spark = kc.spark.session({"spark.driver.memory": "512m"}, master="local[1]", quick_start=True)
print(spark.range(3).count(), os.environ.get("JAVA_HOME") == before, flush=True)
sys.stdin.read()
"""


def test_a_program_that_a_signal_ends_leaves_no_temporary_files(tmp_path):
    """SIGTERM ends Python at once: what it would have removed is removed by Spark's JVM, which ends after it."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    started = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout.readline() == "3 True\n"
    assert list(tmp_path.glob("kafkacodec-java-*"))
    started.terminate()
    started.communicate(timeout=LATE)
    assert started.returncode == -signal.SIGTERM
    eventually(lambda: list(tmp_path.iterdir()) == [])
