"""Printed text cannot control a terminal."""

import io
import json
import signal
import sys
import unicodedata

import pytest

from kafkacodec.cli import console, output
from kafkacodec.cli.rows._record_text import BLANK, PRINTABLE, WIDENS

HOSTILE = [
    "\x1b[2J\x1b[31mred",
    "\x9b31m",
    "\x07\x08\x7f\x00",
    "two\nlines\r\n",
    "\tcell",
    "user\u202egpj.exe",
    "\u2066isolated\u2069",
    "zero\u200bwidth\ufeff\u00ad\u2060",
    "line\u2028paragraph\u2029",
    "name\udcff\ud800",
    "\U000e0041tag",
    "blank\u3164\u115f\u034f",
    "variation\U000e0100",
]
PLAIN = ["plain text", "Zürich, 東京, café", "🙂", "[red]markup[/red]", r"C:\temp\n", "=1+1"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_line_shows_what_it_holds(text, capsys):
    console.say(text)
    console.note(text)
    for shown in capsys.readouterr():
        assert shown.count("\n") == 1
        assert shown.endswith("\n")
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in shown[:-1])
        assert shown[:-1] == console.visible(text) != text
        assert shown.encode()


@pytest.mark.parametrize("text", PLAIN)
def test_ordinary_text_stays_as_it_is(text, capsys):
    console.say(text)
    assert capsys.readouterr().out == text + "\n"


def test_escapes_are_those_of_python():
    assert console.visible("a\x1b\n\u202e\udcff\U000e0041") == r"a\x1b\n\u202e\udcff\U000e0041"


@pytest.mark.parametrize("text", HOSTILE + PLAIN)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_comes_back_from_visible_text(text, indent, capsys):
    console.say_json({text: [text]}, indent=indent)
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.splitlines())
    assert len(shown.splitlines()) == (1 if indent is None else 5)
    assert json.loads(shown) == {text: [text]}


def test_json_fits_an_encoding_without_unicode(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, "latin-1"))
    console.say_json("é, 東京")
    assert json.loads(raw.getvalue().decode("ascii")) == "é, 東京"


def test_nothing_is_printed_where_there_is_no_stream(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr", None)
    console.note("lost")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("write", [console.say, console.note, console.say_json])
def test_an_interrupt_leaves_no_half_line(monkeypatch, write):
    class Interrupted(io.StringIO):
        def write(self, text):
            super().write(text)
            raise KeyboardInterrupt

    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Interrupted())
    with pytest.raises(KeyboardInterrupt):
        write("text")
    assert (sys.stdout.getvalue() + sys.stderr.getvalue()).strip('"\n') == "text"
    assert (sys.stdout.getvalue() + sys.stderr.getvalue()).endswith("\n")


@pytest.mark.parametrize("say", [console.say_lines, console.say_text, console.say_bytes])
def test_an_interrupt_during_the_writing_does_not_write_twice(say, monkeypatch):
    class Interrupting(io.StringIO):
        """Is interrupted while the first piece is written: the interrupt comes when that is done."""

        def write(self, text):
            if not self.getvalue():
                console.in_one_piece.holds(signal.SIGINT)
            return super().write(text)

    monkeypatch.setattr(sys, "stdout", Interrupting())
    first = "one" if say is console.say_lines else b"one\n"
    with pytest.raises(KeyboardInterrupt):
        say([first, None, first])
    assert sys.stdout.getvalue() == "one\n"


def test_text_is_written_in_the_encoding_of_the_stream(monkeypatch):
    for encoding in ("utf-8", "utf-16-le", "latin-1", "ascii"):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding, errors="backslashreplace"))
        sys.stdout.write("before ")
        console.say_text(["é中\n".encode(), None])
        assert raw.getvalue() == "before é中\n".encode(encoding, errors="backslashreplace")


def test_what_is_known_of_characters():
    page = console.glyphs(3)
    assert [page[code & 255] for code in (0x34F, 0x378, 0x391)] == [PRINTABLE | BLANK, 0, PRINTABLE]
    wide = output.glyphs(0x4E)[0x2D]
    assert (wide & 3, wide & PRINTABLE) == (2, PRINTABLE)
    assert output.glyphs(0x26)[0x3A] == PRINTABLE | WIDENS | 1
