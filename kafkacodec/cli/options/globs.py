"""Globs that choose topics and groups by name, and what is said of those that choose none."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Sequence

import click

__all__ = ["matches", "refuse_strangers"]

_WILD = "*?["
_LISTED = 10


def matches(name: str, globs: Sequence[str]) -> bool:
    """Whether one of the globs matches; without any, all names do."""
    return not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def refuse_strangers(kind: str, globs: Sequence[str], names: Collection[str], place: str = "") -> None:
    """Refuse globs of which none matches a name, and names that are not there.

    Args:
        kind: what is chosen, such as ``"topic"``.
        globs: what was asked for.
        names: what there is.
        place: where; the error begins with it.

    Raises:
        click.ClickException: with the name that is most similar.
    """
    strange = [glob for glob in globs if not any(fnmatch.fnmatchcase(name, glob) for name in names)]
    certain = strange if len(strange) == len(globs) else [glob for glob in strange if not set(glob) & set(_WILD)]
    if certain:
        where = f"{place}: " if place else ""
        raise click.ClickException(f"{where}no {kind} {certain[0]!r}; {_instead(kind, certain[0], names)}")


def _instead(kind: str, wrong: str, names: Collection[str]) -> str:
    from kafkacodec.arguments import meant

    if not names:
        return f"there are no {kind}s"
    if len(names) > _LISTED:
        return meant(wrong, names) or f"there are {len(names)} {kind}s"
    return meant(wrong, names) or f"{kind}s are {', '.join(sorted(names))}"
