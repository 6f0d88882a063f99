"""A data directory of growing logs: its lock, identity, checkpoints, and partitions that come and go."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log import LogDirectory, read_checkpoint, read_properties, read_topic_id
from kafkacodec.log.growing.directory import DirectoryRefused, GrowingDirectory
from kafkacodec.log.growing.frozen_directory import FrozenDirectory
from kafkacodec.log.growing.settings import LogConfig

ID = uuid.UUID("7653ed26-a3b5-49bf-96f8-eca6f5499ce7")


def batch(count: int = 10) -> bytearray:
    return bytearray(kc.encode([(b"key", b"value")] * count))


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path))


def test_what_a_directory_has_that_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "data"
    logs = GrowingDirectory(path, cluster_id="MkU3OEVBNTcwNTJENDM2Qk", node_id=3)
    assert not logs.was_clean
    one = logs.open("orders", 0, topic_id=ID)
    logs.open("orders", 1, topic_id=ID)
    one.append(batch(), leader_epoch=0)
    one.delete_before(4)
    logs.close(broker_epoch=17)
    assert names(path) == [
        ".kafka_cleanshutdown", ".lock", "log-start-offset-checkpoint", "meta.properties", "orders-0", "orders-1",
        "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    ]  # fmt: skip
    assert (path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":17}'
    assert read_checkpoint(path / "recovery-point-offset-checkpoint") == {("orders", 0): 10, ("orders", 1): 0}
    assert read_checkpoint(path / "replication-offset-checkpoint") == {("orders", 0): 10, ("orders", 1): 0}
    assert read_checkpoint(path / "log-start-offset-checkpoint") == {("orders", 0): 4}
    # As Kafka writes it: 43 bytes, without a newline at the end.
    assert (path / "orders-0" / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: dlPtJqO1Sb-W-Oym9Umc5w"
    properties = read_properties(path / "meta.properties")
    assert properties.pop("directory.id") == logs.identity.directory_id
    assert properties == {"cluster.id": "MkU3OEVBNTcwNTJENDM2Qk", "node.id": "3", "version": "1"}
    assert names(path / "orders-1") == [f"{0:020d}{s}" for s in (".index", ".log", ".timeindex")] + [
        "partition.metadata"
    ]
    assert LogDirectory(path).verify().ok

    again = GrowingDirectory(path)
    assert again.was_clean
    assert again.identity == logs.identity
    assert [(p.topic, p.partition, p.topic_id) for p in again.partitions()] == [("orders", 0, ID), ("orders", 1, ID)]
    log = again.open("orders", 0)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (4, 10, 10)
    assert not (path / ".kafka_cleanshutdown").exists()
    again.abandon()
    assert not GrowingDirectory(path).was_clean


def test_a_directory_that_is_in_use(tmp_path: Path) -> None:
    logs = GrowingDirectory(tmp_path)
    with pytest.raises(DirectoryRefused, match="has locked the log directory, as a running broker does: stop it"):
        GrowingDirectory(tmp_path)
    program = (
        "import sys; from kafkacodec.log.growing.directory import *\n"
        "try: GrowingDirectory(sys.argv[1])\n"
        "except DirectoryRefused as error: print(error.strerror)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"process {os.getpid()} (" in output
    logs.close()
    GrowingDirectory(tmp_path).close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no version: restore it"),
        (
            "version=0\nbroker.id=1\n",
            "version 0, of a cluster with ZooKeeper, instead of 1: it can only be served read",
        ),
        ("version=2\nnode.id=1\ncluster.id=mine\n", "version 2 instead of 1: the directory is of a release of Kafka"),
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        ("version=1\nnode.id=1\ncluster.id=other\n", "the directory is of cluster other, not mine"),
        ("version=1\nnode.id=2\ncluster.id=mine\n", "the directory is of node 2, not 1"),
        ("version=1\nnode.id=x\ncluster.id=mine\n", "node.id is missing or not a number"),
        ("version=1\nwhatever\n", "neither a comment nor key=value"),
    ],
)
def test_a_directory_of_others(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(DirectoryRefused, match=message) as refused:
        GrowingDirectory(tmp_path, cluster_id="mine", node_id=1)
    assert refused.value.filename == str(tmp_path / "meta.properties")
    assert (tmp_path / "meta.properties").read_text() == text
    assert os.listdir(tmp_path) == ["meta.properties"]
    # Nothing has locked it.
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=mine\n")
    GrowingDirectory(tmp_path, cluster_id="mine", node_id=1).close()


def test_a_cluster_without_its_ids(tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    with pytest.raises(DirectoryRefused, match="is missing, but the directory has the metadata of a cluster"):
        GrowingDirectory(tmp_path)
    assert os.listdir(tmp_path) == ["__cluster_metadata-0"]


def test_a_directory_stays_clean_until_a_log_is_opened(tmp_path: Path) -> None:
    logs = GrowingDirectory(tmp_path)
    logs.open("t", 0)
    logs.close()
    marker = tmp_path / ".kafka_cleanshutdown"
    written = marker.stat().st_mtime_ns
    logs = GrowingDirectory(tmp_path)
    logs.give_back()
    assert marker.stat().st_mtime_ns == written
    logs = GrowingDirectory(tmp_path)
    logs.open("t", 0)
    assert not marker.exists()
    logs.give_back()
    assert marker.exists()
    logs = GrowingDirectory(tmp_path)
    logs.open("t", 0)
    logs.abandon()  # as a crash
    logs = GrowingDirectory(tmp_path)
    logs.give_back()
    assert not marker.exists()


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_directory_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    opens = os.open

    def refuse(path: str, *options: int) -> int:
        if os.fspath(path).endswith(".lock"):
            raise OSError(code, os.strerror(code), path)
        return opens(path, *options)

    monkeypatch.setattr("kafkacodec.log.files.locks.os.open", refuse)
    with pytest.raises(DirectoryRefused, match=r"a broker needs to write into its directory, unless .* read-only"):
        GrowingDirectory(tmp_path)


@pytest.mark.parametrize("name", ["00000000000000000042.log", "00000000000000000000.kafka", "partition.metadata"])
def test_the_directory_of_a_partition_is_no_data_directory(tmp_path: Path, name: str) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / name).touch()
    for opens in (GrowingDirectory, lambda path: FrozenDirectory([str(path)])):
        with pytest.raises(DirectoryRefused, match=f"is the directory of a partition: give its parent, {tmp_path}"):
            opens(directory)
    assert os.listdir(directory) == [name]


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").touch()
    for opens in (GrowingDirectory, lambda path: FrozenDirectory([str(path)])):
        with pytest.raises(NotADirectoryError, match="is a file, not a directory"):
            opens(tmp_path / "lines.txt")


def test_directories_that_are_no_partitions(tmp_path: Path) -> None:
    (tmp_path / "whatever").mkdir()
    with pytest.raises(DirectoryRefused, match="not the directory of a partition: choose another data directory"):
        GrowingDirectory(tmp_path)
    assert os.listdir(tmp_path) == ["whatever"]
    (tmp_path / "whatever").rename(tmp_path / f"t-0.{'0' * 32}-stray")
    (tmp_path / "a-file").touch()
    logs = GrowingDirectory(tmp_path)
    assert logs.partitions() == []
    logs.close()
    assert (tmp_path / f"t-0.{'0' * 32}-stray").is_dir()


@pytest.mark.parametrize("name", ["inner", "inner-0"])
def test_data_directories_in_one_another(tmp_path: Path, name: str) -> None:
    """Apache Kafka 4.4.0 does not start with a directory `inner` in its own, and renames `inner-0` to a stray one."""
    outer, inner = tmp_path / "outer", tmp_path / "outer" / name
    GrowingDirectory(outer).close()
    for path in (inner, inner / "deeper"):
        with pytest.raises(DirectoryRefused, match=f"is inside of the data directory {outer}, whose broker would not"):
            GrowingDirectory(path)
    assert not inner.exists()
    GrowingDirectory(tmp_path / name).close()
    (tmp_path / name).rename(inner)
    with pytest.raises(DirectoryRefused) as refused:
        GrowingDirectory(outer)
    assert refused.value.filename == str(inner)
    assert (inner / "meta.properties").exists()


def test_a_partition_that_is_deleted_and_made_again(tmp_path: Path) -> None:
    now = 1_700_000_000_000
    logs = GrowingDirectory(tmp_path, clock=lambda: now)
    log = logs.open("orders", 0, topic_id=ID)
    log.append(batch(), leader_epoch=0)
    read = log.read(0, 1000)
    logs.delete("orders", [0], 60_000)
    assert logs.partitions() == []
    (aside,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert aside.name.startswith("orders-0.")
    assert aside.name.endswith("-delete")
    assert len(aside.name) == len("orders-0.") + 32 + len("-delete")
    assert kc.decode(read.read())["offset"].tolist() == list(range(10))
    assert read_checkpoint(tmp_path / "recovery-point-offset-checkpoint") == {}
    other = uuid.uuid4()
    again = logs.open("orders", 0, topic_id=other)
    assert again.end_offset == 0
    assert read_topic_id(tmp_path / "orders-0" / "partition.metadata") == other
    del logs.logs["orders", 0]
    with pytest.raises(ValueError, match="the topic's id is"):
        logs.open("orders", 0, topic_id=ID)
    now += 59_999
    logs.purge()
    assert aside.is_dir()
    now += 1
    logs.purge()
    assert not aside.exists()
    with pytest.raises(KeyError):
        logs.delete("orders", [7], 60_000)
    logs.close()


def test_what_was_being_deleted_goes_after_a_restart(tmp_path: Path) -> None:
    logs = GrowingDirectory(tmp_path)
    logs.open("t" * 249, 0)
    logs.delete("t" * 249, [0], 60_000)
    assert max(len(name) for name in names(tmp_path)) == 255
    logs.close()
    again = GrowingDirectory(tmp_path)
    again.purge()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    again.close()


@pytest.mark.parametrize("topic", ["..", "a/b", "", "x" * 250, "a b"])
def test_names_that_lead_out_of_the_directory(tmp_path: Path, topic: str) -> None:
    logs = GrowingDirectory(tmp_path / "data")
    with pytest.raises(ValueError, match="invalid topic name"):
        logs.open(topic, 0)
    logs.close()
    assert names(tmp_path) == ["data"]


def test_the_configuration_of_an_open_log_is_replaced(tmp_path: Path) -> None:
    logs = GrowingDirectory(tmp_path)
    log = logs.open("orders", 0, LogConfig(segment_bytes=100))
    assert logs.open("orders", 0) is log
    assert log.config.segment_bytes == 100
    logs.open("orders", 0, LogConfig(segment_bytes=200))
    assert log.config.segment_bytes == 200
    logs.close()


def test_a_directory_after_a_crash(tmp_path: Path) -> None:
    logs = GrowingDirectory(tmp_path)
    for partition in range(3):
        logs.open("orders", partition).append(batch(), leader_epoch=0)
    logs.flush()
    logs.open("orders", 1).append(batch(), leader_epoch=0)
    logs.abandon()
    path = tmp_path / "orders-1" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    again = GrowingDirectory(tmp_path)
    log = again.open("orders", 1)
    assert (log.recovery_point, log.end_offset) == (10, 10)
    assert log.loss is not None
    # The others were not recovered, and are not said to be in order.
    again.close()
    assert not GrowingDirectory(tmp_path).was_clean
