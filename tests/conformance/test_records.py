"""Record batches v2 written by brokers and Kafka's library, compared with the results of Kafka's reader."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.corpus import Row, Sample, assert_same_records, blobs, rows, segments
from tests.reference import records as reference

SOUND = [*segments(magics={2}), *blobs("builder", "cut", "fetch", magics={2})]
FOREIGN = blobs("foreign", magics={2})
CORRUPT = blobs("corrupt", magics={2})


def readable(samples: list[Sample]) -> list[Sample]:
    return [s for s in samples if s.error is None]


@pytest.mark.parametrize("sample", readable(SOUND), ids=str)
def test_records_are_those_of_kafkas_reader(sample: Sample) -> None:
    result = kc.decode(sample.data(), include_control=True)
    assert_same_records(result, sample.expected.records)
    assert result.consumed == sample.expected.valid_bytes
    assert result.problems == []


@pytest.mark.parametrize("max_rows", [1, 7, 8192])
@pytest.mark.parametrize("sample", readable(SOUND)[::9], ids=str)
def test_chunks_add_up_to_the_whole(sample: Sample, max_rows: int) -> None:
    data = sample.data()
    chunks = list(kc.iter_columns(data, include_control=True, max_rows=max_rows))
    assert all(len(chunk) <= max_rows for chunk in chunks)
    assert_same_records(pa.Table.from_batches([pa.record_batch(c) for c in chunks]), sample.expected.records)
    assert chunks[-1].consumed == sample.expected.valid_bytes


@pytest.mark.parametrize("sample", readable(SOUND)[::5], ids=str)
def test_records_one_by_one(sample: Sample) -> None:
    got = [
        Row(r.offset, r.timestamp, r.timestamp_type, r.key, r.value, list(r.headers))
        for r in list(kc.iter_records(sample.data(), include_control=True))
    ]
    assert got == rows(kc.decode(sample.data(), include_control=True))


@pytest.mark.parametrize("sample", readable(SOUND)[::7], ids=str)
def test_threads_change_nothing(sample: Sample) -> None:
    data = sample.data()
    alone = kc.decode(data, include_control=True, batch_columns=True)
    together = kc.decode(data, include_control=True, batch_columns=True, threads=3)
    assert pa.record_batch(together).equals(pa.record_batch(alone))
    assert together.consumed == alone.consumed


@pytest.mark.parametrize("sample", readable(SOUND), ids=str)
def test_headers_are_those_of_kafkas_reader(sample: Sample) -> None:
    table = pa.table(kc.scan(sample.data()))
    names = {
        "position": "position",
        "size_in_bytes": "sizeInBytes",
        "base_offset": "baseOffset",
        "last_offset": "lastOffset",
        "magic": "magic",
        "codec": "codec",
        "count": "count",
        "producer_id": "producerId",
        "producer_epoch": "producerEpoch",
        "base_sequence": "baseSequence",
        "partition_leader_epoch": "partitionLeaderEpoch",
        "is_transactional": "isTransactional",
        "is_control": "isControl",
        "delete_horizon_ms": "deleteHorizonMs",
        "crc": "crc",
    }
    for mine, theirs in names.items():
        assert table.column(mine).to_pylist() == [b[theirs] for b in sample.expected.batches], mine
    assert all(table.column("crc_ok").to_pylist())
    for mine, theirs in {"max_timestamp": "maxTimestamp", "base_timestamp": "baseTimestamp"}.items():
        got = table.column(mine).cast(pa.int64()).fill_null(-1).to_pylist()
        assert got == [b.get(theirs, -1) for b in sample.expected.batches], mine


@pytest.mark.parametrize("sample", readable(SOUND)[::3], ids=str)
def test_the_reference_reader_agrees(sample: Sample) -> None:
    batches = reference.read(sample.data())
    assert rows(kc.decode(sample.data(), include_control=True)) == [
        Row(*record) for _, records in batches for record in records
    ]


@pytest.mark.parametrize("sample", readable(FOREIGN), ids=str)
def test_compressed_data_of_other_shapes(sample: Sample) -> None:
    assert_same_records(kc.decode(sample.data(), include_control=True), sample.expected.records)


@pytest.mark.parametrize("sample", [s for s in FOREIGN if s.error], ids=str)
def test_shapes_that_kafka_refuses_are_refused(sample: Sample) -> None:
    with pytest.raises(kc.DecodeError):
        kc.decode(sample.data(), include_control=True)


# Where the two readers part; docs/records.md gives the reasons.
COUNTS_NONE = "a batch with a record count of 0 contains records"
BOMB = "decompressed data exceeds the limit"
STRICTER = {
    "v2-count-0.bin": COUNTS_NONE,
    "v2-gzip-count-zero.bin": COUNTS_NONE,
    "v2-lz4-count-zero.bin": COUNTS_NONE,
    "v2-snappy-count-zero.bin": COUNTS_NONE,
    "v2-zstd-count-zero.bin": COUNTS_NONE,
    "v2-gzip-bomb-one-record.bin": BOMB,
    "v2-zstd-bomb-one-record.bin": BOMB,
}
MILDER = {"v2-length-2147483647.bin", "v2-then-zeros.bin", "zeros.bin"}  # a partial batch; a preallocated tail
DAMAGED = [s for s in CORRUPT if s.error is not None and s.path.name not in MILDER]


@pytest.mark.parametrize("sample", DAMAGED, ids=str)
def test_damage_is_refused_where_kafka_refuses_it(sample: Sample) -> None:
    with pytest.raises(kc.DecodeError) as caught:
        kc.decode(sample.data(), include_control=True)
    assert caught.value.position is not None
    assert 0 <= caught.value.position <= len(sample.data())


@pytest.mark.parametrize("sample", [s for s in CORRUPT if s.path.name in STRICTER], ids=str)
def test_damage_that_only_we_refuse(sample: Sample) -> None:
    with pytest.raises(kc.DecodeError) as caught:
        kc.decode(sample.data(), include_control=True)
    assert STRICTER[sample.path.name] in caught.value.reason


@pytest.mark.parametrize("sample", [s for s in CORRUPT if s not in DAMAGED and s.path.name not in STRICTER], ids=str)
def test_damage_that_is_none(sample: Sample) -> None:
    result = kc.decode(sample.data(), include_control=True)
    assert_same_records(result, sample.expected.records)
    assert result.consumed == sample.expected.valid_bytes


@pytest.mark.parametrize("sample", DAMAGED, ids=str)
def test_what_comes_before_the_damage_is_kept(sample: Sample) -> None:
    whole_batches = [row for row in sample.expected.records if row.batch < sample.expected.error["batch"]]
    result = kc.decode(sample.data(), include_control=True, on_error="stop")
    assert rows(result)[: len(whole_batches)] == rows_of(whole_batches)
    (problem,) = result.problems
    assert isinstance(problem.exception, kc.DecodeError)
    assert problem.position + problem.size_in_bytes == len(sample.data())


@pytest.mark.parametrize("sample", CORRUPT, ids=str)
def test_skipping_never_raises(sample: Sample) -> None:
    result = kc.decode(sample.data(), include_control=True, on_error="skip")
    assert result.consumed <= len(sample.data())


def rows_of(expected: list[Row]) -> list[Row]:
    return [Row(*row[:6]) for row in expected]
