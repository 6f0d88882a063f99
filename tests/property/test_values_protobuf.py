"""Any Protobuf schema and values: columns have what protobuf's own library reads, and errors are what it refuses."""

from __future__ import annotations

import os
from random import Random

from hypothesis import HealthCheck, given, settings, strategies as st

import kafkacodec as kc
from kafkacodec.values.protobuf.compile import compiled_files
from tests.examples import examples
from tests.proto_samples import Writer, expected, plain, schemas

# KAFKACODEC_LONG=1 compares 100,000 values of 1,000 schemas.
SCHEMAS, VALUES = (1_000, 100) if os.environ.get("KAFKACODEC_LONG") else (8, 60)


@settings(max_examples=examples(SCHEMAS), suppress_health_check=list(HealthCheck))
@given(schemas(), st.randoms(use_true_random=True), st.sampled_from([0.0, 0.05, 0.3]))
def test_columns_have_what_protobuf_reads(text: str, random: Random, oddity: float) -> None:
    compare(text, random, oddity)


def compare(text: str, random: Random, oddity: float) -> None:
    from google.protobuf.message_factory import GetMessageClass

    schema = kc.values.Schema(text, "protobuf", message="A")
    descriptor = compiled_files(schema, {})[-1].message_types_by_name["A"]
    writer = Writer(random, oddity)
    values = [writer.message(descriptor) for _ in range(VALUES)]
    if oddity:
        values += [writer.damaged(value) for value in values[: VALUES // 4]]
    parse = GetMessageClass(descriptor).FromString
    found = kc.values.decode(values, schema, on_error="null")
    found.values.validate(full=True)
    wanted = [expected(parse, value) for value in values]
    for value, row, want, error in zip(values, plain(found.values), wanted, found.errors.to_pylist(), strict=True):
        assert row == want, (value, error)
        assert (error is None) == (want is not None), (value, error)
