"""Names of topics."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["check_topic"]

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def check_topic(name: str) -> None:
    """Raise ValueError for a name that no topic can have (`org.apache.kafka.common.internals.Topic`), or TypeError."""
    if not isinstance(name, str):
        raise TypeError(f"a topic must be text, not {type(name).__name__}")
    if not _LEGAL.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"illegal topic {name!r}: use at most 249 of a-z, A-Z, 0-9, '.', '_' and '-'")
