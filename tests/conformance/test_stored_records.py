"""Stored records of Kafka's internal topics, with type and version: golden bytes, intact and damaged."""

import random
from collections import Counter, defaultdict

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.messages.stored import (
    decode_control_record,
    decode_coordinator_record,
    decode_internal_record,
    decode_metadata_record,
)
from tests.message_values import damage
from tests.protocol_vectors import plain_json, same, vectors, without_absent

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
                compared += 1
    assert compared > 100
    assert decode_coordinator_record(coordinator, b"\x7f\xff", b"anything") is None


def test_metadata_records():
    names = Counter()
    for schema, records in golden("metadata", "metadata").items():
        for stored, message in records:
            assert decode_metadata_record(stored) == message
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
        assert same(plain_json(vector["json"], values), without_absent(values, vector["json"]))
        names[found.type] += 1
        assert decode_control_record(key, value[:-1]) is None
        assert decode_control_record(key, value + b"\0") is None
    assert len(names) == 7
    assert decode_control_record(b"\0\0\x7f\xff", b"\0\0") is None
    for key, value in ((None, b""), (b"", None), (b"\0\0\0\1", None), (b"\0\0\0\1", b"\0\7\0\0\0\0")):
        assert decode_control_record(key, value) is None
