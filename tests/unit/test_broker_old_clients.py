"""Clients of 0.8 to 0.11: message sets of magic 0 and 1, and the versions of APIs that Apache Kafka 4.0 removed.

The expected answers are those of Apache Kafka 3.9.1 (`tests/data/broker`).
"""

from __future__ import annotations

import json
import uuid
from itertools import islice
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import errors
from kafkacodec.broker.kafka.apis import OLD, TABLE
from kafkacodec.messages import APIS, keys
from kafkacodec.records.record import Record
from tests.broker_wire import wire_to
from tests.patience import SOON

GOLDEN = json.loads((Path(__file__).parents[1] / "data/broker/old_clients.json").read_text("utf-8"))
ROWS = [
    Record(i, 1700000000000 + i, 0, None if i % 3 == 0 else b"k%d" % i, None if i == 4 else b"value-%d" % i * 3, ())
    for i in range(6)
]


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve(release="3.9") as running:
        yield running


@pytest.fixture
def wire(broker):
    with wire_to(broker) as connection:
        yield connection


@pytest.fixture
def topic(broker):
    return made(broker)


def made(broker, **config):
    name = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1, {key.replace("_", "."): value for key, value in config.items()})
    return name


def produce(wire, topic, version, data):
    rows = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    answer = wire.ask("Produce", version, topic_data=rows, acks=-1, timeout_ms=9000)
    return answer.responses[0].partition_responses[0]


def fetch(wire, topic, version, offset=0, room=1 << 20):
    row = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": room}
    more = {"max_bytes": 1 << 20} if version >= 3 else {}
    answer = wire.ask(
        "Fetch", version, replica_id=-1, max_wait_ms=0, topics=[{"topic": topic, "partitions": [row]}], **more
    )
    found = answer.responses[0].partitions[0]
    return found.error_code, bytes(found.records or b"")


def is_compressed(data):
    return bool(data) and kc.scan(data)["codec"][0] != "none"


def parts(data):
    """What a reader sees of an answer whose compressed bytes may differ: the records, and the heads of the batches."""
    table, heads = kc.decode(data), kc.scan(data)
    names = ("magic", "codec", "timestamp_type", "max_timestamp", "last_offset")
    return [[table[name].tolist() for name in table.column_names], [heads[name].tolist() for name in names]]


@pytest.mark.parametrize("case", GOLDEN["produced"], ids=lambda case: f"{case['magic']}-{case['codec']}")
def test_message_sets_are_stored_as_one_batch(wire, topic, case):
    for version in (0, 1, 2):
        row = produce(wire, topic, version, bytes.fromhex(case["sent"]))
        assert (row.error_code, row.base_offset) == (case["error"], case["offset"] + 6 * version)
    found, expected = fetch(wire, topic, 4)[1], bytes.fromhex(case["stored"])
    if case["codec"] == "none":
        assert found[: len(expected)] == expected
    else:
        assert parts(found[: kc.scan(found)["size_in_bytes"][0]]) == parts(expected)


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd"])
def test_batches_are_fetched_as_message_sets(wire, topic, codec):
    produce(wire, topic, 7, kc.encode(ROWS, codec=codec))
    produce(wire, topic, 7, kc.encode(ROWS[:3], codec=codec))
    cases = [case for case in GOLDEN["fetched"] if case["codec"] == codec]
    assert len(cases) >= 5
    for case in cases:
        found, expected = fetch(wire, topic, case["version"], case["offset"]), bytes.fromhex(case["records"])
        assert found[0] == case["error"], case
        if codec == "none":
            assert found[1] == expected, case
        elif expected:
            whole = kc.scan(expected).consumed
            mine = kc.scan(found[1]).consumed
            assert parts(found[1][:mine])[1][:2] or mine == 0
            if whole and mine:
                assert (
                    parts(found[1][:mine])[0][0][: len(parts(expected[:whole])[0][0])][:3]
                    == (parts(expected[:whole])[0][0][:3])
                )


@pytest.mark.parametrize("case", GOLDEN["sizes"], ids=lambda case: "-".join(map(str, list(case.values())[:3])))
def test_little_room(broker, case):
    with wire_to(broker) as wire:
        topic = made(broker)
        produce(wire, topic, 7, kc.encode(ROWS, codec=case["codec"]))
        produce(wire, topic, 7, kc.encode(ROWS[:3], codec=case["codec"]))
        found = fetch(wire, topic, case["version"], 0, case["room"])
        assert found == (case["error"], bytes.fromhex(case["records"]))


