"""Standard input that the user types: no progress bar writes over it."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager

import pytest

from kafkacodec.cli.files import input_rows
from kafkacodec.cli.files.sources import Source, is_typed
from kafkacodec.cli.output import progress

COLUMNS = {"key": None, "value": None, "timestamp": None, "headers": None}


def stand_in(monkeypatch, text, *, terminal):
    stream = io.TextIOWrapper(io.BytesIO(text), write_through=True)
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stdin", stream)


@pytest.mark.parametrize("terminal", [True, False])
def test_typed_rows_have_no_bar(monkeypatch, terminal):
    stand_in(monkeypatch, b'{"value": "a"}\n', terminal=terminal)
    asked = []

    @contextmanager
    def noted(title, total, *, typing):
        asked.append(typing)
        with progress(title, total, typing=typing) as advance:
            yield advance

    monkeypatch.setattr(input_rows, "progress", noted)
    assert sum(batch.rows.num_rows for batch in input_rows.batches([Source("-", "jsonl")], COLUMNS, {})) == 1
    assert asked == [terminal]


def test_a_file_is_not_typed(monkeypatch, tmp_path):
    stand_in(monkeypatch, b"", terminal=True)
    (tmp_path / "rows.jsonl").write_text("{}")
    assert not is_typed([Source(str(tmp_path / "rows.jsonl"), None)])


def test_a_bar_beside_typed_text_is_none_even_on_a_terminal(monkeypatch):
    monkeypatch.setattr("kafkacodec.cli.output.is_terminal", lambda stream: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress("sending", None, typing=True) as advance:
        assert advance(1) is None
