"""Stored records of Kafka's internal topics, with type and version: golden bytes, intact and damaged."""

import random
from collections import Counter, defaultdict

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.messages.stored import decode_coordinator_record, decode_metadata_record
from tests.message_values import damage
from tests.protocol_vectors import vectors

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
