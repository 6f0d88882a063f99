"""``kafkacodec scan``: batches, segments and what is wrong with them."""

import json
import shutil
from datetime import UTC, datetime

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE
from tests.corpus import ROOT, log_directories, sample, segments
from tests.dialect_vectors import ROOT as DIALECTS
from tests.integration.cli_samples import BROKER, SEGMENT
from tests.terminal import on_a_terminal


def test_scan_lists_the_batches_of_a_file(kafkacodec):
    code, out, err = kafkacodec("scan", ROOT / SEGMENT, "--json")
    assert (code, err) == (DONE, "")
    lines = [json.loads(line) for line in out.splitlines()]
    for mine, theirs in zip(lines, sample(SEGMENT).expected.batches, strict=True):
        assert (mine["topic"], mine["partition"]) == ("none", 0)
        assert mine["position"] == theirs["position"]
        assert mine["size_in_bytes"] == theirs["sizeInBytes"]
        assert (mine["base_offset"], mine["last_offset"]) == (theirs["baseOffset"], theirs["lastOffset"])
        assert mine["max_timestamp"] == theirs["maxTimestamp"]
        assert mine["codec"] == theirs["codec"]
        assert (mine["crc"], mine["crc_ok"], mine["count"]) == (theirs["crc"], True, theirs["count"])


def test_scan_sums_up_the_segments_of_a_directory(kafkacodec):
    code, out, _ = kafkacodec("scan", BROKER, "--topic", "txn", "--json")
    assert code == DONE
    lines = [json.loads(line) for line in out.splitlines()]
    samples = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name == "txn-0"]
    assert [line["path"] for line in lines] == sorted(str(s.path) for s in samples)
    assert sum(line["num_records"] for line in lines) == sum(len(s.expected.records) for s in samples)
    assert sum(line["num_batches"] for line in lines) == sum(len(s.expected.batches) for s in samples)
    assert all(line["crc_failures"] == line["trailing_bytes"] == 0 and line["error"] is None for line in lines)


def test_scan_tables_name_what_matters(kafkacodec):
    code, out, _ = kafkacodec("scan", BROKER, "--topic", "gzip")
    assert code == DONE
    assert "v2 gzip" in out
    assert out.splitlines()[0].split() == [
        "partition",
        "file",
        "size",
        "records",
        "offsets",
        "start",
        "(UTC)",
        "latest",
        "(UTC)",
        "batches",
        "format",
        "notes",
    ]
    code, out, _ = kafkacodec("scan", BROKER / "txn-0", "--batches")
    assert "transaction, control" in out


def test_scan_shows_trailing_bytes(kafkacodec):
    path = "logs/truncated/kraft-4.1.0/gzip-0/00000000000000000157.log"
    _, out, _ = kafkacodec("scan", ROOT / path, "--segments", "--json")
    assert json.loads(out)["trailing_bytes"] == sample(path).expected.trailing_bytes > 0


def test_scan_shows_a_wrong_checksum_without_failing(kafkacodec, damaged):
    code, out, _ = kafkacodec("scan", damaged)
    assert code == DONE
    assert "WRONG" in out
    code, out, _ = kafkacodec("scan", damaged, "--no-crc")
    assert "WRONG" not in out


def test_scan_prints_what_comes_before_a_fault(kafkacodec, tmp_path):
    data = sample(SEGMENT).data()
    path = tmp_path / "a.log"
    path.write_bytes(data + b"\xff" * 100)
    code, out, err = kafkacodec("scan", path)
    assert code == BAD_INPUT
    assert len(out.splitlines()) == 1 + len(sample(SEGMENT).expected.batches)
    assert err.startswith(f"kafkacodec: error: {path}: ")
    assert f"(byte {len(data) + 8})" in err
    code, out, err = kafkacodec("scan", path, "--segments", "--json")
    assert (code, json.loads(out)["num_batches"]) == (BAD_INPUT, len(sample(SEGMENT).expected.batches))


