"""Any text as a schema, and any pair of schemas: columns or a SchemaError."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import example, given, settings, strategies as st

import kafkacodec as kc
from kafkacodec.values.avro.schema import parse_avro
from kafkacodec.values.json.schema import parse_json_schema
from tests.avro_samples import Sample, encoded, samples
from tests.examples import examples

WORDS = st.sampled_from(
    """
    type record name fields items values symbols size null int string enum fixed array map logicalType decimal precision
    scale default aliases namespace a b.c properties object $ref # #/a oneOf allOf additionalProperties prefixItems
    """.split()  # noqa: SIM905
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 100) | WORDS,
    lambda part: st.lists(part, max_size=4) | st.dictionaries(WORDS, part, max_size=5),
    max_leaves=25,
)


@settings(max_examples=examples(500))
@given(TREES)
def test_any_json_is_a_schema_or_an_error(tree: object) -> None:
    text = json.dumps(tree)
    with suppress(kc.SchemaError):
        parse_avro(text)
    with suppress(kc.SchemaError):
        parse_json_schema(kc.values.Schema(text, "json"), {})


@settings(max_examples=examples(300))
@given(samples(), samples())
def test_any_reader_gives_valid_columns_or_an_error(writer: Sample, reader: Sample) -> None:
    schema, wanted = (kc.values.Schema(json.dumps(sample.schema)) for sample in (writer, reader))
    found = kc.values.decode(encoded(writer.schema, writer.written), schema, reader_schema=wanted, on_error="null")
    found.values.validate(full=True)
    assert len(found) == len(writer.written)


@given(samples())
def test_a_schema_reads_its_own_values(sample: Sample) -> None:
    schema = kc.values.Schema(json.dumps(sample.schema))
    found = kc.values.decode(encoded(sample.schema, sample.written), schema, reader_schema=schema)
    assert found.values.to_pylist() == sample.read


# Both schemas have a type T, of different kinds.
_RECORD = Sample(["int", {"type": "record", "name": "T", "fields": []}], [{}], [{"int": None, "T": {}}])
_FIXED = Sample(["int", {"type": "fixed", "name": "T", "size": 1}], [b"x"], [{"int": None, "T": b"x"}])


@given(samples(), samples())
@example(_RECORD, _FIXED)
def test_several_schemas_in_a_column(first: Sample, second: Sample) -> None:
    schemas = {1: json.dumps(first.schema), 2: json.dumps(second.schema)}
    rows = [b"\0\0\0\0\1" + value for value in encoded(first.schema, first.written)]
    rows += [b"\0\0\0\0\2" + value for value in encoded(second.schema, second.written)]
    found = kc.values.decode(rows, schemas, on_error="null")
    found.values.validate(full=True)
    if not first.written:
        assert found.values.to_pylist() == second.read
