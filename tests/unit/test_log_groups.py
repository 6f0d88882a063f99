"""Committed offsets in transactions, as a group coordinator counts them."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.log.state.groups import read_committed_offsets, read_consumer_groups


def commit(topic: str, offset: int) -> tuple[bytes, bytes | None]:
    key = messages.OffsetCommitKey(group="g", topic=topic, partition=0).encode(0)
    value = messages.OffsetCommitValue(offset=offset).encode(3)
    return b"\0\x01" + key, b"\0\x03" + value


def transactional(at: int, producer_id: int, *records: tuple[bytes, bytes | None]) -> bytes:
    return kc.encode(
        records, base_offset=at, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def marker(kind: str, at: int, producer_id: int) -> bytes:
    return kc.control_batch(kind, offset=at, producer_id=producer_id, producer_epoch=0)


def offsets(directory: Path, *batches: bytes) -> dict[str, int]:
    partition = directory / "__consumer_offsets-0"
    partition.mkdir()
    (partition / "00000000000000000000.log").write_bytes(b"".join(batches))
    return {found.topic: found.offset for found in read_committed_offsets(directory)}


def test_a_commit_counts_when_its_transaction_is_committed(tmp_path: Path) -> None:
    found = offsets(
        tmp_path,
        transactional(0, 1, commit("a", 10)),
        transactional(1, 2, commit("b", 20)),
        transactional(2, 3, commit("c", 30)),
        marker("commit", 3, 1),
        marker("abort", 4, 2),
    )
    assert found == {"a": 10}


def test_an_open_transaction_holds_nothing_else_back(tmp_path: Path) -> None:
    found = offsets(
        tmp_path,
        transactional(0, 1, commit("a", 10)),
        kc.encode([commit("b", 20)], base_offset=1),
        transactional(2, 2, commit("c", 30)),
        marker("commit", 3, 2),
    )
    assert found == {"b": 20, "c": 30}


@pytest.mark.parametrize(("transaction_first", "expected"), [(True, 11), (False, 10)])
def test_the_commit_written_last_counts_whenever_its_transaction_ends(
    tmp_path: Path, transaction_first: bool, expected: int
) -> None:
    inside, outside = (0, 1) if transaction_first else (1, 0)
    batches = {
        inside: transactional(inside, 1, commit("a", 10)),
        outside: kc.encode([commit("a", 11)], base_offset=outside),
    }
    assert offsets(tmp_path, batches[0], batches[1], marker("commit", 2, 1)) == {"a": expected}


@pytest.mark.parametrize("version", [0, 1, 3, 99, -1])
@pytest.mark.parametrize("rest", [b"", b"\0\0\0\x01\0"], ids=["nothing", "cut"])
def test_a_subscription_is_read_as_version_0(tmp_path: Path, version: int, rest: bytes) -> None:
    """As a broker, which reads only the topics: any bytes may follow the fields of version 0."""
    topics = b"\0\0\0\x01" + b"\0\x04work" + b"\xff\xff\xff\xff"  # and user data: null
    member = messages.GroupMetadataValue.MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="h",
        subscription=version.to_bytes(2, "big", signed=True) + topics + rest,
    )
    value = messages.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m", members=[member]
    )
    partition = tmp_path / "__consumer_offsets-0"
    partition.mkdir()
    record = b"\0\x02" + messages.GroupMetadataKey(group="g").encode(0), b"\0\x03" + value.encode(3)
    (partition / "00000000000000000000.log").write_bytes(kc.encode([record]))
    (group,) = read_consumer_groups(tmp_path)
    assert [found.topics for found in group.members] == [["work"]]


def coordinator(key: messages.Message, value: messages.Message) -> tuple[bytes, bytes]:
    assert key.api_key is not None
    return key.api_key.to_bytes(2, "big") + key.encode(0), b"\0\0" + value.encode(0)


def test_members_of_a_consumer_group_own_partitions_by_topic_id(tmp_path: Path) -> None:
    """The name of a topic comes from its partition.metadata; a topic of another data directory has only its id."""
    known, elsewhere = uuid.UUID(int=7 << 64 | 1), uuid.UUID(int=9)
    (tmp_path / "orders-0").mkdir()
    text = base64.urlsafe_b64encode(known.bytes).decode().rstrip("=")
    (tmp_path / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}\n")
    Current = messages.ConsumerGroupCurrentMemberAssignmentValue
    parts = [
        Current.TopicPartitions(topic_id=known, partitions=[4, 1]),
        Current.TopicPartitions(topic_id=elsewhere, partitions=[0]),
    ]
    records = [
        coordinator(messages.ConsumerGroupMetadataKey(group_id="g"), messages.ConsumerGroupMetadataValue(epoch=3)),
        coordinator(
            messages.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
            messages.ConsumerGroupMemberMetadataValue(
                client_id="c", client_host="h", subscribed_topic_names=["orders"]
            ),
        ),
        coordinator(
            messages.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
            Current(member_epoch=3, assigned_partitions=parts),
        ),
    ]
    (tmp_path / "__consumer_offsets-0").mkdir()
    (tmp_path / "__consumer_offsets-0" / "00000000000000000000.log").write_bytes(kc.encode(records))
    (group,) = read_consumer_groups(tmp_path)
    assert group.members[0].owned == [("orders", [1, 4]), (str(elsewhere), [0])]
