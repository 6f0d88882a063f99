"""kc.encode: division into batches, header fields, offsets, control batches."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc


def test_offsets_keep_their_gaps() -> None:
    offsets = [3, 4, 9, 2**31 + 3, 2**40]
    data = kc.encode(pa.table({"offset": offsets, "value": [b"x"] * 5}))
    assert [r.offset for r in kc.iter_records(data)] == offsets
    headers = kc.scan(data)
    assert headers["base_offset"].tolist() == [3, 2**31 + 3, 2**40]
    assert headers["last_offset"].tolist() == [9, 2**31 + 3, 2**40]


@pytest.mark.parametrize("chunk_rows", [1, 7, 400])
@pytest.mark.parametrize("batch_bytes", [1, 300, 16_384, 2**31 - 1])
def test_batches_of_all_sizes_are_those_of_encode(chunk_rows: int, batch_bytes: int) -> None:
    sizes = [0, 5, 100_000, 3, *range(200), 40_000, *[120] * 190, 1]
    table = pa.table({"value": [bytes([i % 256]) * size for i, size in enumerate(sizes)]})
    batches = list(kc.iter_encoded(table.to_batches(max_chunksize=chunk_rows), batch_bytes=batch_bytes))
    assert b"".join(batch.data for batch in batches) == kc.encode(table, batch_bytes=batch_bytes)
    assert sum(batch.num_records for batch in batches) == len(sizes)
    read = [record.value for batch in batches for record in kc.iter_records(batch.data)]
    assert read == table["value"].to_pylist()


def test_returned_batches_are_not_written_again() -> None:
    batches = kc.iter_encoded(pa.table({"value": [b"a" * 100, b"b" * 100, b"c" * 100]}), batch_bytes=1)
    first = next(batches)
    copy = bytes(memoryview(first.data))
    rest = list(batches)
    assert first.data == copy
    assert [next(kc.iter_records(batch.data)).value[:1] for batch in (first, *rest)] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("threads", [1, 2])
def test_batches_cover_a_range_of_offsets(codec: Any, threads: int) -> None:
    table = pa.table({"offset": [13, 15, 16, 30], "value": [b"x" * 50] * 4})
    options: Any = {"codec": codec, "threads": threads, "first_offset": 10, "last_offset": 39}
    options |= {"producer_id": 1, "producer_epoch": 0, "base_sequence": 100, "batch_bytes": 200}
    data = kc.encode(table, **options)
    headers = kc.scan(data)
    assert headers["base_offset"].tolist() == [10, 16]
    assert headers["last_offset"].tolist() == [15, 39]
    assert headers["base_sequence"].tolist() == [100, 106]
    assert kc.decode(data, batch_columns=True)["sequence"].tolist() == [103, 105, 106, 120]
    batches = list(kc.iter_encoded(table.to_batches(max_chunksize=1), **options))
    assert b"".join(batch.data for batch in batches) == data
    assert [(batch.base_offset, batch.last_offset, batch.num_records) for batch in batches] == [
        (10, 15, 2),
        (16, 39, 2),
    ]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_range_without_records_is_a_batch_without_records(codec: Any, threads: int) -> None:
    producer: Any = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 4, "is_transactional": True}
    options: Any = {"first_offset": 10, "last_offset": 39, **producer}
    expected = kc.empty_batch(10, 39, **producer)
    for records in ([], pa.table({"value": pa.array([], pa.binary())})):
        assert kc.encode(records, codec=codec, threads=threads, **options) == expected
        assert list(kc.iter_encoded(records, codec=codec, threads=threads, **options)) == [(expected, 10, 39, -1, 0)]


def test_a_delta_of_2_to_the_31_minus_1_is_the_last_that_fits() -> None:
    data = kc.encode(pa.table({"offset": [1, 2**31], "value": [b"x"] * 2}))
    assert len(kc.scan(data)) == 1
    assert [r.offset for r in kc.iter_records(data)] == [1, 2**31]


def test_batches_are_no_larger_than_asked_unless_one_record_is() -> None:
    sizes = [10, 10, 10, 500, 10, 10]
    data = kc.encode([(None, b"x" * n) for n in sizes], batch_bytes=100)
    headers = kc.scan(data)
    # 61 bytes of header and 10 + 7 of each small record
    assert headers["count"].tolist() == [2, 1, 1, 2]
    assert headers["size_in_bytes"].tolist() == [61 + 34, 61 + 17, 61 + 509, 61 + 34]


def test_header_fields() -> None:
    data = kc.encode(
        [(b"k", b"v")] * 3, base_offset=100, batch_bytes=80, producer_id=5, producer_epoch=6, base_sequence=2**31 - 2,
        is_transactional=True, timestamp_type=1, partition_leader_epoch=9,
    )  # fmt: skip
    headers = kc.scan(data)
    assert headers["base_offset"].tolist() == [100, 102]
    assert headers["producer_id"].tolist() == [5, 5]
    assert headers["producer_epoch"].tolist() == [6, 6]
    assert headers["base_sequence"].tolist() == [2**31 - 2, 0]
    assert headers["partition_leader_epoch"].tolist() == [9, 9]
    assert headers["timestamp_type"].tolist() == [1, 1]
    assert headers["crc_ok"].tolist() == [True, True]
    assert pa.table(headers)["is_transactional"].to_pylist() == [True, True]
    assert pa.table(headers)["is_control"].to_pylist() == [False, False]


def test_log_append_time_gives_every_record_the_largest_timestamp() -> None:
    table = pa.table({"value": [b"a", b"b", b"c"], "timestamp": pa.array([5, 9, 7], pa.timestamp("ms"))})
    assert [r.timestamp for r in kc.iter_records(kc.encode(table, timestamp_type=1))] == [9, 9, 9]


def test_no_timestamps_are_minus_one() -> None:
    headers = kc.scan(kc.encode([(b"k", b"v")]))
    assert pa.table(headers)["max_timestamp"].cast(pa.int64()).to_pylist() in ([None], [-1])
    assert [r.timestamp for r in kc.iter_records(kc.encode([(b"k", b"v")]))] == [None]


def test_nothing_gives_nothing() -> None:
    assert kc.encode([]) == b""
    assert kc.encode(pa.table({"value": pa.array([], pa.binary())})) == b""
    assert list(kc.iter_encoded([])) == []


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batch_by_batch_equals_the_whole(codec: str) -> None:
    n = 20_000
    table = pa.table(
        {
            "key": pa.array([b"%d" % (i % 100) for i in range(n)]),
            "value": pa.array([b"value %d" % i for i in range(n)]),
            "timestamp": pa.array([1000 + i for i in range(n)], pa.timestamp("ms")),
        }
    )
    table = pa.Table.from_batches(table.to_batches(max_chunksize=999))
    batches = list(kc.iter_encoded(table, codec=codec, base_offset=50))
    assert b"".join(b.data for b in batches) == kc.encode(table, codec=codec, base_offset=50)
    assert batches[0].base_offset == 50
    assert all(b.base_offset == a.last_offset + 1 for a, b in itertools.pairwise(batches))
    assert sum(b.num_records for b in batches) == n
    assert batches[-1].max_timestamp == 1000 + n - 1
    assert len(kc.decode(batches[3].data)) == batches[3].num_records


def test_memory_stays_bounded_batch_by_batch() -> None:
    alive: set[int] = set()

    class Chunk(bytes):
        def __init__(self, _: bytes) -> None:
            alive.add(id(self))

        def __del__(self) -> None:
            alive.discard(id(self))

    def records() -> Any:
        for _ in range(50_000):
            yield None, Chunk(b"x" * 100)

    most = 0
    for _ in kc.iter_encoded(records()):
        most = max(most, len(alive))
    assert most <= 2


@pytest.mark.parametrize(("kind", "number"), [("abort", 0), ("commit", 1)])
def test_control_batches(kind: Any, number: int) -> None:
    data = kc.control_batch(kind, offset=42, producer_id=7, producer_epoch=3, coordinator_epoch=2, timestamp=1234)
    headers = pa.table(kc.scan(data)).to_pylist()[0]
    assert headers["is_control"]
    assert headers["is_transactional"]
    assert (headers["base_offset"], headers["producer_id"], headers["producer_epoch"]) == (42, 7, 3)
    assert headers["base_sequence"] == -1
    (record,) = kc.iter_records(data, include_control=True)
    assert record.key == bytes([0, 0, 0, number])
    assert record.value == bytes([0, 0, 0, 0, 0, 2])
