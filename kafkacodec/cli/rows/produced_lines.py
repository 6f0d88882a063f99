"""Lines as records, as kcat reads them, for `kafkacodec produce`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from kafkacodec.arrow._columns import Table
from kafkacodec.arrow._rows import cells
from kafkacodec.cli.files.json_rows import MAX_BYTES
from kafkacodec.cli.files.sources import Source
from kafkacodec.cli.rows._lines import LineSplitter
from kafkacodec.datatypes import dataclass

__all__ = ["Lines"]

_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\0": "\0"}
_PIECE, _ROWS = 1 << 16, 1024


@dataclass(frozen=True)
class Lines:
    """How lines become records.

    Args:
        key: the key of all records.
        headers: pairs of name and value, of all records.
        key_delimiter: what a line's key ends before; None if lines have no keys.
        delimiter: what records end with.
        empty_as_null: whether an empty key or value is null.
    """

    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    key_delimiter: bytes | None
    delimiter: bytes
    empty_as_null: bool

    @classmethod
    def of(
        cls,
        key: str | None,
        headers: tuple[str, ...],
        key_delimiter: str | None,
        delimiter: str | None,
        empty_as_null: bool,
    ) -> Lines:
        """From the options of the command. Raises click.UsageError for a header without a value, or no delimiter."""
        if key is not None and key_delimiter is not None:
            raise click.UsageError("--key and --key-delimiter exclude each other")
        return cls(
            None if key is None else os.fsencode(key),
            tuple(map(_header, headers)),
            None if key_delimiter is None else _delimiter("--key-delimiter", key_delimiter),
            _delimiter("--delimiter", "\n" if delimiter is None else delimiter),
            empty_as_null,
        )

    def records(self, source: Source) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Key and value of each line, as soon as it is there."""
        for table in self.tables(source):
            yield from zip(cells(table, "key"), cells(table, "value"), strict=True)

    def tables(self, source: Source) -> Iterator[Table]:
        """The columns key and value of lines; the end of the file ends a last record that is not empty."""
        splitter = LineSplitter(self.delimiter, self.key_delimiter, self.key, self.empty_as_null)
        with source.opened() as file:
            rest, searched = bytearray(), 0
            while piece := _piece(file, source.name):
                rest += piece
                if rest.find(self.delimiter, searched) >= 0:
                    yield from _split(splitter, rest)
                searched = max(len(rest) - len(self.delimiter) + 1, 0)
                if len(rest) > MAX_BYTES:
                    raise click.ClickException(f"{source.name}: a record is longer than {MAX_BYTES >> 20} MiB")
            if rest:
                yield splitter.split(rest, True, _ROWS)[0]


def _piece(file: Any, name: str) -> bytes:
    """What is there of a file. Raises click.ClickException: its compressed data are damaged."""
    try:
        found: bytes = file.read1(_PIECE)
    except ValueError as error:
        raise click.ClickException(f"{name}: {error}") from None
    return found


def _split(splitter: LineSplitter, text: bytearray) -> Iterator[Table]:
    """Takes the complete lines from the text."""
    count, start = _ROWS, 0
    while count == _ROWS:
        with memoryview(text)[start:] as left:
            table, used = splitter.split(left, False, _ROWS)
        count, start = len(table), start + used
        if count:
            yield table
    del text[:start]


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--header {text}: not NAME=VALUE")
    return name, os.fsencode(value)


def _delimiter(option: str, text: str) -> bytes:
    if not text:
        raise click.UsageError(f"{option} is empty")
    return os.fsencode(_ESCAPES.get(text, text))
