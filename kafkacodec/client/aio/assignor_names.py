"""The option ``partition_assignment_strategy``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacodec.arguments import suggestion
from kafkacodec.assignment.assignor import Assignor
from kafkacodec.assignment.assignors import ASSIGNORS

__all__ = ["assignors_of"]

# Java's names, as configuration files have them.
_JAVA = {f"org.apache.kafka.clients.consumer.{made.__name__}": name for name, made in ASSIGNORS.items()}


def assignors_of(strategy: Any) -> list[Assignor]:
    """The assignors of names, in one text with commas or a list, which may have objects too.

    Raises TypeError, ValueError.
    """
    parts = strategy.split(",") if isinstance(strategy, str) else strategy
    if not isinstance(parts, Iterable):
        parts = [parts]
    return [_assignor(part.strip() if isinstance(part, str) else part) for part in parts]


def _assignor(given: Any) -> Assignor:
    if isinstance(given, str):
        name = _JAVA.get(given, given)
        if name not in ASSIGNORS:
            known = suggestion(name, [*ASSIGNORS], "assignors")
            raise ValueError(f"partition_assignment_strategy: unknown assignor {given!r}; {known}")
        return ASSIGNORS[name]()
    if not callable(getattr(given, "assign", None)) or not isinstance(getattr(given, "name", None), str):
        raise TypeError(f"partition_assignment_strategy: {given!r} is not a name and has no name and assign()")
    found: Assignor = given
    return found
