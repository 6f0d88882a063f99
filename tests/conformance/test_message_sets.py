"""Message sets of magic 0 and 1, compared with the results of Kafka's reader: segments, blobs, damaged data."""

from __future__ import annotations

from itertools import chain

import pytest

import kafkacodec as kc
from tests.corpus import Row, Sample, assert_same_records, blobs, rows, segments

SOUND = [
    sample
    for sample in segments() + blobs("builder", "cut", "fetch", "foreign")
    if sample.magics & {0, 1} and sample.error is None
]
DAMAGED = [sample for sample in blobs("corrupt") if sample.path.name.startswith(("v0-", "v1-", "mixed-"))]

# Where kafkacodec refuses what Kafka's reader takes: it drops the last message of a set that is cut inside a wrapper
# (and in magic 1 gives the others wrong offsets), checks no CRC inside a wrapper, and ignores bytes after a value.
STRICTER = {
    "inner-cut": kc.CorruptRecord,
    "inner-header-cut": kc.CorruptRecord,
    "value-length--1": kc.CorruptRecord,
    "value-length--2": kc.CorruptRecord,
    "value-length-0": kc.CorruptRecord,
    "value-length-8": kc.CorruptRecord,
    "bomb": kc.LimitExceeded,
}
STRICTER_IN_V1 = {"inner-crc": kc.CrcMismatch}  # the magic 0 files of that name have the right CRC
# A size beyond the end of the data is a partial message, as any other; Java's sum of sizes overflows.
PARTIAL = {"size-2147483647"}


def fields(records: list[Row]) -> list[tuple[object, ...]]:
    return [record[:6] for record in records]


@pytest.mark.parametrize("sample", SOUND, ids=str)
def test_decodes_to_what_java_reads(sample: Sample) -> None:
    result = kc.decode(sample.data(), include_control=True)
    assert_same_records(result, sample.expected.records)
    assert result.consumed == sample.expected.valid_bytes


@pytest.mark.parametrize("sample", SOUND[::5], ids=str)
def test_small_chunks_and_single_records_are_the_same(sample: Sample) -> None:
    data = sample.data()
    whole = rows(kc.decode(data, include_control=True))
    chunks = list(kc.iter_columns(data, max_rows=7, include_control=True))
    assert list(chain.from_iterable(rows(chunk) for chunk in chunks)) == whole
    assert all(len(chunk) <= 7 for chunk in chunks)
    assert chunks[-1].consumed == sample.expected.valid_bytes
    records = list(kc.iter_records(data, include_control=True))
    assert [(r.offset, r.timestamp, r.timestamp_type, r.key, r.value) for r in records] == [r[:5] for r in whole]


@pytest.mark.parametrize("sample", SOUND, ids=str)
def test_scan_tells_what_java_tells_of_batches(sample: Sample) -> None:
    import pyarrow as pa

    headers = pa.table(kc.scan(sample.data())).to_pylist()
    assert len(headers) == len(sample.expected.batches)
    for mine, theirs in zip(headers, sample.expected.batches, strict=True):
        old, wrapper = theirs["magic"] < 2, theirs["magic"] < 2 and theirs["isCompressed"]
        assert mine["position"] == theirs["position"]
        assert mine["size_in_bytes"] == theirs["sizeInBytes"]
        assert mine["magic"] == theirs["magic"]
        assert mine["codec"] == theirs["codec"]
        assert mine["crc"] == theirs["crc"]
        assert mine["crc_ok"]
        assert mine["base_offset"] == (None if wrapper else theirs["baseOffset"])
        assert mine["last_offset"] == (theirs["lastOffset"] if "offset-0" not in sample.name else 0)
        assert mine["count"] == (theirs["count"] if not old else None if wrapper else 1)
        assert mine["producer_id"] == (None if old else theirs["producerId"])
        assert (mine["is_transactional"], mine["is_control"]) == (theirs["isTransactional"], theirs["isControl"])
        kinds = {"CreateTime": 0, "LogAppendTime": 1, "NoTimestampType": -1}
        assert mine["timestamp_type"] == kinds[theirs["timestampType"]]
        maximum = mine["max_timestamp"]
        assert (maximum.timestamp() * 1000 if maximum else -1) == pytest.approx(theirs["maxTimestamp"], abs=0.5)


@pytest.mark.parametrize("sample", DAMAGED, ids=str)
def test_damage_is_found_where_java_finds_it_or_more(sample: Sample) -> None:
    name = sample.path.stem
    case = name[3:].removeprefix("gzip-").removeprefix("lz4-").removeprefix("snappy-")
    stricter = STRICTER.get(case) or (STRICTER_IN_V1.get(case) if name.startswith("v1-") else None)
    result = kc.decode(sample.data(), on_error="stop", max_decompressed_bytes=10 << 20)
    got, wanted = fields(rows(result)), fields(sample.expected.records)
    if stricter:
        assert sample.expected.error is None
        assert type(result.problems[0].exception) is stricter
        assert got == wanted[: len(got)]
        return
    assert got == wanted
    assert bool(result.problems) == (sample.expected.error is not None and case not in PARTIAL)
    if result.problems:
        with pytest.raises(kc.DecodeError):
            kc.decode(sample.data())
