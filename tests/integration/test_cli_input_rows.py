"""Errors about a record of a file name the file and the row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, INTERRUPTED, run

ROWS = 20_000  # more than are read at once


@pytest.fixture
def offsets(tmp_path):
    """A file whose last row has the offset of the one before it, and no value."""
    path = tmp_path / "rows.parquet"
    columns = {
        "key": [b"%d" % row for row in range(ROWS)],
        "value": [b"value"] * (ROWS - 1) + [None],
        "offset": [*range(ROWS - 1), ROWS - 2],
    }
    parquet.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--keep-offsets"], "offsets must increase"),
        (["--kafka07"], "a null value"),
        (["--kafka07", "--partitions", "3"], "a null value"),
    ],
)
def test_encode_names_the_row(offsets, tmp_path, capsys, options, reason):
    assert run(["encode", offsets, "-o", str(tmp_path / "out"), "--topic", "t", *options]) == BAD_INPUT
    assert f"error: {offsets}: row {ROWS}: {reason}" in capsys.readouterr().err


def test_produce_names_the_row(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_text(f"key,value\na,1\nb,{'x' * 3_000_000}\n")
    with kc.broker.serve(topics={"t": 1}) as broker:
        assert run(["produce", "t", "-b", broker.bootstrap_servers, str(path)]) == BAD_INPUT
        assert f"error: {path}: row 2: the row takes 3000" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("key,value\n00,1\nxy,2\n", ["--key-encoding", "hex"], "row 2: key 'xy' is not hex"),
        ("value,headers\n1,\n2,[3]\n", [], "row 2: headers: "),
        ("value,offset\n1,a\n", ["--keep-offsets"], "offset: the column is neither int32 nor int64"),
    ],
)
def test_cells_are_named_by_their_row(tmp_path, capsys, text, options, reason):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    assert run(["encode", str(path), "-o", str(tmp_path / "out"), "--topic", "t", *options]) == BAD_INPUT
    assert f"error: {path}: {reason}" in capsys.readouterr().err


def test_a_long_row_of_csv_is_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"value\n{'x' * 3_000_000}\n")
    assert run(["encode", str(path), "-o", str(tmp_path / "out"), "--topic", "t"]) == DONE
    assert len(kc.log.LogDirectory(tmp_path / "out").topic("t").head(1)[0].value) == 3_000_000


def test_produce_checks_columns_before_a_topic_is_created(tmp_path, capsys):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"key": [1, 2], "value": ["a", "b"]}), path)
    with kc.broker.serve() as broker:
        assert run(["produce", "t", "-b", broker.bootstrap_servers, str(path)]) == BAD_INPUT
        with kc.client.Admin(broker.bootstrap_servers) as admin:
            assert not admin.list_topics()
    err = capsys.readouterr().err
    assert f"error: {path}: key: the column is neither bytes nor text" in err
    assert err.endswith("; convert it to text\n")


def _in_topic(broker):
    with kc.client.Admin(broker.bootstrap_servers) as admin:
        return admin.list_offsets({("t", 0): "latest"})["t", 0].offset


def test_produce_says_how_many_rows_went_out_before_a_wrong_one(tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"value":"a"}\n' * ROWS + '{"valeu":"b"}\n')
    with kc.broker.serve(topics={"t": 1}) as broker:
        assert run(["produce", "t", "-b", broker.bootstrap_servers, str(path)]) == BAD_INPUT
        sent = _in_topic(broker)
    assert 0 < sent < ROWS
    said, error = capsys.readouterr().err.splitlines()
    assert said == f"t: {sent:,} records went out"
    assert f"{path}: line {ROWS + 1}: no field 'key' or 'value'" in error


def test_produce_says_how_many_records_went_out_before_an_interrupt(tmp_path, capsys, monkeypatch):
    path = tmp_path / "lines"
    path.write_text("a\nb\nc\n")

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkacodec.cli.commands.produce._Sent.finish", interrupted)
    with kc.broker.serve(topics={"t": 1}) as broker:
        arguments = ["produce", "t", "-b", broker.bootstrap_servers, "--format", "lines", str(path)]
        assert run(arguments) == INTERRUPTED
        assert _in_topic(broker) == 3
    assert "t: 3 records went out" in capsys.readouterr().err.split("\n")


def test_produce_says_how_many_records_failed(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_text("value\na\nb\n")
    with kc.broker.serve(topics={"t": 1}) as broker:
        broker.inject("Produce", "INVALID_RECORD")
        assert run(["produce", "t", "-b", broker.bootstrap_servers, str(path)]) == BAD_INPUT
    assert capsys.readouterr().err.startswith(
        "t: 0 records went out, 2 failed\nkafkacodec: error: t: record 1 and later"
    )
