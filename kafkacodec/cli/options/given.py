"""Options that the user gave, and errors about those that would have no effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import click
from click.core import ParameterSource

__all__ = ["given_options", "refuse_given"]


def given_options() -> dict[str, str]:
    """The parameters of the running command that are not left at their defaults, with the name of each as an option."""
    context = click.get_current_context()
    return {
        option.name or "": option.opts[0]
        for option in context.command.params
        if context.get_parameter_source(option.name or "") is not ParameterSource.DEFAULT
    }


def refuse_given(names: Collection[str] | Mapping[str, str], reason: str = "") -> None:
    """Raise click.UsageError for options that the user gave, though they would have no effect.

    Args:
        names: the names of their parameters; or the error of each.
        reason: why they have none, which follows their names.
    """
    given = {name: option for name, option in given_options().items() if name in names}
    if not given:
        return
    if isinstance(names, Mapping):
        raise click.UsageError(names[next(iter(given))])
    verb = "does" if len(given) == 1 else "do"
    raise click.UsageError(f"{', '.join(given.values())} {verb} not apply {reason}")
