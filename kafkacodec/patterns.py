"""Regular expressions that users and other clients give for names of topics, matched in time linear in both.

Kafka's are Java's. RE2 reads what is common of them and runs no expression for longer than its own length times that of
the name; Java's engine, and Python's, take twice the time for each further letter at ``(a+)+b``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["PatternError", "whole_matcher"]


class PatternError(ValueError):
    """A regular expression that cannot be read, or that could not be matched in linear time."""


@lru_cache(maxsize=256)
def whole_matcher(pattern: str) -> Callable[[str], bool]:
    """What tells of a name whether the whole of it matches a regular expression.

    The syntax is that of RE2, which is Java's but for what linear time rules out: backreferences, possessive
    quantifiers, and lookaround, of which lookaheads at the start are understood, such as in ``(?!__).*``.

    Args:
        pattern: the expression.

    Raises:
        PatternError: it cannot be read.
        ImportError: google-re2 is not installed.
    """
    conditions, rest = [], pattern
    while (split := _leading_lookahead(rest)) is not None:
        wanted, inner, rest = split
        conditions.append((_compiled(inner).match, wanted))
    whole = _compiled(rest).fullmatch

    def matches(name: str) -> bool:
        # No part of a character is a name.
        if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
            return False
        return whole(name) is not None and all((find(name) is not None) is wanted for find, wanted in conditions)

    return matches


def _compiled(pattern: str) -> Any:
    try:
        import re2
    except ImportError:
        raise ImportError("google-re2 is not installed: pip install 'kafkacodec[patterns]'") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        found = error.args[0] if isinstance(error, re2.error) else error.reason
        reason = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
        raise PatternError(f"{pattern!r} is not a regular expression of RE2: {reason}") from None


def _leading_lookahead(pattern: str) -> tuple[bool, str, str] | None:
    """Whether the start has to match, what, and the rest of a pattern that begins with ``(?=`` or ``(?!``."""
    start = 1 if pattern.startswith("^(?") else 0
    if pattern[start : start + 3] not in ("(?=", "(?!"):
        return None
    depth, i, in_class = 0, start, False
    while i < len(pattern):
        c = pattern[i]
        if c == "\\":
            i += 1
        elif in_class:
            in_class = c != "]" or pattern[i - 1] == "["
        elif c == "[":
            in_class = True
        elif c in "()":
            depth += 1 if c == "(" else -1
            if not depth:
                return pattern[start + 2] == "=", pattern[start + 3 : i], pattern[i + 1 :]
        i += 1
    return None
