"""Records as text: what the kernels write of any bytes is what Python's own JSON, encodings and rich make of them."""

import io
import json
from contextlib import redirect_stdout
from functools import partial

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len, set_cell_size

import kafkacodec as kc
from kafkacodec.arrow import _rows
from kafkacodec.cli.console import visible, visible_bytes
from kafkacodec.cli.output import glyphs, json_value
from kafkacodec.cli.rows._lines import LineSplitter
from kafkacodec.cli.rows._record_text import Glyphs, TextWriter
from kafkacodec.cli.rows.kcat_json import print_kcat_json
from kafkacodec.cli.rows.record_output import print_formatted, print_json
from kafkacodec.cli.rows.record_rows import Origin, pages
from kafkacodec.shown import text, timestamp

PLACE = Origin("t", 3, "t-3")
# Escapes, controls, marks of direction, blanks, wide and combined characters, pictures, and what is not UTF-8.
PARTS = [
    *(bytes([code]) for code in (0, 9, 10, 27, 34, 48, 92, 97, 127, 255)),
    *("é", "\x85", "\xad", "\u034f", "\u200b", "\u202e", "中", "가", "é", "☺️", "👨\u200d👩", "\ufffd", "\U000e0100"),
    *(b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
]
BYTES = st.lists(
    st.sampled_from([part.encode() if isinstance(part, str) else part for part in PARTS]), max_size=40
).map(b"".join) | st.binary(max_size=30)
TEXTS = st.text(max_size=8)
VALUES = st.none() | BYTES
TIMES = st.integers(-3, 253402300800001) | st.sampled_from([-1, 0, 951782400000, 253402300799999])
RECORDS = st.lists(
    st.builds(
        lambda time, key, value, headers: kc.Record(0, time, 0, key, value, tuple(headers)),
        TIMES,
        VALUES,
        VALUES,
        st.lists(st.tuples(TEXTS, VALUES), max_size=2),
    ),
    min_size=1,
    max_size=20,
)


def table_of(records):
    return kc.decode(kc.encode([record._replace(offset=number) for number, record in enumerate(records)]))


def printed(printer, records):
    table = table_of(records)
    out = io.StringIO()
    with redirect_stdout(out):
        printer(pages(PLACE, [table]))
    return out.getvalue(), table.records()


@given(RECORDS)
def test_json_lines_read_back(records):
    lines, records = printed(partial(print_json, columns=None, raw=False), records)
    assert lines.endswith("\n")
    assert len(lines.splitlines()) == len(records) == lines.count("\n")
    assert lines.replace("\n", "").isprintable()
    assert [json.loads(line) for line in lines.splitlines()] == [
        {
            "topic": "t",
            "partition": 3,
            **record._asdict(),
            "key": json_value(record.key),
            "value": json_value(record.value),
            "headers": [{"key": name, "value": json_value(value)} for name, value in record.headers],
        }
        for record in records
    ]


@given(RECORDS)
def test_the_json_of_kcat_reads_back(records):
    lines, records = printed(print_kcat_json, records)
    for line, record in zip(lines.splitlines(), records, strict=True):
        found = json.loads(line)
        assert (found["offset"], found["ts"]) == (record.offset, record.timestamp)
        assert (found["key"], found["payload"]) == (json_value(record.key), json_value(record.value))
        parts = [part for name, value in record.headers for part in (name, json_value(value))]
        assert found.get("headers", []) == parts


@given(RECORDS)
def test_formats_have_the_bytes_themselves(records):
    lines, records = printed(partial(print_formatted, template=rb"%o %T %K %S %k|%s|%h"), records)
    wanted = [
        b"%d %d %d %d %b|%b|%b"
        % (
            *(record.offset, -1 if record.timestamp is None else record.timestamp),
            *(-1 if data is None else len(data) for data in record[3:5]),
            *(data or b"" for data in record[3:5]),
            b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers),
        )
        for record in records
    ]
    assert lines == b"".join(wanted).decode(errors="backslashreplace")


