"""Packages and interpreters that are not where Spark needs them."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kafkacodec as kc
from tests.corpus import sample
from tests.integration.cli_samples import SEGMENT

ROOT = Path(__file__).parents[2]


def test_package_in_a_zip(tmp_path):
    """What `--py-files` with a wheel does: the file itself is on the path."""
    wheel = tmp_path / "kafkacodec-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in sorted((ROOT / "kafkacodec").rglob("*.py")):
            archive.write(file, file.relative_to(ROOT))
    program = "import kafkacodec as kc\ntry:\n    kc.spark.session()\nexcept kc.KafkaCodecError as e:\n    print(e)"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(wheel)!r})\n{program}"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.startswith(f"kafkacodec cannot run from {wheel}, since Python does not import compiled modules")
    assert run.stdout.count("\n") == 1


@pytest.fixture
def packed(spark, monkeypatch):
    """A session whose executors' interpreter does not exist on the driver, as with venv-pack."""
    with monkeypatch.context() as patches:
        patches.setattr(spark.sparkContext, "pythonExec", "./environment/bin/python")
        yield spark
    kc.spark.register(spark)


@pytest.mark.spark
def test_interpreter_of_the_executors_only(packed):
    kc.spark.register(packed)
    records = packed.read.format("kafkalog").load(str(sample(SEGMENT).path))
    assert records.count() == len(sample(SEGMENT).expected.records)


@pytest.mark.spark
@pytest.mark.parametrize("python", [None, "./environment/bin/python"])
def test_no_interpreter_on_the_driver(packed, monkeypatch, python):
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    if python:
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", python)
    with pytest.raises(kc.KafkaCodecError, match=r"^PYSPARK_PYTHON=./environment/bin/python does not exist on the"):
        kc.spark.register(packed)
