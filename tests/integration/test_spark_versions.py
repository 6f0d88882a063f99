"""What each version of Spark can do, and the sentence for what it cannot.

Those that are installed: `make full` installs two old ones, `make spark-versions` all.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import kafkacodec as kc
from tests.corpus import sample
from tests.integration.cli_samples import SEGMENT
from tests.integration.kafka_jvm import Broker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.skipif("KAFKACODEC_MATRIX" not in os.environ, reason="other versions of Spark: a part of `make full`"),
]

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
    "column_functions": int(kc.partition([b"user-1"], 12)[0]),
    "sql_functions": RECORDS,
    "views": [6, 2, 5],
    "metadata": 1,
    "export": RECORDS,
    "write_to_broker": "sent",
    "read_broker": 300,
    "stream_broker": 300,
}
# Version -> what differs: the beginning of the sentence that a user sees, which ends with the installed version.
DIFFERS = {
    "3.5": {"session": "kafkacodec.spark needs Spark 4.0 or later, not 3.5."},
    "4.0": {
        "read_stream": "reading streams of kafkalog needs Spark 4.2 or later, not 4.0.",
        "write_stream": "writing streams to kafkalog needs Spark 4.1 or later, not 4.0.",
        "column_functions": "kafkacodec.spark.kafka_partition needs Spark 4.1 or later, not 4.0.",
        "sql_functions": "kafkacodec.spark.register_functions needs Spark 4.1 or later, not 4.0.",
        "stream_broker": "reading streams of kafkabroker needs Spark 4.2 or later, not 4.0.",
    },
    "4.1": {
        "read_stream": "reading streams of kafkalog needs Spark 4.2 or later, not 4.1.",
        "stream_broker": "reading streams of kafkabroker needs Spark 4.2 or later, not 4.1.",
    },
    "4.2": {},
    "4.3": {},
}


def python(version):
    """An interpreter with this version of Spark."""
    if pyspark.__version__.startswith(f"{version}."):
        return Path(sys.executable)
    return ROOT / ".cache" / f"spark-{version}" / "bin" / "python"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A broker with 300 records of "orders"."""
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    with kc.client.Producer(broker.server) as producer:
        for n in range(300):
            producer.send("orders", b"%d" % n)
        producer.send("versions", b"first")
    yield broker.server
    broker.kill()


@pytest.mark.parametrize("version", [version for version in DIFFERS if python(version).exists()])
def test_version(version, server, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "lines").write_text("one\ntwo\n")
    command = [python(version), "-m", "tests.integration.spark_version", sample(SEGMENT).path, tmp_path, server]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME"):
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
