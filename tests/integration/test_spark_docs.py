"""The examples of docs/spark.md run, one after the other, in a session."""

import re
from pathlib import Path

import pytest

import kafkacodec as kc
from tests.corpus import ROOT

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_examples(spark, monkeypatch, capsys):
    monkeypatch.chdir(PAGE.parents[1])
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names = {}
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert names["spark"] is spark
    expected = sum(len(kc.decode(path.read_bytes())) for path in (ROOT / "logs/kraft-4.1.0/none-0").glob("*.log"))
    assert f"{expected} records," in capsys.readouterr().out
    assert len(blocks) > 4
    assert names["exploded"].count() == expected
