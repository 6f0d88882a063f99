"""Where values have their schema: the bytes of each framing, headers, and schemas from a directory."""

from __future__ import annotations

import json
import uuid
import zlib

import pyarrow as pa
import pytest

import kafkacodec as kc

TEXT = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
SCHEMAS = {7: TEXT, 2**40: TEXT, ID: TEXT}
PAYLOAD = b"\x06"
WANT = {"a": 3}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def headers(*rows):
    return pa.array([list(row.items()) if isinstance(row, dict) else row for row in rows], HEADERS)


FRAMED = {
    "number": (b"\x00\x00\x00\x00\x07", "auto", 7, None),
    "GUID": (b"\x01" + ID.bytes, "auto", None, ID),
    "Glue": (b"\x03\x00" + ID.bytes, "auto", None, ID),
    "Apicurio": (b"\x00" + (2**40).to_bytes(8), "apicurio", 2**40, None),
}


@pytest.mark.parametrize("name", FRAMED)
def test_framings(name):
    prefix, framing, number, guid = FRAMED[name]
    found = kc.values.decode([prefix + PAYLOAD, None], SCHEMAS, framing=framing)
    assert found.values.to_pylist() == [WANT, None]
    assert found.schema_ids.to_pylist() == [number, None]
    assert found.schema_uuids.to_pylist() == [guid and str(guid), None]


def test_glue_values_may_be_compressed():
    head = b"\x03\x05" + ID.bytes
    values = [
        head + zlib.compress(PAYLOAD),
        head + b"no zlib",
        head + zlib.compress(PAYLOAD)[:-3],
        b"\x03\x09" + ID.bytes,
    ]
    found = kc.values.decode(values, SCHEMAS, on_error="null")
    assert found.values.to_pylist() == [WANT, None, None, None]
    assert [str(error).split(":")[0] for error in found.errors.to_pylist()] == [
        "None",
        "zlib",
        "zlib",
        "unknown compression in Glue's framing",
    ]


def test_a_compressed_value_may_not_fill_the_memory():
    bomb = zlib.compress(bytes(65 << 20))
    with pytest.raises(kc.DecodeError, match="more than 67108864 bytes"):
        kc.values.decode([b"\x03\x05" + ID.bytes + bomb], SCHEMAS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("__value_schema_id", b"\x00\x00\x00\x00\x07"),
        ("__value_schema_id", b"\x01" + ID.bytes),
        ("apicurio.value.globalId", (2**40).to_bytes(8)),
        ("apicurio.value.contentId", (7).to_bytes(8)),
    ],
)
def test_headers(name, value):
    rows = headers(
        {"other": b"x", name: value}, [], [(name, b"\x00\x00\x00\x00\x09"), (name, value)], {name: b"no"}, {name: None}
    )
    framed = b"\x00\x00\x00\x00\x07" + PAYLOAD
    found = kc.values.decode([PAYLOAD, framed, PAYLOAD, PAYLOAD, PAYLOAD], SCHEMAS, headers=rows, on_error="null")
    assert found.values.to_pylist() == [WANT, WANT, WANT, None, None]
    assert found.errors.to_pylist()[3:] == [f"the header {name} is not a schema id", f"the header {name} is null"]


def test_headers_of_keys_have_names_of_their_own():
    rows = headers({"__value_schema_id": b"\x00\x00\x00\x00\x09", "__key_schema_id": b"\x00\x00\x00\x00\x07"})
    assert kc.values.decode([PAYLOAD], SCHEMAS, headers=rows, part="key").values.to_pylist() == [WANT]


def test_headers_of_sliced_columns_belong_to_their_rows():
    rows = headers({"__value_schema_id": b"\x00\x00\x00\x00\x09"}, {"__value_schema_id": b"\x00\x00\x00\x00\x07"}, [])
    framed = pa.array([b"", PAYLOAD, b"\x00\x00\x00\x00\x07" + PAYLOAD])
    assert kc.values.decode(framed[1:], SCHEMAS, headers=rows[1:]).values.to_pylist() == [WANT, WANT]


def test_values_without_framing():
    with pytest.raises(kc.DecodeError, match=r"values\[0\]: no schema id: the value starts with the byte 0x7b"):
        kc.values.decode([b"{}"], SCHEMAS)
    with pytest.raises(kc.DecodeError, match=r"values\[0\]: no schema id: the value is empty"):
        kc.values.decode([b""], SCHEMAS)
    assert kc.values.decode([PAYLOAD], kc.values.Schema(TEXT)).values.to_pylist() == [WANT]


def test_missing_schemas():
    with pytest.raises(kc.SchemaNotFound, match=r"values\[1\]: there is no schema 9"):
        kc.values.decode([b"\x00\x00\x00\x00\x07\x06", b"\x00\x00\x00\x00\x09\x06"], SCHEMAS)
    found = kc.values.decode([b"\x00\x00\x00\x00\x09\x06"], SCHEMAS, on_error="null")
    assert found.values.type == pa.null()
    assert found.errors.to_pylist() == ["there is no schema 9"]
    assert found.schema_ids.to_pylist() == [9]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"\x00\x00\x00\x00\x07\x06", None], pa.binary_view()),
        pa.array([b"\x00\x00\x00\x00\x07\x06", None], pa.large_binary()),
        pa.array([b"\x00\x00\x00\x00\x07\x06", None]).dictionary_encode(),
        pa.chunked_array([[b"\x00\x00\x00\x00\x07\x06"], [None]]),
        pa.array([b"", b"\x00\x00\x00\x00\x07\x06", None])[1:],
        [b"\x00\x00\x00\x00\x07\x06", None],
    ],
)
def test_columns_of_every_layout(column):
    assert kc.values.decode(column, SCHEMAS).values.to_pylist() == [WANT, None]


