"""What members of a group have read, committed and rewound, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

Offsets = list[tuple[int, int]]
"""Partitions with offsets."""

EVENTS: Final = ("assigned", "stopped", "owned", "read", "commits", "committed", "rewinds", "rewound")
"""The methods of a history that members call."""


class History:
    """Members tell of what they do before it has consequences, and of what came of it afterwards.

    The rules: a partition has one owner in a generation, who reads from the offset that it was given, without a gap;
    that offset is not before what was committed, nor after what was read. A rewind that was answered is read from: no
    commit undoes it. One whose member was killed or gave up may still happen once, until a member that has joined since
    shares a generation with all others.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.reads: Counter[tuple[int, int]] = Counter()  # by partition and offset
        self.end: Counter[int] = Counter()  # after the last offset that was read, by partition
        self.owed: dict[int, int] = {}  # the offset of a rewind that was answered, until it is read or another begins
        self.honoured = 0
        self.joined = 0  # the number of members so far
        self.own: dict[str, list[int]] = {}  # partitions by member, None while it has stopped
        self.generation: dict[str, int] = {}  # by member
        self.owners: dict[tuple[int, int], str] = {}  # by generation and partition
        self._committed: Counter[int] = Counter()
        self._expected: dict[str, dict[int, int]] = {}  # the next offset, by member and partition
        self._begun: Counter[int] = Counter()  # rewinds so far, by partition
        self._rewinding: dict[str, tuple[int, int, int, bool]] = {}  # rewinds that go on, by member
        self._unknown: dict[tuple[int, int], list[int]] = {}  # those without an answer: `joined` at their ends
        self._commits: dict[str, dict[int, tuple[int, int]]] = {}  # commits that go on: offset and `_begun`

    @property
    def generations(self) -> set[int]:
        """All that there were."""
        return {generation for generation, _ in self.owners}

    # Told by members

    def assigned(self, name: str, starts: Offsets) -> None:
        """A member begins partitions at offsets; -1: at the start."""
        for partition, offset in starts:
            start = max(offset, 0)
            if not self._has_happened(partition, start) and start > self.owed.get(partition, start):
                self.faults.append(
                    f"{name} begins {partition} at {offset}: the rewind to {self.owed[partition]} is undone"
                )
            if not self._committed[partition] <= start <= self.end[partition]:
                least, most = self._committed[partition], self.end[partition]
                self.faults.append(f"{name} begins {partition} at {offset}, which is not from {least} to {most}")
        self.own[name] = [partition for partition, _ in starts]
        self.generation.pop(name, None)
        self._expected[name] = {partition: max(offset, 0) for partition, offset in starts}

    def stopped(self, name: str) -> None:
        """A member reads nothing until it is assigned something."""
        self.own.pop(name, None)
        self.generation.pop(name, None)

    def owned(self, name: str, generation: int, partitions: list[int]) -> None:
        """A member has heard the generation of its partitions."""
        self.generation[name] = generation
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), name)
            if owner != name:
                self.faults.append(f"{owner} and {name} own {partition} in generation {generation}")

    def read(self, name: str, partition: int, offsets: list[int]) -> None:
        """A member has got records."""
        for offset in offsets:
            self.reads[partition, offset] += 1
            if self.owed.get(partition) == offset:
                del self.owed[partition]
                self.honoured += 1
            self.end[partition] = max(self.end[partition], offset + 1)
            expected = self._expected[name].get(partition)
            if offset != expected and not self._has_happened(partition, offset):
                self.faults.append(f"{name} reads {offset} of {partition} instead of {expected}")
            self._expected[name][partition] = offset + 1

    def commits(self, name: str, offsets: Offsets) -> None:
        """A commit begins."""
        self._commits[name] = {partition: (offset, self._begun[partition]) for partition, offset in offsets}

    def committed(self, name: str) -> None:
        """It was acknowledged."""
        for partition, (offset, begun) in self._commits.pop(name, {}).items():
            if begun == self._begun[partition] and all(p != partition for p, *_ in self._rewinding.values()):
                self._committed[partition] = max(self._committed[partition], offset)

    def rewinds(self, name: str, partition: int, offset: int) -> None:
        """A rewind begins."""
        self.owed.pop(partition, None)
        is_alone = all(p != partition for p, *_ in self._rewinding.values())
        self._begun[partition] += 1
        self._committed[partition] = min(self._committed[partition], offset)
        self._rewinding[name] = partition, offset, self.reads[partition, offset], is_alone

    def rewound(self, name: str, is_answered: bool, is_own: bool) -> None:
        """A rewind was answered, or given up; whether the partition is one of the member's own."""
        partition, offset, before, is_alone = self._rewinding.pop(name)
        is_alone &= all(p != partition for p, *_ in self._rewinding.values())
        if not is_answered:
            self._unknown.setdefault((partition, offset), []).append(self.joined)
            return
        if is_own:
            self._expected[name][partition] = offset
        is_read = self.reads[partition, offset] > before
        self.honoured += is_read
        if is_alone and not is_read:
            self.owed[partition] = offset

    # Told by whoever has the members

    def gone(self, name: str) -> None:
        """A member was killed or has left."""
        if name in self._rewinding:
            self.rewound(name, False, False)
        self._commits.pop(name, None)
        self.stopped(name)

    def settled(self, newest: int) -> None:
        """All members share one generation, also the one with this number: rewinds from before it have happened."""
        for place, since in list(self._unknown.items()):
            self._unknown[place] = [joined for joined in since if joined >= newest]

    def take(self, event: str, arguments: list[Any]) -> None:
        """Take what a member tells."""
        assert event in EVENTS
        getattr(self, event)(*arguments)

    def _has_happened(self, partition: int, offset: int) -> bool:
        """Whether a rewind with an unknown outcome has happened now."""
        since = self._unknown.get((partition, offset))
        if not since:
            return False
        since.pop(0)
        self.owed.pop(partition, None)
        self._committed[partition] = min(self._committed[partition], offset)
        return True
