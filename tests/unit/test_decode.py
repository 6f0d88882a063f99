"""Options, ends of buffers, limits and errors of decoding."""

from __future__ import annotations

import mmap
import pickle
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.corpus import Sample, blobs, rows, sample, segments
from tests.leaks import assert_takes_less

PLAIN = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]


@pytest.fixture(scope="module")
def log() -> Sample:
    return next(s for s in segments(magics={2}) if len(s.expected.batches) > 4 and len(s.expected.records) > 100)


@pytest.fixture(scope="module")
def transactions() -> Sample:
    return next(s for s in segments(magics={2}) if any(b["isControl"] for b in s.expected.batches))


def cut(log: Sample, batch: int) -> int:
    """Where a batch of the log starts."""
    return log.expected.batches[batch]["position"]


def test_any_contiguous_buffer_is_taken(log: Sample) -> None:
    data = log.data()
    expected = rows(kc.decode(data))
    with open(log.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for buffer in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), pa.py_buffer(data), mapped):
            assert rows(kc.decode(buffer)) == expected


def test_a_buffer_is_held_no_longer_than_needed(log: Sample) -> None:
    data = bytearray(log.data())
    chunks = kc.iter_columns(data, max_rows=10)
    next(chunks)
    with pytest.raises(BufferError):
        data.append(0)
    chunks.close()  # type: ignore[attr-defined]
    del chunks
    data.append(0)


def test_columns_come_in_order_and_only_those_asked_for(log: Sample) -> None:
    assert kc.decode(log.data()).column_names == PLAIN
    assert kc.decode(log.data(), columns=["value", "offset"]).column_names == ["offset", "value"]
    assert kc.decode(log.data(), columns=[], batch_columns=True).column_names == [
        *("partition_leader_epoch", "producer_id", "producer_epoch", "sequence", "is_transactional", "is_control"),
        *("magic", "codec", "batch_offset", "batch_position"),
    ]
    assert len(kc.decode(log.data(), columns=[])) == len(kc.decode(log.data()))


@pytest.mark.parametrize("columns", [[name] for name in PLAIN] + [["offset", "key"], ["timestamp", "headers"]], ids=str)
def test_every_choice_of_columns_gives_the_same_values(columns: list[str]) -> None:
    for log in segments(magics={2})[::12]:
        whole = pa.table(kc.decode(log.data()))
        assert pa.table(kc.decode(log.data(), columns=columns)).equals(whole.select(columns))


def test_batch_columns_tell_the_header_of_each_record(transactions: Sample) -> None:
    table = pa.table(kc.decode(transactions.data(), include_control=True, batch_columns=True)).to_pylist()
    records = transactions.expected.records
    assert len(table) == len(records)
    for mine, record in zip(table, records, strict=True):
        batch = transactions.expected.batches[record.batch]
        for name, theirs in {
            "partition_leader_epoch": "partitionLeaderEpoch",
            "producer_id": "producerId",
            "producer_epoch": "producerEpoch",
            "is_transactional": "isTransactional",
            "is_control": "isControl",
            "magic": "magic",
            "codec": "codec",
            "batch_offset": "baseOffset",
            "batch_position": "position",
        }.items():
            assert mine[name] == batch[theirs], name
        base = batch["baseSequence"]
        assert mine["sequence"] == (base if base < 0 else base + record.offset - batch["baseOffset"])


def test_control_records_only_on_demand(transactions: Sample) -> None:
    control = {r.offset for r in transactions.expected.records if r.is_control}
    everything = {r.offset for r in transactions.expected.records}
    assert control
    assert set(kc.decode(transactions.data())["offset"].tolist()) == everything - control
    assert set(kc.decode(transactions.data(), include_control=True)["offset"].tolist()) == everything


@pytest.mark.parametrize(("start", "end"), [(None, 50), (50, None), (13, 14), (20, 61), (0, 0), (10**12, None)])
def test_offset_bounds(log: Sample, start: int | None, end: int | None) -> None:
    wanted = [
        r.offset
        for r in log.expected.records
        if (start is None or r.offset >= start) and (end is None or r.offset < end)
    ]
    assert kc.decode(log.data(), start_offset=start, end_offset=end)["offset"].tolist() == wanted
    chunks = kc.iter_columns(log.data(), start_offset=start, end_offset=end, max_rows=5)
    assert [offset for chunk in chunks for offset in chunk["offset"].tolist()] == wanted


