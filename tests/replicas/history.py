"""What clients of the line protocol saw, and whether that agrees with what its text promises.

Each operation has the times of its beginning and its end. `faults` returns a sentence for each promise that is broken:

- A record that was acknowledged with acks=all stays where it was acknowledged, and is the only one there.
- What CONSUME once returned at an offset, every CONSUME returns there.
- A record that was acknowledged before another was sent has the smaller offset.
- In a generation of a group a partition has one owner.
- A committed offset never gets smaller: OFFSET tells at least what was committed before it was asked.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Produced(NamedTuple):
    """A record that was acknowledged with acks=all."""

    begin: float
    end: float
    partition: int
    offset: int
    value: str


class Consumed(NamedTuple):
    """What a CONSUME returned: values by offset."""

    begin: float
    end: float
    partition: int
    messages: dict[int, str]


class Owned(NamedTuple):
    """What a JOIN or SYNC returned."""

    generation: int
    member: str
    partitions: tuple[int, ...]


class Committed(NamedTuple):
    """An acknowledged COMMIT, or what OFFSET told (`is_read`)."""

    begin: float
    end: float
    partition: int
    offset: int
    is_read: bool


@dataclass
class History:
    """All that was seen. Lists are appended to by several threads."""

    produced: list[Produced] = field(default_factory=list)
    consumed: list[Consumed] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)

    def faults(self, last: dict[int, dict[int, str]]) -> list[str]:
        """What is wrong; `last` is all that was read at the end, by partition and offset."""
        found = [*self._kept(last), *self._read_alike(last), *self._in_order(), *self._owned_once(), *self._forward()]
        return found[:20]

    def _kept(self, last: dict[int, dict[int, str]]) -> Iterator[str]:
        for one in self.produced:
            there = last.get(one.partition, {}).get(one.offset)
            if there != one.value:
                yield f"acknowledged at {one.partition}:{one.offset} was {one.value!r}, at the end there is {there!r}"

    def _read_alike(self, last: dict[int, dict[int, str]]) -> Iterator[str]:
        for read in self.consumed:
            for offset, value in read.messages.items():
                there = last.get(read.partition, {}).get(offset)
                if there != value:
                    yield f"CONSUME gave {value!r} at {read.partition}:{offset}, at the end there is {there!r}"

    def _in_order(self) -> Iterator[str]:
        for partition in {one.partition for one in self.produced}:
            ours = [one for one in self.produced if one.partition == partition]
            ended = sorted(ours, key=lambda one: one.end)
            times = [one.end for one in ended]
            largest: list[int] = []
            for one in ended:
                largest.append(max(one.offset, largest[-1] if largest else -1))
            for one in ours:
                before = bisect.bisect_left(times, one.begin)
                if before and largest[before - 1] >= one.offset:
                    yield f"{one.value!r} got offset {one.offset} after {largest[before - 1]} was acknowledged"

    def _owned_once(self) -> Iterator[str]:
        owners: dict[tuple[int, int], str] = {}
        for one in self.owned:
            for partition in one.partitions:
                owner = owners.setdefault((one.generation, partition), one.member)
                if owner != one.member:
                    yield f"generation {one.generation}: {owner} and {one.member} own partition {partition}"

    def _forward(self) -> Iterator[str]:
        for read in (one for one in self.committed if one.is_read):
            known = [one for one in self.committed if one.partition == read.partition and one.end < read.begin]
            most = max((one.offset for one in known), default=-1)
            if read.offset < most:
                yield f"OFFSET of partition {read.partition} told {read.offset} after {most} was committed"
