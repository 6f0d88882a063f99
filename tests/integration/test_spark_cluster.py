"""The recipes of docs/spark-cluster.md, run as written on a standalone cluster.

Environments are made in a second, with this package alone: other packages come from the environment of the tests. With
KAFKACODEC_SPARK_CLUSTER=all they are made as the page says, by pip, from a wheel in wheels/ (`make wheel`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from tests.corpus import ROOT
from tests.integration.kafka_jvm import free_port
from tests.integration.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "spark-cluster.md"
AS_WRITTEN = os.environ.get("KAFKACODEC_SPARK_CLUSTER") == "all"
LOGS = ROOT / "logs" / "kraft-4.1.0" / "none-0"
RECORDS = 174  # Kafka's own reader counts them: the manifest

# In an environment: notes which Python runs where. Executors run `pyspark.worker`.
NOTE = (
    "import os, sys\nopen({!r}, 'a').write(f'{{sys.prefix}}|{{os.getcwd()}}|{{sys.orig_argv[1:]}}|{{sys.path}}\\n')\n"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


def section(title):
    """The blocks of a section of the page: (language, text)."""
    text = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def job():
    return re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]


class Place:
    """The directory where a recipe is followed, in which /opt/kafkacodec is a subdirectory."""

    def __init__(self, directory: Path, cluster: SparkCluster) -> None:
        self.directory, self.cluster = directory, cluster
        self.notes = directory / "notes"
        (directory / "count.py").write_text(job())

    def shell(self, text: str) -> str:
        """What a block of the page prints."""
        text = text.replace("/opt/kafkacodec", str(self.directory / "kafkacodec"))
        environment = self.cluster.environment(LOGS=str(LOGS), PIP_FIND_LINKS=str(PROJECT / "wheels"))
        run = subprocess.run(
            ["sh", "-e", "-c", text],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert run.returncode == 0, run.stderr[-3000:]
        return run.stdout

    def environment(self, name: str) -> Path:
        """An environment with this package; the others come from that of the tests."""
        place = self.directory / name
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        [packages] = place.glob("lib/python*/site-packages")
        (packages / "zz_others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.install(packages)
        return place

    def install(self, packages: Path) -> None:
        """What a wheel has."""
        left_out = shutil.ignore_patterns("*.pyx", "*.pxd", "*.c", "__pycache__")
        shutil.copytree(PROJECT / "kafkacodec", packages / "kafkacodec", ignore=left_out)
        for module in PROJECT.glob("pyspark_*.py"):
            shutil.copy(module, packages)
        (packages / "sitecustomize.py").write_text(NOTE.format(str(self.notes)))

    def workers(self) -> list[list[str]]:
        """prefix, directory and path of the Pythons that executors ran."""
        found = [line.split("|") for line in self.notes.read_text().splitlines()]
        return [[prefix, place, path] for prefix, place, command, path in found if "'pyspark.worker'" in command]


@pytest.fixture
def place(tmp_path, cluster):
    return Place(tmp_path, cluster)


def test_installed(place):
    [(_, prepare), (_, submit)] = section("Installed on every machine")
    if AS_WRITTEN:
        place.shell(prepare)
    else:
        place.environment("kafkacodec")
    assert f"{RECORDS} records\n" in place.shell(submit)
    if not AS_WRITTEN:
        assert {prefix for prefix, *_ in place.workers()} == {str(place.directory / "kafkacodec")}


def test_packed(place):
    [(_, prepare), (_, submit)] = section("Packed with venv-pack")
    if AS_WRITTEN:
        place.shell(prepare)
    else:
        with tarfile.open(place.directory / "environment.tar.gz", "w:gz") as archive:
            archive.add(place.environment("packed"), ".")
    shutil.rmtree(place.directory / "packed")
    assert f"{RECORDS} records\n" in place.shell(submit)
    if not AS_WRITTEN:
        assert place.workers()
        for prefix, directory, _ in place.workers():
            assert prefix == f"{directory}/environment"
            assert directory.startswith(str(place.cluster.work))


def test_zip(place):
    [(_, prepare), (_, submit)] = section("A zip on the path of modules")
    if AS_WRITTEN:
        place.shell(prepare)
    else:
        (place.directory / "site").mkdir()
        place.install(place.directory / "site")
        place.shell(prepare.splitlines()[-1])
        bare = place.environment("bare")
        for package in bare.glob("lib/python*/site-packages/*kafkacodec*"):
            shutil.rmtree(package) if package.is_dir() else package.unlink()
        submit = submit.replace("PYSPARK_PYTHON=python3", f"PYSPARK_PYTHON={bare}/bin/python3")
    assert f"{RECORDS} records\n" in place.shell(submit)
    if not AS_WRITTEN:
        assert place.workers()
        for _, directory, path in place.workers():
            assert directory.startswith(str(place.cluster.work))
            assert "./site" in path or f"{directory}/site" in path


def test_connect(place):
    [(_, start), (_, client)] = section("Spark Connect")
    python, port = place.environment("kafkacodec") / "bin" / "python", free_port()
    assert 'PYSPARK_PYTHON=/opt/kafkacodec/bin/python "$SPARK_HOME/sbin/start-connect-server.sh"' in start
    where = [
        "--conf",
        f"spark.connect.grpc.binding.port={port}",
        "--conf",
        "spark.connect.grpc.binding.address=127.0.0.1",
    ]
    server = ["--master", place.cluster.master, *where]
    place.cluster.run("connect", "sbin/start-connect-server.sh", *server, PYSPARK_PYTHON=str(python))
    place.cluster.wait("connect", "Spark Connect server started")
    program = job().split("spark = ")[0] + client.replace("localhost:15002", f"127.0.0.1:{port}") + MORE
    (place.directory / "client.py").write_text(program)
    (place.directory / "client").mkdir()
    out = place.shell(f'"{python}" client.py "$LOGS" "{place.directory}/client"')
    assert out.splitlines() == [
        f"{RECORDS} records",
        f"{RECORDS} written",
        f"{RECORDS} streamed",
        "32 in a blob",
        "nonsense",
    ]


# Batches, streams, record sets in a column and errors.
MORE = """
target = sys.argv[2]
records.select("key", "value").write.format("kafkalog").mode("append").option("topic", "copy").save(f"{target}/copy")
print(spark.read.format("kafkalog").load(f"{target}/copy").count(), "written")
rows = spark.readStream.format("kafkalog").load(f"{target}/copy").select("key", "value")
stream = rows.writeStream.format("kafkalog").option("topic", "streamed").trigger(availableNow=True)
stream.option("checkpointLocation", f"{target}/check").start(f"{target}/streamed").awaitTermination()
print(spark.read.format("kafkalog").load(f"{target}/streamed").count(), "streamed")
with open(f"{sys.argv[1]}/00000000000000000000.log", "rb") as file:
    blobs = spark.createDataFrame([(bytearray(file.read()),)], "value binary")
print(kc.spark.decode_batches(blobs).count(), "in a blob")
try:
    spark.read.format("kafkalog").option("nonsense", 1).load(sys.argv[1]).count()
except Exception as error:
    print(str(error).split("OptionError: ")[1].split(":")[0])
"""