def test_times_of_the_append(broker, wire):
    topic = made(broker, message_timestamp_type="LogAppendTime")
    sets = kc.encode(ROWS, magic=1), kc.encode(ROWS, magic=0, codec="gzip", drop_unsupported=True)
    for version, data in zip((2, 1), sets, strict=True):
        row = produce(wire, topic, version, data)
        assert not row.error_code
        assert (row.log_append_time_ms > 0) == (version == 2)
    for version, text in enumerate(GOLDEN["append_time"]):
        found, expected = fetch(wire, topic, version)[1], bytes.fromhex(text)
        mine, theirs = kc.scan(found), kc.scan(expected)
        for name in ("magic", "timestamp_type", "codec", "last_offset"):
            assert mine[name].tolist() == theirs[name].tolist(), (version, name)
        first, second = kc.decode(found[: mine.consumed]), kc.decode(expected[: theirs.consumed])
        assert first["value"].tolist() == second["value"].tolist()
        assert first["timestamp_type"].tolist() == second["timestamp_type"].tolist()


def test_message_sets_that_are_refused(broker, wire, topic):
    one, two = kc.encode(ROWS[:2], magic=1), kc.encode(ROWS[2:4], magic=0, drop_unsupported=True)
    zipped = kc.encode(ROWS[:2], magic=1, codec="gzip")
    damaged = one[:-1] + bytes([one[-1] ^ 1])
    for data, code in (
        (one + two, errors.INVALID_RECORD), (zipped + zipped, errors.INVALID_RECORD),
        (zipped + one, errors.INVALID_RECORD), (damaged, errors.CORRUPT_MESSAGE),
    ):  # fmt: skip
        row = produce(wire, topic, 2, data)
        assert (row.error_code, row.base_offset) == (code, -1)
    for data in (b"", kc.encode(ROWS[:1], magic=1)[:-1]):  # nothing that is whole
        row = produce(wire, topic, 2, data)
        assert (row.error_code, row.base_offset) == (0, -1)
    assert produce(wire, topic, 2, kc.encode(ROWS)).base_offset == 0  # batches are taken from old versions too
    assert produce(wire, topic, 0, kc.encode(ROWS)).base_offset == 6
    assert produce(wire, topic, 3, one).error_code == errors.INVALID_RECORD
    assert produce(wire, made(broker, cleanup_policy="compact"), 2, one).error_code == errors.INVALID_RECORD
    assert produce(wire, made(broker, max_message_bytes="100"), 2, one * 3).error_code == errors.MESSAGE_TOO_LARGE


def test_a_set_of_another_codec_or_offset(broker, wire, topic):
    row = produce(wire, topic, 2, kc.encode([Record(7, 1700000000000, 0, b"a", b"b", ())], magic=1))
    assert (row.error_code, row.base_offset) == (0, 0)
    name = made(broker, compression_type="gzip")
    produce(wire, name, 2, kc.encode(ROWS, magic=1))
    assert kc.scan(fetch(wire, name, 4)[1])["codec"].tolist() == ["gzip"]


def test_control_batches_and_headers_are_left_out(broker, wire, topic):
    produce(wire, topic, 7, kc.encode([Record(0, 1700000000000, 0, b"k", b"v", (("h", b"x"),))]))
    for version in range(4):
        code, data = fetch(wire, topic, version)
        assert code == 0
        assert kc.decode(data)["value"].tolist() == [b"v"]
        assert data[kc.scan(data).consumed :].startswith(b"\xff" * 8 + b"\0\0\0=")
    with kc.client.Producer(broker.bootstrap_servers, transactional_id="t") as producer:
        producer.begin_transaction()
        producer.send(topic, b"aborted").result(SOON)
        producer.abort_transaction()
    for version in range(4):
        assert kc.decode(fetch(wire, topic, version, 1)[1])["value"].tolist() == [b"aborted"]
        assert fetch(wire, topic, version, 2) == (0, b"\xff" * 8 + b"\0\0\0=")
        assert fetch(wire, topic, version, 3) == (0, b"")


def test_first_offsets_of_segments(broker, wire, topic):
    def ask(name, time, most=10):
        row = {"partition_index": 0, "timestamp": time, "max_num_offsets": most}
        answer = wire.ask("ListOffsets", 0, replica_id=-1, topics=[{"name": name, "partitions": [row]}])
        found = answer.topics[0].partitions[0]
        return found.error_code, list(found.old_style_offsets)

    assert ask(topic, -1) == ask(topic, -2) == (0, [0])
    produce(wire, topic, 7, kc.encode(ROWS))
    assert ask(topic, -1) == ask(topic, 1 << 50) == (0, [6, 0])
    assert ask(topic, -2) == (0, [0])
    assert ask(topic, 0) == ask(topic, -1, 0) == (0, [])
    assert ask(topic, -1, 1) == (0, [6])
    assert ask(topic, -1, -1) == (errors.UNKNOWN_SERVER_ERROR, [])
    assert ask(topic, -3) == (errors.UNSUPPORTED_VERSION, [])
    assert ask("nothing", -1) == (errors.UNKNOWN_TOPIC_OR_PARTITION, [])
    large = made(broker, segment_bytes=1 << 20)
    for _ in range(3):
        produce(wire, large, 7, kc.encode([Record(0, 1700000000000, 0, b"k", bytes(600_000), ())]))
    assert ask(large, -1) == (0, [3, 2, 1, 0])
    assert ask(large, -1, 2) == (0, [3, 2])


