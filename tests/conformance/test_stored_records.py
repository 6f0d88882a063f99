"""Stored records of Kafka's internal topics, with type and version: golden bytes, intact and damaged."""

import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.messages.stored import (
    INTERNAL_TOPICS,
    ControlRecord,
    StoredRecord,
    decode_control_record,
    decode_coordinator_record,
    decode_internal_record,
    decode_metadata_record,
    encode_control_record,
    encode_coordinator_record,
    encode_internal_record,
    encode_metadata_record,
)
from tests.corpus import segments
from tests.message_values import damage
from tests.protocol_vectors import plain_json, same, vectors, without_absent

METADATA = "__cluster_metadata"
SAMPLE = Path(kc.__file__).parent / "log" / "sample_data"
COORDINATORS = ["group", "transaction", "share"]


def golden(group, kind):
    """Schema -> [(bytes as stored, message)]."""
    found = defaultdict(list)
    for vector in vectors("data"):
        if (vector["group"], vector["type"]) == (group, kind):
            cls = messages.message_class(vector["schema"])
            message = cls.decode(bytes.fromhex(vector["hex"]), vector["version"])
            found[vector["schema"]].append((bytes.fromhex(vector["prefixed_hex"]), message))
    return found


def version_of(value):
    return int.from_bytes(value[:2], "big")


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_coordinator_records(coordinator):
    keys, values = golden(coordinator, "coordinator-key"), golden(coordinator, "coordinator-value")
    compared = 0
    for schema, stored_keys in keys.items():
        # Offset commits with the oldest key type have values of every version.
        of_key = schema.removesuffix("Key").replace("Legacy", "") + "Value"
        for key, message in stored_keys:
            assert decode_coordinator_record(coordinator, key, None) == (message, None)
            for value, content in values[of_key]:
                found = decode_coordinator_record(coordinator, memoryview(key), memoryview(value))
                assert found is not None
                assert found == (message, content)
                assert encode_coordinator_record(coordinator, *found, version_of(value)) == (key, value)
                compared += 1
            assert encode_coordinator_record(coordinator, message, None, None) == (key, None)
    assert compared > 100
    assert decode_coordinator_record(coordinator, b"\x7f\xff", b"anything") is None


def test_metadata_records():
    names = Counter()
    for schema, records in golden("metadata", "metadata").items():
        for stored, message in records:
            assert decode_metadata_record(stored) == message
            assert encode_metadata_record(message, decode_internal_record(METADATA, None, stored).version) == stored
            names[schema] += 1
    assert len(names) == 27
    assert decode_metadata_record(bytes.fromhex("01 e807 00")) is None


def outcome(decode, *arguments):
    try:
        return "known" if decode(*arguments) is not None else "unknown"
    except kc.DecodeError as error:
        inside = 0 <= error.position <= max(map(len, arguments))
        return "refused" if inside and error.reason else f"{error!r} at {error.position}"


def test_damaged_records_are_decode_errors_and_no_others():
    rnd = random.Random(7)
    outcomes = Counter()

    metadata = [stored for records in golden("metadata", "metadata").values() for stored, _ in records]
    for _ in range(3000):
        outcomes["metadata", outcome(decode_metadata_record, damage(rnd.choice(metadata), rnd))] += 1
    for coordinator in COORDINATORS:
        keys, values = golden(coordinator, "coordinator-key"), golden(coordinator, "coordinator-value")
        for _ in range(3000):
            schema = rnd.choice([name for name in keys if values[name.removesuffix("Key") + "Value"]])
            key, value = rnd.choice(keys[schema])[0], rnd.choice(values[schema.removesuffix("Key") + "Value"])[0]
            if rnd.random() < 0.2:
                key = damage(key, rnd)
            outcomes[coordinator, outcome(decode_coordinator_record, coordinator, key, damage(value, rnd))] += 1
    assert {what for _, what in outcomes} == {"known", "unknown", "refused"}
    for kind in ("metadata", *COORDINATORS):
        assert min(outcomes[kind, "known"], outcomes[kind, "refused"]) > 300, outcomes
        assert outcomes[kind, "unknown"] > 10, outcomes


def test_internal_topics_by_name():
    topics = {"group": "__consumer_offsets", "transaction": "__transaction_state", "share": "__share_group_state"}
    for coordinator, name in topics.items():
        values = golden(coordinator, "coordinator-value")
        for schema, stored_keys in golden(coordinator, "coordinator-key").items():
            key, message = stored_keys[-1]
            assert decode_internal_record(name, key, None) == (message, None, None)
            for value, content in values[schema.removesuffix("Key").replace("Legacy", "") + "Value"]:
                version = int.from_bytes(value[:2], "big")
                assert decode_internal_record(name, key, value) == (message, content, version)
            assert decode_internal_record("orders", key, None) is None
    for records in golden("metadata", "metadata").values():
        for stored, message in records:
            found = decode_internal_record("__cluster_metadata", None, stored)
            assert found[:2] == (None, message)
            assert message.encode(found.version) == stored[-len(message.encode(found.version)) :]


