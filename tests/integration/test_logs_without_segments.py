"""Directories of a real broker that have lost all segments of a partition, or the partition: every reader says so."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.formats.checkpoints import LeaderEpoch, encode_checkpoint, encode_leader_epochs

RECORDS = 600
LOST = 155  # records of orders-2, which Kafka's checkpoints name too


def only_segments(partition: Path) -> None:
    for segment in partition.glob("*.log"):
        segment.unlink()


def all_files(partition: Path) -> None:
    shutil.rmtree(partition)
    partition.mkdir()


def directory(partition: Path) -> None:
    shutil.rmtree(partition)


def link(partition: Path) -> None:
    shutil.rmtree(partition)
    partition.symlink_to("/nonexistent/orders-2")


def file(partition: Path) -> None:
    shutil.rmtree(partition)
    partition.touch()


@pytest.fixture(params=[only_segments, all_files, directory, link, file], ids=lambda lose: lose.__name__)
def broken(request, tmp_path):
    path = tmp_path / "logs"
    kc.sample(path)
    request.param(path / "orders-2")
    return path


def test_python(broken):
    log = kc.log.LogDirectory(broken)
    topic, partition = log.topic("orders"), log.partition("orders", 2)
    with pytest.raises(kc.MissingOffsets, match=f"orders-2: gap of {LOST} offsets from 0 on: there is no segment") as e:
        topic.count()
    assert (e.value.missing_offsets, e.value.certain, e.value.path) == (LOST, True, str(broken / "orders-2"))
    for read in (topic.to_arrow, partition.to_arrow, lambda: list(topic.read(isolation_level="read_committed"))):
        with pytest.raises(kc.MissingOffsets):
            read()
    problems: list[kc.Problem] = []
    assert topic.count(on_error="skip", problems=problems) == RECORDS - LOST
    assert [getattr(p.exception, "missing_offsets", 0) for p in problems] == [LOST]
    assert topic.count(gaps="accept") == RECORDS - LOST
    assert [getattr(gap, "missing_offsets", 0) for gap in partition.breaks()] == [LOST]
    assert (partition.start_offset(), partition.end_offset(), partition.segments[0].size_in_bytes) == (0, 0, 0)
    with pytest.raises(kc.MissingOffsets, match=f"gap of {LOST - 100} offsets from 100 on"):
        list(partition.read(start_offset=100))
    (found,) = [s for s in kc.log.statistics(broken) if s.topic == "orders" and s.partition == 2]
    assert (found.missing_offsets, found.num_segments, found.damaged) == (LOST, 0, True)


def test_verify(broken):
    report = kc.log.LogDirectory(broken).verify()
    assert (report.ok, report.missing_offsets) == (False, LOST)
    errors = [f for f in report.findings if f.level == "error"]
    assert [(f.kind, f.path, f.first_offset, f.end_offset) for f in errors] == [
        ("gap", str(broken / "orders-2"), 0, LOST)
    ]
    warnings = {f.path.rpartition(".")[2] for f in report.findings if f.level == "warning"}
    assert warnings <= {"snapshot"}


def test_recover(broken, tmp_path):
    report = kc.log.recover(broken, tmp_path / "saved")
    left_out = report.counts["error", "left-out"]  # links out of the source are not followed
    assert (report.ok, report.missing_offsets, left_out) == (
        False,
        *((0, 1) if (broken / "orders-2").is_symlink() else (LOST, 0)),
    )
    assert kc.log.LogDirectory(tmp_path / "saved").topic("orders").count() == RECORDS - LOST


def test_commands(broken, tmp_path, kafkacodec):
    gap = f"{broken / 'orders-2'}: gap of {LOST} offsets from 0 on: there is no segment"
    paths = (broken, "--topic", "orders")
    out = tmp_path / "out.parquet"
    for command in (("dump", *paths), ("convert", *paths, "-o", out), ("scan", *paths), ("topics", *paths),
                    ("convert", *paths, "-o", tmp_path / "export", "--partition-by", "topic")):  # fmt: skip
        code, _, err = kafkacodec(*command)
        assert (command, code, err.count(gap)) == (command, 1, 1)
    code, _, err = kafkacodec("convert", *paths, "-o", out, "--on-error", "skip")
    assert (code, err.count(gap), "445 records" in err) == (0, 1, True)
    export = ("convert", *paths, "-o", tmp_path / "export", "--partition-by", "topic", "--on-error", "skip")
    code, _, err = kafkacodec(*export)
    assert (code, f"warning: {gap}" in err, "445 records" in err) == (0, True, True)


@pytest.mark.parametrize(
    ("lose", "evidence"),
    [
        (("recovery-point-offset-checkpoint",), "the high watermark is 155"),
        (("recovery-point-offset-checkpoint", "replication-offset-checkpoint"), "the snapshot .*155.snapshot exists"),
        (("*checkpoint", "orders-2/*.snapshot"), "the index .*78.timeindex reaches offset 154"),
    ],
)
def test_evidence(tmp_path, lose, evidence):
    path = tmp_path / "logs"
    kc.sample(path)
    only_segments(path / "orders-2")
    for pattern in lose:
        for found in path.glob(pattern):
            found.unlink()
    with pytest.raises(kc.MissingOffsets, match=f"gap of 155 offsets from 0 on: there is no segment, but {evidence}"):
        kc.log.LogDirectory(path).topic("orders").count()


def checkpoints(path, start, end):
    key = ("orders", 2)
    (path / "log-start-offset-checkpoint").write_bytes(encode_checkpoint({key: start} if start else {}))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (path / name).write_bytes(encode_checkpoint({key: end}))


@pytest.mark.parametrize(("start", "end"), [(0, 0), (155, 155)])
def test_logs_without_records_are_intact(tmp_path, start, end):
    """New ones, and those whose records were all deleted by retention."""
    path = tmp_path / "logs"
    kc.sample(path)
    for name in ("orders-0", "orders-1", "payments-0", "customers-0", "__consumer_offsets-0", "__transaction_state-0"):
        shutil.rmtree(path / name, ignore_errors=True)
    partition = path / "orders-2"
    all_files(partition)
    checkpoints(path, start, end)
    (partition / f"{end:020d}.log").touch()
    (partition / "leader-epoch-checkpoint").write_bytes(encode_leader_epochs([LeaderEpoch(0, start)]))
    assert kc.log.LogDirectory(path).verify().clean
    assert kc.log.LogDirectory(path).topic("orders").count() == 0
    (partition / f"{end:020d}.log").unlink()  # no record is lost with it
    assert kc.log.LogDirectory(path).verify().ok
    assert kc.log.LogDirectory(path).topic("orders").count() == 0


def test_partitions_that_a_broker_sets_aside_are_not_missing(tmp_path):
    path = tmp_path / "logs"
    kc.sample(path)
    os.rename(path / "orders-2", path / f"orders-2.{'a' * 32}-delete")
    assert kc.log.LogDirectory(path).verify().clean
    assert kc.log.LogDirectory(path).topic("orders").count() == RECORDS - LOST


def test_topics_that_are_not_there(tmp_path):
    """It may be a copy of some topics, with the checkpoints of all: a note."""
    path = tmp_path / "logs"
    kc.sample(path)
    shutil.rmtree(path / "payments-0")
    report = kc.log.LogDirectory(path).verify()
    assert report.clean
    (found,) = [f for f in report.findings if f.kind == "absent"]
    assert (found.level, "payments-0 had records" in found.text) == ("note", True)


@pytest.fixture
def moved(tmp_path):
    """Two directories of a broker, and a partition that was moved by hand from the first to the second."""
    first, second = tmp_path / "first", tmp_path / "second"
    kc.sample(first)
    second.mkdir()
    properties = (first / "meta.properties").read_text()
    (second / "meta.properties").write_text(properties)
    (first / "orders-2").rename(second / "orders-2")
    return first, second


def test_a_partition_that_was_moved_is_not_lost(moved, kafkacodec):
    assert kafkacodec("verify", *moved)[0] == 0
    rows = sum(p.count() for p in kc.log.discover(moved) if (p.topic, p.partition) == ("orders", 2))
    code, _, err = kafkacodec("dump", *moved, "--topic", "orders", "--partition", "2")
    assert (rows, code, err) == (LOST, 0, "")
    first, _ = moved
    assert kafkacodec("verify", first)[0] == 1


@pytest.mark.parametrize("reason", ["another broker", "a shorter log"])
def test_a_partition_is_lost_if_the_other_one_does_not_make_up_for_it(moved, kafkacodec, reason):
    _, second = moved
    if reason == "another broker":
        properties = second / "meta.properties"
        properties.write_text(properties.read_text().replace("node.id=", "node.id=1"))
    else:
        newest = max((second / "orders-2").glob("*.log"))
        for file in newest.parent.glob(f"{newest.stem}.*"):
            file.unlink()
    code, out, _ = kafkacodec("verify", *moved)
    assert code == 1
    assert f"gap of {LOST} offsets from 0 on: there is no segment, but the recovery point is {LOST}" in out
