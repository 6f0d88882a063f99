"""``kafkacodec bench`` and ``kafkacodec demo``."""

import json
import os
import re

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from tests.corpus import segments
from tests.integration.cli_samples import BROKER


def test_bench_measures_every_reading(kafkacodec):
    code, out, err = kafkacodec("bench", BROKER, "--topic", "zstd", "--seconds", "0", "--json")
    assert (code, err) == (DONE, "")
    rates = [json.loads(line) for line in out.splitlines()]
    assert len({rate["reading"] for rate in rates}) == 5
    assert all(rate["bytes_per_second"] > 0 for rate in rates)
    assert [rate["records_per_second"] is None for rate in rates] == [True, True, False, False, False]


def test_bench_takes_whole_segments_up_to_the_limit(kafkacodec):
    code, out, _ = kafkacodec("bench", BROKER, "--seconds", "0", "--limit", "1")
    count = int(out.split()[0])
    assert code == DONE
    assert 1 < count < len(segments(writer="kraft-4.1.0"))
    assert "all columns" in out


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "1e9"])
def test_bench_comes_to_an_end(kafkacodec, seconds):
    assert kafkacodec("bench", BROKER, "--topic", "zstd", "--seconds", seconds)[0] == WRONG_USAGE


def test_bench_of_nothing_fails(kafkacodec, tmp_path):
    (tmp_path / "00000000000000000000.log").touch()
    code, _, err = kafkacodec("bench", tmp_path)
    assert code == BAD_INPUT
    assert "all segments are empty" in err


def test_the_demo_and_the_commands_that_it_names(kafkacodec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = kafkacodec("demo", "--no-spark")
    assert (code, err) == (DONE, "")
    assert re.search(r"read_uncommitted +120 .*\n.*read_committed +88 +without 24 of aborted and 8 of open", out)
    assert re.findall(r"orders-(\d)/\d+\.log +(\d+) ", out) == [("0", "13"), ("1", "70"), ("2", "3")]
    assert "Recovered 832 of 918 records to a new directory; 86 are lost." in out
    assert "records/s" not in out
    assert os.listdir(tmp_path) == []
    commands = [line.split()[1:] for line in out.splitlines() if line.startswith("  kafkacodec ")]
    assert len(commands) == 3
    for arguments in commands:
        code, out, err = kafkacodec(*arguments)
        assert (code, err) == (DONE, ""), arguments
        assert out
    code, _, err = kafkacodec("sample", "my-logs")
    assert (code, "not empty" in err) == (BAD_INPUT, True)
    assert kafkacodec("sample", "broken", "--damaged")[0] == DONE
    assert kafkacodec("verify", "broken")[0] == BAD_INPUT
