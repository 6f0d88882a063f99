"""Records one by one: reused if the caller has released them, and equal to newly created records."""

from __future__ import annotations

import gc

import pytest

import kafkacodec as kc
from kafkacodec.records._record_rows import RecordIterator
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


@pytest.mark.parametrize("recycle", [True, False])
def test_an_iterator_of_nothing(recycle: bool) -> None:
    assert list(RecordIterator([], Record, recycle)) == []
    assert list(RecordIterator([kc.decode(b""), kc.decode(DATA)], Record, recycle)) == list(records(True))
