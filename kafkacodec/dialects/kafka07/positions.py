"""Positions of a consumer in its partitions, without I/O."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacodec.datatypes import NamedTuple

__all__ = ["Place", "Positions"]


class Place(NamedTuple):
    """A partition of a topic on a broker."""

    topic: str
    broker: int
    partition: int


class _Held:
    """Offsets of a partition: after returned messages, after consumed messages, and committed."""

    __slots__ = ("committed", "consumed", "handed")

    def __init__(self, offset: int | None, committed: int | None) -> None:
        self.handed = self.consumed = offset
        self.committed = committed


class Positions:
    """The positions of a consumer in its partitions.

    Returned messages count as consumed when the consumer asks for the next; it commits only consumed messages. All
    offsets are those of outermost messages, so a compressed message is committed when all of it is consumed.
    """

    def __init__(self) -> None:
        self._held: dict[Place, _Held] = {}
        self._left: dict[Place, _Held] = {}  # previously read ones

    @property
    def places(self) -> list[Place]:
        """The current partitions."""
        return list(self._held)

    def assign(self, committed: Mapping[Place, int | None]) -> None:
        """Read these partitions from their committed offsets on; None: unknown, or none.

        Partitions that it has read before, at any time, continue after the returned messages, if nobody else has
        committed meanwhile.
        """
        self._left |= self._held
        self._held = {}
        for place, offset in committed.items():
            kept = self._left.pop(place, None)
            if kept is not None and kept.handed is not None and kept.committed == offset:
                self._held[place] = kept
            else:
                self._held[place] = _Held(offset, offset)

    def next_offset(self, place: Place) -> int | None:
        """Return the position of a partition; None: ask the broker for its start or end."""
        held = self._held.get(place)
        return None if held is None else held.handed

    def begin(self, place: Place, offset: int) -> None:
        """Read a partition from an offset on; earlier messages count as consumed."""
        held = self._held.get(place)
        if held is not None:
            held.handed = held.consumed = offset

    def hand_out(self, place: Place, following: int) -> None:
        """Note that messages before an offset were returned."""
        held = self._held.get(place)
        if held is not None:
            held.handed = following

    def consume(self) -> None:
        """Count all returned messages as consumed."""
        for held in self._held.values():
            held.consumed = held.handed

    def to_commit(self) -> dict[Place, int]:
        """Return consumed offsets that are not committed."""
        return {
            place: held.consumed
            for place, held in self._held.items()
            if held.consumed is not None and held.consumed != held.committed
        }

    def committed(self, place: Place, offset: int) -> None:
        """An offset was committed."""
        held = self._held.get(place)
        if held is not None:
            held.committed = offset
