from collections.abc import Callable

KEEPERS: list[tuple[Callable[[], int], Callable[[], int]]]

def live() -> int:
    """Bytes of all blocks in use."""

def kept() -> int:
    """Bytes of freed blocks in the pool."""

def trim() -> int:
    """Returns the memory in the pool to the system; returns its size in bytes."""
