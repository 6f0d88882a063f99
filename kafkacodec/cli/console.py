"""Everything the command prints. Untrusted text is escaped here before it reaches a terminal.

File names, topics, records and error messages may hold control sequences, bidirectional marks, invisible characters or
line ends. All of these are printed as escapes.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TextIO, TypeVar

# Letters and marks by Unicode category that are invisible.
_BLANK = frozenset([0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, 0xFFA0])
_BLANK_MARKS = range(0xE0100, 0xE01F0)
# The spellings of characters below are kept: those of most alphabets.
_KEPT = 0x800


class _Spelling(dict[int, str]):
    """For `str.translate`: replaces each unsafe character by its escape."""

    def __missing__(self, code: int) -> str:
        spelling = chr(code) if _shows(code) else self.spelt(code)
        if code < _KEPT:
            self[code] = spelling
        return spelling

    @staticmethod
    def spelt(code: int) -> str:
        """The escape in Python's syntax: ``\\x1b``, ``\\u202e``."""
        return chr(code).encode("unicode_escape").decode("ascii")


class _JsonSpelling(_Spelling):
    @staticmethod
    def spelt(code: int) -> str:
        """The escape in JSON's syntax: ``\\u001b``."""
        return json.dumps(chr(code))[1:-1] if code > 0x7F else f"\\u{code:04x}"


def glyphs(page: int) -> bytes:
    """What is known of a page of 256 characters, for `kafkacodec.cli.rows._record_text.Glyphs`."""
    from kafkacodec.cli.rows._record_text import BLANK, PRINTABLE

    codes = range(page << 8, page + 1 << 8)
    return bytes(PRINTABLE * chr(c).isprintable() + BLANK * _is_blank(c) for c in codes)


def _is_blank(code: int) -> bool:
    return code in _BLANK or code in _BLANK_MARKS


def _shows(code: int) -> bool:
    return chr(code).isprintable() and not _is_blank(code)


_AS_TEXT, _AS_JSON = _Spelling(), _JsonSpelling()
# What is printable, yet invisible.
_BLANKS = re.compile(f"[{''.join(map(chr, _BLANK))}{chr(_BLANK_MARKS[0])}-{chr(_BLANK_MARKS[-1])}]")


class _InOnePiece:
    """While something is being written, an interrupt waits for its end, so that no line is cut; a second one does not.

    What is longer than the stream's buffer may be half in a pipe already.
    """

    def __init__(self) -> None:
        self._writing = False
        self._held: int | None = None

    def holds(self, number: int) -> bool:
        """Whether this signal has to wait; it is raised again after the writing."""
        if not self._writing or self._held is not None:
            return False
        self._held = number
        return True

    def __enter__(self) -> None:
        self._writing = True

    def __exit__(self, *exception: object) -> None:
        self._writing = False
        number, self._held = self._held, None
        if number is not None:
            signal.raise_signal(number)


