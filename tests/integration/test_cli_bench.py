"""``kafkacodec bench`` and ``kafkacodec demo``."""

import json

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


def test_demo_replaces_nothing_but_parquet(kafkacodec, tmp_path):
    """Refused before Spark starts."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for output in (tmp_path / "mine", tmp_path / "mine" / "notes.txt"):
        code, _, err = kafkacodec("demo", BROKER / "zstd-0", "-o", output)
        assert (code, "choose another output" in err) == (BAD_INPUT, True)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"
