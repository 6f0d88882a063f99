"""Options of a command that are collected in one argument."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Command = TypeVar("Command", bound=Callable[..., Any])


def gathered(command: Command, name: str, kind: type[Any], options: tuple[Callable[..., Any], ...]) -> Command:
    """Add options to a command, collected in one argument, an instance of the dataclass `kind`."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        taken = {field.name: arguments.pop(field.name) for field in dataclasses.fields(kind)}
        return command(**{name: kind(**taken)}, **arguments)

    result = cast(Command, wrapped)
    for option in reversed(options):
        result = option(result)
    return result
