"""The kinds of values in the words of a line, with their readers and writers.

A reader takes the word and returns the value, or raises `ValueError`. A writer takes the value and returns the word, or
raises `ValueError` or `TypeError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line._tokens import read_integer

__all__ = ["BOOLEAN", "INTEGER", "INTEGERS", "KEY_VALUE", "WORD", "Kind", "choice", "option", "shortened"]

# Characters that end a word, a section or a line.
_SEPARATORS = re.compile(r"[ |\n]")
_MIN, _MAX = -(1 << 63), (1 << 63) - 1
_BOOLEANS = {"true": True, "false": False}


class Kind(NamedTuple):
    """A kind of value: its reader (None if the word is the value) and its writer."""

    read: Callable[[str], Any] | None
    write: Callable[[Any], str]


def _write_word(value: str) -> str:
    if not value:
        raise ValueError("empty word")
    if _SEPARATORS.search(value):
        raise ValueError(f"{value!r} contains a space, a bar or a line end")
    return value


def _read_key_value(word: str) -> tuple[str, str]:
    key, colon, value = word.partition(":")
    if not colon:
        raise ValueError(f"{shortened(word)} has no colon between key and value")
    return key, value


def _write_key_value(pair: tuple[str, str]) -> str:
    key, value = pair
    if ":" in key:
        raise ValueError(f"key {key!r} contains a colon")
    return _write_word(f"{key}:{value}")


def _write_integer(value: int) -> str:
    if not _MIN <= value <= _MAX:
        raise ValueError(f"{value!r} is not an integer of 64 bits")
    return str(value)


def read_integers(word: str) -> list[int]:
    if word[:1] != "[" or word[-1:] != "]" or len(word) < 2:
        raise ValueError(f"{shortened(word)} is not a list in brackets")
    return [read_integer(item) for item in word[1:-1].split(",")] if len(word) > 2 else []


def _write_integers(values: list[int]) -> str:
    return f"[{','.join(map(_write_integer, values))}]"


def _read_boolean(word: str) -> bool:
    if word not in _BOOLEANS:
        raise ValueError(f"{shortened(word)} is neither true nor false")
    return _BOOLEANS[word]


def _write_boolean(value: bool) -> str:
    return "true" if value else "false"


def shortened(word: str) -> str:
    """The `repr` of a word for error messages, at most 40 characters of it."""
    return repr(word if len(word) <= 40 else word[:37] + "...")


WORD = Kind(None, _write_word)
KEY_VALUE = Kind(_read_key_value, _write_key_value)
INTEGER = Kind(read_integer, _write_integer)
INTEGERS = Kind(read_integers, _write_integers)
BOOLEAN = Kind(_read_boolean, _write_boolean)


def choice(*words: str) -> Kind:
    """A kind whose values are these words."""
    return _choice({word: word for word in words})


def option(name: str, *words: str) -> Kind:
    """A kind whose words are ``name=`` and one of `words`; the value is the text after the equals sign."""
    return _choice({f"{name}={word}": word for word in words})


def _choice(values: dict[str, str]) -> Kind:
    spelling = {value: word for word, value in values.items()}

    def read(word: str) -> str:
        if word not in values:
            raise ValueError(f"{shortened(word)} is not one of {', '.join(values)}")
        return values[word]

    def write(value: str) -> str:
        if value not in spelling:
            raise ValueError(f"{value!r} is not one of {', '.join(spelling)}")
        return spelling[value]

    return Kind(read, write)
