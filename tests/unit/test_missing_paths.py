"""Paths that are not there: errors name the one that was probably meant, in Python, the command and Spark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.opening.missing import similar_path
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.planning import plan
from tests.unit.test_spark_reading import options


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    kc.sample(tmp_path / "logs")
    shutil.rmtree(tmp_path / "logs" / "customers-0")
    return tmp_path / "logs"


READERS = {
    "LogDirectory": lambda path: kc.log.LogDirectory(path),
    "discover": kc.log.discover,
    "Partition": lambda path: kc.log.Partition(path).segments,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_python(logs, read):
    with pytest.raises(FileNotFoundError) as raised:
        read(logs / "ordrs-0")
    assert raised.value.strerror == f"No such file or directory; did you mean '{logs / 'orders-0'}'?"
    assert raised.value.filename == str(logs / "ordrs-0")
    with pytest.raises(FileNotFoundError, match=re.escape("directory: ")):
        read(logs / "something else")


def test_spark(logs):
    for path in (logs / "ordrs-0", f"{logs}/orders-0,file://{logs}/ordrs-0"):
        with pytest.raises(OptionError, match=f"^path: {logs}/ordrs-0: No such .*; did you mean '{logs}/orders-0'"):
            plan(options(path))


def test_any_part_may_be_wrong(logs, monkeypatch):
    monkeypatch.chdir(logs.parent)
    assert similar_path("logz/orders-0") == "did you mean 'logs/orders-0'?"
    assert similar_path("log/") == "did you mean 'logs'?"
    assert similar_path("LOGS/orders-1") == "did you mean 'logs/orders-1'?"
    for path in ("logs/orders-0", "logz/ordrs-0", "else", "s3://logz/orders-0", "", "/"):
        assert similar_path(path) == ""