def test_batches_outside_the_bounds_are_not_verified(log: Sample) -> None:
    data = bytearray(log.data())
    data[cut(log, 1) + 30] ^= 0xFF  # damages the second batch
    first = log.expected.batches[0]
    assert len(kc.decode(data, end_offset=first["lastOffset"] + 1)) == first["recordCount"]
    with pytest.raises(kc.CrcMismatch):
        kc.decode(data)


JPEG = bytes.fromhex("ffd8ffe000104a46494600010101004800480000ffdb00430003020203020203")
SQLITE = b"SQLite format 3\0" + bytes.fromhex("0200010100402020") + bytes(4072)


@pytest.mark.parametrize("data", [JPEG, SQLITE, b"a text that is no record set"], ids=["JPEG", "SQLite", "text"])
def test_what_no_batch_can_begin_with_is_no_partial_batch(data: bytes) -> None:
    reads = [kc.decode, kc.scan, lambda data: list(kc.iter_records(data)), lambda data: list(kc.iter_columns(data))]
    for read in reads:
        with pytest.raises(kc.errors.DecodeError):
            read(data)
    assert kc.decode(data, on_error="stop").problems[0].size_in_bytes == len(data)
    assert kc.decode(data, on_error="skip").problems[0].size_in_bytes == len(data)


@pytest.mark.parametrize(
    "data", [b"x", b"\n", b"foreign text", b'{"a": 1}', b"exactly 16 bytes", JPEG[:3], b"\xff" * 9, bytes(8) + b"\x80"]
)
def test_a_few_bytes_that_are_no_record_set_are_no_partial_batch(data: bytes) -> None:
    for read in (kc.decode, kc.iter_columns, kc.iter_records, kc.scan):
        with pytest.raises(kc.CorruptRecord):
            list(read(data))
    assert kc.scan(data, on_error="stop").problems[0].size_in_bytes == len(data)
    assert len(kc.scan(data + bytes(1), end_position=len(data))) == 0  # something follows, so nothing is known of it
    assert kc.decode(data, on_error="skip").problems[0].size_in_bytes == len(data)


@pytest.mark.parametrize("batch", [0, 2])
def test_a_partial_batch_at_the_end_is_left_alone(log: Sample, batch: int) -> None:
    data = log.data()
    start = cut(log, batch)
    for end in range(start, start + 80):
        result = kc.decode(data[:end])
        assert result.consumed == start
        assert not result.problems


@pytest.mark.parametrize("zeros", [1, 11, 12, 17, 61, 100_000])
def test_the_zeros_of_a_preallocated_file_end_the_data(log: Sample, zeros: int) -> None:
    whole = kc.decode(log.data())
    padded = kc.decode(log.data() + bytes(zeros))
    assert padded.consumed == whole.consumed
    assert len(padded) == len(whole)


def test_zeros_with_something_after_them_are_damage(log: Sample) -> None:
    with pytest.raises(kc.CorruptRecord) as caught:
        kc.decode(log.data() + bytes(100) + log.data())
    assert caught.value.position == len(log.data()) + 8


def test_empty_data() -> None:
    assert len(kc.decode(b"")) == 0
    (chunk,) = kc.iter_columns(b"")
    assert (len(chunk), chunk.consumed) == (0, 0)
    assert list(kc.iter_records(b"")) == []
    assert len(kc.scan(b"")) == 0


@pytest.mark.parametrize(
    "data", [b"#!/usr/bin/env python3\nprint('hello')\n", b"PAR1" + bytes(range(1, 60)), b"\xff" * 300]
)
def test_what_is_no_record_set_is_refused(data: bytes) -> None:
    for read in (kc.decode, kc.scan, lambda d: list(kc.iter_columns(d))):
        with pytest.raises(kc.DecodeError) as caught:
            read(data)
        assert caught.value.position in (8, 16)


def test_wrong_checksum(log: Sample) -> None:
    data = bytearray(log.data())
    data[-1] ^= 1
    last = log.expected.batches[-1]
    with pytest.raises(kc.CrcMismatch) as caught:
        kc.decode(data)
    assert caught.value.position == last["position"]
    assert f"batch at offset {last['baseOffset']}" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).position == last["position"]
    crc_ok = pa.table(kc.scan(data)).column("crc_ok").to_pylist()
    assert crc_ok == [True] * (len(crc_ok) - 1) + [False]
    assert pa.table(kc.scan(data, verify_crc=False)).column("crc_ok").null_count == len(crc_ok)


