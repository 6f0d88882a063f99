"""Fetch responses as one table; transactions against what a read_committed consumer was given."""

from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from tests.corpus import read_committed

pytest.importorskip("pyarrow")

Topic = messages.FetchResponse.FetchableTopicResponse
Partition = messages.FetchResponse.PartitionData
Aborted = messages.FetchResponse.AbortedTransaction


def response(*partitions, name="orders"):
    body = messages.FetchResponse(responses=[Topic(topic=name, partitions=list(partitions))]).encode(12)
    return messages.FetchResponse.decode(body, 12)


def test_partitions_become_one_table():
    one = Partition(partition_index=0, records=kc.encode([(b"k", b"v"), (None, b"w")]))
    two = Partition(partition_index=1, records=kc.encode([(b"x", None)], base_offset=7))
    table = protocol.fetch_to_columns(response(one, Partition(partition_index=2, records=b""), two))
    assert table.column_names[:3] == ["topic", "partition", "offset"]
    assert table.select(["topic", "partition", "offset", "value"]).to_pylist() == [
        {"topic": "orders", "partition": 0, "offset": 0, "value": b"v"},
        {"topic": "orders", "partition": 0, "offset": 1, "value": b"w"},
        {"topic": "orders", "partition": 1, "offset": 7, "value": None},
    ]
    chosen = protocol.fetch_to_columns(response(one), columns=["value"])
    assert chosen.column_names == ["topic", "partition", "value"]


def test_nothing_fetched():
    table = protocol.fetch_to_columns(messages.FetchResponse())
    assert (len(table), table.column_names[:2]) == (0, ["topic", "partition"])


def test_errors():
    with pytest.raises(kc.errors.NotLeaderOrFollowerError, match="orders-3"):
        protocol.fetch_to_columns(response(Partition(partition_index=3, error_code=6, records=b"")))
    damaged = bytearray(kc.encode([(b"k", b"v")]))
    damaged[-1] ^= 1
    with pytest.raises(kc.CrcMismatch, match="orders-1"):
        protocol.fetch_to_columns(response(Partition(partition_index=1, records=bytes(damaged))))


@pytest.mark.parametrize("case", read_committed(), ids=lambda case: f"{case.directory.name}-{case.topic}")
def test_aborted_transactions_are_dropped(case):
    """With the transactions that the log itself says were aborted, a consumer gets what Kafka's consumer got."""
    partition = kc.log.LogDirectory(case.directory).partition(case.topic, case.partition)
    records = b"".join(Path(segment.path).read_bytes() for segment in partition.segments)
    aborted = [
        Aborted(producer_id=int(row["producer_id"]), first_offset=int(row["first_offset"]))
        for row in partition.transactions().aborted
    ]
    fetched = response(
        Partition(partition_index=case.partition, records=records, aborted_transactions=aborted), name=case.topic
    )
    table = protocol.fetch_to_columns(fetched, isolation_level="read_committed", columns=["offset"])
    offsets = [offset for offset in table.column("offset").to_pylist() if offset < case.end_offset]
    assert offsets == case.offsets
