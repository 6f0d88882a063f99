"""One partition as its broker sees it: role, followers in sync, high watermark. No I/O, no clock of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

__all__ = ["LEADER_ID", "Partition"]

# The text gives the leader replica id 0.
LEADER_ID = 0

# Into how many steps the allowed lag is told apart: times of appends within a step count as the first of them.
_STEPS = 256


@dataclass(slots=True)
class Partition:
    """The replication state of a partition.

    Offsets count records; an end is the offset of the next one. The rules are those of Kafka 4. A follower has caught
    up while the first record that it lacks was appended at most `lag_ms` ago. It comes in sync when it has caught up
    and has everything below the high watermark, and leaves when one of both no longer holds. The high watermark is the
    least end of the replicas in sync and of those that have caught up and are about to come in; it never falls, and
    stays while fewer replicas are in sync than `min_in_sync`, or this broker does not lead.

    Attributes:
        lag_ms (int): how long a follower may lack a record.
        end (int): the offset of the next record here.
        min_in_sync (int): how many replicas must be in sync for records to be committed.
        high_watermark (int): records below it are committed.
        leader (bool): the role of this broker.
    """

    lag_ms: int
    end: int = 0
    min_in_sync: int = 1
    high_watermark: int = 0
    leader: bool = True
    # Ends of the followers that have reported, of those that have caught up, and which of the latter are in sync.
    _ends: dict[int, int] = field(default_factory=dict)
    _caught_up: set[int] = field(default_factory=set)
    _in_sync: set[int] = field(default_factory=lambda: {LEADER_ID})
    # First offset and time of the appends in the last `lag_ms`; what lies before them is older, or of unknown age.
    _appended: deque[tuple[int, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._advance()

    @property
    def in_sync(self) -> list[int]:
        """The ids of the replicas in sync, this leader's first."""
        return sorted(self._in_sync)

    def appended(self, end: int, now: int) -> None:
        """The leader's log now ends at `end`."""
        while len(self._appended) > 1 and now - self._appended[1][1] > self.lag_ms:
            self._appended.popleft()
        if not self._appended or now - self._appended[-1][1] > self.lag_ms // _STEPS:
            self._appended.append((self.end, now))
        self.end = end
        self._advance()

    def reported(self, replica_id: int, end: int, now: int) -> None:
        """A follower says where its copy ends; `end` must not lie beyond the leader's."""
        self._ends[replica_id] = end
        self._caught_up.add(replica_id)
        if end >= self.high_watermark:
            self._in_sync.add(replica_id)
        else:
            self._in_sync.discard(replica_id)
        self.expire(now)

    def expire(self, now: int) -> None:
        """Take the followers that no longer have caught up out of the replicas in sync."""
        late = {i for i in self._caught_up if (deadline := self._late_at(i)) is not None and now >= deadline}
        self._caught_up -= late
        self._in_sync -= late
        self._advance()

    def next_deadline(self) -> int | None:
        """When the next follower would fall behind; None where none can."""
        return min((d for i in self._caught_up if (d := self._late_at(i)) is not None), default=None)

    def set_role(self, *, leader: bool, end: int) -> None:
        """Take the role, the log ending at `end`.

        What is known of followers belongs to one term as leader and is forgotten with it.
        """
        if leader == self.leader:
            return
        self.leader = leader
        self.end = end
        self._ends.clear()
        self._caught_up.clear()
        self._appended.clear()
        self._in_sync = {LEADER_ID}
        self._advance()

    def _late_at(self, replica_id: int) -> int | None:
        """When a follower counts as late, as things are; None where it lacks nothing."""
        end = self._ends[replica_id]
        if end >= self.end:
            return None
        at = bisect_right(self._appended, end, key=lambda append: append[0]) - 1
        # Of unknown age: longer ago than any clock goes back.
        return self._appended[at][1] + self.lag_ms + 1 if at >= 0 else -(1 << 63)

    def _advance(self) -> None:
        if self.leader and len(self._in_sync) >= self.min_in_sync:
            committed = min((self._ends[i] for i in self._caught_up), default=self.end)
            self.high_watermark = max(self.high_watermark, min(committed, self.end))
