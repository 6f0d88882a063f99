"""What the records of a KRaft metadata log amount to: each kind of change, transactions, snapshots."""

import re
import uuid

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.cli.__main__ import DONE, run
from kafkacodec.log import LogWriter
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata

ORDERS, RETURNS = uuid.UUID(int=1), uuid.UUID(int=2)


def stored(record, version=None):
    """The value of a record: the frame's version, the record's type and version, each in a byte, and the body."""
    version = record.valid_versions[-1] if version is None else version
    return bytes([1, record.api_key, version]) + record.encode(version)


def rows(records, offset):
    return [(offset + i, 5, 0, None, stored(record), []) for i, record in enumerate(records)]


def state_of(tmp_path, *records, start=0):
    """What a log of these records, in batches of two, is read as."""
    log = rows(records, start)
    with LogWriter(tmp_path, "__cluster_metadata", 0, start_offset=start) as writer:
        for at in range(0, len(log), 2):
            writer.write(log[at : at + 2])
    return read_cluster_metadata(tmp_path)


def snapshot(tmp_path, end, *records, epoch=1, suffix="checkpoint"):
    """A snapshot of the log up to offset `end`: like Kafka's, with offsets of its own."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir(exist_ok=True)
    (directory / f"{end:020}-{epoch:010}.{suffix}").write_bytes(kc.encode(rows(records, 0)))


def topic(name="orders", topic_id=ORDERS):
    return messages.TopicRecord(name=name, topic_id=topic_id)


def partition(number, topic_id=ORDERS, **fields):
    facts = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 3, "partition_epoch": 7} | fields
    return messages.PartitionRecord(partition_id=number, topic_id=topic_id, **facts)


def change(number, topic_id=ORDERS, **fields):
    return messages.PartitionChangeRecord(partition_id=number, topic_id=topic_id, **fields)


def config(name, value, resource="orders", kind=2):
    return messages.ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def acl(number, **fields):
    facts = {"resource_type": 2, "pattern_type": 3, "host": "*", "operation": 3, "permission_type": 3}
    return messages.AccessControlEntryRecord(id=uuid.UUID(int=number), principal="User:ä", **(facts | fields))


def register(broker, **fields):
    point = messages.RegisterBrokerRecord.BrokerEndpoint(name="SSL", host="host", port=65535)
    return messages.RegisterBrokerRecord(broker_id=broker, end_points=[point], **fields)


def test_partition_changes(tmp_path):
    state = state_of(
        tmp_path,
        topic(),
        partition(0),
        partition(1, leader_epoch=0, partition_epoch=0),
        change(0, isr=[2], leader=2),
        change(0, replicas=[2, 3]),
        change(1, leader=-1, isr=[]),
        change(1, isr=[1]),
        change(5, leader=1),
        change(0, topic_id=RETURNS, leader=9),
    )
    partitions = state.topics["orders"]["partitions"]
    assert partitions == {
        0: {"replicas": [2, 3], "isr": [2], "leader": 2, "leader_epoch": 4, "partition_epoch": 9},
        1: {"replicas": [1, 2], "isr": [1], "leader": -1, "leader_epoch": 1, "partition_epoch": 2},
    }
    assert state.offset == 9


def test_a_deleted_topic_takes_its_configs_along(tmp_path):
    again = uuid.UUID(int=3)
    state = state_of(
        tmp_path,
        *(topic(), partition(0), config("retention.ms", "5")),
        *(topic("returns", RETURNS), partition(0, RETURNS), config("retention.ms", "6", "returns")),
        messages.RemoveTopicRecord(topic_id=ORDERS),
        messages.RemoveTopicRecord(topic_id=uuid.UUID(int=99)),
        *(topic("orders", again), partition(4, again)),
        change(4, ORDERS, leader=7),
    )
    assert {name: found["topic_id"] for name, found in state.topics.items()} == {"returns": RETURNS, "orders": again}
    assert state.topics["orders"]["partitions"].keys() == {4}
    assert state.topics["orders"]["partitions"][4]["leader"] == 1
    assert state.configs == {"topic:returns": {"retention.ms": "6"}}


def test_configs_are_set_and_removed(tmp_path):
    state = state_of(
        tmp_path,
        config("retention.ms", "5"),
        config("retention.ms", "6"),
        config("cleanup.policy", "compact"),
        config("cleanup.policy", None),
        config("log.cleaner.threads", "2", "", kind=4),
        config("a", "b", "only", kind=32),
        config("a", None, "only", kind=32),
        config("never.set", None, "nothing"),
        config("interval.ms", "", "all", kind=16),
        config("new.kind", "x", "y", kind=64),
    )
    assert state.configs == {
        "topic:orders": {"retention.ms": "6"},
        "broker:": {"log.cleaner.threads": "2"},
        "client-metrics:all": {"interval.ms": ""},
        "64:y": {"new.kind": "x"},
    }


def test_acls_are_added_and_removed(tmp_path):
    state = state_of(
        tmp_path,
        acl(1, resource_name="a"),
        acl(2, resource_name="b", pattern_type=4, permission_type=2),
        acl(3, resource_name="c"),
        messages.RemoveAccessControlEntryRecord(id=uuid.UUID(int=1)),
        messages.RemoveAccessControlEntryRecord(id=uuid.UUID(int=77)),
    )
    assert {key.int: (entry["resource_name"], entry["permission_type"]) for key, entry in state.acls.items()} == {
        2: ("b", 2),
        3: ("c", 3),
    }
    assert "id" not in state.acls[uuid.UUID(int=2)]
    assert state.acls[uuid.UUID(int=2)]["principal"] == "User:ä"


def test_brokers_come_and_go(tmp_path):
    fence, unfence = messages.FenceBrokerRecord, messages.UnfenceBrokerRecord
    registration_change = messages.BrokerRegistrationChangeRecord
    state = state_of(
        tmp_path,
        *(register(broker, broker_epoch=broker * 10, rack="r") for broker in range(1, 8)),
        unfence(id=1, epoch=10),
        *(unfence(id=2, epoch=20), fence(id=2, epoch=20)),
        registration_change(broker_id=3, broker_epoch=30, fenced=-1),
        *(unfence(id=4, epoch=40), registration_change(broker_id=4, broker_epoch=40, fenced=1)),
        *(unfence(id=5, epoch=50), registration_change(broker_id=5, broker_epoch=50, in_controlled_shutdown=1)),
        messages.UnregisterBrokerRecord(broker_id=6, broker_epoch=60),
        *(unfence(id=7, epoch=70), register(7, broker_epoch=99, rack=None)),
        *(unfence(id=66, epoch=1), messages.UnregisterBrokerRecord(broker_id=67)),
    )
    fenced = {broker: facts["fenced"] for broker, facts in state.brokers.items()}
    assert fenced == {1: False, 2: True, 3: False, 4: True, 5: False, 7: True}
    assert state.brokers[1] == {"epoch": 10, "rack": "r", "fenced": False, "endpoints": ["SSL://host:65535"]}
    assert state.brokers[7] == {"epoch": 99, "rack": None, "fenced": True, "endpoints": ["SSL://host:65535"]}


def test_feature_levels(tmp_path):
    levels = [("metadata.version", 20), ("metadata.version", 27), ("group.version", 1), ("group.version", 0), ("x", 0)]
    records = [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in levels]
    assert state_of(tmp_path, *records).features == {"metadata.version": 27}


def test_transactions(tmp_path):
    begin, end = messages.BeginTransactionRecord, messages.EndTransactionRecord
    abort = messages.AbortTransactionRecord
    records = [
        begin(name="first"),
        *(topic(), partition(0), partition(1)),
        end(),
        begin(),
        *(topic("returns", RETURNS), messages.RemoveTopicRecord(topic_id=ORDERS), config("a", "b")),
        abort(reason="so"),
        config("outside", "1"),
        begin(),
        change(0, leader=2),
        end(),
        *(begin(), end()),
        begin(),
        *(change(1, leader=2), config("open", "1")),
    ]
    state = state_of(tmp_path, *records)
    assert state.topics.keys() == {"orders"}
    assert {n: facts["leader"] for n, facts in state.topics["orders"]["partitions"].items()} == {0: 2, 1: 1}
    assert state.configs == {"topic:orders": {"outside": "1"}}
    assert state.offset == len(records)


def test_a_snapshot_and_the_log_after_it(tmp_path):
    """The last snapshot counts, and of the log only what it does not have: changes of epochs must not count twice."""
    snapshot(tmp_path, 2, topic("old", RETURNS))
    snapshot(tmp_path, 4, topic(), partition(0, leader=2, leader_epoch=4, partition_epoch=8), epoch=2)
    snapshot(tmp_path, 90, topic("not", RETURNS), suffix="checkpoint.deleted")
    snapshot(tmp_path, 91, topic("yet", RETURNS), suffix="checkpoint.part")
    log = [topic(), partition(0), config("gone", "1"), change(0, leader=2), change(0, isr=[2]), config("a", "b")]
    state = state_of(tmp_path, *log)
    found = {"replicas": [1, 2], "isr": [2], "leader": 2, "leader_epoch": 4, "partition_epoch": 9}
    assert state.topics == {"orders": {"topic_id": ORDERS, "partitions": {0: found}}}
    assert state.configs == {"topic:orders": {"a": "b"}}
    assert state.offset == 6
    assert read_cluster_metadata(tmp_path / "__cluster_metadata-0") == state


def test_a_log_that_begins_where_the_snapshot_ends(tmp_path):
    snapshot(tmp_path, 100, topic())
    state = state_of(tmp_path, partition(0), start=100)
    assert state.topics["orders"]["partitions"].keys() == {0}
    assert state.offset == 101


def test_a_snapshot_that_is_ahead_of_the_log(tmp_path):
    snapshot(tmp_path, 100, topic())
    state = state_of(tmp_path, config("a", "b"))
    assert (list(state.topics), state.configs, state.offset) == (["orders"], {}, 100)


def test_a_log_without_its_beginning(tmp_path):
    with pytest.raises(FileNotFoundError, match="begins at offset 100, and there is no snapshot"):
        state_of(tmp_path, partition(0), start=100)
    snapshot(tmp_path, 99, topic())
    with pytest.raises(FileNotFoundError, match="begins at offset 100"):
        read_cluster_metadata(tmp_path)


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    state_of(
        tmp_path,
        *(config("note", "a\x1b[2Jb\nc\x9b"), acl(1, resource_name="x\x07", host="日本")),
        register(1, rack="r"),
        messages.FeatureLevelRecord(name="f\x1b]0;t", feature_level=1),
    )
    assert run(["metadata", str(tmp_path)]) == DONE
    shown = capsys.readouterr().out
    assert {c for c in shown if not c.isprintable()} == {"\n"}
    assert r"a\x1b[2Jb\nc\x9b" in shown
    assert re.search(r"User:ä +日本 +ALLOW +READ +TOPIC +LITERAL +x\\x07\n", shown)
    assert r"f\x1b]0;t 1" in shown


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x02\x63", "unsupported version 99 of TopicRecord"),
        (stored(topic())[:-3], "uuid"),
        (b"", "varint"),
    ],
)
def test_records_that_cannot_be_read(tmp_path, value, reason):
    with LogWriter(tmp_path, "__cluster_metadata", 0) as writer:
        writer.write([(0, 5, 0, None, stored(topic()), []), (1, 5, 0, None, value, [])])
    with pytest.raises(kc.DecodeError, match=reason):
        read_cluster_metadata(tmp_path)


def test_records_of_types_that_are_not_known_are_passed_over(tmp_path):
    with LogWriter(tmp_path, "__cluster_metadata", 0) as writer:
        values = [b"\x01\xe8\x07\x00\x01\x02\x03", stored(messages.NoOpRecord()), stored(topic()), None]
        writer.write([(i, 5, 0, None, value, []) for i, value in enumerate(values)])
    assert list(read_cluster_metadata(tmp_path).topics) == ["orders"]


@pytest.mark.parametrize("second", [topic(topic_id=RETURNS), topic(name="returns"), topic()])
def test_a_topic_that_is_there_already(tmp_path, second):
    """As a controller takes it: no such log can be. What follows is read for the first of the two."""
    records = [topic(), second, partition(0), partition(0, RETURNS), messages.RemoveTopicRecord(topic_id=RETURNS)]
    with pytest.raises(kc.CorruptRecord, match=r"__cluster_metadata-0: record at offset 1: duplicate topic"):
        state_of(tmp_path, *records)
    problems = []
    state = read_cluster_metadata(tmp_path, problems=problems)
    assert len(problems) == 1
    assert state.topics["orders"]["topic_id"] == ORDERS
    assert state.topics["orders"]["partitions"].keys() == {0}


def test_a_topic_that_is_there_already_in_a_transaction(tmp_path):
    begin, end = messages.BeginTransactionRecord(), messages.EndTransactionRecord()
    with pytest.raises(kc.CorruptRecord, match="record at offset 2: "):
        state_of(tmp_path, topic(), begin, topic(), end)


@pytest.mark.parametrize(
    "name", ["zz-x.checkpoint", "-.checkpoint", f"{7:020}-{1:010}.checkpoint.part", "9-1.checkpoint"]
)
def test_files_that_are_no_snapshots(tmp_path, name):
    snapshot(tmp_path, 3, topic())
    (tmp_path / "__cluster_metadata-0" / name).write_bytes(b"no batches")
    assert state_of(tmp_path, topic("returns", RETURNS), start=3).topics.keys() == {"orders", "returns"}


def test_what_a_directory_has_before_its_first_start_is_no_snapshot(tmp_path):
    """The controller copies those records into the log."""
    snapshot(tmp_path, 0, topic(), partition(0), config("retention.ms", "1"), epoch=0)
    state = state_of(tmp_path, topic(), partition(0), config("retention.ms", "1"), partition(1))
    assert list(state.topics) == ["orders"]
    assert list(state.topics["orders"]["partitions"]) == [0, 1]
    assert state.offset == 4
