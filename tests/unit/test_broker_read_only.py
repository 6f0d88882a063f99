"""Directories of dead brokers served read-only: every format that Kafka wrote, to clients, without a byte changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import errors
from kafkacodec.broker.kafka.frozen import REFUSED
from kafkacodec.client import Consumer
from kafkacodec.messages import APIS, keys
from tests.broker_wire import wire_to
from tests.patience import LATE, SOON

LOGS = Path(__file__).parents[1] / "data/kafka/logs"
BROKERS = sorted(path.name for path in LOGS.iterdir() if path.name not in ("truncated", "kraft-4.1.0-live"))
INTERNAL = ("__consumer_offsets", "__transaction_state", "__cluster_metadata")

_watched: list[tuple[str, list[str]]] = []


def _audit(event, arguments):
    """Notes what would change a watched directory."""
    if not _watched:
        return
    place, seen = _watched[-1]
    changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
    if event == "open":
        flags = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else 0
        changes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
    if changes and any(str(one).startswith(place) for one in arguments[:2]):
        seen.append(f"{event} {arguments[:2]}")


sys.addaudithook(_audit)


def tree(path):
    """Names, sizes, times and contents of everything in a directory."""
    found = {}
    for one in sorted(Path(path).rglob("*")):
        state = one.stat()
        digest = hashlib.sha256(one.read_bytes()).hexdigest() if one.is_file() else ""
        found[str(one)] = (state.st_size, state.st_mtime_ns, state.st_mode, digest)
    return found


@contextmanager
def served(path, **options):
    """A broker over a directory, which is the same afterwards."""
    before, seen = tree(path), []
    _watched.append((str(path), seen))
    try:
        with kc.broker.serve(path, read_only=True, **options) as broker:
            yield broker
    finally:
        _watched.pop()
    assert seen == []
    assert tree(path) == before


def partitions(path):
    names = [name for name in os.listdir(path) if (Path(path) / name).is_dir()]
    found = [kc.log.Partition(Path(path) / name) for name in names]
    return {(one.topic, one.partition): one for one in found if one.topic not in INTERNAL}


def rows(partition, **options):
    return [(record.offset, record.key, record.value) for chunk in partition.read(**options) for record in chunk]


@pytest.mark.parametrize("name", BROKERS)
def test_clients_read_what_a_dead_broker_left(name):
    known = partitions(LOGS / name)
    expected = {place: rows(partition) for place, partition in known.items()}
    left = sum(map(len, expected.values()))
    with served(LOGS / name) as broker:
        seen = {place: [] for place in known}
        topics = sorted({topic for topic, _ in known})
        options = {"auto_offset_reset": "earliest", "bootstrap_servers": broker.bootstrap_servers}
        with Consumer(*topics, group_id=None, **options) as consumer:
            while left > 0:
                for place, records in consumer.getmany(SOON).items():
                    seen[tuple(place)] += [(record.offset, record.key, record.value) for record in records]
                    left -= len(records)
        for topic in topics:
            committed = [
                row for (of, _), one in sorted(known.items()) if of == topic
                for row in rows(one, isolation_level="read_committed")
            ]  # fmt: skip
            found = broker.records(topic)
            assert list(zip(found["offset"].tolist(), found["key"], found["value"], strict=True)) == committed
    assert seen == expected


@pytest.mark.parametrize("name", BROKERS)
def test_offsets_times_and_epochs(name):
    with served(LOGS / name) as broker, wire_to(broker) as wire:
        for (topic, number), partition in partitions(LOGS / name).items():

            def ask(time, version=7, isolation=0, topic=topic, number=number):
                asked = [{"partition_index": number, "timestamp": time}]
                answer = wire.ask("ListOffsets", version, topics=[{"name": topic, "partitions": asked}],
                                  isolation_level=isolation)  # fmt: skip
                row = answer.topics[0].partitions[0]
                assert not row.error_code
                return row.offset, row.timestamp

            assert ask(-2)[0] == partition.start_offset()
            assert ask(-1)[0] == partition.end_offset()
            assert ask(-1, isolation=1)[0] == partition.last_stable_offset()
            times = [
                int(time.astype("datetime64[ms]").astype("int64"))
                for chunk in partition.read(columns=("timestamp",), include_control=True)
                for time in chunk["timestamp"] if str(time) != "NaT"
            ]  # fmt: skip
            if not times:
                assert ask(0) == ask(-3) == (-1, -1)
                continue
            assert ask(-3)[1] == max(times)
            for time in (min(times), times[len(times) // 2], max(times)):
                offset, found = ask(time)
                assert offset == partition.offset_of_timestamp(time)
                assert found >= time
            assert ask(max(times) + 1) == (-1, -1)


def test_topics_and_ids_come_from_the_metadata():
    path = LOGS / "kraft-4.1.0"
    known = kc.log.read_cluster_metadata(path).topics
    with served(path) as broker, wire_to(broker) as wire:
        answer = wire.ask("Metadata", 12, topics=None)
        found = {row.name: row for row in answer.topics}
        assert {name: row.topic_id for name, row in found.items()} == {
            name: topic["topic_id"] for name, topic in known.items()
        }
        here = {(one.topic, one.partition) for one in partitions(path).values()}
        for name, row in found.items():
            leaders = {part.partition_index: part.leader_id for part in row.partitions}
            assert all(leaders[number] == answer.controller_id for of, number in here if of == name)
        assert answer.cluster_id in (path / "meta.properties").read_text()


def test_a_broker_of_kafka_0_8_has_neither_metadata_nor_ids():
    path = LOGS / "v0-0.8.2.2"
    with served(path) as broker, wire_to(broker) as wire:
        ids = {row.name: row.topic_id for row in wire.ask("Metadata", 12, topics=None).topics}
    with served(path) as broker, wire_to(broker) as wire:
        assert ids == {row.name: row.topic_id for row in wire.ask("Metadata", 12, topics=None).topics}
    assert {"mixed", "gzip", "__consumer_offsets"} <= ids.keys()
    assert len(set(ids.values())) == len(ids)


def test_old_clients_read_it():
    path = LOGS / "v2-2.8.2"
    expected = rows(partitions(path)["v0-none", 0])
    with served(path) as broker, wire_to(broker) as wire:
        row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        answer = wire.ask("Fetch", 0, replica_id=-1, topics=[{"topic": "v0-none", "partitions": [row]}])
        data = answer.responses[0].partitions[0].records
        found = kc.decode(bytes(data)[: kc.scan(data).consumed])
        assert found["value"].tolist() == [value for _, _, value in expected][: len(found)]


def test_an_answer_ends_where_the_format_changes():
    path = LOGS / "upgraded"
    with served(path) as broker, wire_to(broker) as wire:
        for (topic, number), partition in partitions(path).items():
            offset, end, seen = partition.start_offset(), partition.end_offset(), []
            while offset < end:
                asked = {"partition": number, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
                answer = wire.ask(
                    "Fetch", 11, session_epoch=-1, max_bytes=1 << 20,
                    topics=[{"topic": topic, "partitions": [asked]}],
                )  # fmt: skip
                heads = kc.scan(answer.responses[0].partitions[0].records)
                assert len(set(heads["magic"].tolist())) == 1
                seen += heads["magic"].tolist()
                offset = int(heads["last_offset"][-1]) + 1
            assert seen == [m for s in partition.segments for m in s.scan()["magic"].tolist()], topic


def test_groups_read_and_commit_in_memory():
    path = LOGS / "v2-2.8.2"
    known = kc.log.read_committed_offsets(path)
    assert len(known)
    with served(path) as broker, wire_to(broker) as wire:
        for one in known:
            asked = [{"group_id": one.group, "topics": None}]
            found = wire.ask("OffsetFetch", 8, groups=asked).groups[0]
            offsets = {(topic.name, row.partition_index): row.committed_offset
                       for topic in found.topics for row in topic.partitions}  # fmt: skip
            assert offsets[one.topic, one.partition] == one.offset
        for _ in range(2):
            with Consumer(
                "zstd", group_id="new", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer:  # fmt: skip
                record = next(iter(consumer))
                consumer.commit({("zstd", 0): record.offset + 1})
        assert record.offset == 1  # the second member went on where the first had committed
    with served(path) as broker, wire_to(broker) as wire:
        assert not wire.ask("OffsetFetch", 8, groups=[{"group_id": "new", "topics": None}]).groups[0].topics


def test_what_would_write_is_refused():
    path = LOGS / "kraft-4.1.0"
    with served(path) as broker, wire_to(broker) as wire:
        data = [{"name": "none", "partition_data": [{"index": 0, "records": kc.encode([(None, b"x")])}]}]
        answer = wire.ask("Produce", 9, acks=-1, timeout_ms=99, topic_data=data)
        assert answer.responses[0].partition_responses[0].error_code == errors.TOPIC_AUTHORIZATION_FAILED
        for asked, code in ((None, errors.CLUSTER_AUTHORIZATION_FAILED),
                            ("t", errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)):  # fmt: skip
            answer = wire.ask("InitProducerId", 4, transactional_id=asked, transaction_timeout_ms=99)
            assert answer.error_code == code
        row = {"name": "new", "num_partitions": 1, "replication_factor": 1}
        answer = wire.ask("CreateTopics", 7, topics=[row], timeout_ms=99)
        assert answer.topics[0].error_code == errors.TOPIC_AUTHORIZATION_FAILED
        answer = wire.ask("DeleteTopics", 5, topic_names=["none"], timeout_ms=99)
        assert answer.responses[0].error_code == errors.TOPIC_AUTHORIZATION_FAILED
        answer = wire.ask("Metadata", 9, topics=[{"name": "new"}], allow_auto_topic_creation=True)
        assert answer.topics[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
        for call in (lambda: broker.write("none", [(None, b"x")]), lambda: broker.create_topic("new"),
                     lambda: broker.write("new", [(None, b"x")])):  # fmt: skip
            with pytest.raises(OSError, match="read-only"):
                call()
    assert {APIS[key].name for key in REFUSED} >= {"Produce", "EndTxn", "DeleteRecords", "CreateAcls"}
    assert keys.OFFSET_COMMIT not in REFUSED


def test_directories_of_several_brokers(tmp_path):
    """Partitions 0 and 1 are on one broker, 1 and 2 on the other, which has more of 1."""
    one, two = tmp_path / "one", tmp_path / "two"
    with kc.broker.serve(one, topics={"orders": 3}) as broker:
        for number in range(3):
            broker.write("orders", [(None, b"%d" % number)], partition=number)
    shutil.copytree(one, two)
    with kc.broker.serve(two) as broker:
        broker.write("orders", [(None, b"more")], partition=1)
    shutil.rmtree(one / "orders-2"), shutil.rmtree(two / "orders-0")
    with served(one) as broker, wire_to(broker) as wire:
        found = wire.ask("Metadata", 12, topics=[{"name": "orders"}]).topics[0].partitions
        assert [row.leader_id for row in found] == [1, 1, -1]
        assert [row.error_code for row in found] == [0, 0, errors.LEADER_NOT_AVAILABLE]
    before = tree(tmp_path)
    with kc.broker.serve([one, two], read_only=True) as broker:
        assert sorted(broker.records("orders")["value"]) == [b"0", b"1", b"2", b"more"]
    assert tree(tmp_path) == before


def test_a_directory_that_a_broker_has_locked(tmp_path):
    with kc.broker.serve(tmp_path, topics=["orders"]) as running:
        running.write("orders", [(None, b"one")])
        with kc.broker.serve(tmp_path, read_only=True) as broker:
            assert broker.records("orders")["value"].tolist() == [b"one"]


def test_a_torn_end_is_left_where_it_is(tmp_path):
    with kc.broker.serve(tmp_path, topics=["orders"]) as broker:
        broker.write("orders", [(None, b"one")])
    with open(tmp_path / "orders-0" / "00000000000000000000.log", "ab") as file:
        file.write(kc.encode([(None, b"two")], base_offset=1)[:-3])
    with served(tmp_path) as broker:
        assert broker.records("orders")["value"].tolist() == [b"one"]


def test_a_directory_that_cannot_be_written(tmp_path):
    shutil.copytree(LOGS / "v1-0.10.2.2", tmp_path / "data")
    places = [tmp_path / "data", *(path for path in (tmp_path / "data").rglob("*"))]
    for path in reversed(places):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        if os.access(tmp_path / "data", os.W_OK):
            pytest.skip("this user may write everywhere")
        with served(tmp_path / "data") as broker:
            assert len(broker.records("mixed"))
    finally:
        for path in places:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_the_command_serves_directories_of_a_dead_cluster():
    path = LOGS / "kraft-3.9.1"
    before = tree(LOGS)
    options = ["--data", path, "--data", LOGS / "v2-2.8.2", "--read-only", "--listen", "kafka://127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkacodec.cli", "serve", *options], stdout=subprocess.PIPE, text=True
    )
    try:
        server = process.stdout.readline().partition("listening on kafka://")[2].strip()
        with Consumer("oldclient", bootstrap_servers=server, group_id=None, auto_offset_reset="earliest") as consumer:
            record = next(iter(consumer))
        assert (record.offset, record.key, record.value) == rows(partitions(path)["oldclient", 0])[0]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(LATE) == 0
        process.stdout.close()
    assert tree(LOGS) == before


@pytest.mark.parametrize(
    "options",
    [{}, {"data": "x", "topics": ["a"]}, {"data": "x", "brokers": 2}, {"data": ["x", "y"], "read_only": False}],
    ids=str,
)
def test_wrong_options(options):
    with pytest.raises(ValueError, match="read_only"):
        kc.broker.serve(**{"read_only": True, **options})


def test_a_directory_without_partitions_is_served_with_a_warning(tmp_path, caplog):
    kc.broker.serve(tmp_path, read_only=True).stop()
    assert f"no partition's directory in {tmp_path}: the broker serves no topics" in caplog.messages


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        kc.broker.serve(tmp_path / f"none-{uuid.uuid4().hex}", read_only=True)
    assert not list(tmp_path.iterdir())
