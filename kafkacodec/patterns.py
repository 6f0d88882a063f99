"""Regular expressions for topic names, from users and other clients, matched in linear time.

Kafka's topic expressions have Java's syntax. RE2 reads the common subset and needs time proportional to the length of
the expression times that of the name. Java's engine and Python's are exponential for expressions such as ``(a+)+b``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kafkacodec.lazy import missing_package

__all__ = ["PatternError", "whole_matcher"]


class PatternError(ValueError):
    """A regular expression that is invalid, or that cannot be matched in linear time."""


@lru_cache(maxsize=256)
def whole_matcher(pattern: str) -> Callable[[str], bool]:
    """Returns a function that says whether a complete name matches a regular expression.

    The syntax is RE2's: Java's without backreferences, possessive quantifiers and lookaround, which cannot be matched
    in linear time. Lookaheads at the start, as in ``(?!__).*``, are supported.

    Args:
        pattern: the expression.

    Raises:
        PatternError: the expression is invalid or uses unsupported syntax.
        ImportError: google-re2 is not installed.
    """
    conditions, rest = [], pattern
    while (split := _leading_lookahead(rest)) is not None:
        wanted, inner, rest = split
        conditions.append((_compiled(inner).match, wanted))
    whole = _compiled(rest).fullmatch

    def matches(name: str) -> bool:
        # RE2 cannot encode surrogates.
        if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
            return False
        return whole(name) is not None and all((find(name) is not None) is wanted for find, wanted in conditions)

    return matches


def _compiled(pattern: str) -> Any:
    try:
        import re2
    except ImportError:
        raise missing_package("the pattern needs", "google-re2", "patterns") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        found = error.args[0] if isinstance(error, re2.error) else error.reason
        reason = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
        raise PatternError(f"invalid RE2 regular expression {pattern!r}: {reason}") from None


def _leading_lookahead(pattern: str) -> tuple[bool, str, str] | None:
    """Splits a pattern that starts with ``(?=`` or ``(?!``: True for ``(?=``, the lookahead, the rest."""
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
