"""What is wrong with a part of a value, and where the part is."""

from __future__ import annotations

__all__ = ["Mismatch"]


class Mismatch(ValueError):
    """A value, or a part of it at a path, does not match its type."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason, self.path = reason, list[str]()

    def __str__(self) -> str:
        return f"{'.'.join(reversed(self.path))}: {self.reason}" if self.path else self.reason
