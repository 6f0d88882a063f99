"""What each version of Spark can do, and the sentence for what it cannot.

Those that are installed: `make test` installs two old ones, `make spark-versions` all.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.corpus import sample
from tests.integration.cli_samples import SEGMENT

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
OFFSETS = [record.offset for record in sample(SEGMENT).expected.records]
RECORDS = len(OFFSETS)
WORKS = {
    "read": RECORDS,
    "read_filtered": sum(20 <= offset <= 39 for offset in OFFSETS),
    "write": 100,
    "write_in_thread": 100,
    "read_stream": RECORDS,
    "write_stream": 2,
    "decode_batches": RECORDS,
    "split_confluent": 7,
}
# Version -> what differs: the beginning of the sentence that a user sees, which ends with the installed version.
DIFFERS = {
    "3.5": {"session": "kafkacodec.spark needs Spark 4.0 or later, not 3.5."},
    "4.0": {
        "read_stream": "reading streams of kafkalog needs Spark 4.2 or later, not 4.0.",
        "write_stream": "writing streams to kafkalog needs Spark 4.1 or later, not 4.0.",
    },
    "4.1": {"read_stream": "reading streams of kafkalog needs Spark 4.2 or later, not 4.1."},
    "4.2": {},
    "4.3": {},
}


def python(version):
    """An interpreter with this version of Spark."""
    if pyspark.__version__.startswith(f"{version}."):
        return Path(sys.executable)
    return ROOT / ".cache" / f"spark-{version}" / "bin" / "python"


@pytest.mark.parametrize("version", [version for version in DIFFERS if python(version).exists()])
def test_version(version, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "lines").write_text("one\ntwo\n")
    command = [python(version), "-m", "tests.integration.spark_version", sample(SEGMENT).path, tmp_path]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
        environment.pop(name, None)
    run = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    differs = DIFFERS[version]
    expected = {"session": ""} if "session" in differs else WORKS
    assert found.keys() == expected.keys()
    for name, outcome in found.items():
        if name in differs:
            assert outcome.startswith(differs[name])
            assert "\n" not in outcome
        else:
            assert outcome == WORKS[name], name
