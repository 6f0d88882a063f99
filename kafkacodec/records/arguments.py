"""What several functions ask of their arguments."""

from __future__ import annotations

from kafkacodec.errors import EncodeError

__all__ = ["require_int"]


def require_int(name: str, value: int, lowest: int, highest: int) -> None:
    """Raise EncodeError where `value` is no integer from `lowest` to `highest`; a bool is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise EncodeError(f"{name} must be an integer, not {type(value).__name__}")
    if not lowest <= value <= highest:
        raise EncodeError(f"{name} must be from {lowest} to {highest}, not {value}")
