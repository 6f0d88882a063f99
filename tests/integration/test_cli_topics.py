"""``kafkacodec topics``: what topics hold, compared with what Kafka's reader found."""

import json
import os
import shutil

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from tests.corpus import ROOT, log_directories, segments
from tests.dialect_vectors import ROOT as DIALECTS
from tests.integration.cli_samples import BROKER


def lines_of(out):
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("directory", log_directories(), ids=lambda path: path.name)
def test_topics_of_every_format(kafkacodec, directory):
    code, out, err = kafkacodec("topics", directory, "--json", "--records")
    assert (code, err) == (DONE, "")
    found = {line["topic"]: line for line in lines_of(out)}
    expected = {}
    for item in segments(writer=directory.name):
        if item.path.suffix == ".log":
            topic = item.path.parent.name.rpartition("-")[0]
            expected[topic] = expected.get(topic, 0) + len(item.expected.records)
    assert {topic: found[topic]["num_records"] for topic in expected} == expected
    code, table, _ = kafkacodec("topics", directory)
    assert code == DONE
    assert "None" not in table
    assert {line.split()[0] for line in table.splitlines()} >= expected.keys()
    assert kafkacodec("topics", directory, "--partitions")[0] == DONE


def test_internal_topics_are_marked(kafkacodec):
    _, out, _ = kafkacodec("topics", BROKER)
    lines = out.splitlines()
    heading = lines.index("internal topics:")
    assert [line.split()[0] for line in lines[heading + 1 : -1]] == [
        "__cluster_metadata",
        "__consumer_offsets",
        "__transaction_state",
    ]
    _, out, _ = kafkacodec("topics", BROKER, "--json")
    internal = {line["topic"] for line in lines_of(out) if line["internal"]}
    assert internal == {"__cluster_metadata", "__consumer_offsets", "__transaction_state"}


def test_topics_in_an_order(kafkacodec):
    for order, name in (("size", "size_in_bytes"), ("records", "num_records"), ("latest", "last_timestamp")):
        _, out, _ = kafkacodec("topics", BROKER, "--json", "--sort", order)
        values = [line[name] - (line["control_records"] if order == "records" else 0) for line in lines_of(out)]
        assert values == sorted(values, reverse=True)
    assert kafkacodec("topics", BROKER, "--sort", "colour")[0] == WRONG_USAGE


def test_partitions_of_a_topic(kafkacodec):
    code, out, _ = kafkacodec("topics", BROKER, "--partitions", "--topic", "partitions", "--json")
    assert code == DONE
    assert [(line["topic"], line["partition"]) for line in lines_of(out)] == [("partitions", n) for n in range(3)]
    _, out, _ = kafkacodec("topics", BROKER, "--partitions", "--topic", "partitions")
    assert "1 topic, 3 partitions" in out.splitlines()[-1]


def test_a_tree_of_log_directories(kafkacodec, tmp_path):
    """Two brokers' directories below one, with a partition that both have, and one that is set aside."""
    for broker, names in (("a", ["gzip-0", "lz4-0"]), ("b", ["gzip-0", "none-0"])):
        for name in names:
            shutil.copytree(BROKER / name, tmp_path / "brokers" / broker / name)
    aside = tmp_path / "brokers" / "b" / f"zstd-0.{'0' * 32}-delete"
    shutil.copytree(BROKER / "zstd-0", aside)
    code, out, err = kafkacodec("topics", tmp_path / "brokers")
    assert code == DONE
    both = [str(tmp_path / "brokers" / broker / "gzip-0") for broker in "ab"]
    assert err.strip() == (
        f"kafkacodec: warning: 1 partition is there more than once: gzip-0 in {', '.join(both)}. "
        "Records and sizes count each copy."
    )
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert rows["gzip"].split()[1] == "2"
    assert "1 partition in several directories" in rows["gzip"]
    assert "zstd" not in rows
    assert f"not counted: {aside} (delete" in out
    _, out, _ = kafkacodec("topics", tmp_path / "brokers", "--topic", "gzip")
    assert "not counted" not in out
    for option in ("--topics", "--partitions"):
        _, out, _ = kafkacodec("topics", tmp_path / "brokers", "--json", option)
        copies = {line["topic"]: line["copies"] for line in lines_of(out)}
        assert copies == {"gzip": {"gzip-0": both}, "lz4": {}, "none": {}}
    _, out, err = kafkacodec("stats", tmp_path / "brokers", "--json")
    assert [line["copies"] for line in lines_of(out) if "topic" in line] == [{"gzip-0": both}, {}, {}]
    assert "gzip-0 in" in err
    page = tmp_path / "report.html"
    _, _, err = kafkacodec("report", tmp_path / "brokers", "-o", page, "--no-verify")
    assert "gzip-0 in" in err
    assert f"1 partition is there more than once: gzip-0 in {', '.join(both)}" in page.read_text()


def test_damage_is_an_error_after_the_table(kafkacodec, tmp_path):
    shutil.copytree(BROKER / "lz4-0", tmp_path / "lz4-0")
    shutil.copytree(BROKER / "gzip-0", tmp_path / "gzip-0")
    path = tmp_path / "lz4-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[8:12] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    code, out, err = kafkacodec("topics", tmp_path)
    assert code == BAD_INPUT
    assert "damaged" in next(line for line in out.splitlines() if line.startswith("lz4"))
    assert "damaged" not in next(line for line in out.splitlines() if line.startswith("gzip"))
    assert err.startswith("kafkacodec: error: 1 of 2 partitions damaged")
    assert str(path) in err
    code, out, _ = kafkacodec("topics", tmp_path, "--json")
    assert code == BAD_INPUT
    assert [bool(line["damaged_bytes"]) for line in lines_of(out)] == [False, True]


def test_damage_inside_batches_is_found_with_records(kafkacodec, tmp_path):
    shutil.copytree(BROKER / "gzip-0", tmp_path / "gzip-0")
    path = tmp_path / "gzip-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert kafkacodec("topics", tmp_path)[0] == DONE
    assert kafkacodec("topics", tmp_path, "--records")[0] == BAD_INPUT


def test_topics_of_kafka_07(kafkacodec):
    code, out, _ = kafkacodec("topics", DIALECTS / "kafka07/segments/broker-0", "--json", "--partitions", "--records")
    assert code == DONE
    lines = lines_of(out)
    assert {line["topic"] for line in lines} >= {"orders", "clicks-eu", "rolling"}
    assert all(line["num_records"] > 0 and line["num_offsets"] is None for line in lines)


def test_a_missing_directory_is_named(kafkacodec, tmp_path):
    code, _, err = kafkacodec("topics", tmp_path / "nothing")
    assert code == WRONG_USAGE
    assert "nothing" in err
    os.mkdir(tmp_path / "empty")
    code, _, err = kafkacodec("topics", tmp_path / "empty")
    assert code == BAD_INPUT
    assert "no Kafka log segments" in err
    assert kafkacodec("topics", ROOT / "logs" / "truncated" / "kraft-4.1.0", "--topic", "unknown")[0] == BAD_INPUT
