"""What a broker finds in a directory that it, or Apache Kafka, has left, and what it does where it cannot use it."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import client, errors, messages
from kafkacodec.log import LogWriter, read_cluster_metadata
from kafkacodec.log.growing.directory import GrowingDirectory
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.refused import DirectoryRefused
from kafkacodec.messages.stored import encode_metadata_record
from tests.broker_wire import wire_to

DIRECTORY = "AAAAAAAAAAAAAAAAAAAAEQ"


def stored(records: list[Any], offset: int) -> list[Any]:
    return [(offset + i, 5, 0, None, encode_metadata_record(r, r.valid_versions[0]), []) for i, r in enumerate(records)]


def left(path: Path, *records: Any, start: int = 0, snapshot: list[Any] | None = None, name: str | None = None) -> None:
    """A directory of Kafka's node 7: the records of its metadata log from an offset on, and a snapshot up to there."""
    path.mkdir(exist_ok=True)
    text = f"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id=7\ndirectory.id={DIRECTORY}\n"
    (path / "meta.properties").write_text(text)
    if records:
        with LogWriter(path, "__cluster_metadata", 0, start_offset=start, topic_id=uuid.UUID(int=1)) as writer:
            writer.write(stored(list(records), start))
    if snapshot is not None:
        (path / "__cluster_metadata-0").mkdir(exist_ok=True)
        target = path / "__cluster_metadata-0" / (name or f"{start:020}-0000000001.checkpoint")
        target.write_bytes(kc.encode(stored(snapshot, 0)))


def feature(name: str, level: int) -> Any:
    return messages.FeatureLevelRecord(name=name, feature_level=level)


def topic(name: str, number: int) -> list[Any]:
    found = uuid.UUID(int=number)
    part: Any = messages.PartitionRecord(partition_id=0, topic_id=found, leader=-1, leader_epoch=3)
    part.replicas, part.isr = [7], []
    return [messages.TopicRecord(name=name, topic_id=found), part]


