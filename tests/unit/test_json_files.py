"""JSON files of records: written by the kernel that prints records, and column by column for other tables."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.cli.files.writers import WRITERS, filled

TEXTS = [b"", "caf\u00e9 \u2028 \U0001f600".encode(), b'"\\\n\t\x01', b"\xff\xfe", None]
HEADERS = [(), (("h", b"x"), ("\u202e", None))]
ROWS = [kc.Record(i, 1_700_000_000_000 + i, 0, TEXTS[i % 5], TEXTS[i // 5 % 5], HEADERS[i % 2]) for i in range(2500)]


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_records_are_as_their_columns(kind: str) -> None:
    records = kc.decode(kc.encode(ROWS), batch_columns=True)
    schema = pa.record_batch(records).schema.append(pa.field("topic", pa.string()))  # which they lack
    by_records, by_columns = io.BytesIO(), io.BytesIO()
    with WRITERS[kind](by_records, schema, None) as file:
        file.write_records(records, schema)
        file.write_records(records, schema)
    with WRITERS[kind](by_columns, schema, None) as file:
        file.write(filled(records, schema))
        file.write(filled(records, schema))
    text = by_records.getvalue().decode()
    assert text == by_columns.getvalue().decode()
    objects = json.loads(text) if kind == "json" else [json.loads(line) for line in text.split("\n")[:-1]]
    assert [found["offset"] for found in objects] == [row.offset for row in ROWS] * 2
    assert objects[16]["value"] == {"base64": "//4="}
    assert objects[1]["headers"] == [{"key": "h", "value": "x"}, {"key": "\u202e", "value": None}]
    assert objects[0]["topic"] is None


@pytest.mark.parametrize(("kind", "want"), [("jsonl", b""), ("json", b"[]\n")])
def test_no_records(kind: str, want: bytes) -> None:
    records = kc.decode(b"")
    written, schema = io.BytesIO(), pa.record_batch(records).schema
    with WRITERS[kind](written, schema, None) as file:
        file.write_records(records, schema)
    assert written.getvalue() == want
