"""How far a consumer has read its partitions, without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Place", "Positions"]


class Place(NamedTuple):
    """A partition of a topic on a broker."""

    topic: str
    broker: int
    partition: int


class _Held:
    """Offsets of a partition: after what was handed out, after what is consumed, and what is committed."""

    __slots__ = ("committed", "consumed", "handed")

    def __init__(self, offset: int | None, committed: int | None) -> None:
        self.handed = self.consumed = offset
        self.committed = committed


class Positions:
    """The positions of a consumer in its partitions.

    What was handed out counts as consumed when the next is asked for; only what is consumed is committed. All offsets
    are those of outermost messages, so that a compressed one is committed when all of it is consumed.
    """

    def __init__(self) -> None:
        self._held: dict[Place, _Held] = {}
        self._left: dict[Place, _Held] = {}  # those that were read before

    @property
    def places(self) -> list[Place]:
        """The partitions that are read."""
        return list(self._held)

    def assign(self, committed: Mapping[Place, int | None]) -> None:
        """Read these partitions from now on, from what is committed; None: that is not known, or nothing is.

        Those that were read before, also if not at last, go on after what was handed out, if nobody else has committed
        meanwhile.
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
        """Where reading goes on; None: the broker has to be asked where a partition begins or ends."""
        held = self._held.get(place)
        return None if held is None else held.handed

    def begin(self, place: Place, offset: int) -> None:
        """Read a partition on from an offset; what is before counts as consumed."""
        held = self._held.get(place)
        if held is not None:
            held.handed = held.consumed = offset

    def hand_out(self, place: Place, following: int) -> None:
        """What is before an offset was handed out."""
        held = self._held.get(place)
        if held is not None:
            held.handed = following

    def consume(self) -> None:
        """All that was handed out is consumed."""
        for held in self._held.values():
            held.consumed = held.handed

    def to_commit(self) -> dict[Place, int]:
        """The offsets that are consumed and not committed."""
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
