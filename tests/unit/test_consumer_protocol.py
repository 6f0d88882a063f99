"""Subscriptions and assignments of classic consumers: bytes written out by hand from the schemas (KIP-429, KIP-881)."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.messages.consumer_protocol import (
    StickyUserData,
    decode_assignment,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_sticky_user_data,
    encode_subscription,
)

Subscription, Assignment = messages.ConsumerProtocolSubscription, messages.ConsumerProtocolAssignment
TOPICS = bytes.fromhex("00000001 0004") + b"work"
NO_USER_DATA = bytes.fromhex("ffffffff")
OWNED = bytes.fromhex("00000001 0004") + b"work" + bytes.fromhex("00000002 00000000 00000003")
FIELDS = [TOPICS + NO_USER_DATA, OWNED, bytes.fromhex("00000007"), bytes.fromhex("0002") + b"r1"]


def subscription(version: int) -> bytes:
    return version.to_bytes(2, "big") + b"".join(FIELDS[: version + 1])


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_of_every_version(version: int) -> None:
    owned = [Subscription.TopicPartition(topic="work", partitions=[0, 3])]
    expected = Subscription(
        topics=["work"],
        owned_partitions=owned if version >= 1 else [],
        generation_id=7 if version >= 2 else -1,
        rack_id="r1" if version >= 3 else None,
    )
    assert decode_subscription(memoryview(subscription(version))) == expected
    assert encode_subscription(expected, version) == subscription(version)


def test_a_newer_version_is_read_as_the_newest_known_one() -> None:
    data = (9).to_bytes(2, "big") + subscription(3)[2:] + b"fields of version 9"
    assert decode_subscription(data) == decode_subscription(subscription(3))


@pytest.mark.parametrize("size", range(len(FIELDS[0]), len(FIELDS[0]) + len(OWNED)))
def test_a_version_whose_fields_are_missing_is_read_as_version_0(size: int) -> None:
    found = decode_subscription(subscription(1)[: 2 + size])
    assert (found.topics, found.owned_partitions) == (["work"], [])


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xff" + subscription(0)[2:], b"\0\0\0\0\0\x05", subscription(0)[:-1]]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(kc.DecodeError):
        decode_subscription(data)


def test_assignments() -> None:
    data = b"\0\x01" + OWNED + bytes.fromhex("00000002 beef")
    owned = [Assignment.TopicPartition(topic="work", partitions=[0, 3])]
    assert decode_assignment(data) == Assignment(assigned_partitions=owned, user_data=b"\xbe\xef")
    assert encode_assignment(Assignment(assigned_partitions=owned, user_data=b"\xbe\xef"), 1) == data
    assert decode_assignment(b"") == Assignment()
    with pytest.raises(kc.DecodeError):
        decode_assignment(data[:12])


def test_user_data_of_the_sticky_assignors() -> None:
    assert decode_sticky_user_data(OWNED) == StickyUserData(-1, {"work": [0, 3]})
    assert decode_sticky_user_data(OWNED + b"\0\0\0\x05") == StickyUserData(5, {"work": [0, 3]})
    assert decode_sticky_user_data(b"\0\0\0\x05", cooperative=True) == StickyUserData(5, {})
    assert encode_sticky_user_data(StickyUserData(5, {"work": [0, 3]})) == OWNED + b"\0\0\0\x05"
    assert encode_sticky_user_data(StickyUserData(5, {"work": [0]}), cooperative=True) == b"\0\0\0\x05"
    with pytest.raises(kc.EncodeError):
        encode_sticky_user_data(StickyUserData(5, {"work": [1 << 31]}))
    for bad in (b"", OWNED[:-1], b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\x01\0\x01\xff\0\0\0\0"):
        with pytest.raises(kc.DecodeError):
            decode_sticky_user_data(bad)