def cells(records, *pieces):
    """The cells of each record, between zero bytes."""
    table = table_of(records)
    listed = [piece for cell in pieces for piece in (*cell, ("cell", None, b"\0", 0, 0, False))]
    writer, row, made = TextWriter(listed, Glyphs(glyphs)), 0, b""
    while row < len(table):
        part, row = writer.write(table, row, len(table))
        made += part
    found = [cell.decode() for cell in made.split(b"\0")[:-1]]
    return zip(table.records(), [found[i : i + len(pieces)] for i in range(0, len(found), len(pieces))], strict=True)


@given(RECORDS)
def test_cells_are_those_of_notebooks(records):
    kinds = [("value", "value", b"null"), ("time", "timestamp", b"-"), ("visible", "key", b"")]
    for record, (value, time, key) in cells(records, *([(*kind, 0, 0, False)] for kind in kinds)):
        assert value == visible(text(record.value))
        assert time == timestamp(record.timestamp)
        assert key == visible_bytes(record.key or b"").decode()


@given(RECORDS, st.integers(2, 40))
def test_cells_are_cut_as_rich_cuts(records, most):
    piece = ("value", "value", b"null", 0, 0, False)
    found = cells(records, [piece], [piece, ("cell", None, b"", most, 12, True)])
    for _, (whole, cut) in found:
        if cell_len(whole) > most:
            whole = set_cell_size(whole[:most], most - 1) + "…"
        assert cut == " " * (12 - cell_len(whole)) + whole


def test_a_writer_refuses_what_it_cannot_write():
    table = kc.decode(kc.encode([kc.Record(0, 0, 0, b"k", b"v", ())]))
    known = Glyphs(glyphs)

    def writer(kind, column):
        return TextWriter([(kind, column, b"", 0, 0, False)], known)

    for kind, column in (("plain", "offset"), ("time", "key"), ("json", "headers"), ("json headers", "key")):
        with pytest.raises(TypeError, match=f"column '{column}' has no"):
            writer(kind, column).write(table, 0, 1)
    with pytest.raises(KeyError):
        writer("verse", None)
    for first, end in ((-1, 1), (0, 2), (1, 0)):
        with pytest.raises(IndexError):
            writer("plain", "key").write(table, first, end)
    with pytest.raises(IndexError):
        writer("plain", "key").write(table, 0, 1, {"key": []})
    with pytest.raises(TypeError):
        writer("plain", "key").write(table, 0, 1, {"key": ["text"]})
    with pytest.raises(TypeError, match="256 bytes"):
        TextWriter([("value", "key", b"", 0, 0, False)], Glyphs(lambda number: b"")).write(
            kc.decode(kc.encode([kc.Record(0, 0, 0, "é".encode(), None, ())])), 0, 1
        )
    assert writer("plain", "sequence").write(table, 0, 1) == (b"", 1)
    assert writer("plain", "key").write(None, 0, 1, {"key": [b"given"]}) == (b"given", 1)


@given(
    st.lists(st.sampled_from([b"a", b":", b"\n", b"ab", b"::"]), max_size=30).map(b"".join),
    st.sampled_from([b"\n", b":", b"ab"]),
    st.sampled_from([None, b":", b"::"]),
    st.booleans(),
)
def test_lines_are_what_python_splits(text, delimiter, key_delimiter, empty_as_null):
    table, used = LineSplitter(delimiter, key_delimiter, None, empty_as_null).split(text, True, 1000)
    lines = text.split(delimiter)
    wanted = []
    for line in lines if lines[-1] else lines[:-1]:
        key, value = None, line
        if key_delimiter is not None and key_delimiter in line:
            key, _, value = line.partition(key_delimiter)
        wanted.append((key or None, value or None) if empty_as_null else (key, value))
    assert used == len(text)
    assert [*zip(_rows.cells(table, "key"), _rows.cells(table, "value"), strict=True)] == wanted


def test_a_delimiter_has_bytes():
    with pytest.raises(ValueError, match="no bytes"):
        LineSplitter(b"", None, None, False)
    with pytest.raises(ValueError, match="no bytes"):
        LineSplitter(b"\n", b"", None, False)
