"""Packages and interpreters that are not where Spark needs them."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kafkacodec as kc

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "kafkacodec/log/sample_data"


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


@pytest.mark.spark
@pytest.mark.parametrize("driver", [None, sys.executable])
def test_no_python_of_the_executors_on_the_driver(spark, monkeypatch, driver):
    """As with an archive that is unpacked for the executors only; another Python for the driver does not help."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "./environment/bin/python")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    if driver:
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", driver)
    with pytest.raises(kc.KafkaCodecError) as raised:
        kc.spark.register(spark)
    assert str(raised.value) == (
        "the executors' Python, ./environment/bin/python, does not exist on the driver, where Spark plans with it: "
        "unpack the environment there too, so that this path is right"
    )


@pytest.mark.spark
def test_workers_run_the_drivers_python_if_none_is_named(tmp_path):
    """The python3 of PATH is another one, as if the environment was not activated."""
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o755)
    program = (
        "import kafkacodec as kc\n"
        "from pyspark.sql import SparkSession\n"
        "builder = SparkSession.builder.master('local[1]').config('spark.ui.enabled', False)\n"
        "spark = builder.getOrCreate()\n"
        "kc.spark.register(spark)\n"
        f"log = spark.read.format('kafkalog').option('path', {str(SAMPLE)!r})\n"
        "print('rows', log.option('subscribe', 'orders').load().count())\n"
    )
    env = {name: value for name, value in os.environ.items() if name not in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    env |= {"PATH": f"{tmp_path}:{env['PATH']}", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert "rows 600\n" in run.stdout, run.stderr
