"""Kafka's uncompressed batches, decoded and encoded again, are the same bytes; aiokafka reads the result."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from aiokafka.record.memory_records import MemoryRecords

import kafkacodec as kc
from tests.corpus import Sample, segments

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def same_parameters(batch: dict[str, Any]) -> dict[str, Any]:
    return {
        "producer_id": batch["producerId"],
        "producer_epoch": batch["producerEpoch"],
        "base_sequence": batch["baseSequence"],
        "is_transactional": batch["isTransactional"],
        "partition_leader_epoch": batch["partitionLeaderEpoch"],
    }


def can_be_encoded(batch: dict[str, Any]) -> bool:
    """Whether the bytes depend only on the records and the parameters of `encode`."""
    return (
        batch["magic"] == 2
        and batch["codec"] == "none"
        and batch["timestampType"] == "CreateTime"
        and not batch["isControl"]
        and not batch["deleteHorizonMs"]
        and batch["recordCount"] == batch["lastOffset"] - batch["baseOffset"] + 1
    )


@pytest.mark.parametrize("sample", segments(magics={2}), ids=str)
def test_golden_batches_come_back_byte_for_byte(sample: Sample) -> None:
    data = sample.data()
    for batch in filter(can_be_encoded, sample.expected.batches):
        raw = data[batch["position"] : batch["position"] + batch["sizeInBytes"]]
        assert kc.encode(kc.decode(raw), batch_bytes=2**31 - 1, **same_parameters(batch)) == raw


def test_the_golden_batches_are_many() -> None:
    batches = [b for s in segments(magics={2}) for b in s.expected.batches if can_be_encoded(b)]
    assert len(batches) >= 300
    assert any(b["isTransactional"] for b in batches)
    assert any(b["recordCount"] > 100 for b in batches)


def golden_markers() -> list[Any]:
    found = []
    for sample in segments(magics={2}):
        data = sample.data()
        for batch in sample.expected.batches:
            if batch["magic"] == 2 and batch["isControl"] and batch["producerId"] >= 0 and not batch["deleteHorizonMs"]:
                raw = data[batch["position"] : batch["position"] + batch["sizeInBytes"]]
                found.append(pytest.param(batch, raw, id=f"{sample}@{batch['position']}"))
    return found[:200]


@pytest.mark.parametrize(("batch", "raw"), golden_markers())
def test_golden_transaction_markers_come_back_byte_for_byte(batch: dict[str, Any], raw: bytes) -> None:
    (record,) = kc.iter_records(raw, include_control=True)
    kind = {b"\0\0\0\0": "abort", b"\0\0\0\1": "commit"}[record.key]
    made = kc.control_batch(
        kind,  # type: ignore[arg-type]
        offset=batch["baseOffset"],
        producer_id=batch["producerId"],
        producer_epoch=batch["producerEpoch"],
        coordinator_epoch=int.from_bytes(record.value[2:], "big", signed=True),
        timestamp=record.timestamp,
        partition_leader_epoch=batch["partitionLeaderEpoch"],
    )
    assert made == raw


@pytest.mark.parametrize("codec", CODECS)
def test_aiokafka_reads_every_codec(codec: str) -> None:
    n = 3000
    keys = [None if i % 7 == 0 else b"" if i % 11 == 0 else b"k%d" % i for i in range(n)]
    values = [None if i % 13 == 0 else bytes([i % 256]) * (i % 300) for i in range(n)]
    headers = [[] if i % 3 else [("h\u00e9", None if i % 2 else b"x" * (i % 50))] for i in range(n)]
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array(range(1_700_000_000_000, 1_700_000_000_000 + n), pa.timestamp("ms", "UTC")),
            "headers": pa.array([[{"key": k, "value": v} for k, v in h] for h in headers], pairs),
        }
    )
    batches = MemoryRecords(kc.encode(table, codec=codec, base_offset=1000))
    read = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        read += [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert read == [(1000 + i, 1_700_000_000_000 + i, keys[i], values[i], headers[i]) for i in range(n)]