def test_scan_chooses_by_offset(kafkacodec):
    _, out, _ = kafkacodec("scan", ROOT / SEGMENT, "--start-offset", 10, "--end-offset", 12, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines
    assert all(line["last_offset"] >= 10 and line["base_offset"] < 12 for line in lines)


@pytest.mark.parametrize("directory", log_directories(), ids=lambda path: path.name)
def test_scan_sums_up_every_format(kafkacodec, directory):
    """Values that headers of old formats lack are null."""
    code, out, err = kafkacodec("scan", directory, "--json")
    assert (code, err) == (DONE, "")
    found = {line["path"]: line for line in map(json.loads, out.splitlines())}
    for item in segments(writer=directory.name):
        if str(item.path) not in found:
            continue
        line, batches = found[str(item.path)], item.expected.batches
        times = [b["maxTimestamp"] for b in batches if b["maxTimestamp"] != -1 and not b["isControl"]]
        assert line["num_batches"] == len(batches)
        assert line["last_offset"] == batches[-1]["lastOffset"]
        assert line["max_timestamp"] == max(times, default=None)
        assert line["first_offset"] in (None, batches[0]["baseOffset"])
    code, out, _ = kafkacodec("scan", directory, "--batches")
    assert (code, "None" in out) == (DONE, False)
    assert kafkacodec("scan", directory, "--end-offset", 100)[0] == DONE


def test_scan_goes_on_to_the_next_segment(kafkacodec, tmp_path):
    broker = tmp_path / "broker"
    shutil.copytree(BROKER / "zstd-0", broker / "zstd-0")
    (broker / "a-0").mkdir()
    (broker / "a-0" / "00000000000000000000.kafka").write_bytes(b"\0\0\0\6")
    code, out, err = kafkacodec("scan", broker, "--json")
    assert code == BAD_INPUT
    assert "the first message is incomplete" in err
    assert [json.loads(line)["topic"] for line in out.splitlines()][:2] == ["a", "zstd"]


def test_scan_lists_messages_of_kafka_07(kafkacodec):
    path = DIALECTS / "kafka07/segments/broker-0/short-0"
    code, out, err = kafkacodec("scan", path, "--batches", "--json")
    assert (code, err) == (DONE, "")
    lines = [json.loads(line) for line in out.splitlines()]
    sizes = {file.name: file.stat().st_size for file in path.iterdir()}
    for name, size in sizes.items():
        part = [line for line in lines if line["path"].endswith(name)]
        assert sum(line["size_in_bytes"] for line in part) == size
        assert part[0]["base_offset"] == int(name.partition(".")[0])
        assert all(line["base_offset"] - line["position"] == part[0]["base_offset"] for line in part)
    code, out, _ = kafkacodec("scan", path, "--json")
    assert code == DONE
    assert [json.loads(line)["num_records"] for line in out.splitlines()] == [3, 4, 2]


def test_scan_groups_by_topic_with_files_and_start_times(kafkacodec):
    code, out, _ = kafkacodec("scan", BROKER / "none-0", BROKER / "gzip-0", BROKER / "partitions-1")
    assert code == DONE
    lines = out.splitlines()
    headings = [line.split(":")[0] for line in lines if " segment" in line][:-1]
    assert headings == ["gzip", "none", "partitions"]
    first = sample("logs/kraft-4.1.0/gzip-0/00000000000000000000.log").expected.records[0]
    start = datetime.fromtimestamp(first.timestamp / 1000, UTC)
    row = next(line for line in lines if line.startswith("gzip-0"))
    assert row.split()[1] == "00000000000000000000.log"
    assert f"{start:%Y-%m-%d %H:%M}" in row


@pytest.mark.parametrize("columns", [80, 200])
def test_scan_keeps_its_notes_on_any_terminal(columns):
    """Below the row where the line is too long; the file's name is cut at its start."""
    code, out = on_a_terminal("scan", ROOT / "logs/truncated/kraft-4.1.0", columns=columns)
    assert code == DONE
    lines = out.replace("\r", "").splitlines()
    assert all(len(line) <= columns for line in lines)
    torn = sample("logs/truncated/kraft-4.1.0/gzip-0/00000000000000000157.log").expected.trailing_bytes
    row = next(i for i, line in enumerate(lines) if line.startswith("gzip-0"))
    assert "157.log" in lines[row]
    assert f"{torn} B after the last batch" in lines[row + (columns == 80)]
