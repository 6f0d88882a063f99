"""What messages of the library advise, in the words of the command that prints them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from kafkacodec.errors import DecodeError

if TYPE_CHECKING:
    import click

__all__ = ["advised", "options_of"]

_GAPS = "; gaps='accept' ignores gaps"
_OF_VALUE = re.compile(r"offset \d+: (?:key|value)(?:$|\W)")


def options_of(application: click.Group, arguments: Collection[str]) -> set[str]:
    """The options of the command that the arguments name first, such as ``--gaps``."""
    import click

    context = click.Context(application)
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    command = application.get_command(context, name)
    return {option for parameter in getattr(command, "params", ()) for option in parameter.opts}


def advised(message: str | Exception, options: Collection[str] = ()) -> str:
    """A message with advice as a command with these options takes it; without what it does not take."""
    text = str(message).replace(_GAPS, "; --gaps accept ignores gaps" if "--gaps" in options else "")
    path = message.path if isinstance(message, DecodeError) else None
    if path and "--on-value-error" in options and _OF_VALUE.search(path):
        text += "; --on-value-error null makes such values null"
    return text
