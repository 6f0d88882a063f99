"""Inspection of snapshots, checkpoints and metadata: no findings for real brokers, one for every kind of damage."""

from __future__ import annotations

import json
import shutil

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, run
from kafkacodec.log.formats.checkpoints import encode_checkpoint, encode_leader_epochs
from tests.corpus import ROOT, log_directories

SOURCE = ROOT / "logs" / "kraft-4.1.0"
OFFSET_CHECKPOINTS = [
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
]
END = 1052  # of txn-0: a broker took its last producer snapshot there when it was shut down


@pytest.fixture
def directory(tmp_path):
    """A data directory with one partition and the checkpoints of a real broker."""
    target = tmp_path / "data"
    target.mkdir()
    shutil.copytree(SOURCE / "txn-0", target / "txn-0", copy_function=shutil.copyfile)
    (target / "txn-0").chmod(0o755)
    for name in OFFSET_CHECKPOINTS:
        shutil.copyfile(SOURCE / name, target / name)
    return target


def findings(directory):
    report = kc.log.LogDirectory(directory).verify()
    assert report.ok  # no record is lost by such files
    return [(f.level, f.kind, f.path, f.text) for f in report.findings if f.kind != "absent"]


@pytest.mark.parametrize("directory", log_directories(), ids=lambda path: path.name)
def test_real_directories_are_in_order(directory):
    report = kc.log.LogDirectory(directory).verify_checkpoints()
    # They are copies of some topics only, with the checkpoints of all.
    assert (report.clean, {f.kind for f in report.findings} - {"absent"}) == (True, set())


def test_there_is_something_to_hold_against_the_logs(directory):
    assert findings(directory) == []
    assert kc.log.LogDirectory(directory).partition("txn", 0).end_offset() == END
    assert kc.log.LogDirectory(directory).high_watermarks["txn", 0] == END


@pytest.mark.parametrize("name", OFFSET_CHECKPOINTS)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"0\n5\ntxn 0 3\n", "expected 5 entries, found 1"),
        (b"0\n1\ntxn 0\n", "expected 3 fields, found 2"),
        (b"0\n1\ntxn zero 3\n", "invalid number"),
        (b"7\n0\n", "version 7"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
    ],
)
def test_damaged_offset_checkpoints(directory, name, content, reason):
    (directory / name).write_bytes(content)
    ((level, kind, path, text),) = findings(directory)
    assert (level, kind, path) == ("warning", "checkpoint", str(directory / name))
    assert reason in text


@pytest.mark.parametrize(
    ("name", "kind", "content", "reason"),
    [
        ("leader-epoch-checkpoint", "leader-epoch", b"0\n2\n3 10\n2 20\n", "line 4: leader epochs must increase"),
        ("leader-epoch-checkpoint", "leader-epoch", b"0\n2\n3 10\n", "expected 2 entries, found 1"),
        ("partition.metadata", "partition-metadata", b"version: 0\ntopic_id: no!\n", "invalid topic id"),
        ("partition.metadata", "partition-metadata", b"version: 3\ntopic_id: AAAA\n", "version 3"),
        ("00000000000000001052.snapshot", "producer-snapshot", bytes(4), "at least 10 bytes"),
        ("00000000000000001052.snapshot", "producer-snapshot", bytes(10), "version 0"),
        (
            "00000000000000001052.snapshot",
            "producer-snapshot",
            b"\x00\x01" + bytes(8),
            "the checksum of the snapshot is wrong",
        ),
    ],
)
def test_damaged_files_of_a_partition(directory, name, kind, content, reason):
    path = directory / "txn-0" / name
    path.chmod(0o644)
    path.write_bytes(content)
    ((level, found, where, text),) = findings(directory)
    assert (level, found, where) == ("warning", kind, str(path))
    assert reason in text


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("replication-offset-checkpoint", "high watermark"),
        ("log-start-offset-checkpoint", "log start offset"),
        ("cleaner-offset-checkpoint", "cleaner"),
    ],
)
def test_offsets_past_the_end_of_the_log(directory, name, meaning):
    path = directory / name
    path.write_bytes(encode_checkpoint({("txn", 0): END, ("gone", 1): 1 << 40}))
    assert findings(directory) == []
    path.write_bytes(encode_checkpoint({("txn", 0): END + 1}))
    ((level, kind, where, text),) = findings(directory)
    assert (level, kind, where) == ("warning", "checkpoint", str(path))
    assert meaning in text
    assert f"txn-0 is {END + 1}, but the log ends at {END}" in text


def test_epochs_and_snapshots_past_the_end_of_the_log(directory):
    partition = directory / "txn-0"
    epochs = kc.log.read_leader_epochs(partition / "leader-epoch-checkpoint")
    path = partition / "leader-epoch-checkpoint"
    path.chmod(0o644)
    later = kc.log.LeaderEpoch(epochs[-1].epoch + 1, END)
    path.write_bytes(encode_leader_epochs([*epochs, later]))
    assert findings(directory) == []  # a leader that has written nothing yet
    path.write_bytes(encode_leader_epochs([*epochs, later._replace(start_offset=END + 5)]))
    ahead = partition / f"{END + 8:020d}.snapshot"
    shutil.copyfile(partition / f"{END:020d}.snapshot", ahead)
    later = partition / f"{3:020d}.snapshot"
    shutil.copyfile(partition / f"{END:020d}.snapshot", later)
    found = {(kind, where): text for _, kind, where, text in findings(directory)}
    assert found.keys() == {
        ("leader-epoch", str(path)),
        ("producer-snapshot", str(ahead)),
        ("producer-snapshot", str(later)),
    }
    assert f"begins at {END + 5}, but the log ends at {END}" in found["leader-epoch", str(path)]
    assert f"taken at offset {END + 8}" in found["producer-snapshot", str(ahead)]
    assert "last offset" in found["producer-snapshot", str(later)]


def test_a_single_segment_is_not_held_against_the_files_of_all(directory):
    (partition,) = kc.log.discover(directory / "txn-0" / "00000000000000000163.log")
    assert partition.verify().clean


def test_the_command(directory, capsys):
    broken = directory / "recovery-point-offset-checkpoint"
    broken.write_bytes(b"0\n1\n")
    assert run(["verify", str(directory)]) == DONE
    out = capsys.readouterr().out
    assert f"warning: {broken}: cannot be read: expected 1 entries, found 0" in out
    assert run(["verify", str(directory), "--strict"]) == BAD_INPUT
    assert "checkpoints failed verification" in capsys.readouterr().err
    assert run(["verify", str(directory), "--json"]) == DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["topic"], line["path"]) for line in lines] == [
        ("txn", str(directory / "txn-0")),
        (None, str(directory)),
    ]
    assert lines[1]["findings"][0]["path"] == str(broken)
    broken.unlink()
    assert run(["verify", str(directory), "--strict"]) == DONE
