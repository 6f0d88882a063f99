"""One file that the system does not read: it is damage, and the rest is read."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

import kafkacodec as kc

RECORDS = {"orders": 600, "customers": 48}
FIRST, LAST = 78, 155  # the offsets of the last segment of orders-2
NAME = f"{FIRST:020d}.log"


def link(segment: Path, _: pytest.MonkeyPatch) -> str:
    segment.unlink()
    segment.symlink_to("/nonexistent/disk")
    return "the symbolic link leads to no file"


def directory(segment: Path, _: pytest.MonkeyPatch) -> str:
    segment.unlink()
    segment.mkdir()
    return "Is a directory"


def pipe(segment: Path, _: pytest.MonkeyPatch) -> str:
    segment.unlink()
    os.mkfifo(segment)
    return "not a regular file"


def forbid(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """No permission for it, or for what is in it, also for root."""
    for name in ("open", "scandir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name), str(path)))
    return "Permission denied"


def refusing(call, path):
    def refuse(name=".", *arguments, **options):
        if str(name).startswith(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return call(name, *arguments, **options)

    return refuse


@pytest.fixture(params=[link, directory, pipe, forbid], ids=lambda make: make.__name__)
def logs(request, tmp_path, monkeypatch):
    path = tmp_path / "logs"
    kc.sample(path)
    kc.sample(tmp_path / "whole")
    return path, request.param(path / "orders-2" / NAME, monkeypatch)


def test_readers(logs):
    path, reason = logs
    topic = kc.log.LogDirectory(path).topic("orders")
    left = RECORDS["orders"] - (LAST - FIRST)
    for read in (topic.count, topic.to_arrow):
        with pytest.raises(OSError, match=reason) as e:
            read()
        assert e.value.filename == str(path / "orders-2" / NAME)
    for options in ({}, {"isolation_level": "read_committed"}):
        problems: list[kc.Problem] = []
        assert len(topic.to_arrow(on_error="skip", problems=problems, **options)) == left
        (text,) = {str(problem.exception) for problem in problems}
        assert text == f"{path / 'orders-2' / NAME}: the file cannot be read: {reason}"
    assert topic.count(on_error="skip", problems=[]) == left
    assert len(kc.log.LogDirectory(path).select("customers").to_arrow()) == RECORDS["customers"]


def test_reports(logs, tmp_path):
    path, reason = logs
    text = f"the file cannot be read: {reason}"
    report = kc.log.LogDirectory(path).verify()
    assert [(f.kind, f.path, f.text) for f in report.findings if f.level == "error"] == [
        ("unreadable", str(path / "orders-2" / NAME), text)
    ]
    damaged = [s for s in kc.log.statistics(path) if s.damaged]
    assert [(s.topic, s.partition, [p.reason for p in s.problems]) for s in damaged] == [("orders", 2, [text])]
    saved = kc.log.recover(path, tmp_path / "saved")
    assert saved.counts["error", "left-out"] == 1
    counts = [kc.log.LogDirectory(tmp_path / "saved").topic(name).count() for name in RECORDS]
    assert counts == [RECORDS["orders"] - (LAST - FIRST), RECORDS["customers"]]


def test_commands(logs, tmp_path, kafkacodec):
    path, reason = logs
    text = f"{path / 'orders-2' / NAME}: "
    code, out, _ = kafkacodec("verify", path)
    assert (code, text in out, "7 intact, 1 damaged" in out) == (1, True, True)
    code, out, _ = kafkacodec("diff", tmp_path / "whole", path)
    assert (code, text in out, "8 partitions, 7 equal" in out) == (1, True, True)
    code, _, err = kafkacodec("topics", path)
    assert (code, text in err, "1 of 8 partitions damaged" in err) == (1, True, True)
    for options in (("-o", tmp_path / "o.parquet"), ("-o", tmp_path / "out", "--partition-by", "topic")):
        code, _, err = kafkacodec("convert", path, "--topic", "orders", *options)
        assert (code, f"error: {text}{reason}" in err) == (1, True)
        code, _, err = kafkacodec("convert", path, "--topic", "orders", *options, "--on-error", "skip")
        assert (code, text in err, reason in err, "523 records" in err) == (0, True, True, True)


@pytest.mark.parametrize("command", [("dump",), ("convert", "-o", "{}/o.csv"), ("stats",)])
def test_errors_say_how_to_read_the_others(logs, tmp_path, kafkacodec, command):
    path, reason = logs
    name, *options = (part.format(tmp_path) for part in command)
    code, _, err = kafkacodec(name, path, *options)
    assert code == 1
    assert (
        err.splitlines()[-1]
        == f"kafkacodec: error: {path / 'orders-2' / NAME}: {reason}; --on-error skip reads what follows"
    )


def test_commands_that_skip_it(logs, tmp_path, kafkacodec):
    path, reason = logs
    code, _, err = kafkacodec("stats", path, "--top", 0, "--on-error", "skip")
    assert (code, err.count(reason)) == (0, 1)
    code, out, err = kafkacodec("dump", path, "--topic", "orders", "--tail", 1, "--on-error", "skip", "--json")
    assert (code, err.count(reason)) == (0, 1)
    last = {row["partition"]: row["offset"] for row in map(json.loads, out.splitlines())}
    assert last == {0: 281, 1: 162, 2: FIRST - 1}
    code, _, err = kafkacodec("dump", path, "--topic", "orders", "--tail", 1)
    assert (code, f"error: {path / 'orders-2' / NAME}: {reason}" in err) == (1, True)
    assert kc.log.codec_trial(kc.log.Partition(path / "orders-2")).unreadable_bytes >= 0


def test_an_export_of_a_log_of_which_several_files_cannot_be_read(tmp_path, monkeypatch, kafkacodec):
    path = Path(kc.sample(tmp_path / "logs").path)
    for offset in (77, 147):
        link(path / "orders-1" / f"{offset:020d}.log", monkeypatch)
    options = ("--topic", "orders", "-o", tmp_path / "out", "--partition-by", "topic")
    code, _, err = kafkacodec("convert", path, *options)
    assert (code, "the symbolic link leads to no file" in err) == (1, True)
    code, _, err = kafkacodec("convert", path, *options, "--on-error", "skip")
    assert (code, f"{RECORDS['orders'] - 86} records of 3 partitions" in err) == (0, True), err
    code, _, err = kafkacodec("convert", path, *options, "--on-error", "skip")
    assert (code, f"{tmp_path / 'out'}: nothing new" in err) == (0, True), err


def test_lag_of_the_others(logs, kafkacodec):
    path, reason = logs
    text = f"{path / 'orders-2' / NAME}: the file cannot be read: {reason}"
    code, out, err = kafkacodec("lag", path)
    assert (code, out.splitlines()[-1]) == (1, "2 groups, 6 partitions, lag 241")  # the end is the high watermark
    assert err == f"kafkacodec: orders-2: {text}\nkafkacodec: error: 1 of 3 logs cannot be read wholly\n"
    (path / "replication-offset-checkpoint").unlink()
    code, out, err = kafkacodec("lag", path, "--json")
    lines = {(n["group"], n["partition"]): n for n in map(json.loads, out.splitlines())}
    assert (code, err.count(text)) == (1, 1)
    assert [lines["billing", n]["lag"] for n in range(3)] == [113, 66, None]
    assert [lines["billing", n]["problem"] for n in range(3)] == [None, None, text]
    assert lines["billing", 2]["notes"] == ["its log cannot be read wholly"]
    code, out, err = kafkacodec("lag", path, "--on-error", "skip")
    assert (code, err) == (0, f"kafkacodec: warning: skipped: {text}\n")
    assert out.splitlines()[-1] == "2 groups, 6 partitions, lag 179, without 2 partitions of unknown end"
    with pytest.raises(OSError, match=reason):
        kc.log.lag(path)


def test_lag_with_another_copy(logs, tmp_path, kafkacodec):
    path, _ = logs
    code, out, err = kafkacodec("lag", path, tmp_path / "whole")
    assert (code, out.splitlines()[-1]) == (1, "2 groups, 6 partitions, lag 241")
    assert f"{path / 'orders-2' / NAME}: the file cannot be read" in err


def test_lag_from_a_broker_that_serves_the_others(tmp_path, monkeypatch, kafkacodec):
    path = Path(kc.sample(tmp_path / "logs").path)
    link(path / "orders-2" / NAME, monkeypatch)
    with kc.broker.serve(path, read_only=True) as broker:
        code, out, err = kafkacodec("lag", "-b", broker.bootstrap_servers, "-X", "default.api.timeout.ms=2000")
    last = out.splitlines()[-1]
    assert (code, last) == (1, "2 groups, 6 partitions, lag 179, without 2 partitions of unknown end")
    assert "kafkacodec: orders-2: ListOffsets" in err
    assert "kafkacodec: error: 1 of 3 logs cannot be read wholly\n" in err


def test_a_directory_that_cannot_be_listed(tmp_path, monkeypatch):
    path = tmp_path / "logs"
    kc.sample(path)
    forbid(path / "orders-2", monkeypatch)
    log = kc.log.LogDirectory(path)
    problems: list[kc.Problem] = []
    assert log.topic("orders").count(on_error="skip", problems=problems) == RECORDS["orders"] - LAST
    assert {"Permission denied" in str(problem.exception) for problem in problems} == {True}
    errors = [f.kind for f in log.verify().findings if f.level == "error"]
    assert errors == ["unreadable"]
    assert not kc.log.recover(path, tmp_path / "saved").ok
    assert kc.log.LogDirectory(tmp_path / "saved").topic("orders").count() == RECORDS["orders"] - LAST


def test_bench_measures_the_others(logs, kafkacodec):
    path, reason = logs
    code, out, err = kafkacodec("bench", path, "--seconds", "0", "--json")
    assert code == 1
    assert len(out.splitlines()) == 5
    assert f"{path / 'orders-2' / NAME}: " in err
    assert reason in err
    assert err.splitlines()[-1].endswith("error: without 1 file or directory that cannot be read")


def test_bench_of_what_cannot_be_read(tmp_path, kafkacodec, monkeypatch):
    kc.sample(tmp_path / "logs")
    forbid(tmp_path / "logs" / "orders-0", monkeypatch)
    code, out, err = kafkacodec("bench", tmp_path / "logs", "--topic", "orders", "--partition", "0", "--seconds", "0")
    assert (code, out) == (1, "")
    assert err.endswith("1 file or directory cannot be read\n")
