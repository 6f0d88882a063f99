"""Options of a command that are collected in one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from kafkacodec.datatypes import fields

Command = TypeVar("Command", bound=Callable[..., Any])


def gathered(
    command: Command,
    name: str,
    kind: type[Any],
    options: tuple[Callable[..., Any], ...],
    check: Callable[[Any], None] = lambda made: None,
) -> Command:
    """Add options to a command, collected in one argument, an instance of the dataclass `kind`.

    `check` is called with it and raises click.UsageError if its fields contradict each other.
    """

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        taken = {field.name: arguments.pop(field.name) for field in fields(kind)}
        made = kind(**taken)
        check(made)
        return command(**{name: made}, **arguments)

    result = cast(Command, wrapped)
    for option in reversed(options):
        result = option(result)
    return result