def test_the_three_ways_to_meet_a_fault(log: Sample) -> None:
    data = bytearray(log.data())
    second = log.expected.batches[1]
    data[second["position"] + 40] ^= 1
    good = [r.offset for r in log.expected.records if r.batch != 1]
    before = [r.offset for r in log.expected.records if r.batch == 0]

    stopped = kc.decode(data, on_error="stop")
    assert stopped["offset"].tolist() == before
    assert stopped.consumed == second["position"]
    assert stopped.problems[0].size_in_bytes == len(data) - second["position"]

    skipped = kc.decode(data, on_error="skip")
    assert skipped["offset"].tolist() == good
    assert skipped.consumed == len(data)
    (problem,) = skipped.problems
    assert problem[:3] == (second["position"], second["baseOffset"], second["sizeInBytes"])
    assert isinstance(problem.exception, kc.CrcMismatch)

    given: list[int] = []
    with pytest.raises(kc.CrcMismatch):
        given.extend(offset for chunk in kc.iter_columns(data) for offset in chunk["offset"].tolist())
    assert given == before
    chunks = list(kc.iter_columns(data, on_error="skip", max_rows=10))
    assert [offset for chunk in chunks for offset in chunk["offset"].tolist()] == good
    assert [p.position for chunk in chunks for p in chunk.problems] == [second["position"]]


def test_records_before_a_fault_inside_a_batch_are_kept() -> None:
    damaged = sample("blobs/corrupt/v2-count-11.bin")
    error = damaged.expected.error
    assert error["recordsBefore"] == 10
    result = kc.decode(damaged.data(), on_error="stop")
    assert rows(result) == [type(r)(*r[:6]) for r in damaged.expected.records]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_bomb_is_refused_before_its_memory_is_taken(codec: str) -> None:
    bombs = [s for s in blobs("corrupt", magics={2}) if "bomb" in s.name and codec in s.name]
    assert bombs

    def refused(data: bytes) -> None:
        with pytest.raises(kc.LimitExceeded):
            kc.decode(data, max_decompressed_bytes=1 << 20)

    for bomb in bombs:
        assert_takes_less(4 << 20, partial(refused, bomb.data()))


def test_counts_that_lie_allocate_nothing() -> None:
    liar = sample("blobs/corrupt/v2-count-2147483647.bin")
    with pytest.raises(kc.CorruptRecord, match="fewer bytes than its record count needs"):
        kc.decode(liar.data())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["offset", "vlaue"]}, "vlaue"),
        ({"columns": ["row"]}, "row"),
        ({"on_error": "ignore"}, "on_error"),
        ({"max_decompressed_bytes": -1}, "max_decompressed_bytes"),
        ({"threads": 0}, "threads"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kc.decode(b"", **options)  # type: ignore[arg-type]
    if "threads" not in options:
        with pytest.raises(ValueError, match=message):
            kc.iter_columns(b"", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("options", "message"), [({"columns": "offset"}, "not str"), ({"colums": []}, "'colums'")])
def test_options_of_another_type_or_name(options: dict[str, object], message: str) -> None:
    for read in (kc.decode, kc.iter_columns):
        with pytest.raises(TypeError, match=message):
            list(read(b"", **options))  # type: ignore[operator]


def test_wrong_options_of_the_other_readers() -> None:
    with pytest.raises(ValueError, match="max_rows"):
        kc.iter_columns(b"", max_rows=0)
    with pytest.raises(ValueError, match="columns"):
        kc.iter_records(b"", columns=["key"])  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="on_error"):
        kc.scan(b"", on_error="skip")  # type: ignore[arg-type]


def test_named_tuples_are_not_changed_while_the_caller_has_them(log: Sample) -> None:
    kept = list(kc.iter_records(log.data()))
    assert len({id(r) for r in kept}) == len(kept)
    assert [r.offset for r in kept] == [r.offset for r in log.expected.records]
    every_third = [r for i, r in enumerate(kc.iter_records(log.data())) if i % 3 == 0]
    assert every_third == kept[::3]
    assert kept[0]._fields == kc.Record._fields
    assert kept[0]._replace(offset=7).offset == 7


def test_chunks_end_early_where_values_are_large(log: Sample) -> None:
    chunks = list(kc.iter_columns(log.data(), max_bytes=1000))
    assert len(chunks) > 3
    sizes = [len(chunk.buffers("value")["data"]) for chunk in chunks]  # type: ignore[arg-type]
    biggest = max(len(r.value) for r in log.expected.records if isinstance(r.value, bytes))
    assert max(sizes) <= 1000 + biggest + 1000