def producer_id(kafka: kc.broker.Broker) -> int:
    with wire_to(kafka) as wire:
        found: Any = wire.ask("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000)
        return int(found.producer_id)


def test_no_producer_id_is_given_out_twice(tmp_path: Path) -> None:
    given = []
    for _ in range(3):
        with kc.broker.serve(tmp_path) as kafka:
            given += [producer_id(kafka), producer_id(kafka)]
    assert len(set(given)) == 6


def test_topics_of_a_snapshot_and_of_the_log_after_it(tmp_path: Path) -> None:
    snapshot = [feature("metadata.version", 21), *topic("old", 1)]
    left(tmp_path, *topic("new", 2), start=40, snapshot=snapshot)
    with kc.broker.serve(tmp_path) as kafka:
        kafka.write("old", [(None, b"1")])
        kafka.write("new", [(None, b"2")])
        with wire_to(kafka) as wire:
            found: Any = wire.ask("Metadata", 9, topics=None)
        assert [(row.name, row.partitions[0].leader_epoch) for row in found.topics] == [("old", 4), ("new", 4)]
        assert {row.partitions[0].leader_id for row in found.topics} == {7}
    with kc.broker.serve(tmp_path) as kafka:
        assert [kafka.records(name)["value"].tolist() for name in ("old", "new")] == [[b"1"], [b"2"]]
    metadata = read_cluster_metadata(tmp_path)
    assert metadata.topics["old"]["partitions"][0]["leader"] == 7
    assert metadata.features == {"metadata.version": 21}  # whoever made the directory may open it again


def test_a_log_without_the_snapshot_before_it_is_refused(tmp_path: Path) -> None:
    left(tmp_path, *topic("new", 2), start=40)
    with pytest.raises(DirectoryRefused, match="begins at offset 40, and there is no snapshot"):
        kc.broker.serve(tmp_path)
    left(tmp_path, start=40, snapshot=[])
    kc.broker.serve(tmp_path).stop()


def test_an_aborted_transaction_of_the_metadata_does_not_count(tmp_path: Path) -> None:
    begin, abort = messages.BeginTransactionRecord(name="x"), messages.AbortTransactionRecord(reason="y")
    end = messages.EndTransactionRecord()
    left(tmp_path, *topic("a", 1), begin, *topic("b", 2), abort, begin, *topic("c", 3), end)
    with kc.broker.serve(tmp_path) as kafka, wire_to(kafka) as wire:
        found: Any = wire.ask("Metadata", 9, topics=None)
        assert [row.name for row in found.topics] == ["a", "c"]


@pytest.mark.parametrize("name", ["../bootstrap.checkpoint", "00000000000000000000-0000000000.checkpoint"])
def test_a_directory_that_was_only_formatted_keeps_its_features(tmp_path: Path, name: str) -> None:
    left(tmp_path, snapshot=[feature("metadata.version", 33), feature("group.version", 1)], name=name)
    for _ in range(2):
        kc.broker.serve(tmp_path).stop()
        assert read_cluster_metadata(tmp_path).features == {"metadata.version": 33, "group.version": 1}


def test_a_broker_that_stops_in_good_order_says_so_to_the_next(tmp_path: Path) -> None:
    with kc.broker.serve(tmp_path, topics=["t"]):
        assert not read_cluster_metadata(tmp_path).brokers[1]["fenced"]
    found = read_cluster_metadata(tmp_path).brokers[1]
    assert found["fenced"]
    marker = (tmp_path / ".kafka_cleanshutdown").read_text()
    assert marker == f'{{"version":0,"brokerEpoch":{found["epoch"]}}}'
    with kc.broker.serve(tmp_path):
        assert not read_cluster_metadata(tmp_path).brokers[1]["fenced"]


def produced(kafka: kc.broker.Broker, topic: str) -> int:
    data = {"name": topic, "partition_data": [{"index": 0, "records": kc.encode([(None, b"x")])}]}
    with wire_to(kafka) as wire:
        answer: Any = wire.ask("Produce", 9, topic_data=[data], acks=-1, timeout_ms=9000)
        return int(answer.responses[0].partition_responses[0].error_code)


def asked(kafka: kc.broker.Broker, topic: str) -> list[int]:
    """The errors of requests that read a partition."""
    with wire_to(kafka) as wire:
        row: dict[str, Any] = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        fetch: Any = wire.ask(
            "Fetch", 11, topics=[{"topic": topic, "partitions": [row]}], max_bytes=1000, max_wait_ms=0
        )
        row = {"partition_index": 0, "timestamp": -1}
        offsets: Any = wire.ask("ListOffsets", 5, topics=[{"name": topic, "partitions": [row]}])
    return [fetch.responses[0].partitions[0].error_code, offsets.topics[0].partitions[0].error_code]


def test_a_partition_that_cannot_be_opened_has_a_storage_error_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = GrowingDirectory.open

    def open_log(self: GrowingDirectory, topic: str, number: int, *more: Any, **options: Any) -> PartitionLog:
        if topic == "late" and self.has(topic, number):  # the disk fails between its creation and its use
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(self, topic, number, *more, **options)

    monkeypatch.setattr(GrowingDirectory, "open", open_log)
    with kc.broker.serve(tmp_path, topics=["other"]) as kafka:
        kafka.create_topic("late")
        assert produced(kafka, "late") == errors.KAFKA_STORAGE_ERROR
        assert asked(kafka, "late") == [errors.KAFKA_STORAGE_ERROR] * 2
        assert produced(kafka, "other") == 0
        monkeypatch.undo()
        assert produced(kafka, "late") == 0
        assert asked(kafka, "late") == [0, 0]


def test_a_broker_does_not_start_without_a_partition(tmp_path: Path) -> None:
    kc.broker.serve(tmp_path, topics=["there"]).stop()
    directory = tmp_path / "there-0"
    moved = directory.rename(tmp_path / "there-0.0-delete")
    directory.touch()
    with pytest.raises(OSError, match="there-0"):
        kc.broker.serve(tmp_path)
    directory.unlink()
    moved.rename(directory)
    kc.broker.serve(tmp_path).stop()


def test_directories_that_the_metadata_does_not_know_are_told_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with kc.broker.serve(tmp_path) as kafka:
        kafka.create_topic("known")
    kc.broker.serve(tmp_path).stop()
    assert caplog.text == ""
    for name in ("journal-0", "journal-1", "audit-0"):
        (tmp_path / name).mkdir()
    kc.broker.serve(tmp_path).stop()
    (record,) = caplog.records
    assert record.getMessage() == (
        f"audit, journal: not served, since the cluster's metadata in {tmp_path} has no such topic; a read-only broker "
        "serves them, and new topics of these names set the directories aside"
    )


def test_a_directory_of_a_topic_that_is_gone_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with kc.broker.serve(tmp_path) as kafka:
        (tmp_path / "t-0").mkdir()
        (tmp_path / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAEQ")
        kafka.create_topic("t")
        assert produced(kafka, "t") == 0
    (aside,) = tmp_path.glob("t-0.*-stray")
    assert f"set aside as {aside}, whose records are not served" in caplog.text
    assert kc.broker.serve(tmp_path).stop() is None


def test_damaged_records_are_those_of_a_partition(tmp_path: Path) -> None:
    with kc.broker.serve(tmp_path, topics={"t": 2}) as kafka:
        for partition in range(2):
            kafka.write("t", [(0, None, 0, None, b"value", [])], partition=partition)
        log = tmp_path / "t-1" / f"{0:020}.log"
        data = bytearray(log.read_bytes())
        data[-2] ^= 1
        log.write_bytes(data)
        with pytest.raises(kc.CrcMismatch, match=r"^t-1: "):
            kafka.records("t")


def test_topics_are_names() -> None:
    with pytest.raises(TypeError, match=r"^topics must be names, or partitions by name as in {'orders': 3}, not \('a'"):
        kc.broker.serve(topics=[("a", 3)])  # type: ignore[list-item]


def test_a_damaged_partition_is_not_taken_for_that_of_another_topic(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker does not start, as Kafka's does not; it had set all of the partition aside and begun an empty one."""
    with kc.broker.serve(tmp_path, topics=["t"]) as kafka:
        for _ in range(3):
            kafka.write("t", [(0, None, 0, None, b"value", [])])
    log = tmp_path / "t-0" / f"{0:020}.log"
    whole = log.read_bytes()
    magic = len(whole) // 3 + 16
    log.write_bytes(whole[:magic] + b"\x09" + whole[magic + 1 :])
    with pytest.raises(OSError, match=r"no batch begins here .* serve it read-only, or a copy .* kafkacodec recover"):
        kc.broker.serve(tmp_path)
    assert list(tmp_path.glob("t-0*")) == [tmp_path / "t-0"]
    with kc.broker.serve(tmp_path, read_only=True) as kafka:
        assert len(kafka.records("t")) == 1
    size = len(whole) // 3
    rest = f"t-0: {2 * size} bytes from byte {size} of {log} on are not served: no complete batch begins there"
    assert rest in caplog.messages
    caplog.clear()
    log.write_bytes(whole + bytes(100))
    with kc.broker.serve(tmp_path, read_only=True) as kafka:
        assert len(kafka.records("t")) == 3
    assert caplog.messages == []
    log.write_bytes(whole)
    with kc.broker.serve(tmp_path) as kafka:
        assert len(kafka.records("t")) == 3


def test_a_start_that_fails_leaves_a_clean_directory_clean(tmp_path: Path) -> None:
    marker = tmp_path / ".kafka_cleanshutdown"
    with kc.broker.serve(tmp_path, topics=["t"]) as broker:
        broker.write("t", [(None, b"a")])
    with kc.broker.serve() as other, pytest.raises(OSError, match="in use"):
        kc.broker.serve(tmp_path, listen=other.listeners[0])
    assert marker.exists()
    segment = tmp_path / "t-0" / "00000000000000000000.log"
    kept = segment.rename(tmp_path / "t-0" / "kept")
    segment.mkdir()
    with pytest.raises(OSError, match="directory"):
        kc.broker.serve(tmp_path)
    assert marker.exists()
    segment.rmdir()
    kept.rename(segment)
    with kc.broker.serve(tmp_path) as broker:
        assert broker.records("t")["value"].tolist() == [b"a"]


def test_levels_of_features_are_raised_and_stay_so(tmp_path: Path) -> None:
    def change(server: str, name: str, level: int, kind: str = "upgrade", **options: Any) -> None:
        with client.Admin(server) as admin:
            admin.update_features({name: client.FeatureUpdate(level, kind)}, **options)

    with kc.broker.serve(tmp_path) as broker:
        server = broker.bootstrap_servers
        change(server, "share.version", 2, validate_only=True)
        change(server, "streams.version", 1)
        for name, level, kind, reason in (
            ("streams.version", 0, "safe_downgrade", "this broker can only raise levels"),
            ("kraft.version", 1, "upgrade", "the quorum cannot be changed"),
            ("share.version", 3, "upgrade", "share.version has the levels 0 to 2"),
        ):
            with pytest.raises(kc.KafkaCodecError, match=reason):
                change(server, name, level, kind)
    with kc.broker.serve(tmp_path) as broker, client.Admin(broker.bootstrap_servers) as admin:
        found = admin.describe_features()
        assert (found["streams.version"].finalized, found["share.version"].finalized) == (1, 1)
