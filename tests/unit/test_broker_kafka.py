"""The embedded broker from outside: requests by hand, this library's clients, restarts; what `kc.log` reads of it.

The expected answers are those of Apache Kafka 4.1.0 and 4.4.0 to the same requests.
"""

from __future__ import annotations

import shutil
import struct
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import client, errors, protocol
from kafkacodec.broker.kafka.apis import ADVERTISED, TABLE, table_rows
from tests.broker_wire import wire_to


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve() as running:
        yield running


@pytest.fixture
def topic(broker, request):
    name = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1, getattr(request, "param", {}))
    return name


@pytest.fixture
def wire(broker):
    with wire_to(broker) as connection:
        yield connection


def produce(wire, topic, data, version=9, **fields):
    entry = {"name": topic, "partition_data": [{"index": 0, "records": data}]}
    answer = wire.ask("Produce", version, topic_data=[entry], acks=-1, timeout_ms=9000, **fields)
    return answer.responses[0].partition_responses[0]


def fetch(wire, topic, offset=0, version=12, **fields):
    rows = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]
    answer = wire.ask("Fetch", version, topics=[{"topic": topic, "partitions": rows}], session_epoch=-1, **fields)
    return answer.responses[0].partitions[0]


def values(row):
    return kc.decode(row.records)["value"].tolist()


def test_what_is_advertised_is_what_the_table_has(wire):
    answer = wire.ask("ApiVersions", 3, client_software_name="a", client_software_version="1")
    found = {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys}
    assert found == dict(ADVERTISED)
    assert all(entry.versions for entry in TABLE.values())
    assert {row.name for row in answer.finalized_features} >= {"group.version", "transaction.version"}


def test_an_unknown_version_of_api_versions_is_answered_and_others_end_the_connection(broker, wire):
    names = b"\x02a\x021\0"
    header = struct.pack(">hhi", 18, 99, 7) + b"\0\1c\0"
    wire.socket.sendall(struct.pack(">i", len(header + names)) + header + names)
    answer: Any = protocol.decode_response(wire.frame(), 18, 0)[1]
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert [row.api_key for row in answer.api_keys] == [18]
    for key, version in ((0, 2), (1, 3), (4, 0), (999, 0)):
        with wire_to(broker) as other:
            sent = other.send("Metadata", 1, topics=[])
            header = struct.pack(">hhi", key, version, 7) + b"\0\1c"
            other.socket.sendall(struct.pack(">i", len(header)) + header)
            assert other.receive(sent).controller_id == 1
            assert other.frame() is None


