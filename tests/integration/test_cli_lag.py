"""``kafkacodec lag``: tables, JSON and files; the numbers are tested in tests/conformance/test_group_lag.py."""

import json
import shutil

import pytest
from pyarrow import parquet

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from tests.conformance.test_internal_topics import expected_offsets
from tests.corpus import ROOT
from tests.integration.cli_samples import BROKER
from tests.terminal import on_a_terminal


def test_lag_as_json_and_parquet(kafkacodec, tmp_path):
    code, out, err = kafkacodec("lag", BROKER, "--json")
    assert (code, err) == (DONE, "")
    lines = [json.loads(line) for line in out.splitlines()]
    expected = expected_offsets("kraft-4.1.0")
    assert {(n["group"], n["topic"], n["partition"]): n["offset"] for n in lines} == {
        place: values[0] for place, values in expected.items()
    }
    output = tmp_path / "lag.parquet"
    assert kafkacodec("lag", BROKER, "-o", output) == (DONE, "", f"{output}: {len(lines)} rows\n")
    rows = parquet.read_table(output).to_pylist()
    assert [row["lag"] for row in rows] == [line["lag"] for line in lines]
    assert kafkacodec("lag", BROKER, "-o", output)[0] == WRONG_USAGE
    assert kafkacodec("lag", BROKER, "-o", tmp_path / "b.csv", "--json")[0] == WRONG_USAGE


def test_lag_of_some_groups_and_topics(kafkacodec):
    _, out, _ = kafkacodec("lag", BROKER, "--group", "group-2*", "--group", "txgroup", "--json")
    assert {json.loads(line)["group"] for line in out.splitlines()} == {"group-268", "txgroup"}
    _, out, _ = kafkacodec("lag", BROKER, "--topic", "txn*", "--json")
    assert {json.loads(line)["topic"] for line in out.splitlines()} == {"txn", "txn-codecs"}
    code, out, err = kafkacodec("lag", BROKER, "--group", "nobody")
    assert (code, out) == (BAD_INPUT, "")
    assert "no group 'nobody'; " in err


def test_lag_table(kafkacodec):
    _, out, _ = kafkacodec("lag", BROKER)
    row = next(line.split() for line in out.splitlines() if line.startswith("group-268"))
    assert row[1:6] == ["gzip", "0", "96", "206", "110"]
    assert " ".join(row[6:8]) == "2.0 min"
    code, out = on_a_terminal("lag", BROKER)
    assert code == DONE
    assert all(len(line) <= 80 for line in out.replace("\r", "").splitlines())


def test_groups_whose_topic_is_elsewhere_say_so(kafkacodec):
    code, out, _ = kafkacodec("lag", ROOT / "logs" / "v0-0.9.0.1")
    assert code == DONE
    assert "the partition is not in the directory" in out
    assert out.splitlines()[-1] == "9 groups, 9 partitions, 9 partitions not in the directory"


def test_damage_fails_or_is_skipped_with_a_warning(kafkacodec, tmp_path):
    shutil.copytree(BROKER, tmp_path / "broker")
    path = next((tmp_path / "broker" / "__consumer_offsets-1").glob("*.log"))
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    code, _, err = kafkacodec("lag", tmp_path / "broker")
    assert code == BAD_INPUT
    assert str(path) in err
    code, out, err = kafkacodec("lag", tmp_path / "broker", "--on-error", "skip")
    assert (code, err.count("warning: skipped")) == (DONE, 1)
    assert "group-" in out
    code, _, err = kafkacodec("lag", BROKER / "gzip-0")
    assert code == BAD_INPUT
    assert "no partition of __consumer_offsets" in err


@pytest.mark.parametrize("command", ["offsets", "groups"])
def test_several_directories(kafkacodec, tmp_path, command):
    """Disks of one broker, each with some partitions of __consumer_offsets, and a copy of another broker."""
    whole = kafkacodec(command, BROKER, "--json")
    disks = [tmp_path / name for name in ("first", "second", "third")]
    for disk in disks:
        disk.mkdir()
    for number, partition in enumerate(sorted(path for path in BROKER.iterdir() if path.is_dir())):
        shutil.copytree(partition, disks[number % 2] / partition.name)
    (disks[2] / "empty-0").mkdir()
    parts = [kafkacodec(command, disk, "--json")[1] for disk in disks[:2]]
    assert all(part and part != whole[1] for part in parts)
    code, out, err = kafkacodec(command, *disks, BROKER, "--json")
    assert (code, sorted(out.splitlines()), err) == (DONE, sorted(whole[1].splitlines()), "")
    code, out, err = kafkacodec(command, *disks, "--group", "nobody")
    assert (code, out, f"{disks[0]}, {disks[1]}, {disks[2]}: no group 'nobody'" in err) == (BAD_INPUT, "", True)