def test_control_records_by_name():
    names = Counter()
    for vector in vectors("control"):
        key, value = bytes.fromhex(vector["key_hex"]), bytes.fromhex(vector["value_hex"])
        found = decode_control_record(key, memoryview(value))
        assert (found.type, found.version) == (vector["name"], vector["version"])
        values = found.value.to_dict()
        assert encode_control_record(found) == (key, value)
        assert same(plain_json(vector["json"], values), without_absent(values, vector["json"]))
        names[found.type] += 1
        assert decode_control_record(key, value[:-1]) is None
        assert decode_control_record(key, value + b"\0") is None
    assert len(names) == 7
    assert decode_control_record(b"\0\0\x7f\xff", b"\0\0") is None
    for key, value in ((None, b""), (b"", None), (b"\0\0\0\1", None), (b"\0\0\0\1", b"\0\7\0\0\0\0")):
        assert decode_control_record(key, value) is None


def written_by_brokers():
    """(topic, record) of each record, and ("control", record) of each control record, in real brokers' logs."""
    directories = [sample.path for sample in segments() if sample.path.parent.name.startswith("__")]
    directories += sorted(SAMPLE.glob("__*/*.log"))
    for path in directories:
        topic = path.parent.name.rpartition("-")[0]
        columns = kc.decode(path.read_bytes(), batch_columns=True, include_control=True)
        for record, control in zip(columns.records(), columns["is_control"].tolist(), strict=True):
            yield (str(path), "control" if control else topic), record


def test_records_of_real_brokers_are_encoded_as_they_were():
    counts = Counter()
    for (path, topic), record in written_by_brokers():
        if topic == "control":
            found = decode_control_record(record.key, record.value)
            again = encode_control_record(found)
        else:
            found = decode_internal_record(topic, record.key, record.value)
            again = encode_internal_record(topic, found)
        assert again == (record.key, record.value), (path, found)
        counts[topic, type(found.value).__name__] += 1
    assert {topic for topic, _ in counts} == {"control", *INTERNAL_TOPICS} - {"__share_group_state"}
    assert {"OffsetCommitValue", "GroupMetadataValue", "TransactionLogValue", "TopicRecord"} <= {n for _, n in counts}
    assert sum(counts.values()) > 1000, counts


def test_what_cannot_be_stored():
    commit = messages.OffsetCommitKey(group="g", topic="t", partition=0)
    offset = messages.OffsetCommitValue(offset=1)
    topic = messages.TopicRecord(name="t")
    begin = messages.LeaderChangeMessage(version=0)
    for wrong, error, encode, arguments in (
        ("another coordinator's key", TypeError, encode_coordinator_record, ("share", commit, None, None)),
        ("a request", TypeError, encode_coordinator_record, ("group", messages.MetadataRequest(), None, None)),
        ("no message", TypeError, encode_coordinator_record, ("group", b"", None, None)),
        ("another value", TypeError, encode_coordinator_record, ("group", commit, messages.GroupMetadataValue(), 3)),
        ("no version", TypeError, encode_coordinator_record, ("group", commit, offset, None)),
        ("unknown version", kc.UnsupportedVersion, encode_coordinator_record, ("group", commit, offset, 77)),
        ("negative version", kc.UnsupportedVersion, encode_coordinator_record, ("group", commit, offset, -1)),
        ("an int too large", kc.EncodeError, encode_metadata_record, (messages.TopicRecord(name=7), 0)),
        ("a request", TypeError, encode_metadata_record, (messages.MetadataRequest(), 0)),
        ("unknown version", kc.UnsupportedVersion, encode_metadata_record, (topic, 77)),
        ("another topic", ValueError, encode_internal_record, ("orders", StoredRecord(commit, None, None))),
        ("no key", TypeError, encode_internal_record, ("__consumer_offsets", StoredRecord(None, offset, 3))),
        ("a key", TypeError, encode_internal_record, (METADATA, StoredRecord(commit, topic, 0))),
        ("a tombstone", TypeError, encode_internal_record, (METADATA, StoredRecord(None, None, None))),
        ("unknown type", ValueError, encode_control_record, (ControlRecord("BEGIN", 0, begin),)),
        ("another type", TypeError, encode_control_record, (ControlRecord("COMMIT", 0, begin),)),
        ("another version", ValueError, encode_control_record, (ControlRecord("LEADER_CHANGE", 1, begin),)),
    ):
        with pytest.raises(error):
            pytest.fail(f"{wrong}: {encode(*arguments)!r}")
