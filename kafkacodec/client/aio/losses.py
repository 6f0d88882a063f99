"""Positions that a member of a group lost before their commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafkacodec.client.consuming.positions import Key, PartitionState, Position
from kafkacodec.client.consuming.reading import Reader
from kafkacodec.errors import UNKNOWN_MEMBER_ID, error

__all__ = ["Losses", "listed"]

_SHOWN: Final = 10  # partitions in a line


class Losses:
    """Uncommitted positions in partitions that another member has now.

    Args:
        group_id: the group's, for errors.
        reader: the consumer's.
        committed: the newest committed position of each partition.
    """

    def __init__(self, group_id: str, reader: Reader, committed: Mapping[Key, Position]) -> None:
        self._group_id, self._reader, self._committed = group_id, reader, committed
        self._lost: list[Key] = []
        self._asked_at = 0.0  # when the application had last asked for records

    def note(self, states: Iterable[PartitionState]) -> None:
        """These partitions are lost."""
        self._reader.update_position()
        lost = [state.key for state in states if not self._is_committed(state)]
        if lost:
            self._lost, self._asked_at = lost, self._reader.asked_at

    def check(self) -> None:
        """Raise UnknownMemberIdError before a commit of all positions, once, if the last read lost its positions."""
        lost, self._lost = self._lost, []
        if lost and self._asked_at == self._reader.asked_at:
            text = f"the positions of {listed(lost)} were not committed before group {self._group_id!r} took them away"
            raise error(UNKNOWN_MEMBER_ID)(text)

    def _is_committed(self, state: PartitionState) -> bool:
        known = self._committed.get(state.key)
        return state.position is None or (known is not None and known.offset == state.position.offset)


def listed(partitions: Iterable[Key]) -> str:
    """Partitions as text; of many, the first."""
    names = [f"{topic}-{number}" for topic, number in sorted(partitions)]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) or "nothing") + more
