"""``kafkacodec stats``."""

import json
from collections import Counter

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from tests.corpus import sample, segments
from tests.dialect_vectors import ROOT as DIALECTS
from tests.integration.cli_samples import BROKER, SEGMENT, expected


def lines(out):
    return [json.loads(line) for line in out.splitlines()]


def test_json_has_a_line_for_each_topic_and_one_for_the_codecs(kafkacodec):
    code, out, err = kafkacodec("stats", BROKER, "--topic", "zstd", "--topic", "none", "--top", 2, "--json")
    assert (code, err) == (DONE, "")
    *topics, codecs = lines(out)
    assert [topic["topic"] for topic in topics] == ["none", "zstd"]
    for topic in topics:
        rows = expected(topic["topic"])
        assert topic["num_records"] == len(rows)
        (count,) = {key["records"] for key in topic["keys"]["by_records"][:1]}
        assert count == max(Counter(row.key for row in rows if row.key is not None).values())
        assert len(topic["keys"]["by_bytes"]) == 2
        assert sum(topic["times"]["records"]) == len(rows)
    files = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name in ("none-0", "zstd-0")]
    assert codecs["codecs"]["log_bytes"] == sum(b["sizeInBytes"] for s in files for b in s.expected.batches)
    assert codecs["codecs"]["results"][0]["compress_speed"] is None


def test_tables(kafkacodec):
    code, out, err = kafkacodec("stats", BROKER / "zstd-0", "--codec", "zstd:19", "--codec", "lz4")
    assert (code, err) == (DONE, "")
    rows = expected("zstd")
    assert out.splitlines()[1].split()[:2] == ["zstd", str(len(rows))]
    tried = [line.split()[0] for line in out.splitlines() if line.startswith(("zstd 19", "lz4", "gzip"))]
    assert tried == ["zstd", "lz4"]
    batches = sum(len(s.expected.batches) for s in segments(writer="kraft-4.1.0") if s.path.parent.name == "zstd-0")
    assert f"Compressed again: all {batches} batches." in out
    bars = [line for line in out.splitlines() if "█" in line or "#" in line]
    assert bars
    assert "Keys with most bytes" in out


def test_old_logs_without_times_and_keys(kafkacodec):
    code, out, err = kafkacodec("stats", DIALECTS / "kafka07/segments/broker-0", "--topic", "rolling")
    assert (code, err) == (DONE, "")
    assert "no records with a timestamp" in out
    assert "no record has a key" in out


def test_damage_is_an_error_or_skipped(kafkacodec, damaged):
    code, _, err = kafkacodec("stats", damaged)
    assert code == BAD_INPUT
    assert "CRC-32C of a batch is wrong" in err
    code, out, err = kafkacodec("stats", damaged, "--on-error", "skip", "--json")
    assert code == DONE
    bad = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    topic, codecs = lines(out)
    assert topic["num_records"] == sum(row.batch != bad["index"] for row in sample(SEGMENT).expected.records)
    assert codecs["codecs"]["unreadable_bytes"] == bad["sizeInBytes"]


def test_a_log_without_records(kafkacodec, tmp_path):
    (tmp_path / "00000000000000000000.log").touch()
    code, out, err = kafkacodec("stats", tmp_path)
    assert (code, err) == (DONE, "")
    assert "no batches to compress" in out
    assert "no values" in out


def test_wrong_codecs(kafkacodec):
    for value, reason in (("brotli", "unknown codec 'brotli'"), ("gzip:x", "not a number"), ("lz4:99", "1 to 17")):
        code, _, err = kafkacodec("stats", BROKER / "zstd-0", "--codec", value)
        assert code == WRONG_USAGE
        assert reason in err
