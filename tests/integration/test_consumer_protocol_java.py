"""Subscriptions that Kafka's assignors make, and assignments that Kafka reads."""

from __future__ import annotations

import pytest

from kafkacodec import messages
from kafkacodec.messages.consumer_protocol import decode_subscription, encode_assignment, encode_subscription
from kafkacodec.messages.embedded import expand
from tests.integration import kafka_jvm

pytestmark = pytest.mark.java
OWNED = {"orders": [0, 5], "заказы": [2]}
# What onAssignment was told; the cooperative assignor takes the partitions from the subscription instead.
USER_DATA = {
    "range": None,
    "sticky": {"generation": 41, "previous_assignment": OWNED},
    "cooperative-sticky": {"generation": 41, "previous_assignment": {}},
}


def test_subscriptions_of_kafkas_assignors() -> None:
    lines = [line.split(" ") for line in kafka_jvm.tool("subscriptions", program="AssignorTool")]
    assert {(name, int(version)) for name, version, _ in lines} == {(name, v) for name in USER_DATA for v in range(4)}
    for name, number, text in lines:
        version, data = int(number), bytes.fromhex(text)
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data)
        request = messages.JoinGroupRequest(group_id="g", protocol_type="consumer", protocols=[protocol])
        shown = expand(request)["protocols"][0]["metadata"]
        expected = {"version": version, "topics": ["orders", "заказы"], "user_data": USER_DATA[name]}
        owned = shown.pop("owned_partitions", [])
        assert {part["topic"]: part["partitions"] for part in owned} == (OWNED if version >= 1 else {})
        expected |= {"generation_id": 41} if version >= 2 else {}
        expected |= {"rack_id": "rack-1"} if version >= 3 else {}
        assert shown == expected
        assert encode_subscription(decode_subscription(data), version) == data


@pytest.mark.parametrize("version", range(4))
def test_kafka_reads_our_assignments(version: int) -> None:
    Assignment = messages.ConsumerProtocolAssignment
    parts = [Assignment.TopicPartition(topic=topic, partitions=numbers) for topic, numbers in OWNED.items()]
    data = encode_assignment(Assignment(assigned_partitions=parts, user_data=b"\x01\xff"), version)
    *read, user_data = kafka_jvm.tool("assignment", data.hex(), program="AssignorTool")
    assert read == [f"{topic} {number}" for topic, numbers in OWNED.items() for number in numbers]
    assert user_data == "01ff"