def test_records_come_back_as_they_were_and_offsets_go_on(broker, wire, topic):
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        data = kc.encode([(b"k", b"one"), (b"k", b"two")], codec=codec)
        row = produce(wire, topic, data)
        assert row.error_code == 0
        found = fetch(wire, topic, row.base_offset)
        assert found.high_watermark == row.base_offset + 2
        kept = bytearray(found.records)
        kept[:8], kept[12:16] = data[:8], data[12:16]  # base offset and leader epoch are the broker's
        assert bytes(kept) == data
    assert len(broker.records(topic)) == 10


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", errors.INVALID_RECORD),
        (kc.encode([(None, b"a")]) * 2, errors.INVALID_RECORD),
        (kc.encode([(None, b"a")])[:-3], errors.INVALID_RECORD),
        (kc.encode([(None, b"a")])[:-1] + b"!", errors.CORRUPT_MESSAGE),
        (kc.encode([(None, b"a")], magic=1), errors.INVALID_RECORD),
        (kc.encode([kc.Record(3, 0, 0, None, b"a", ())]), errors.INVALID_RECORD),
        (kc.encode([(b"k", b"a")], is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
         errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)  # fmt: skip
def test_batches_that_brokers_refuse(wire, topic, data, code):
    assert produce(wire, topic, data).error_code == code
    assert fetch(wire, topic).high_watermark == 0


def test_sequences_of_producers(wire, topic):
    def batch(sequence, epoch=0):
        return kc.encode([(None, b"x")], producer_id=77, producer_epoch=epoch, base_sequence=sequence)

    assert [produce(wire, topic, batch(n)).base_offset for n in range(6)] == list(range(6))
    assert produce(wire, topic, batch(5)).base_offset == 5
    assert produce(wire, topic, batch(1)).base_offset == 1
    assert produce(wire, topic, batch(0)).error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(wire, topic, batch(8)).error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(wire, topic, batch(3, epoch=1)).error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(wire, topic, batch(0, epoch=1)).error_code == 0
    assert produce(wire, topic, batch(6)).error_code == errors.INVALID_PRODUCER_EPOCH
    assert fetch(wire, topic).high_watermark == 7


def test_a_batch_without_a_transaction_must_not_pass_one_that_would_begin_it(wire, topic):
    who = {"transactional_id": f"x-{topic}", "producer_id": -1, "producer_epoch": -1, "transaction_timeout_ms": 9000}
    made = wire.ask("InitProducerId", 4, **who)
    while made.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS:
        made = wire.ask("InitProducerId", 4, **who)
    who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    names = {f"v3_and_below_{name}": value for name, value in who.items()}
    partition = [{"name": topic, "partitions": [0]}]
    added = wire.ask(
        "AddPartitionsToTxn", 3, v3_and_below_transactional_id=f"x-{topic}", v3_and_below_topics=partition, **names
    )
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0

    def batch(sequence, *, is_transactional):
        return kc.encode([(None, b"x")], base_sequence=sequence, is_transactional=is_transactional, **who)

    inside, outside = {"transactional_id": f"x-{topic}"}, {"transactional_id": None}
    assert produce(wire, topic, batch(0, is_transactional=False), 11, **inside).base_offset == 0
    assert produce(wire, topic, batch(0, is_transactional=True), 11, **inside).base_offset == 0  # it is there already
    row = produce(wire, topic, batch(1, is_transactional=False), 11, **outside)
    assert (row.error_code, row.log_start_offset) == (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    assert fetch(wire, topic).high_watermark == 1


def test_a_client_id_of_negative_length_is_none(wire):
    for length in (b"\xff\xff", b"\xff\xfe", b"\x80\0"):
        header = struct.pack(">hhi", 18, 0, 7) + length
        wire.socket.sendall(struct.pack(">i", len(header)) + header)
        answer: Any = protocol.decode_response(wire.frame(), 18, 0)[1]
        assert answer.error_code == 0


@pytest.mark.parametrize("count", [-2, -70_000, -(1 << 31)])
def test_an_array_of_negative_length_is_null(wire, topic, count):
    body = struct.pack(">hhihi", 3, 1, 7, -1, count)  # Metadata: of all topics
    wire.socket.sendall(struct.pack(">i", len(body)) + body)
    answer: Any = protocol.decode_response(wire.frame(), 3, 1)[1]
    assert topic in {row.name for row in answer.topics}
    name = struct.pack(">hhihih", 3, 1, 7, -1, 1, -2)  # which may not be null
    wire.socket.sendall(struct.pack(">i", len(name)) + name)
    assert wire.frame() is None


def test_a_fetch_waits_for_records_and_answers_leave_in_order(broker, wire, topic):
    rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    sent = wire.send(
        "Fetch", 12, topics=[{"topic": topic, "partitions": rows}], max_wait_ms=30_000, min_bytes=1, session_epoch=-1
    )
    behind = wire.send("Metadata", 1, topics=[])
    with wire_to(broker) as other:
        produce(other, topic, kc.encode([(None, b"woken")]))
    assert values(wire.receive(sent).responses[0].partitions[0]) == [b"woken"]
    assert wire.receive(behind).controller_id == 1


def test_what_cannot_be_fetched(wire, topic):
    produce(wire, topic, kc.encode([(None, b"a")]))
    beyond = fetch(wire, topic, 5)
    assert (beyond.error_code, beyond.high_watermark, bytes(beyond.records)) == (errors.OFFSET_OUT_OF_RANGE, -1, b"")
    assert fetch(wire, "nobody-made-this").error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_times_and_starts(wire, topic):
    rows = [kc.Record(i, 1000 + 10 * i, 0, None, b"x", ()) for i in range(5)]
    produce(wire, topic, kc.encode(rows))

    def offset(time, version=8):
        asked = [{"partition_index": 0, "timestamp": time}]
        answer = wire.ask("ListOffsets", version, replica_id=-1, topics=[{"name": topic, "partitions": asked}])
        row = answer.topics[0].partitions[0]
        return row.error_code or (row.offset, row.timestamp)

    assert offset(-1) == (5, -1)
    assert offset(-2) == (0, -1)
    assert offset(1011) == (2, 1020)
    assert offset(9999) == (-1, -1)
    assert offset(-3) == (4, 1040)
    assert offset(-3, version=6) == errors.UNSUPPORTED_VERSION
    asked = [{"partition_index": 0, "offset": 2}]
    gone = wire.ask("DeleteRecords", 2, topics=[{"name": topic, "partitions": asked}])
    assert gone.topics[0].partitions[0].low_watermark == 2
    assert offset(-2) == (2, -1)
    assert fetch(wire, topic, 1).error_code == errors.OFFSET_OUT_OF_RANGE


def test_topics_are_made_found_and_deleted(broker, wire):
    name = f"made-{uuid.uuid4().hex[:6]}"

    def create(**fields):
        wanted = {"name": name, "num_partitions": 2, "replication_factor": 1, **fields}
        return wire.ask("CreateTopics", 7, topics=[wanted], timeout_ms=9000).topics[0].error_code

    assert create(num_partitions=0) == errors.INVALID_PARTITIONS
    assert create(replication_factor=3) == errors.INVALID_REPLICATION_FACTOR
    assert create(name="../up") == errors.INVALID_TOPIC_EXCEPTION
    assert create(configs=[{"name": "segment.bytes", "value": "1"}]) == errors.INVALID_CONFIG
    assert create() == 0
    assert create() == errors.TOPIC_ALREADY_EXISTS
    found = wire.ask("Metadata", 12, topics=[{"name": name}]).topics[0]
    assert [row.partition_index for row in found.partitions] == [0, 1]
    assert kc.log.read_cluster_metadata(broker.data).topics[name]["topic_id"] == found.topic_id
    assert wire.ask("DeleteTopics", 6, topics=[{"name": name}], timeout_ms=9000).responses[0].error_code == 0
    gone = wire.ask("Metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False).topics[0]
    assert gone.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    for count in (0, 10_001, 10**7):
        with pytest.raises(errors.InvalidPartitionsError):
            broker.create_topic(name, count)


def test_configurations_apply_at_once(wire, topic):
    change = [{"name": "max.message.bytes", "config_operation": 0, "value": "200"}]
    resource = {"resource_type": 2, "resource_name": topic, "configs": change}
    assert wire.ask("IncrementalAlterConfigs", 1, resources=[resource]).responses[0].error_code == 0
    assert produce(wire, topic, kc.encode([(None, b"x" * 300)])).error_code == errors.MESSAGE_TOO_LARGE
    row = {"resource_type": 2, "resource_name": topic, "configuration_keys": ["max.message.bytes"]}
    shown = wire.ask("DescribeConfigs", 4, resources=[row]).results[0].configs[0]
    assert (shown.value, shown.config_source) == ("200", 1)
    for version in range(1, 5):  # what was not set is told, too
        row["configuration_keys"] = None
        shown = wire.ask("DescribeConfigs", version, resources=[row]).results[0].configs
        assert ("retention.ms", "604800000", 5) in [(one.name, one.value, one.config_source) for one in shown]


@pytest.mark.parametrize("topic", [{"cleanup.policy": "compact"}], indirect=True)
def test_a_compacted_topic_needs_keys(wire, topic):
    row = produce(wire, topic, kc.encode([(b"k", b"v"), (None, b"v")]))
    assert row.error_code == errors.INVALID_RECORD
    assert [one.batch_index for one in row.record_errors] == [1]


@pytest.mark.parametrize("topic", [{"message.timestamp.type": "LogAppendTime"}], indirect=True)
def test_append_time_is_written_into_the_batch(wire, topic):
    row = produce(wire, topic, kc.encode([(b"k", b"v")], codec="gzip"))
    assert row.log_append_time_ms > 0
    found = kc.decode(fetch(wire, topic).records)
    assert found["timestamp_type"].tolist() == [1]
    assert found["timestamp"].astype("int64").tolist() == [row.log_append_time_ms]


def test_a_group_of_this_librarys_consumer_resumes_at_its_commit(broker, topic):
    with client.Producer(broker.bootstrap_servers) as producer:
        for n in range(20):
            producer.send(topic, b"%d" % n)
    options = {"group_id": f"g-{topic}", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with client.Consumer(topic, bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        first = [record.value for record, _ in zip(consumer, range(10), strict=False)]
        consumer.commit()
    assert first == [b"%d" % n for n in range(10)]


def test_transactions_are_seen_when_they_are_committed(broker, wire, topic):
    with client.Producer(broker.bootstrap_servers, transactional_id=f"x-{topic}") as producer:
        with producer.transaction():
            producer.send(topic, b"committed")
        with suppress(KeyError), producer.transaction():
            producer.send(topic, b"aborted").result()
            raise KeyError
    found = fetch(wire, topic, isolation_level=1)
    assert found.last_stable_offset == found.high_watermark == 4
    assert [one.first_offset for one in found.aborted_transactions] == [2]
    assert values(found) == [b"committed", b"aborted"]  # the client leaves them out
    assert broker.records(topic)["value"].tolist() == [b"committed"]


def test_everything_is_there_after_a_restart(tmp_path):
    with kc.broker.serve(tmp_path, topics={"orders": 2}, config={"retention.ms": 60_000_000}) as broker:
        broker.write("orders", [(b"1", b"one"), (b"2", b"two")], partition=1)
        with client.Producer(broker.bootstrap_servers, transactional_id="x") as producer, producer.transaction():
            producer.send("orders", b"three", partition=1)
        with wire_to(broker) as wire:
            topics = [{"name": "orders", "partitions": [{"partition_index": 1, "committed_offset": 2}]}]
            wire.ask("OffsetCommit", 8, group_id="g", generation_id_or_member_epoch=-1, topics=topics)
        seen = kc.log.LogDirectory(tmp_path).partition("orders", 1)
        assert [r.value for table in seen.read() for r in table.records()] == [b"one", b"two", b"three"]
    with kc.broker.serve(tmp_path) as broker:
        assert broker.records("orders")["value"].tolist() == [b"one", b"two", b"three"]
        with wire_to(broker) as wire:
            asked = [{"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [1]}]}]
            answer = wire.ask("OffsetFetch", 8, groups=asked)
            assert answer.groups[0].topics[0].partitions[0].committed_offset == 2
        assert broker.write("orders", [(None, b"four")], partition=1) == 4
    with pytest.raises(KeyError), kc.broker.serve(tmp_path) as broker:
        broker.write("orders", [(None, b"x")], partition=9)


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_batches_that_are_sent_again_after_a_restart_are_known(tmp_path, ends):
    now = int(time.time() * 1000)

    def batch(sequence, producer_id):
        record = kc.Record(0, now, 0, None, b"x", [])
        return kc.encode([record], producer_id=producer_id, producer_epoch=0, base_sequence=sequence)

    with kc.broker.serve(tmp_path / "before", topics=["t"]) as broker, wire_to(broker) as wire:
        for sequence in range(7):  # of two producers, in two segments
            assert [produce(wire, "t", batch(sequence, n)).base_offset for n in (7, 8)] == [
                2 * sequence + n for n in (0, 1)
            ]
            if sequence == 4:
                broker._serving._topics.partition("t", 0).log.roll()
        shutil.copytree(tmp_path / "before", tmp_path / "killed")
    directory = tmp_path / ("killed" if ends == "killed" else "before")
    (directory / ".lock").unlink(missing_ok=True)
    with kc.broker.serve(directory) as broker, wire_to(broker) as wire:
        assert [produce(wire, "t", batch(n, 7)).base_offset for n in (2, 3, 4, 5, 6)] == [4, 6, 8, 10, 12]
        assert produce(wire, "t", batch(1, 7)).error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert [produce(wire, "t", batch(n, 8)).base_offset for n in (2, 6, 7)] == [5, 13, 14]
        assert produce(wire, "t", batch(7, 7)).base_offset == 15
        assert len(broker.records("t")) == 16


def test_internal_topics_keep_their_number_of_partitions(tmp_path):
    def commits(wire, group):
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 2}]}]
        return wire.ask("OffsetCommit", 8, group_id=group, generation_id_or_member_epoch=-1, topics=topics)

    names = [f"g{n}" for n in range(20)]
    three = {"offsets.topic.num.partitions": 3}
    with kc.broker.serve(tmp_path, topics={"t": 1}, config=three) as broker, wire_to(broker) as wire:
        for name in names:
            commits(wire, name)
    with kc.broker.serve(tmp_path) as broker, wire_to(broker) as wire:
        assert {commits(wire, name).topics[0].partitions[0].error_code for name in names} == {0}


QUOTA = {
    "entity": [{"entity_type": "user", "entity_name": "ann"}],
    "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
}
CREDENTIAL = {"name": "ann", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": bytes(32)}


def test_what_cannot_be_recorded_is_not_said_to_be_done(monkeypatch):
    with kc.broker.serve() as broker, wire_to(broker) as wire:
        topics = broker._serving._topics
        append = topics.append

        def full(log, data):
            if log[0] == "__cluster_metadata":
                raise OSError(28, "no space left on device")
            return append(log, data)

        monkeypatch.setattr(topics, "append", full)
        rows = [
            *wire.ask("CreateTopics", 7, topics=[{"name": "new", "num_partitions": 1, "replication_factor": 1}]).topics,
            *wire.ask("AlterClientQuotas", 1, entries=[QUOTA]).entries,
            *wire.ask("AlterUserScramCredentials", 0, upsertions=[CREDENTIAL]).results,
        ]
        assert [row.error_code for row in rows] == [errors.KAFKA_STORAGE_ERROR] * 3
        monkeypatch.undo()
        [row] = wire.ask("AlterClientQuotas", 1, entries=[QUOTA]).entries
        assert row.error_code == errors.NONE


def test_the_metadata_log_is_no_topic_that_clients_make_or_write():
    """Records that a client wrote to it would be read as metadata."""
    name = "__cluster_metadata"
    with kc.broker.serve() as broker, wire_to(broker) as wire:
        [made] = wire.ask(
            "CreateTopics", 7, topics=[{"name": name, "num_partitions": 1, "replication_factor": 1}]
        ).topics
        [asked] = wire.ask("Metadata", 9, topics=[{"name": name}]).topics
        entry = {"name": name, "partition_data": [{"index": 0, "records": kc.encode([(b"k", b"v")])}]}
        [sent] = wire.ask("Produce", 9, topic_data=[entry], acks=-1, timeout_ms=9000).responses[0].partition_responses
        unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
        assert [made.error_code, asked.error_code] == [errors.TOPIC_AUTHORIZATION_FAILED, unknown]
        assert sent.error_code == errors.INVALID_TOPIC_EXCEPTION
        with pytest.raises(errors.BrokerError, match="'__cluster_metadata' is the log of the cluster's metadata"):
            broker.write(name, [(b"k", b"v")])
        assert wire.ask("Metadata", 9, topics=None).topics == []


def test_a_directory_belongs_to_one_broker(tmp_path):
    with kc.broker.serve(tmp_path), pytest.raises(OSError, match=r"lock|in use"), kc.broker.serve(tmp_path):
        pass


@pytest.mark.parametrize(
    "options",
    [
        {"listen": "http://127.0.0.1:0"}, {"listen": ()}, {"listen": "kafka://127.0.0.1:99999"},
        {"listen": "kafka+tls://127.0.0.1:0"}, {"config": {"no.such.config": 1}}, {"config": {"segment.bytes": 1}},
    ],
)  # fmt: skip
def test_wrong_options(options):
    with pytest.raises(ValueError):
        kc.broker.serve(**options)


def test_the_table_of_the_docs_is_the_table_of_apis():
    text = (Path(__file__).parents[2] / "docs/broker.md").read_text("utf-8")
    for name, versions, note in table_rows():
        assert f"| {name} | {versions} | {note} |" in text


def test_no_topic_is_made_by_itself_whose_name_differs_in_periods_and_underscores_only(wire):
    name = f"a.{uuid.uuid4().hex[:8]}"
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": True}
    assert [wire.ask("Metadata", 9, **asked).topics[0].error_code for _ in range(2)] == [3, 0]
    asked["topics"] = [{"name": name.replace(".", "_")}]
    assert [wire.ask("Metadata", 9, **asked).topics[0].error_code for _ in range(2)] == [3, 3]
