"""A `LogDirectory` of a path that is none says so, and what to give instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kafkacodec as kc


def test_topics_of_what_is_no_log_directory_are_refused(tmp_path: Path) -> None:
    shutil.copytree(kc.sample().path, tmp_path / "broker-1")
    with pytest.raises(FileNotFoundError, match=r"directories below it; pass one of them, such as \S*broker-1:"):
        _ = kc.log.LogDirectory(tmp_path).topics
    with pytest.raises(FileNotFoundError, match=r"but is that of one; pass it to kafkacodec\.log\.Partition"):
        _ = kc.log.LogDirectory(tmp_path / "broker-1/orders-0").topics
    with pytest.raises(FileNotFoundError, match="pass one of them, such as"):
        kc.log.LogDirectory(tmp_path).topic("orders")
    with pytest.raises(FileNotFoundError, match="pass one of them, such as"):
        kc.log.LogDirectory(tmp_path).select()
    found = kc.log.discover(tmp_path, levels=1)
    assert {partition.topic for partition in found} >= {"orders", "payments"}
    (tmp_path / "home").mkdir()
    (tmp_path / "home/notes.txt").write_text("a")
    with pytest.raises(FileNotFoundError, match="no partitions, and no file of a broker"):
        _ = kc.log.LogDirectory(tmp_path / "home").topics
    assert "0 topics" in kc.log.LogDirectory(tmp_path / "home")._repr_html_()


def test_a_partition_of_another_directory_is_refused(tmp_path: Path) -> None:
    """Also one with segments set aside, so that nothing says that it is empty or intact."""
    log = kc.sample().path
    for ask in (
        lambda partition: partition.to_arrow(),
        lambda partition: partition.count(),
        lambda partition: partition.verify(),
        lambda partition: partition.end_offset(),
        lambda partition: list(partition),
        lambda partition: partition.ranges(),
    ):
        with pytest.raises(
            FileNotFoundError, match=r"pass it to kafkacodec\.log\.LogDirectory, or .*, such as \S+-0, to"
        ):
            ask(kc.log.Partition(log))
        with pytest.raises(FileNotFoundError, match="no segments, and is not named like that of a partition:"):
            ask(kc.log.Partition(tmp_path))
    (tmp_path / "orders-0").mkdir()
    assert kc.log.Partition(tmp_path / "orders-0").count() == 0
    (tmp_path / "odd name").write_bytes(kc.encode([(None, b"a")]))
    (named,) = kc.log.discover(tmp_path / "odd name")
    assert named.count() == 1
    assert named.verify().ok
    (tmp_path / f"{0:020}.log").write_bytes(kc.encode([(None, b"a")]))
    assert kc.log.Partition(tmp_path).count() == 1


def test_a_new_brokers_directory_has_no_topics(tmp_path: Path) -> None:
    assert kc.log.LogDirectory(tmp_path).topics == []
    (tmp_path / "meta.properties").write_text("version=1\n")
    (tmp_path / "lost+found").mkdir()
    assert kc.log.LogDirectory(tmp_path).topics == []
    with pytest.raises(FileNotFoundError, match="no topic 'orders': this directory has no partitions"):
        kc.log.LogDirectory(tmp_path).topic("orders")


def test_segments_of_kafka_07_have_no_committed_offsets(tmp_path: Path) -> None:
    (tmp_path / "__consumer_offsets-0").mkdir()
    payload = kc.dialects.kafka07.encode_messages([b"value"])
    (tmp_path / "__consumer_offsets-0/00000000000000000000.kafka").write_bytes(payload)
    with pytest.raises(kc.CorruptRecord, match=r"segments of Kafka 0\.6 or 0\.7, which had no such topic"):
        kc.log.read_consumer_groups(tmp_path)
    problems: list[kc.DecodeError] = []
    assert kc.log.read_committed_offsets(tmp_path, problems=problems) == []
    assert len(problems) == 1
