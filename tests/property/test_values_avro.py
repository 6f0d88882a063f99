"""Any Avro schema and values: what fastavro writes is what columns have; damaged values are never a crash."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import example, given, settings, strategies as st

import kafkacodec as kc
from kafkacodec.cli.files.json_columns import nested_values
from kafkacodec.values.avro.decode import AvroDecoder, _Rows
from kafkacodec.values.avro.library import AvroLibrary, readable
from kafkacodec.values.avro.schema import parse_avro
from kafkacodec.values.payloads import payloads_of
from tests.avro_samples import Sample, encoded, samples
from tests.examples import examples


@given(samples())
def test_columns_have_what_fastavro_wrote(sample: Sample) -> None:
    schema = kc.values.Schema(json.dumps(sample.schema))
    decoded = kc.values.decode(encoded(sample.schema, sample.written), schema)
    decoded.values.validate(full=True)
    assert decoded.values.to_pylist() == sample.read
    assert decoded.num_errors == 0


@given(samples())
def test_reading_one_by_one_reads_the_same(sample: Sample) -> None:
    kind = parse_avro(json.dumps(sample.schema))
    payloads, _ = payloads_of(encoded(sample.schema, sample.written))
    assert _Rows(kind).decode(payloads.joined()).to_pylist() == sample.read


@given(samples())
def test_what_is_printed_of_values_is_encoded_to_the_same_bytes(sample: Sample) -> None:
    text = json.dumps(sample.schema)
    written = encoded(sample.schema, sample.written)
    column = kc.values.decode(written, kc.values.Schema(text)).values
    encoder = kc.values.Encoder({1: text}, subject="s")
    for data, value in zip(written, [value for chunk in column.chunks for value in nested_values(chunk)], strict=True):
        again = encoder(json.loads(json.dumps(value)))
        assert value is None or again == b"\0\0\0\0\1" + data


# The library leaves bytes of no meaning in the fields of a null record.
_BIG = {
    "type": "record",
    "name": "B",
    "fields": [{"name": "b", "type": {"type": "bytes", "logicalType": "big-decimal"}}],
}
_NULL_RECORD = {"type": "record", "name": "T", "fields": [{"name": "a", "type": ["null", _BIG]}]}
# In a null record is a union, which pyarrow cannot make null.
_UNION = {"type": "record", "name": "U", "fields": [{"name": "u", "type": ["null", "int", "string"]}]}
_NULL_UNION = {"type": "record", "name": "T", "fields": [{"name": "a", "type": ["null", _UNION]}]}
_ROWS = [{"a": {"u": "x"}}, {"a": None}, {"a": {"u": None}}, {"a": {"u": 7}}]
_READ = [
    {"a": {"u": {"int": None, "string": "x"}}},
    {"a": None},
    {"a": {"u": None}},
    {"a": {"u": {"int": 7, "string": None}}},
]


@given(samples())
@example(Sample(_NULL_RECORD, [{"a": None}], [{"a": None}]))
@example(Sample(_NULL_UNION, _ROWS, _READ))
def test_the_library_reads_the_same(sample: Sample) -> None:
    kind = parse_avro(json.dumps(sample.schema))
    payloads, _ = payloads_of(encoded(sample.schema, sample.written))
    if readable(kind):
        assert AvroLibrary(kind).decode(payloads.joined()).to_pylist() == sample.read


@settings(max_examples=examples(300))
@given(samples(), st.data())
def test_damaged_values_are_errors_or_valid_columns(sample: Sample, data: st.DataObject) -> None:
    values = encoded(sample.schema, sample.written)
    for i, value in enumerate(values):
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(value)))
            values[i] = value[:at] + data.draw(st.binary(max_size=3)) + value[at + data.draw(st.integers(0, 3)) :]
    decoder = AvroDecoder(parse_avro(json.dumps(sample.schema)))
    decoded = decoder.decode(payloads_of(values)[0], 1 << 24)
    decoded.column.validate(full=True)
    assert len(decoded.column) == len(values)
    intact = np.flatnonzero([v == w for v, w in zip(values, encoded(sample.schema, sample.written), strict=True)])
    assert not set(decoded.problems) & set(intact.tolist())
    assert [decoded.column[int(i)].as_py() for i in intact] == [sample.read[i] for i in intact]
