"""The ends of partitions without a fetch, for their lag; fetches report the other ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafkacodec.client.consuming.offset_lookup import OffsetLookup, Query
from kafkacodec.client.consuming.positions import PartitionState, Positions
from kafkacodec.client.consuming.reset_policy import LATEST

__all__ = ["Ends"]

_INTERVAL_MS: Final = 1000.0


class Ends:
    """Asks for ends at most once a second, and only while the application asks for the lag.

    Args:
        lookup: finds offsets.
        positions: the assigned partitions, whose states get the ends.
        committed: the end is the last stable offset.
    """

    def __init__(self, lookup: OffsetLookup, positions: Positions, *, committed: bool) -> None:
        self._lookup = lookup
        self._positions = positions
        self._committed = committed
        self._query: Query | None = None
        self._next_at = 0.0

    def ask(self, states: Iterable[PartitionState], now: float) -> bool:
        """Ask for the ends of these partitions, unless it asked a moment ago. Return whether to send."""
        if now < self._next_at:
            return False
        keys = [state.key for state in states]
        if not keys:
            return False
        if self._query is not None:  # without an answer within a second, ask again
            self._lookup.cancel(self._query)
        self._query, self._next_at = self._lookup.ask(dict.fromkeys(keys, LATEST)), now + _INTERVAL_MS
        return True

    def take(self) -> None:
        """Take the results."""
        query = self._query
        if query is None or not query.done:
            return
        self._query = None
        for key, found in query.found.items():
            state = self._positions.partitions.get(key)
            if state is None or found is None:
                continue
            if self._committed:
                state.last_stable_offset = found.offset
            else:
                state.high_watermark = found.offset
