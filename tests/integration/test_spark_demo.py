"""The demo, and Spark on a machine without Java."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import kafkacodec as kc

pytestmark = pytest.mark.spark


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


def test_demo_without_a_java_on_the_machine(no_java):
    assert shutil.which("java", path=no_java["PATH"]) is None
    command = [sys.executable, "-m", "kafkacodec.cli", "demo"]
    finished = subprocess.run(command, capture_output=True, text=True, env=no_java, timeout=300, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    orders = [json.loads(record.value) for record in kc.sample().topic("orders")]
    for item in ("Grütze", "eggs"):
        prices = [order["price"] for order in orders if order["item"] == item]
        assert re.search(rf"{item} +{len(prices)} +{sum(prices):.2f}\n", finished.stdout)
    assert "records/s" not in finished.stdout
