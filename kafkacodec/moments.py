"""Times as arguments: numbers, datetimes, dates, and text, also relative to now."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, TypeAlias

__all__ = ["Moment", "are_seconds", "milliseconds", "time_span"]

Moment: TypeAlias = int | date | str
"""A time: milliseconds since 1970, a datetime, a date, which is its midnight, or text; in UTC without a time zone.
Text is digits for milliseconds, ISO 8601 (``"2026-05-01"``, ``"2026-05-01T12:00+02:00"``), ``"now"``,
``"today"``, ``"yesterday"``, ``"tomorrow"``, or relative to now, such as ``"-1h"`` and ``"-1d12h"``, with the units
``ms``, ``s``, ``m``, ``h``, ``d`` and ``w``."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_LAST: Final = (1 << 63) - 1
_DAY: Final = 86_400_000
_DAYS: Final = {"today": 0, "yesterday": -1, "tomorrow": 1}
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": _DAY, "w": 7 * _DAY}
_PART: Final = re.compile(r"([0-9]{1,18})(ms|[smhdw])")
_SECONDS: Final = re.compile(r"[0-9]{10}")
_RELATIVE: Final = re.compile(rf"[-+](?:{_PART.pattern})+")


def milliseconds(moment: Moment, name: str = "a time", now: int | None = None) -> int:
    """Milliseconds since 1970, limited to 64 bits.

    Args:
        moment: the time.
        name: what it is, for errors.
        now: the present, for text that is relative to it. Default: the clock's.

    Raises:
        TypeError: of none of the types.
        ValueError: text that says no time.
    """
    if isinstance(moment, str):
        return _limited(_of_text(moment, name, now))
    if isinstance(moment, datetime):
        return _of_datetime(moment)
    if isinstance(moment, date):
        return _of_datetime(datetime.combine(moment, time()))
    if isinstance(moment, bool) or not hasattr(moment, "__index__"):
        raise TypeError(f"{name} must be milliseconds, a datetime, a date or text, not {type(moment).__name__}")
    return _limited(moment.__index__())


def are_seconds(text: str) -> bool:
    """Whether a time is probably meant in seconds: ten digits, as the years since 2001 have, are in 1970 otherwise."""
    return _SECONDS.fullmatch(text) is not None


def time_span(start: Moment | None, end: Moment | None) -> tuple[int | None, int | None]:
    """A ``start_timestamp`` and an ``end_timestamp`` in milliseconds; None where there is none.

    Raises:
        TypeError, ValueError: as `milliseconds`; or the end is before the start.
    """
    now = _of_datetime(datetime.now(UTC))
    first = None if start is None else milliseconds(start, "start_timestamp", now)
    last = None if end is None else milliseconds(end, "end_timestamp", now)
    if first is not None and last is not None and last < first:
        raise ValueError(f"end_timestamp ({end}) is before start_timestamp ({start}): no record is between them")
    return first, last


def _of_datetime(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND


def _of_text(text: str, name: str, now: int | None) -> int:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20:
        return int(text)
    here = _of_datetime(datetime.now(UTC)) if now is None else now
    if text == "now":
        return here
    if text in _DAYS:
        return here - here % _DAY + _DAYS[text] * _DAY
    if _RELATIVE.fullmatch(text):
        away = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(text))
        return here + (away if text[0] == "+" else -away)
    try:
        return _of_datetime(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        known = "milliseconds, a date or time such as 2026-05-01T12:00, -1h, now, today nor yesterday"
        raise ValueError(f"{name} is {text!r}, which is neither {known}") from None


def _limited(number: int) -> int:
    return max(-_LAST, min(number, _LAST))
