"""Values of options: parsing, and error messages for wrong ones."""

from __future__ import annotations

import ast
import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.foreign import is_foreign

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = [
    "boolean",
    "comma_names",
    "one_of",
    "parse_json",
    "positive",
    "refuse_type",
    "refuse_unknown",
    "take",
    "whole_number",
]

T = TypeVar("T")
D = TypeVar("D")


def take(given: Mapping[str, str], name: str, parse: Callable[[str, str], T], default: D) -> T | D:
    """An option's parsed value, or the default if it is not given."""
    return parse(name, given[name]) if name in given else default


# What readers have other words for.
_OTHER_WORDS = {
    "topic": "subscribe", "topics": "subscribe", "topicpattern": "subscribepattern", "partition": "assign",
    "partitions": "assign", "dir": "path", "directory": "path", "timestamp": "startingtimestamp",
    "offset": "startingoffsets", "offsets": "startingoffsets", "compression": "codec",
}  # fmt: skip


def refuse_unknown(
    options: Mapping[str, str], known: Iterable[str], ignored: Callable[[str], bool] = is_foreign
) -> dict[str, str]:
    """The options by their exact names, without those that are `ignored`; option names are not case-sensitive.

    Raises:
        OptionError: an option is not one of `known`.
    """
    names = {name.lower(): name for name in known}
    given = {}
    for option, value in options.items():
        if ignored(option):
            continue
        name = names.get(option.lower())
        if name is None:
            other = _OTHER_WORDS.get(option.lower(), "")
            close = [other] if other in names else difflib.get_close_matches(option.lower(), names, n=1)
            meant = names[close[0]] if close else _of_client(option, names)
            hint = f"did you mean {meant}?" if meant else f"options are {', '.join(names.values())}"
            if option.lower() == "path":
                hint = "the format kafkalog reads and writes directories, this one has topics of brokers"
            raise OptionError(f"{option}: unknown option; {hint}")
        given[name] = value
    return given


# Options of Kafka's clients that lack the prefix and dots.
_OF_CLIENTS = {"acks": "acks", "codec": "compression.type", "compression": "compression.type"}


def _of_client(option: str, names: Iterable[str]) -> str | None:
    """An option of Kafka's clients with the prefix that it lacks, where clients are used."""
    if "kafka.bootstrap.servers" not in names:
        return None
    name = option if "." in option else _OF_CLIENTS.get(option.lower())
    return name and f"kafka.{name}"


def refuse_type(name: str, found: DataType, expected: Sequence[str]) -> None:
    """Refuse a column of a data frame that is to be written.

    Raises:
        OptionError: its type is not one of these; the message says how to make one.
    """
    if found.simpleString() in expected:
        return
    nested = "string" in expected and found.typeName() in ("struct", "array", "map", "variant")
    instead = "to_json makes text of it" if nested else f"cast it to {expected[-1]}"
    raise OptionError(f"column {name!r}: must be {' or '.join(expected)}, not {found.simpleString()}; {instead}")


def parse_json(name: str, value: str, shape: str | None = None) -> object:
    """An option's value, parsed as JSON."""
    try:
        return json.loads(value)
    except RecursionError:
        raise OptionError(f"{shape or name}: the JSON {value[:80]!r} is nested too deeply") from None
    except ValueError as error:
        kind = _python_kind(value)
        reason = f"but a {kind} of Python; json.dumps makes JSON of it" if kind else f"{error}"
        raise OptionError(f"{shape or name}: {value[:80]!r} is not JSON{', ' if kind else ': '}{reason}") from None


def comma_names(name: str, value: str) -> list[str]:
    """An option's value as names with commas between them."""
    kind = _python_kind(value)
    if kind:
        raise OptionError(f"{name}: expected names such as a,b, not a {kind} of Python, {value[:80]!r}")
    return [part.strip() for part in value.split(",")]


def _python_kind(value: str) -> str | None:
    """The type of a container of Python whose ``str`` this is, as Spark makes text of what it is given; else None."""
    if not value.lstrip().startswith(("{", "[", "(")):
        return None
    try:
        return type(ast.literal_eval(value.strip())).__name__
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def positive(name: str, value: str) -> int:
    """An option's value as a positive integer."""
    try:
        number = int(value)
    except ValueError:
        number = 0
    if number <= 0:
        raise OptionError(f"{name}: {value!r} is not a positive integer")
    return number


def whole_number(name: str, value: str) -> int:
    """An option's value as an integer."""
    try:
        return int(value)
    except ValueError:
        raise OptionError(f"{name}: {value!r} is not an integer") from None


def boolean(name: str, value: str) -> bool:
    """An option's value as true or false."""
    word = value.strip().lower()
    if word not in ("true", "false"):
        raise OptionError(f"{name}: expected true or false, not {value!r}")
    return word == "true"


def one_of(*words: str) -> Callable[[str, str], str]:
    """A parser for one of these words, in upper or lower case."""

    def parse(name: str, value: str) -> str:
        for word in words:
            if value.strip().lower() == word.lower():
                return word
        raise OptionError(f"{name}: expected {', '.join(words[:-1])} or {words[-1]}, not {value!r}")

    return parse
