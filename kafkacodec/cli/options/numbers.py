"""The type of options that are a number."""

from __future__ import annotations

import click

__all__ = ["Number"]


class Number(click.IntRange):
    """As `click.IntRange`, which calls a text that is no number an "integer range"."""

    name = "integer"