class _Named:
    """Names standard output in the system's errors of writing to it, which name no file."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and error.filename is None and error.errno is not None:
            error.filename = "standard output"


in_one_piece = _InOnePiece()
standard_output = _Named()
_one_writer = threading.RLock()  # clients log in their own threads, and streams of text mix what two write at once

_LINES_AT_ONCE, _BYTES_AT_ONCE, _HELD_SECONDS = 64, 1 << 16, 0.05

_Part = TypeVar("_Part")

# Paths of temporary files -> what is printed instead.
_shown_as: dict[str, str] = {}


def show_as(path: str, name: str) -> None:
    """Print `name` wherever `path`, a temporary file, would be printed."""
    _shown_as[path] = name


def visible(text: str) -> str:
    """The text on one line, with control and invisible characters as ``\\x1b``, ``\\n``, ``\\u202e``."""
    return text if _is_visible(text) else text.translate(_AS_TEXT)


def _is_visible(text: str) -> bool:
    return text.isprintable() and (text.isascii() or _BLANKS.search(text) is None)


def out_stream() -> TextIO:
    """Standard output. Raises OSError if it was closed when the process started."""
    stream: TextIO | None = sys.stdout
    if stream is None:
        raise OSError(errno.EBADF, "standard output is closed")
    return stream


def say(text: str, *, bold: bool = False) -> None:
    """Print a line on standard output."""
    stream = out_stream()
    line = visible(text)
    _write(stream, [f"\x1b[1m{line}\x1b[0m" if bold and _has_styles(stream) else line])


class _Ending:
    """How the running command ends.

    Attributes:
        by_interrupt: by Ctrl-C only, as its user knows: that is no error.
    """

    by_interrupt = False


ending = _Ending()


def note(text: str) -> None:
    """Print a line on standard error."""
    _write(sys.stderr, [visible(text)])


def say_lines(lines: Iterable[str | None]) -> None:
    """Print many lines on standard output, as `say` does each; None says that there are no more for now.

    A few lines at a time are written: those that came in a moment. On a terminal each is written at once.
    """
    stream = out_stream()
    _held_back(lines, lambda held: _write(stream, map(visible, held)), lambda line: 1, _LINES_AT_ONCE)


def say_text(blocks: Iterable[bytes | None]) -> None:
    """Print whole lines of UTF-8 in which nothing is to be escaped, on standard output; None as in `say_lines`.

    On a terminal each block is written at once.
    """
    stream = out_stream()
    _held_back(blocks, lambda held: _write_text(stream, b"".join(held)), len, _BYTES_AT_ONCE)


def say_bytes(blocks: Iterable[bytes | None]) -> None:
    """Write bytes on standard output as they are; None and terminals as in `say_text`."""
    stream = out_stream()
    stream.flush()
    _held_back(blocks, lambda held: _write_bytes(stream, held), len, _BYTES_AT_ONCE)


def _held_back(
    parts: Iterable[_Part | None], write: Callable[[list[_Part]], None], size: Callable[[_Part], int], enough: int
) -> None:
    """Write parts to standard output, a few at a time: those that came in a moment. On a terminal each is at once."""
    held: list[_Part] = []
    left = enough = 0 if is_terminal(sys.stdout) else enough
    begun, clock = 0.0, time.monotonic
    try:
        for part in parts:
            if part is not None:
                held.append(part)
                left -= size(part)
            if part is None or left <= 0 or clock() > begun + _HELD_SECONDS:
                ready, held = held, []  # an interrupt comes after the writing, and must not lead to a second one
                write(ready)
                left, begun = enough, clock()
    finally:
        write(held)


def is_unicode() -> bool:
    """Whether standard output can have all characters."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


def json_encoder() -> Callable[[Any], str]:
    """A function that makes JSON for one line of standard output."""
    return json.JSONEncoder(ensure_ascii=not is_unicode(), separators=(",", ":")).encode


def say_json(value: Any, *, indent: int | None = None) -> None:
    """Print JSON on standard output, on one line unless `indent` is given. Invisible characters are escaped."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=not is_unicode(), indent=indent, separators=separators)
    # json.dumps breaks lines only to indent.
    _write(out_stream(), ["\n".join(map(_json_line, text.split("\n")))])


def json_text(value: Any) -> str:
    """JSON for one line of standard output. Invisible characters are escaped."""
    return _json_line(json_encoder()(value))


def visible_bytes(data: bytes) -> bytes:
    """Bytes of text for a terminal: what `visible` escapes is, and so are those that are not UTF-8."""
    return visible(data.decode(errors="surrogateescape")).encode(errors="backslashreplace")


def _json_line(line: str) -> str:
    return line if _is_visible(line) else line.translate(_AS_JSON)


def is_file(stream: TextIO | None) -> bool:
    """Whether what is written goes to a file: neither to a terminal nor to another program, which may use that."""
    try:
        return stream is not None and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal; None is a stream that was closed when the process started."""
    return stream is not None and stream.isatty()


def _has_styles(stream: TextIO | None) -> bool:
    return is_terminal(stream) and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ


def _write_text(stream: TextIO, text: bytes) -> None:
    for path, name in _shown_as.items():
        text = text.replace(path.encode(errors="backslashreplace"), name.encode())
    buffer = getattr(stream, "buffer", None)
    if not text:
        return
    with standard_output, _one_writer, in_one_piece:
        if buffer is None or stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.write(text.decode())
        else:
            stream.flush()
            buffer.write(text)
        stream.flush()


def _write_bytes(stream: TextIO, blocks: list[bytes]) -> None:
    buffer = getattr(stream, "buffer", None)
    with standard_output, _one_writer, in_one_piece:
        if buffer is None:  # replaced by a stream of text
            stream.write("".join([block.decode(errors="backslashreplace") for block in blocks]))
        else:
            buffer.write(b"".join(blocks))
        stream.flush()


def _write(stream: TextIO | None, lines: Iterable[str]) -> None:
    for path, name in _shown_as.items():
        lines = [line.replace(path, name) for line in lines]
    if stream is not None:  # closed when the process started
        with standard_output, _one_writer, in_one_piece:
            for line in lines:
                stream.write(f"{line}\n")
            stream.flush()
