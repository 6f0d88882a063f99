"""Objects that are created directly, used after their end, twice, or recursively: an exception, never a crash.

One process runs the cases of a group and names each before it starts, so that a crash is reported with its case.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.arrow import _columns, _reader, _single_column
from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.client.consuming import _iterating
from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07 import _decoder as _decoder07
from kafkacodec.dialects.line import _tokens
from kafkacodec.log.segments import _resync
from kafkacodec.messages import _decode, _program, _struct
from kafkacodec.records import (
    _chunk_decoder,
    _confluent,
    _decoder,
    _encoder,
    _partitioner,
    _record_chunks,
    _record_rows,
)
from kafkacodec.records.record import Record
from tests.arrow_capsules import Capsules, Stream
from tests.processes import run_python

DATA = kc.encode([(b"key", b"value")] * 3)
PLAIN = sum(1 << i for i, name in enumerate(_decoder.record_columns()) if name in Record._fields)


def new(cls: type) -> Any:
    """An object whose constructor has not run."""
    return cls.__new__(cls)


def decoder(data: Any = DATA) -> Any:
    return _decoder.Decoder(
        data, wanted=PLAIN, verify_crc=True, include_control=False, start_offset=0, end_offset=1 << 62, limit=1 << 20
    )


def decoder07() -> Any:
    return _decoder07.Decoder(
        kafka07.encode_messages([b"x"] * 3), wanted=PLAIN, verify_crc=True, deep=True, initial_offset=0, limit=1 << 20
    )


def encoder() -> Any:
    return _encoder.BatchEncoder(
        magic=2, drop_unsupported=False, base_offset=0, batch_bytes=100, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, leader_epoch=-1, attributes=0,
    )  # fmt: skip


def rows(count: int = 50) -> Any:
    chunk = _record_chunks.ListChunk()
    for _ in range(count):
        chunk.append_record(None, None, b"key", b"value", ())
    return chunk.finish()


def arrays() -> list[Any]:
    return list(ArrowReader(pa.array([DATA, DATA], pa.binary())))


def read_twice(make: Callable[[], Any]) -> None:
    reader = make()
    chunk = reader.read(kc.RecordColumns, 1, 1)
    kept = pa.record_batch(chunk)
    try:
        reader.read_on(chunk, 100, 1 << 20)
    finally:
        kept.validate(full=True)


def blobs_in_blobs() -> None:
    """From the callback for a fault: the same decoder is opened, used for other blobs, closed."""
    reader = decoder(b"")
    table = reader.empty_table(kc.RecordColumns)
    damaged = DATA[:-1] + b"\1"
    (array,) = ArrowReader(pa.array([damaged, DATA, damaged], pa.binary()))

    def on_stop(row: int) -> bool:
        reader.take_fault()
        reader.read_blobs(reader.empty_table(kc.RecordColumns), arrays()[0], 0, 1 << 30, lambda row: False)
        reader.open(bytearray(DATA))
        reader.skip()
        reader.close()
        return True

    reader.read_blobs(table, array, 0, 1 << 30, on_stop)


def compress_in_compress() -> None:
    made = encoder()
    made.encode([rows()], lambda records: made.next_batch(rows(5000), bytes))


def after_blobs() -> None:
    reader = decoder(b"")
    reader.read_blobs(reader.empty_table(kc.RecordColumns), arrays()[0], 0, 1 << 30, lambda row: False)
    reader.skip()
    assert len(reader.read(kc.RecordColumns, 10, 10)) == 0


def words_that_shrink() -> None:
    words = ["1"] * 100

    def reader(word: str) -> str:
        words.clear()
        return word

    _tokens.read_words(tuple("n" * 100), (reader,) * 100, words)


def other_slots() -> None:
    """A program that would write into slots that its class does not have."""
    big, small = messages.FetchResponse.PartitionData, messages.FetchResponse
    name, slot = "records", big._rows["records"][2]
    _program.Program(small, [(name, 4, 0, -1, None, slot, 0)], [], [], [], False, "")


def refused_schema() -> None:
    class Hollow(_struct.Struct):
        _layout = messages.FetchResponse._layout  # type: ignore[attr-defined]

    Hollow()


def hollow_program() -> None:
    class Plain(_struct.Struct):
        pass

    _decode.decode(_program.Program(Plain, [], [], [], [], False, ""), b"")


def items_of(table: Any) -> None:
    list(_record_rows.RecordIterator([table], Record))


def empty_tables(cls: Any) -> None:
    table = new(cls)
    assert len(table) == 0
    assert table.nbytes == 0
    assert table.column_names == []
    assert "0 rows" in repr(table)
    assert pa.record_batch(table).num_columns == pa.table(table).num_columns == 0
    assert table.schema.names == []
    table["offset"]


def exhausted() -> None:
    reader = decoder()
    for _ in range(5):
        reader.read(kc.RecordColumns, 100, 100)
        reader.skip()
    assert reader.done


# name -> what is done, and the exception that it must raise; None where it must go well
CASES: dict[str, tuple[Callable[[], Any], type[BaseException] | None]] = {
    **{f"{cls.__name__}()": (cls, TypeError) for cls in (kc.RecordColumns, kc.BatchHeaders, _columns.Table)},
    **{f"a hollow {cls.__name__}": (lambda cls=cls: empty_tables(cls), KeyError)
       for cls in (kc.RecordColumns, kc.BatchHeaders)},
    "copied columns": (lambda: copy.copy(kc.decode(DATA)), TypeError),
    "deeply copied columns": (lambda: copy.deepcopy(kc.decode(DATA)), TypeError),
    "pickled columns": (lambda: pickle.dumps(kc.scan(DATA)), TypeError),
    "copied hollow columns": (lambda: copy.copy(new(kc.RecordColumns)), TypeError),
    "records of hollow columns": (lambda: new(kc.RecordColumns).records(), KeyError),
    "encoded hollow columns": (lambda: kc.encode(new(kc.RecordColumns)), kc.EncodeError),
    "no room in hollow tables": (lambda: _columns.fits(new(kc.RecordColumns), new(kc.RecordColumns), 0), TypeError),
    "hollow tables": (lambda: _columns.append(new(kc.RecordColumns), new(kc.RecordColumns)), TypeError),
    "a table after itself": (lambda: [_columns.append(t, t) for t in [kc.decode(DATA)]], ValueError),
    "different tables": (lambda: _columns.append(kc.decode(DATA), kc.scan(DATA)), TypeError),
    "tables of different columns": (
        lambda: _columns.append(kc.decode(DATA), kc.decode(DATA, columns=["key"])), ValueError),
    "Decoder()": (_decoder.Decoder, TypeError),
    "a hollow Decoder": (lambda: new(_decoder.Decoder), TypeError),
    "a hollow 0.7 Decoder": (lambda: new(_decoder07.Decoder), TypeError),
    "a hollow Resync": (lambda: new(_resync.Resync), TypeError),
    "a decoder at its end": (exhausted, None),
    "a decoder after blobs": (after_blobs, None),
    "a decoder inside its callback": (blobs_in_blobs, ValueError),
    "a table that is looked at grows": (lambda: read_twice(decoder), BufferError),
    "a 0.7 table that is looked at grows": (lambda: read_twice(decoder07), BufferError),
    "rows into no table": (lambda: decoder().read_on(None, 1, 1), TypeError),
    "rows into a hollow table": (lambda: decoder().read_on(new(kc.RecordColumns), 1, 1), TypeError),
    "rows into a table of headers": (lambda: decoder().read_on(kc.scan(DATA), 1, 1), TypeError),
    "0.7 rows into a table of records": (lambda: decoder07().read_on(kc.decode(DATA), 1, 1), TypeError),
    "room in a hollow table": (lambda: decoder().expect(new(kc.RecordColumns), 1), TypeError),
    "a place that is none": (lambda: decoder().set_place(b"t", 0), TypeError),
    "a partition that is none": (lambda: decoder().set_place("t", "0"), TypeError),
    "a partition beyond 32 bits": (lambda: decoder().set_place("t", 1 << 31), OverflowError),
    "the decoder of no format": (lambda: _chunk_decoder.ChunkDecoder().empty_table(kc.RecordColumns), TypeError),
    "rows of no format": (lambda: _chunk_decoder.ChunkDecoder().read_on(kc.decode(DATA), 1, 1), TypeError),
    "a table of an int": (lambda: decoder().read(int, 1, 1), TypeError),
    "blobs of no table": (lambda: decoder().read_blobs(None, arrays()[0], 0, 1 << 30, bool), TypeError),
    "no blobs": (lambda: decoder().read_blobs(kc.decode(DATA), None, 0, 1 << 30, bool), TypeError),
    "hollow blobs": (
        lambda: decoder().read_blobs(kc.decode(DATA), _reader.ImportedArray(), 0, 1 << 30, bool), TypeError),
    "records of a hollow table": (lambda: items_of(new(kc.RecordColumns)), TypeError),
    "records of headers": (lambda: items_of(kc.scan(DATA)), TypeError),
    "records of few columns": (lambda: items_of(kc.decode(DATA, columns=["key"])), TypeError),
    "records of None": (lambda: items_of(None), TypeError),
    "records as lists": (lambda: list(_record_rows.RecordIterator([kc.decode(DATA)], list)), TypeError),
    "records as nothing": (lambda: _record_rows.RecordIterator([], None), TypeError),
    "a hollow ArrowReader": (lambda: next(new(ArrowReader)), StopIteration),
    "an ArrowReader made again": (lambda: ArrowReader(pa.array([b""])).__init__(pa.array([b""])), RuntimeError),
    "ImportedSchema().format": (lambda: _reader.ImportedSchema().format, None),
    "a chunk of no array": (lambda: _record_chunks.ArrowChunk(None), TypeError),
    "a chunk of a hollow array": (lambda: _record_chunks.ArrowChunk(_reader.ImportedArray()), TypeError),
    "a hollow chunk": (lambda: encoder().encode([_record_chunks.RecordChunk()]), None),
    "a hollow chunk of an array": (lambda: encoder().encode([new(_record_chunks.ArrowChunk)]), None),
    "a hollow chunk of a list": (lambda: new(_record_chunks.ListChunk).append_record(None, None, b"", b"", ()), None),
    "a finished chunk": (lambda: rows().append_record(None, None, b"", b"", ()), ValueError),
    "no chunk": (lambda: encoder().encode([None]), TypeError),
    "no next chunk": (lambda: encoder().next_batch(None), TypeError),
    "rows of no chunk": (lambda: encoder().encode_rows([None]), TypeError),
    "rows of a chunk of a list": (lambda: encoder().encode_rows([rows()]), TypeError),
    "rows of a hollow chunk": (lambda: encoder().encode_rows([new(_record_chunks.ArrowChunk)]), TypeError),
    "no batch": (lambda: encoder().last_batch(), None),
    "an encoder inside itself": (compress_in_compress, RuntimeError),
    "SingleColumn()": (_single_column.SingleColumn, TypeError),
    "a hollow SingleColumn": (lambda: new(_single_column.SingleColumn).__arrow_c_array__(), TypeError),
    "a copied SingleColumn": (lambda: copy.copy(kc.split_confluent([b"x"]).payloads), TypeError),
    "split without values": (lambda: _confluent.Values().split(), None),
    "values of a hollow array": (lambda: _confluent.Values().add_array(_reader.ImportedArray()), TypeError),
    "partitions of a hollow array": (
        lambda: _partitioner.arrow_partitions(_reader.ImportedArray(), 3, memoryview(bytearray(8)).cast("i"), 0),
        TypeError),
    "partitions without room": (
        lambda: _partitioner.list_partitions([b""] * 9, 3, memoryview(bytearray(8)).cast("i")), ValueError),
    "a list of words that shrinks": (words_that_shrink, None),
    "a layout of too little": (lambda: _struct.Layout(messages.FetchResponse, ("a",), (), (), ()), ValueError),
    "a layout of nothing": (lambda: _struct.Layout(messages.FetchResponse, None, None, None, None), TypeError),
    "a layout of an open class": (lambda: _struct.Layout(int, (), (), (), ()), TypeError),
    "a message class of other bases": (lambda: _struct.new_class("m.C", (int,), ("a",)), TypeError),
    "a message class of one with fields": (
        lambda: _struct.new_class("m.C", (messages.FetchResponse,), ("a",)), TypeError),
    "a layout of another class": (refused_schema, TypeError),
    "a struct without a layout": (_struct.Struct, AttributeError),
    "a struct of another class": (lambda: _struct.restore(int, (), None), TypeError),
    "a program of open classes": (hollow_program, TypeError),
    "a program of other slots": (other_slots, TypeError),
    "a program of an unknown type": (
        lambda: _program.Program(messages.FetchResponse, [("x", 99, 0, -1, None, None, 0)], [], [], [], False, ""),
        ValueError),
    "a program of a struct without one": (
        lambda: _program.Program(
            messages.FetchResponse,
            [("error_code", 12, 0, -1, None, messages.FetchResponse._rows["error_code"][2], 0)], [], [], [], False, ""),
        ValueError),
    "no program": (lambda: _decode.decode(None, b""), TypeError),
    "a hollow producer": (lambda: new(kc.client.Producer).send("t", b"x"), AttributeError),
    "a hollow delivery": (lambda: new(kc.client.Delivery).add_done_callback(print), TypeError),
    "a delivery of nothing": (lambda: kc.client.Delivery(None).add_done_callback(print), TypeError),
    "the next record of nothing": (lambda: new(_iterating.NextRecord).send(None), RuntimeError),
    "what is next of nothing": (lambda: next(new(_iterating.NextRecord)), RuntimeError),
    "a failure of nothing": (lambda: new(_iterating.NextRecord).throw(KeyError()), RuntimeError),
}  # fmt: skip


def _takers() -> Iterator[tuple[str, Callable[[Any], Any], Any]]:
    """Every function that takes Arrow data, with a column or table for it."""
    table = pa.record_batch({"key": [b"k"] * 3, "value": [b"v"] * 3})
    column = pa.array([DATA, DATA], pa.binary())
    yield "encode", kc.encode, table
    yield "iter_encoded", lambda data: list(kc.iter_encoded(data)), table
    yield "encode_rows", kc.encode_rows, pa.record_batch({"row": [0, 1, 1], "value": [b"v"] * 3})
    yield "decode_batches", kc.decode_batches, column
    yield "partition", lambda data: kc.partition(data, 3), column
    yield "split_confluent", kc.split_confluent, column


def _twice(take: Callable[[Any], Any], wrapped: Any) -> None:
    take(wrapped)
    take(wrapped)


def _half_used(take: Callable[[Any], Any], data: Any) -> None:
    """The schema is already released, the array is not."""
    wrapped, other = Capsules(data), Capsules(data)
    take(wrapped)
    other.given = (wrapped.given[0], other.given[1])
    take(other)


for _name, _take, _data in _takers():
    CASES[f"{_name} of released capsules"] = (lambda t=_take, d=_data: _twice(t, Capsules(d)), ValueError)
    CASES[f"{_name} of a released schema"] = (lambda t=_take, d=_data: _half_used(t, d), ValueError)
    CASES[f"{_name} of a stream read before"] = (
        lambda t=_take, d=_data: _twice(t, Stream(pa.chunked_array([d]) if isinstance(d, pa.Array) else d)),
        ValueError,
    )


def run_cases() -> None:
    for name, (call, wanted) in CASES.items():
        print(name, flush=True)
        try:
            call()
        except BaseException as error:
            if wanted is None or not isinstance(error, wanted):
                raise
            del error
        else:
            assert wanted is None, f"{wanted.__name__} was not raised"


@pytest.mark.parametrize("faulty", [False, True], ids=["", "in a cycle"])
def test_misuse_is_an_exception(faulty: bool) -> None:
    code = "from tests.unit.test_misuse import run_cases; run_cases()"
    if faulty:
        code = f"import gc; gc.set_threshold(1, 1, 1); {code}; gc.collect()"
    done = run_python(code, seconds=120)
    printed = done.stdout.splitlines()
    assert done.returncode == 0, f"{printed[-1] if printed else 'import'}: exit {done.returncode}\n{done.stderr}"
    assert printed == list(CASES)
