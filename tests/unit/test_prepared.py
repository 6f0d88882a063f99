"""`kc.Decoder` and `kc.Encoder`: options that are checked once, for many record sets."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.corpus import assert_same_records, blobs

ROWS = [kc.Record(i, 1_000 + i, 0, b"key", b"value %d" % i, (("h", b"x"),)) for i in range(5)]
DATA = kc.encode(ROWS)
DAMAGED = DATA + DATA[:30] + b"\xff" + DATA[31:] + kc.encode([row._replace(offset=row.offset + 50) for row in ROWS])


def rows_of(table: kc.RecordColumns) -> list[Any]:
    return [*table]


@pytest.mark.parametrize("options", [{}, {"on_error": "stop"}, {"layout": "view"}, {"layout": "auto"}, {"threads": 2}])
def test_one_decoder_reads_what_kafka_wrote(options: dict[str, Any]) -> None:
    decoder = kc.Decoder(include_control=True, **options)
    samples = blobs("builder", "fetch")
    assert len(samples) > 20
    for sample in samples:
        data = sample.data()
        for _ in range(2):
            assert_same_records(decoder.decode(data), sample.expected.records)
            assert list(decoder.iter_records(data)) == decoder.decode(data).records()


def test_faults_do_not_stay_with_a_decoder() -> None:
    decoder = kc.Decoder()
    for _ in range(3):
        with pytest.raises(kc.CrcMismatch):
            decoder.decode(DAMAGED)
        records = decoder.iter_records(DAMAGED)
        assert list(itertools.islice(records, 5)) == ROWS
        with pytest.raises(kc.CrcMismatch):
            next(records)
        assert rows_of(decoder.decode(DATA)) == list(decoder.iter_records(DATA)) == ROWS


def test_problems_are_those_of_one_record_set() -> None:
    decoder = kc.Decoder(on_error="skip")
    for _ in range(2):
        assert [p.position for p in decoder.decode(DAMAGED).problems] == [len(DATA)]
        assert [r.offset for r in decoder.iter_records(DAMAGED)] == [0, 1, 2, 3, 4, 50, 51, 52, 53, 54]
        assert decoder.decode(DATA).problems == []
        assert decoder.decode(DATA[:-1]).consumed == 0


def test_without_options_functions_do_the_same_as_with_them() -> None:
    for data in (DATA, DATA[:-1], b""):
        assert rows_of(kc.decode(data)) == rows_of(kc.decode(data, on_error="raise")) == [*kc.iter_records(data)]
        assert [*kc.iter_records(data=data)] == rows_of(kc.decode(data=data))
    assert kc.encode(ROWS) == kc.encode(ROWS, codec="none") == kc.encode(records=ROWS)
    with pytest.raises(TypeError, match=r"^decode\(data\): missing a required argument: 'data'$"):
        kc.decode()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^decode\(data\) takes data by position, and the others by name: threads="):
        kc.decode(DATA, 1)  # type: ignore[call-arg, misc]


def test_problems_of_a_table_are_a_list_of_its_own() -> None:
    first, second = kc.decode(DATA), kc.decode(DATA)
    assert first.problems == []
    assert first.problems is first.problems
    assert first.problems is not second.problems
    assert first.take([0]).problems is first.problems


def test_a_limit_holds_for_each_record_set_alone() -> None:
    compressed = kc.encode([(None, bytes(100_000))] * 3, codec="zstd", batch_bytes=10_000)
    for options in ({}, {"layout": "view"}):
        decoder = kc.Decoder(max_total_bytes=3_000_000, **options)
        held = [decoder.decode(compressed) for _ in range(30)]
        assert {len(table) for table in held} == {3}
        with pytest.raises(kc.LimitExceeded, match="max_total_bytes"):
            decoder.decode(compressed * 30)
        assert len(decoder.decode(compressed)) == 3


@pytest.mark.parametrize("damaged", [False, True])
def test_nothing_that_was_read_is_kept(damaged: bool) -> None:
    decoder = kc.Decoder()
    data = bytearray(DAMAGED if damaged else DATA)
    if damaged:
        with pytest.raises(kc.CrcMismatch):
            decoder.decode(data)
        records = decoder.iter_records(data)
        with pytest.raises(kc.CrcMismatch):
            list(records)
    else:
        assert rows_of(decoder.decode(data)) == list(decoder.iter_records(data))
    data.clear()  # BufferError where the buffer is in use


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_nothing_is_kept_of_data_that_is_read_on_after_damage(on_error: Any) -> None:
    decoder, data = kc.Decoder(on_error=on_error), bytearray(DAMAGED + DAMAGED)
    for _ in range(2):
        assert decoder.decode(data).problems
    data.clear()


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="unknown option 'on_eror'; did you mean 'on_error'"):
        kc.Decoder(on_eror="skip")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="max_total_bytes is -1"):
        kc.Decoder(max_total_bytes=-1)
    with pytest.raises(ValueError, match="threads must be from 1"):
        kc.Decoder(threads=0)
    with pytest.raises(TypeError, match="bytes-like"):
        kc.Decoder().decode("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bytes-like"):
        kc.Decoder().iter_records("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unknown option 'threads'"):
        kc.iter_records(DATA, threads=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unknown option 'codek'; did you mean 'codec'"):
        kc.Encoder(codek="lz4")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="codec must be"):
        kc.Encoder(codec="zip")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_one_encoder_begins_each_record_set_anew(magic: int, codec: str) -> None:
    if magic < 2 and codec == "zstd":
        pytest.skip("not in message sets")
    encoder = kc.Encoder(magic=magic, codec=codec, base_offset=7, batch_bytes=200)
    rows = [(b"key", b"value %d" % i) for i in range(40)]
    expected = kc.encode(rows, magic=magic, codec=codec, base_offset=7, batch_bytes=200)
    for _ in range(3):
        made = encoder.encode(rows)
        assert made == expected
        assert [(r.offset, r.key, r.value) for r in kc.iter_records(made)] == [
            (7 + i, *pair) for i, pair in enumerate(rows)
        ]
        assert encoder.encode([]) == b""


def test_an_encoder_after_an_error_begins_anew() -> None:
    encoder = kc.Encoder(batch_bytes=100)
    for _ in range(3):
        with pytest.raises(kc.EncodeError, match=r"records\[41\]\.value: int is not bytes, str or None"):
            encoder.encode([(b"k", b"v")] * 41 + [(b"k", 1)])
        assert [r.offset for r in kc.iter_records(encoder.encode([(b"k", b"v")] * 2))] == [0, 1]


def test_rows_of_a_generator_may_use_their_encoder() -> None:
    encoder = kc.Encoder()
    inner = ((None, encoder.encode([(b"k", b"%d" % i)])) for i in range(3))
    records = [r.value for r in kc.iter_records(encoder.encode(inner))]
    assert [[r.value for r in kc.iter_records(value or b"")] for value in records] == [[b"0"], [b"1"], [b"2"]]


def test_threads_share_a_decoder_and_an_encoder() -> None:
    decoder, encoder = kc.Decoder(), kc.Encoder(codec="lz4")
    big = [(b"key", b"value" * i) for i in range(2_000)]
    wrong: list[object] = []

    def work() -> None:
        for rows in (big, big[:1]) * 10:
            data = encoder.encode(rows)
            table = decoder.decode(data)
            read = [(r.key, r.value) for r in decoder.iter_records(data)]
            if read != rows or [(row.key, row.value) for row in table] != rows:
                wrong.append(len(rows))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_they_can_be_sent_to_another_process_also_after_their_use(protocol: int) -> None:
    decoder = kc.Decoder(columns=iter(["offset", "value"]), on_error="skip", max_total_bytes=1 << 20, threads=2)
    encoder = kc.Encoder(codec="gzip", level=1, base_offset=7)
    for _ in range(2):
        read, write = pickle.loads(pickle.dumps((decoder, encoder), protocol))
        assert repr(read.decode(DAMAGED)) == repr(decoder.decode(DAMAGED))
        assert list(read.iter_records(DATA)) == list(decoder.iter_records(DATA)) == ROWS
        assert write.encode(ROWS) == encoder.encode(ROWS)
    with pytest.raises(kc.LimitExceeded):
        pickle.loads(pickle.dumps(kc.Decoder(max_total_bytes=10), protocol)).decode(DATA)


def test_a_copy_shares_nothing_with_its_original() -> None:
    decoder = kc.Decoder(on_error="stop")
    assert rows_of(decoder.decode(DATA)) == ROWS
    for copied in (copy.copy(decoder), copy.deepcopy(decoder)):
        assert rows_of(copied.decode(DAMAGED)) == ROWS
        assert copied._idle is not decoder._idle


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy])
def test_decoders_and_encoders_of_values_can_be_sent_too(copied: Any) -> None:
    numbers = {1: '"long"', 2: '"string"'}
    long, text = b"\0\0\0\0\1\2", b"\0\0\0\0\2\2a"
    decoder = kc.values.ValueDecoder(numbers, on_error="null")
    assert copied(decoder).decode(pa.array([text])).values.to_pylist() == ["a"]
    decoder.prepare(decoder.keys(pa.array([long])))
    for one in (decoder, copied(decoder)):  # the type stays that of the schemas given to prepare
        assert one.decode(pa.array([long, text])).values.to_pylist() == [1, None]
        assert one.decode(pa.array([text])).values.type == pa.int64()
    reading = kc.values.ValueDecoder(numbers, reader_schema='"double"')
    assert reading.decode(pa.array([long])).values.to_pylist() == [1.0]
    assert copied(reading).decode(pa.array([long])).values.to_pylist() == [1.0]
    encoder = kc.values.Encoder({1: '"long"'}, subject="t-value")
    assert encoder(1) == copied(encoder)(1) == copied(copied(encoder))(1) == long
