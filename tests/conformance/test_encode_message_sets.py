"""Encoding with magic 0 and 1: golden bytes of Kafka's builder, and reading the result with other readers."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch
from aiokafka.record.memory_records import MemoryRecords

import kafkacodec as kc
from tests.corpus import Sample, blobs, rows, segments

PLAIN = [
    sample
    for sample in blobs("builder") + segments(magics={0}) + segments(magics={1})
    if sample.magics in ({0}, {1}) and {batch["codec"] for batch in sample.expected.batches} == {"none"}
]
CODECS = ["none", "gzip", "snappy", "lz4"]

RECORDS = [
    kc.Record(10, 1_600_000_000_000, 0, b"key", b"value" * 40, ()),
    kc.Record(12, 1_600_000_000_007, 0, None, b"", ()),
    kc.Record(13, 1_500_000_000_000, 0, b"", None, ()),
    kc.Record(20, None, 0, None, None, ()),
]
UNTIMED = [record._replace(timestamp=None) for record in RECORDS]


def attributes_of(data: bytes) -> int:
    return data[17]


@pytest.mark.parametrize("sample", PLAIN, ids=str)
def test_same_bytes_as_kafka(sample: Sample) -> None:
    (magic,) = sample.magics
    data = sample.data()[: sample.expected.valid_bytes]
    kinds = {batch["timestampType"] for batch in sample.expected.batches}
    if len(kinds) > 1:
        pytest.fail("a mix of timestamp types needs two calls of encode")
    decoded = kc.decode(data)
    again = kc.encode(decoded, magic=magic, timestamp_type=int(kinds == {"LogAppendTime"}))
    assert again == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_round_trip(magic: int, codec: str) -> None:
    records = RECORDS if magic else UNTIMED
    kind = 0 if magic else -1
    for batch_bytes in (1, 400, 16384):
        data = kc.encode(records, magic=magic, codec=codec, batch_bytes=batch_bytes)
        assert kc.scan(data)["crc_ok"].all()
        assert list(kc.iter_records(data)) == [r._replace(timestamp_type=kind) for r in records]


# aiokafka refuses LZ4 in magic 0 altogether.
@pytest.mark.parametrize(("magic", "codec"), [(m, c) for m in (0, 1) for c in CODECS if (m, c) != (0, "lz4")])
def test_aiokafka_reads_it(magic: int, codec: str) -> None:
    records = RECORDS[:3] if magic else UNTIMED[:3]
    batches = MemoryRecords(kc.encode(records, magic=magic, codec=codec))
    got: list[tuple[Any, ...]] = []
    while batches.has_next():
        batch = batches.next_batch()
        assert isinstance(batch, LegacyRecordBatch)
        assert batch.validate_crc()
        got += [(r.offset, r.timestamp, r.key, r.value) for r in batch]
    assert got == [(r.offset, r.timestamp, r.key, r.value) for r in records]


def test_wrapper() -> None:
    data = kc.encode(RECORDS, magic=1, codec="gzip", batch_bytes=1 << 20)
    offset, length, _, magic, attributes, timestamp, key_size = struct.unpack_from(">qiIbbqi", data)
    assert (offset, length, magic, attributes, timestamp, key_size) == (20, len(data) - 12, 1, 1, 1_600_000_000_007, -1)
    headers = kc.scan(data)
    assert len(headers) == 1
    assert headers["last_offset"].tolist() == [20]


def test_append_time() -> None:
    data = kc.encode(RECORDS[:2], magic=1, codec="lz4", timestamp_type=1)
    assert attributes_of(data) == 0x08 | 3
    assert [(r.timestamp, r.timestamp_type) for r in kc.iter_records(data)] == [(1_600_000_000_007, 1)] * 2


def test_batches_one_by_one() -> None:
    many = [(b"k%d" % i, b"v" * 100) for i in range(1000)]
    for codec in ("none", "snappy"):
        batches = list(kc.iter_encoded(many, magic=1, codec=codec, batch_bytes=2000, base_offset=5))
        assert b"".join(batch.data for batch in batches) == kc.encode(
            many, magic=1, codec=codec, batch_bytes=2000, base_offset=5
        )
        assert batches[0].base_offset == 5
        assert batches[-1].last_offset == 1004
        assert sum(batch.num_records for batch in batches) == 1000


def test_what_the_format_cannot_hold() -> None:
    with_headers = [RECORDS[0], RECORDS[1]._replace(headers=(("h", b"x"),))]
    with pytest.raises(kc.EncodeError, match=r"magic 0 and 1 have no headers") as raised:
        kc.encode(with_headers, magic=1)
    assert raised.value.path == "records[1]"
    with pytest.raises(kc.EncodeError, match="magic 0 have no timestamp") as raised:
        kc.encode([UNTIMED[0], RECORDS[1]], magic=0)
    assert raised.value.path == "records[1]"


def test_dropping_it_on_request() -> None:
    with_headers = [RECORDS[0]._replace(headers=(("h", b"x"),))]
    assert kc.encode(with_headers, magic=1, drop_unsupported=True) == kc.encode(RECORDS[:1], magic=1)
    for codec in CODECS:
        dropped = kc.encode(RECORDS, magic=0, codec=codec, drop_unsupported=True)
        assert [r.timestamp for r in kc.iter_records(dropped)] == [None] * 4
    assert rows(kc.decode(dropped)) == rows(kc.decode(kc.encode(UNTIMED, magic=0)))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"magic": 3}, "magic must be from 0 to 2"),
        ({"magic": -1}, "magic must be from 0 to 2"),
        ({"magic": 1, "codec": "zstd"}, "zstd needs magic 2"),
        ({"magic": 1, "producer_id": 1}, "magic 1 have no producer_id"),
        ({"magic": 0, "producer_epoch": 1}, "magic 0 have no producer_epoch"),
        ({"magic": 1, "base_sequence": 0}, "have no base_sequence"),
        ({"magic": 1, "partition_leader_epoch": 0}, "have no partition_leader_epoch"),
        ({"magic": 1, "is_transactional": True}, "have no is_transactional"),
        ({"magic": 0, "timestamp_type": 1}, "magic 0 have no timestamp_type"),
    ],
)
def test_arguments_that_the_format_has_no_place_for(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        kc.encode(UNTIMED, **options)
