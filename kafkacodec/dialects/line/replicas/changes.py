"""Changes of a broker's partitions since a request."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import takewhile

__all__ = ["Changes"]

Key = tuple[str, int]


class Changes:
    """Versions of a broker's led partitions; each version adds or removes one partition.

    Attributes:
        version: the newest.
    """

    def __init__(self) -> None:
        self.version = 0
        self._last: dict[Key, int] = {}  # change of each partition, the newest at the end
        self._told: set[Hashable] = set()  # the connections that have heard all of this process

    def add(self, key: Key) -> None:
        """A partition is led now, or no longer."""
        self.version += 1
        self._last.pop(key, None)
        self._last[key] = self.version

    def since(self, version: int | None, connection: Hashable) -> list[Key] | None:
        """Return the changes since a version; None: the connection needs all partitions."""
        is_new = version is None or connection not in self._told
        self._told.add(connection)
        if is_new or version is None:
            return None
        return list(takewhile(lambda key: self._last[key] > version, reversed(self._last)))

    def forget(self, connection: Hashable) -> None:
        """A connection has ended."""
        self._told.discard(connection)
