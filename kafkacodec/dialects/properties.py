"""Configurations of the dialects' servers: values from texts by the names of properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["Properties", "read_properties"]

Properties: TypeAlias = Mapping[str, tuple[str, Callable[[str], Any]]]
"""Property -> attribute, and what reads its text, which raises ValueError."""


def read_properties(names: Properties, given: Mapping[str, str]) -> dict[str, Any]:
    """The values by attribute. Raises ValueError, which names the property and its text."""
    values = {}
    for name, text in given.items():
        attribute, read = names[name]
        try:
            values[attribute] = read(text)
        except ValueError as error:
            raise ValueError(f"config {name}={text!r}: {error}") from None
    return values
