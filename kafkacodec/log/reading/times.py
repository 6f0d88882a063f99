"""Timestamps as arguments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["Timestamp", "to_milliseconds"]

Timestamp = int | datetime
"""Milliseconds since the epoch, or a datetime; one without a time zone is taken as UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LAST_TIME = (1 << 63) - 1


def to_milliseconds(timestamp: Timestamp) -> int:
    """Milliseconds since the epoch, limited to 64 bits.

    Raises:
        TypeError: neither an integer nor a datetime.
    """
    if isinstance(timestamp, datetime):
        aware = timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _MILLISECOND
    if not hasattr(timestamp, "__index__"):
        raise TypeError(f"a timestamp must be milliseconds or a datetime, not {type(timestamp).__name__}")
    return max(-_LAST_TIME, min(int(timestamp), _LAST_TIME))
