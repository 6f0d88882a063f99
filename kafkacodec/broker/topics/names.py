"""Valid names of topics, as in `org.apache.kafka.common.internals.Topic`."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAX_LENGTH", "alike", "wrong_name"]

MAX_LENGTH: Final = 249
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def wrong_name(name: str | None) -> str | None:
    """Return the error of a topic's name; None if it is valid."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return "'.' or '..' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    if not _NAME.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def alike(name: str) -> str:
    """Return the same text for names that differ only in dots and underscores, which metrics cannot distinguish."""
    return name.replace(".", "_")
