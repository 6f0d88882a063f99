"""Errors in files that options and arguments name: they say which file it is."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from kafkacodec.errors import DecodeError, UnsupportedVersion

__all__ = ["in_file", "named", "not_text", "text_of"]


@contextmanager
def in_file(file: str | IO[Any]) -> Iterator[None]:
    """Names the file in errors about what is in it.

    Raises:
        click.ClickException: it is no text, or no CSV.
        KafkaCodecError: as raised, with the file in its path.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{named(file)}{not_text(error)}") from None
    except csv.Error as error:
        raise click.ClickException(f"{named(file)}{error}") from None
    except (DecodeError, UnsupportedVersion) as error:
        if named(file):
            error.within(named(file).removesuffix(": "))
        raise


def named(file: str | IO[Any]) -> str:
    """How an error about a file, or that of a path, begins; empty for standard input."""
    path = file if isinstance(file, str) else getattr(file, "name", "-")
    return "" if path in ("-", "<stdin>") else f"{path}: "


def not_text(error: UnicodeDecodeError) -> str:
    """What is wrong with a file that should be text."""
    return f"not UTF-8 text (byte {error.start})"


def text_of(path: str) -> str:
    """The text of a file, which may begin with a byte order mark. Raises as `in_file`, and OSError."""
    with in_file(path), open(path, encoding="utf-8-sig") as file:
        return file.read()
