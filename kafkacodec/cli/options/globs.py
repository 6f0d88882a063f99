"""Globs that choose topics and groups by name, and what is said of those that choose none."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Sequence

import click

from kafkacodec.cli.console import note

__all__ = ["matches", "refuse_strangers"]

_WILD = "*?["
_LISTED = 10


def matches(name: str, globs: Sequence[str]) -> bool:
    """Whether one of the globs matches; without any, all names do."""
    return not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def refuse_strangers(
    kind: str, globs: Sequence[str], names: Collection[str], place: str = "", *, kinds: str = ""
) -> None:
    """Refuse globs of which none matches a name, and names that are not there; warn of a glob that matches none.

    Args:
        kind: what is chosen, such as ``"topic"``.
        globs: what was asked for.
        names: what there is.
        place: where; the error begins with it.
        kinds: what several of them are called; by default with an s.

    Raises:
        click.ClickException: with the name that is most similar.
    """
    strange = [glob for glob in globs if not any(fnmatch.fnmatchcase(name, glob) for name in names)]
    certain = strange if len(strange) == len(globs) else [glob for glob in strange if not set(glob) & set(_WILD)]
    where = f"{place}: " if place else ""
    if certain:
        hint = _instead(kinds or f"{kind}s", certain[0], names)
        raise click.ClickException(f"{where}no {kind} {certain[0]!r}; {hint}")
    for glob in strange:
        note(f"kafkacodec: warning: {where}no {kind} matches {glob!r}")


def _instead(kinds: str, wrong: str, names: Collection[str]) -> str:
    from kafkacodec.arguments import suggestion

    return suggestion(wrong, sorted(names), kinds, _LISTED) if names else f"there are no {kinds}"