def test_results_are_tables_for_other_libraries():
    pl = pytest.importorskip("polars")
    found = kc.values.decode([b"\x00\x00\x00\x00\x07\x06", b"x"], SCHEMAS, on_error="null")
    assert pa.table(found).column_names == ["value", "schema_id", "schema_uuid", "error"]
    assert pl.DataFrame(found)["error"].is_null().to_list() == [True, False]
    assert repr(found) == "<DecodedValues: 2 rows of struct<a: int32>, 1 error>"
    assert len(kc.values.decode([], SCHEMAS)) == 0


# --- directories ------------------------------------------------------------------------------------------------------


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "7.avsc").write_text(TEXT)
    (tmp_path / f"{ID}.avsc").write_text(TEXT)
    (tmp_path / "orders-value-3.avsc").write_text(TEXT)
    (tmp_path / "notes.txt").write_text("ignored")
    return tmp_path


def test_directories(directory):
    source = kc.values.SchemaDirectory(directory)
    assert source.version("orders-value", 3) == kc.values.Schema(TEXT)
    values = [b"\x00\x00\x00\x00\x07\x06", b"\x01" + ID.bytes + PAYLOAD]
    assert kc.values.decode(values, str(directory)).values.to_pylist() == [WANT, WANT]
    with pytest.raises(kc.SchemaNotFound, match="there is no schema 8 in"):
        kc.values.decode([b"\x00\x00\x00\x00\x08\x06"], source)
    with pytest.raises(kc.SchemaNotFound, match="no version 4 of orders-value"):
        source.version("orders-value", 4)


def test_a_mapping_file_gives_numbers_and_references(directory):
    inner = {"type": "record", "name": "x.Inner", "fields": [{"name": "n", "type": "string"}]}
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "i", "type": "x.Inner"}]}
    (directory / "inner.avsc").write_text(json.dumps(inner))
    (directory / "outer.avsc").write_text(json.dumps(outer))
    reference = {"name": "x.Inner", "subject": "inner", "version": 1}
    entries = [
        {"file": "inner.avsc", "subject": "inner", "version": 1},
        {"file": "outer.avsc", "id": 12, "references": [reference]},
    ]
    (directory / "schemas.json").write_text(json.dumps({"schemas": entries}))
    assert kc.values.decode([b"\x00\x00\x00\x00\x0c\x02q"], str(directory)).values.to_pylist() == [{"i": {"n": "q"}}]


def test_references_in_a_circle_are_refused():
    source = kc.values.Schemas(
        {1: kc.values.Schema(TEXT, references=(kc.values.Reference("a", "s", 1),))},
        {("s", 1): kc.values.Schema(TEXT, references=(kc.values.Reference("b", "s", 2),)),
         ("s", 2): kc.values.Schema(TEXT, references=(kc.values.Reference("a", "s", 1),))},
    )  # fmt: skip
    with pytest.raises(kc.SchemaError, match="references form a circle: a -> b -> a"):
        kc.values.decode([b"\x00\x00\x00\x00\x01\x06"], source)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"schemas": [{"file": "../x.avsc"}]}', "not in the directory"),
        ('{"schemas": [{"file": "x.avsc", "format": "xml"}]}', "format 'xml'"),
        ('{"schemas": [{"file": "x.avsc", "uuid": "?"}]}', "ValueError"),
    ],
)
def test_damaged_mapping_files(directory, text, reason):
    (directory / "schemas.json").write_text(text)
    with pytest.raises(kc.SchemaError, match=reason):
        kc.values.SchemaDirectory(directory)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"schemas": 5}, TypeError),
        ({"schemas": "/no/such/directory"}, FileNotFoundError),
        ({"on_error": "skip"}, ValueError),
        ({"format": "xml"}, ValueError),
        ({"framing": "x"}, ValueError),
        ({"part": "header"}, ValueError),
        ({"column": [5]}, TypeError),
        ({"column": pa.array([5])}, TypeError),
        ({"column": 5}, TypeError),
        ({"headers": pa.array([5])}, TypeError),
        ({"headers": headers([], [])}, ValueError),
        ({"max_total_bytes": -1}, ValueError),
    ],
)
def test_wrong_arguments(arguments, error):
    with pytest.raises(error):
        kc.values.decode(**{"column": [b"\x00\x00\x00\x00\x07\x06"], "schemas": SCHEMAS, **arguments})


def test_a_missing_package_is_named(monkeypatch):
    from kafkacodec.values import decoding

    monkeypatch.setattr(decoding, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"avro values need polars_avro: pip install 'kafkacodec\[values\]'"):
        kc.values.decode([b"\x00\x00\x00\x00\x07\x06"], SCHEMAS)
