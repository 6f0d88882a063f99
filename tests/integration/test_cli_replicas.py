"""``kafkacodec dump`` and ``convert`` of directories of several brokers: each record once, unless all are wanted."""

from __future__ import annotations

import shutil
import sys

import pyarrow.parquet as pq
import pytest

import kafkacodec as kc

COPIES = "--replicas merge reads replicas as one log, --replicas all reads each of them"


def rows_in(directory):
    return sum(pq.read_metadata(path).num_rows for path in directory.rglob("*.parquet"))


@pytest.fixture
def brokers(tmp_path):
    """Two copies of a directory whose topic ``orders`` has 600 records."""
    first = kc.sample().path
    second = shutil.copytree(first, tmp_path / "second")
    return first, second


def test_copies_are_refused_with_options_of_the_command(kafkacodec, brokers, tmp_path):
    first, second = brokers
    reason = f"kafkacodec: error: orders-0 is in {first}/orders-0 and {second}/orders-0; {COPIES}\n"
    for command in (
        ("dump",),
        ("convert", "-o", tmp_path / "o.parquet"),
        ("convert", "-o", tmp_path / "o", "--partition-by", "topic"),
    ):
        code, out, err = kafkacodec(*command, *brokers, "--topic", "orders")
        assert (code, out, err) == (1, "", reason)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["second"]


def test_convert_reads_copies_as_asked(kafkacodec, brokers, tmp_path):
    for replicas, count in ("merge", 600), ("all", 1200):
        output = tmp_path / f"{replicas}.parquet"
        assert kafkacodec("convert", *brokers, "--topic", "orders", "-o", output, "--replicas", replicas)[0] == 0
        assert pq.read_metadata(output).num_rows == count
    whole = ("convert", brokers[0], f"{brokers[0]}/orders-0", "--topic", "orders", "-o", tmp_path / "same.parquet")
    assert kafkacodec(*whole)[0] == 0
    assert pq.read_metadata(tmp_path / "same.parquet").num_rows == 600


def test_merged_inputs_are_not_replaced(kafkacodec, brokers):
    copy = brokers[1] / "orders-0" / f"{0:020}.log"
    options = ("--topic", "orders", "--replicas", "merge", "--format", "csv", "--force")
    code, _, err = kafkacodec("convert", *brokers, "-o", copy, *options)
    assert (code, "is part of the input" in err) == (2, True), err


def test_exports_without_spark_read_copies_as_asked(kafkacodec, brokers, tmp_path):
    command = ("convert", *brokers, "--topic", "ord*", "-o", tmp_path / "out", "--partition-by", "topic", "--replicas")
    assert kafkacodec(*command, "merge")[0] == 0
    assert rows_in(tmp_path / "out") == 600
    code, _, err = kafkacodec(*command, "all")
    assert (code, err.splitlines()[-1]) == (
        2,
        "Error: --replicas all: an export reads each partition once; use merge",
    )


def test_dump_reads_copies_as_asked(kafkacodec, brokers):
    def lines(*options):
        code, out, _ = kafkacodec("dump", *brokers, "--topic", "orders", "--json", *options)
        assert code == 0
        return out.splitlines()

    assert len(lines("--replicas", "merge")) == 600
    assert len(lines("--replicas", "merge", "--tail", "2")) == 6
    assert len(lines("--replicas", "all")) == 1200
    code, _, err = kafkacodec("dump", *brokers, "--replicas", "merge", "--follow")
    assert (code, err.splitlines()[-1]) == (2, "Error: --follow does not support --replicas merge")


def test_topics_are_chosen_without_the_package_for_patterns(kafkacodec, monkeypatch, tmp_path):
    """Globs become names, so that no regular expression is needed."""
    monkeypatch.setitem(sys.modules, "re2", None)
    for topic, count in ("orders", 600), ("pay*", 120):
        target = tmp_path / topic[:3]
        command = ("convert", kc.sample().path, "--topic", topic, "-o", target, "--partition-by", "topic")
        assert kafkacodec(*command)[0] == 0
        assert rows_in(target) == count
