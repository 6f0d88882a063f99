"""What several functions ask of their arguments."""

from __future__ import annotations

from operator import index

from kafkacodec.errors import EncodeError

__all__ = ["int64", "limit", "require_int"]

_MOST = (1 << 63) - 1


def int64(value: int) -> int:
    """The integer of 64 bits that is next to `value`, as for offsets and positions: nothing lies beyond.

    Raises:
        TypeError: it is no integer.
    """
    return max(-_MOST - 1, min(index(value), _MOST))


def limit(name: str, value: int, least: int = 0) -> int:
    """A limit on bytes, rows or threads that fits 64 bits; a larger one bounds nothing more.

    Raises:
        TypeError: it is no integer.
        ValueError: it is below `least`.
    """
    try:
        number = int64(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if number < least:
        raise ValueError(f"{name} is {number}; it must {f'be at least {least}' if least else 'not be negative'}")
    return number


def require_int(name: str, value: int, lowest: int, highest: int) -> None:
    """Raise EncodeError where `value` is no integer from `lowest` to `highest`; a bool is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise EncodeError(f"{name} must be an integer, not {type(value).__name__}")
    if not lowest <= value <= highest:
        raise EncodeError(f"{name} must be from {lowest} to {highest}, not {value}")