def test_offsets_of_groups(wire, topic):
    def offset(group, version):
        answer = wire.ask("OffsetFetch", version, group_id=group, topics=[{"name": topic, "partition_indexes": [0]}])
        row = answer.topics[0].partitions[0]
        return row.committed_offset, row.metadata, row.error_code

    assert offset("g", 0) == (-1, "", errors.UNKNOWN_TOPIC_OR_PARTITION)  # as from a broker with ZooKeeper
    assert offset("g", 1) == (-1, "", 0)
    for version, number in ((0, 5), (1, 6)):
        row = {"partition_index": 0, "committed_offset": number, "committed_metadata": "m"}
        more = {"generation_id_or_member_epoch": -1, "member_id": ""} if version else {}
        answer = wire.ask("OffsetCommit", version, group_id="g", topics=[{"name": topic, "partitions": [row]}], **more)
        assert answer.topics[0].partitions[0].error_code == 0
        assert offset("g", 0) == offset("g", 2) == (number, "m" if version else "", 0)


def test_other_calls_before_4_0(wire, topic):
    name = f"t-{uuid.uuid4().hex[:8]}"
    asked = {"num_partitions": 1, "replication_factor": 1}
    for version in (0, 1):
        topics = [{"name": f"{name}-{version}", **asked}, {"name": "a b", **asked}]
        answer = wire.ask("CreateTopics", version, topics=topics, timeout_ms=99)
        assert [row.error_code for row in answer.topics] == [0, errors.INVALID_TOPIC_EXCEPTION]
    answer = wire.ask("DeleteTopics", 0, topic_names=[f"{name}-0", "nothing"], timeout_ms=99)
    assert [row.error_code for row in answer.responses] == [0, errors.UNKNOWN_TOPIC_OR_PARTITION]
    produce(wire, topic, 2, kc.encode(ROWS, magic=1))
    wanted = [{"resource_type": 2, "resource_name": topic, "configuration_keys": ["compression.type"]}]
    row = wire.ask("DescribeConfigs", 0, resources=wanted).results[0].configs[0]
    assert (row.name, row.value, row.is_default) == ("compression.type", "producer", False)
    for version, epoch in ((0, -1), (1, 0)):
        asked = [{"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
        row = wire.ask("OffsetForLeaderEpoch", version, topics=asked).topics[0].partitions[0]
        assert (row.error_code, row.leader_epoch, row.end_offset) == (0, epoch, 6)
    row = wire.ask("DescribeLogDirs", 0, topics=[{"topic": topic, "partitions": [0]}]).results[0]
    assert row.topics[0].partitions[0].partition_size > 0


def test_what_is_advertised(wire):
    answer = wire.ask("ApiVersions", 0)
    found = {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys}
    assert found == {key: versions for key, versions in OLD.items() if TABLE[key].advertised}
    assert all(found[key].start == 0 for key in found if key <= keys.DESCRIBE_TOPIC_PARTITIONS)


GIVEN = {
    keys.PRODUCE: {"acks": 1},
    # Of any kind: brokers close the connection for the number 0, which is no kind.
    keys.DESCRIBE_ACLS: {"resource_type_filter": 1, "operation": 1, "permission_type": 1},
}


def test_every_old_version_is_answered(broker):
    """With a request that is empty but for that, whatever the answer says; a closed connection would be a failure."""
    for key in OLD:
        for version in range(OLD[key].start, TABLE[key].versions.start):
            with wire_to(broker) as wire:
                fields = GIVEN.get(key, {})
                assert wire.ask(APIS[key].name, version, **fields) is not None, (APIS[key].name, version)


def test_without_it_old_versions_are_not_served():
    with kc.broker.serve() as broker, wire_to(broker) as wire:
        wire.send("Produce", 2, topic_data=[], acks=-1, timeout_ms=9)
        assert wire.frame() is None


@pytest.mark.parametrize("version", [(0, 8, 1), (0, 9), (0, 10, 0), (0, 10, 2), (0, 11)], ids=str)
def test_kafka_python_as_an_old_client(broker, topic, version):
    kafka = pytest.importorskip("kafka")
    options = {"bootstrap_servers": broker.bootstrap_servers, "api_version": version}
    producer = kafka.KafkaProducer(acks=1, compression_type="gzip", enable_idempotence=False, **options)
    for number in range(5):
        assert producer.send(topic, b"%d" % number, key=b"k").get(60).offset == number
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=60_000,
        **options,
    )  # fmt: skip
    seen = [(record.offset, record.key, record.value) for record in islice(consumer, 5)]
    consumer.commit()
    assert consumer.committed(kafka.TopicPartition(topic, 0)) == 5
    consumer.close()
    assert seen == [(number, b"k", b"%d" % number) for number in range(5)]
