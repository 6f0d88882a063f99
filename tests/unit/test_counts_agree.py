"""The numbers of records that `topics`, `report` and reading say of the same logs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import run
from kafkacodec.cli.commands.report.tables import topic_table
from kafkacodec.log.analysis.survey import survey


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    """The second number of each line: the records of a topic."""
    run([*arguments])
    lines = capsys.readouterr().out.splitlines()
    found = (re.match(r"(\w+) +\d+ +([\d,]+) ", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def test_markers_are_no_records(capsys: pytest.CaptureFixture[str]) -> None:
    log = kc.sample()
    count = log.topic("payments").count()
    assert count == 120
    assert shown(capsys, "topics", log.path)["payments"] == str(count)
    (payments,) = kc.log.per_topic(kc.log.statistics(log.topic("payments").partitions))
    assert payments.data_records == count
    assert payments.num_records == count + payments.control_records > count


def test_a_report_counts_what_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = kc.sample(tmp_path / "bad", damaged=True)
    found = survey(log.topic("orders").partitions)
    table = topic_table(kc.log.per_topic(found.partitions), found)
    (row,) = table.rows
    cells = {title: cell.value for title, cell in zip(table.titles, row, strict=True)}
    assert (cells["records"], cells["offsets missing"]) == (514, 600 - 514)
    assert log.topic("orders").count(on_error="skip", problems=[]) == 514
    assert shown(capsys, "topics", log.path, "--records")["orders"] == "514"


def test_columns_that_headers_cannot_fill_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for options, there in ((), False), (("--records",), True):
        run(["topics", kc.sample().path, "--full", *options])
        title = capsys.readouterr().out.splitlines()[0]
        assert ("ratio" in title, "tombstones" in title) == (there, there)
