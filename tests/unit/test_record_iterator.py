"""Records one by one: reused if the caller has released them, and equal to newly created records."""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.client.consuming.record import ConsumerRecord
from kafkacodec.records._record_rows import ConsumerRecords, RecordIterator
from kafkacodec.records.plan import RECORD_COLUMNS, plan_of
from kafkacodec.records.record import Record

ROWS = [(i, None if i % 3 else i * 1000, 0, b"k%d" % i, None if i % 5 == 0 else b"v%d" % i, ()) for i in range(300)]
ROWS[7] = (*ROWS[7][:5], (("header", b"x"), ("header", None)))
DATA = kc.encode(ROWS, batch_bytes=1000)


def records(recycle: bool) -> RecordIterator[Record]:
    return RecordIterator(kc.iter_columns(DATA, max_rows=70), Record, recycle)


@pytest.mark.parametrize("recycle", [True, False])
def test_records_have_their_own_hash(recycle: bool) -> None:
    for record, expected in zip(records(recycle), ROWS, strict=True):
        assert record == expected
        assert hash(record) == hash(expected)
        assert {record: 1}[expected] == 1


@pytest.mark.parametrize("recycle", [True, False])
def test_garbage_that_asks_for_the_next_record_while_one_is_made(recycle: bool) -> None:
    rows = [(i, i, 0, None, None, ((str(i), b"x"), (str(i), b"y"))) for i in range(1000)]
    iterator = RecordIterator(list(kc.iter_columns(kc.encode(rows))), Record, recycle)
    found: list[int] = []

    class Asks:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            with contextlib.suppress(StopIteration, RuntimeError):  # the iterator is already in use
                found.append(next(iterator).offset)

    before = gc.get_threshold()
    gc.set_threshold(3)
    try:
        kept = []
        for record in iterator:
            kept.append(record)
            Asks()
    finally:
        gc.set_threshold(*before)
        gc.collect()
    assert sorted(found + [record.offset for record in kept]) == list(range(1000))
    assert all(record.headers[0][0] == str(record.offset) for record in kept)


@pytest.mark.slow
@pytest.mark.parametrize("recycle", [True, False])
def test_records_that_are_kept_stay_as_they_are(recycle: bool) -> None:
    kept = []
    for i, record in enumerate(records(recycle)):
        hash(record)
        if i % 7 == 0 or i % 11 == 0:
            kept.append(record)
        if i % 50 == 0:
            gc.collect()
    everything = list(records(not recycle))
    assert kept == [r for i, r in enumerate(everything) if i % 7 == 0 or i % 11 == 0]
    assert all(type(record) is Record for record in kept)


@pytest.mark.parametrize("of_consumer", [True, False])
@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_fields_that_are_kept_stay_as_they_are(size: int, of_consumer: bool) -> None:
    # Offsets and timestamps on both sides of what one digit of CPython's ints takes, and of what it has only once.
    offsets = [*range(250, 270), *range(2**30 - 5, 2**30 + 5), *range(2**60 - 5, 2**60 + 5)]
    rows: list[tuple[Any, ...]] = [
        (offset, offset * 3 // 2 if number % 4 else 7, 0, b"%0*d" % (size, number) if size else b"", bytes(size), ())
        for number, offset in enumerate(offsets)
    ]
    data = kc.encode(rows)
    kept, hashes = [], []
    made: Any = consumed(data) if of_consumer else RecordIterator(kc.iter_columns(data), Record)
    for number, record in enumerate(made):
        kept.append(record[-6:][number % 6])
        hashes.append((hash(record.key), hash(record.offset), hash(record.timestamp)))
    every = [("t", 3, *row, -1) if of_consumer else row for row in rows]
    assert kept == [row[-6:][number % 6] for number, row in enumerate(every)]
    assert hashes == [(hash(row[3]), hash(row[0]), hash(row[1])) for row in rows]


@pytest.mark.parametrize("recycle", [True, False])
def test_an_iterator_of_nothing(recycle: bool) -> None:
    assert list(RecordIterator([], Record, recycle)) == []
    assert list(RecordIterator([kc.decode(b""), kc.decode(DATA)], Record, recycle)) == list(records(True))


def consumed(data: bytes = DATA) -> ConsumerRecords[ConsumerRecord]:
    decoder = plan_of(columns=(*RECORD_COLUMNS, "partition_leader_epoch"), place_columns=True).decoder(data)
    decoder.set_place("t", 3)
    return ConsumerRecords(decoder.read(kc.RecordColumns, 1000, 1 << 30), ConsumerRecord, "t", 3)


def test_records_of_a_consumer_are_made_when_they_are_taken() -> None:
    records, kept = consumed(), []
    for number, record in enumerate(records):
        expected = ("t", 3, *ROWS[number], -1)
        assert type(record) is ConsumerRecord
        assert (record, hash(record)) == (expected, hash(expected))
        assert (records.taken, records.total) == (number + 1, 300)
        if number % 3 == 0:
            kept.append(record)
    assert [record.offset for record in kept] == [*range(0, 300, 3)]
    assert kept == list(consumed())[::3]


def test_records_of_a_consumer_that_are_left_out() -> None:
    records = consumed()
    assert [next(records).offset for _ in range(5)] == [0, 1, 2, 3, 4]
    records.stop()
    assert list(records) == []
    assert (records.taken, records.total, records.offset(4), records.leader_epoch(4)) == (5, 5, 4, -1)
    for row in (-1, 300):
        with pytest.raises(IndexError):
            records.offset(row)


def test_keys_and_values_that_the_application_makes() -> None:
    records = consumed()
    records.deserialize(bytes.decode, lambda value: [value])
    assert [(r.key, r.value) for r in records] == [(k.decode(), None if v is None else [v]) for *_, k, v, _ in ROWS]
    records = consumed()
    with pytest.raises(ValueError, match="invalid literal"):
        records.deserialize(value_of=lambda value: int(value[1:]) if value < b"v3" else int(value))
    assert [record.offset for record in records] == list(range(3))
