"""Structures inside the bytes of messages: record sets, subscriptions, assignments."""

from __future__ import annotations

from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.messages.consumer_protocol import encode_assignment, encode_subscription
from kafkacodec.messages.embedded import expand, expand_records
from tests.corpus import ROOT, sample
from tests.unit.test_consumer_protocol import OWNED

SEGMENT = "logs/kraft-4.1.0/txn-0/00000000000000000000.log"
Subscription, Assignment = messages.ConsumerProtocolSubscription, messages.ConsumerProtocolAssignment


def test_records_are_those_that_kafka_reads() -> None:
    expected = sample(SEGMENT).expected
    found = expand_records((ROOT / SEGMENT).read_bytes())
    assert isinstance(found, list)
    assert len(found) == len(expected.records)
    for mine, theirs in zip(found, expected.records, strict=True):
        assert (mine["offset"], mine["timestamp"], mine["timestamp_type"]) == theirs[:3]
        assert (mine["key"], mine["value"]) == (theirs.key, theirs.value)
        assert [(h["key"], h["value"]) for h in mine["headers"]] == theirs.headers
        assert ("control" in mine) == theirs.is_control
        if theirs.is_control:
            batch = expected.batches[theirs.batch]
            kind = "COMMIT" if theirs.key == b"\0\0\0\1" else "ABORT"
            place = {"producer_id": batch["producerId"], "producer_epoch": batch["producerEpoch"]}
            assert mine["control"] == {"type": kind, "version": 0, "coordinator_epoch": 0} | place


def test_records_of_fetch_and_produce() -> None:
    records = kc.encode([(b"k", b"v")], base_offset=7)
    Fetch = messages.FetchResponse
    part = Fetch.PartitionData(partition_index=3, records=records + records[:20])
    none = Fetch.PartitionData(partition_index=4, records=None)
    message = Fetch(responses=[Fetch.FetchableTopicResponse(topic="orders", partitions=[part, none])])
    decoded = Fetch.decode(message.encode(12), 12)
    first, second = expand(decoded)["responses"][0]["partitions"]
    assert second["records"] is None
    assert (first["records"]["rest"], first["records"]["error"]) == (records[:20], None)
    (record,) = first["records"]["records"]
    assert (record["offset"], record["key"], record["value"], record["headers"]) == (7, b"k", b"v", [])

    Produce = messages.ProduceRequest
    data = Produce.PartitionProduceData(index=0, records=records)
    request = Produce(topic_data=[Produce.TopicProduceData(name="orders", partition_data=[data])])
    assert expand(request)["topic_data"][0]["partition_data"][0]["records"] == [record]


def test_damaged_records_keep_their_bytes() -> None:
    good, bad = kc.encode([(None, b"a")]), bytearray(kc.encode([(None, b"b")]))
    bad[-2] ^= 1
    found: Any = expand_records(good + bytes(bad))
    assert [record["value"] for record in found["records"]] == [b"a"]
    assert found["rest"] == bytes(bad)
    assert "CRC-32C" in found["error"]


def join(assignor: str, metadata: bytes, protocol_type: str = "consumer") -> Any:
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol(name=assignor, metadata=metadata)
    request = messages.JoinGroupRequest(group_id="g", protocol_type=protocol_type, protocols=[protocol])
    return expand(request)["protocols"][0]["metadata"]


@pytest.mark.parametrize(
    ("assignor", "user_data", "expected"),
    [
        ("range", OWNED, OWNED),
        ("sticky", OWNED + b"\0\0\0\5", {"generation": 5, "previous_assignment": {"work": [0, 3]}}),
        ("cooperative-sticky", b"\0\0\0\5", {"generation": 5, "previous_assignment": {}}),
        ("sticky", b"other", b"other"),
        ("sticky", None, None),
    ],
)
def test_subscriptions(assignor: str, user_data: bytes | None, expected: object) -> None:
    data = encode_subscription(Subscription(topics=["work"], user_data=user_data), 1)
    found = join(assignor, data)
    assert found == {"version": 1, "topics": ["work"], "user_data": expected, "owned_partitions": []}
    assert join(assignor, data, "connect") == data
    assert join(assignor, b"\0\0\0") == b"\0\0\0"


def test_groups_of_responses() -> None:
    owned = [Assignment.TopicPartition(topic="work", partitions=[0])]
    subscription = encode_subscription(Subscription(topics=["work"]), 3)
    assignment = encode_assignment(Assignment(assigned_partitions=owned), 3)
    Described = messages.DescribeGroupsResponse
    member = Described.DescribedGroupMember(member_metadata=subscription, member_assignment=assignment)
    group = Described.DescribedGroup(protocol_type="consumer", protocol_data="range", members=[member])
    shown = expand(Described(groups=[group]))["groups"][0]["members"][0]
    assert shown["member_metadata"]["topics"] == ["work"]
    assert shown["member_assignment"]["assigned_partitions"] == [{"topic": "work", "partitions": [0]}]
    group.protocol_type = "connect"
    assert expand(Described(groups=[group]))["groups"][0]["members"][0]["member_metadata"] == subscription

    sync = messages.SyncGroupResponse(assignment=assignment)
    assert expand(sync)["assignment"]["assigned_partitions"] == [{"topic": "work", "partitions": [0]}]
    assert expand(messages.SyncGroupResponse(assignment=assignment + b"?"))["assignment"] == assignment + b"?"
    assert expand(messages.SyncGroupResponse())["assignment"] == b""
    part = messages.SyncGroupRequest.SyncGroupRequestAssignment(member_id="m", assignment=assignment)
    assert expand(messages.SyncGroupRequest(assignments=[part]))["assignments"][0]["assignment"]["version"] == 3
    joined = messages.JoinGroupResponse.JoinGroupResponseMember(member_id="m", metadata=subscription)
    response = messages.JoinGroupResponse(protocol_name="range", members=[joined])
    assert expand(response)["members"][0]["metadata"]["topics"] == ["work"]
