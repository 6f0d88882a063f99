"""Printed records: JSON lines that say what the records are, and tables without a character that does not show."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner
from hypothesis import given, strategies as st

import kafkacodec as kc
from kafkacodec.cli.app import application
from kafkacodec.cli.console import visible

TEXT = st.text(max_size=40)
CONTENT = st.one_of(st.none(), st.binary(max_size=20), TEXT.map(str.encode))
ROWS = st.lists(
    st.tuples(
        st.one_of(st.just(-1), st.integers(0, 1 << 62)),
        CONTENT,
        CONTENT,
        st.lists(st.tuples(TEXT, CONTENT), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def in_json(content: bytes | None) -> Any:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content or b"").decode()}


def printed(rows: list[Any], *options: str) -> str:
    records = [
        kc.Record(i, None if time < 0 else time, 0, key, value, headers)
        for i, (time, key, value, headers) in enumerate(rows)
    ]
    with TemporaryDirectory() as directory:
        partition = Path(directory) / "orders-3"
        os.mkdir(partition)
        (partition / f"{0:020d}.log").write_bytes(kc.encode(records))
        result = CliRunner().invoke(application, ["dump", str(partition), *options])
    assert result.exit_code == 0, result.output
    return result.output


@given(rows=ROWS)
def test_lines_of_json_have_every_field(rows: list[Any]) -> None:
    output = printed(rows, "-J")
    lines = output.split("\n")
    assert lines.pop() == ""
    assert all(line == visible(line) for line in lines)
    expected = [
        {
            "topic": "orders",
            "partition": 3,
            "offset": offset,
            "timestamp": None if time < 0 else time,
            "timestamp_type": 0,
            "key": in_json(key),
            "value": in_json(value),
            "headers": [{"key": name, "value": in_json(content)} for name, content in headers],
        }
        for offset, (time, key, value, headers) in enumerate(rows)
    ]
    assert [json.loads(line) for line in lines] == expected
    assert [list(json.loads(line)) for line in lines] == [list(fields) for fields in expected]


@given(rows=ROWS)
def test_chosen_fields_are_in_their_order(rows: list[Any]) -> None:
    lines = printed(rows, "-J", "--columns", "value,offset").splitlines()
    expected = [{"value": in_json(value), "offset": offset} for offset, (_, _, value, _) in enumerate(rows)]
    assert [json.loads(line) for line in lines] == expected
    assert all(list(json.loads(line)) == ["value", "offset"] for line in lines)


@given(rows=ROWS)
def test_tables_have_a_line_for_each_record(rows: list[Any]) -> None:
    lines = printed(rows, "--columns", "offset,key").split("\n")
    assert lines[0].split() == ["offset", "key"]
    assert lines.pop() == ""
    assert [line.split()[0] for line in lines[1:]] == [str(offset) for offset in range(len(rows))]
    assert all(line == visible(line) for line in lines)


@given(rows=ROWS)
def test_formats_have_the_bytes_of_the_records(rows: list[Any]) -> None:
    sizes = printed(rows, "-f", r"%o %T %K %S\n").splitlines()
    expected = [
        f"{offset} {time} {-1 if key is None else len(key)} {-1 if value is None else len(value)}"
        for offset, (time, key, value, _) in enumerate(rows)
    ]
    assert sizes == expected
