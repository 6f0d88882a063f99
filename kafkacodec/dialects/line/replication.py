"""The replication state of one partition on its broker: role, in-sync followers, high watermark."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from kafkacodec.datatypes import dataclass, field

__all__ = ["LEADER_ID", "Partition"]

# By the text, the leader has replica id 0.
LEADER_ID = 0

# The resolution of the allowed lag: appends within a step have the time of the first.
_STEPS = 256


@dataclass(slots=True)
class Partition:
    """The replication state of a partition.

    Offsets number the records of a partition; the end is the offset of the next record. The rules are those of Kafka 4.
    A follower is caught up if the first record that it lacks was appended at most `lag_ms` ago. It is in sync if it is
    caught up and has all records below the high watermark. The high watermark is the lowest end of the replicas that
    are in sync or caught up. It never decreases, and does not change while fewer than `min_in_sync` replicas are in
    sync or this broker is a follower.

    Attributes:
        lag_ms (int): how long a follower may lack a record.
        end (int): the offset of the next record on this broker.
        min_in_sync (int): the number of replicas that must be in sync to commit records.
        high_watermark (int): records below it are committed.
        leader (bool): whether this broker is the leader.
        safe (int | None): records before it count as stored on the leader; None: all.
        epoch_begin (int): the start of the leader's epoch; followers before it are not in sync.
    """

    lag_ms: int
    end: int = 0
    min_in_sync: int = 1
    high_watermark: int = 0
    leader: bool = True
    safe: int | None = None
    epoch_begin: int = 0
    # The reported ends of followers, the followers that are caught up, and the replicas in sync.
    _ends: dict[int, int] = field(default_factory=dict)
    _caught_up: set[int] = field(default_factory=set)
    _in_sync: set[int] = field(default_factory=lambda: {LEADER_ID})
    # First offset and time of the appends in the last `lag_ms`; earlier records are older or of unknown age.
    _appended: deque[tuple[int, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._advance()

    @property
    def in_sync(self) -> list[int]:
        """The ids of the replicas in sync, the leader's first."""
        return sorted(self._in_sync)

    def appended(self, end: int, now: int) -> None:
        """The leader's log now ends at `end`."""
        while len(self._appended) > 1 and now - self._appended[1][1] > self.lag_ms:
            self._appended.popleft()
        if not self._appended or now - self._appended[-1][1] > self.lag_ms // _STEPS:
            self._appended.append((self.end, now))
        self.end = end
        self._advance()

    def cut(self, end: int) -> None:
        """End the leader's log earlier, at `end`; no answer depended on the lost records."""
        self.end = min(self.end, end)
        self.high_watermark = min(self.high_watermark, end)

    def reported(self, replica_id: int, end: int, now: int) -> None:
        """A follower reports the end of its log, which must not be past the leader's."""
        self._ends[replica_id] = end
        self._caught_up.add(replica_id)
        if end >= max(self.high_watermark, self.epoch_begin):
            self._in_sync.add(replica_id)
        else:
            self._in_sync.discard(replica_id)
        self.expire(now)

    def expire(self, now: int) -> None:
        """Remove the followers that are no longer caught up from the replicas in sync."""
        if not self._caught_up:
            return
        late = {i for i in self._caught_up if (deadline := self._late_at(i)) is not None and now >= deadline}
        self._caught_up -= late
        self._in_sync -= late
        self._advance()

    def flushed(self, end: int) -> None:
        """Note the end of the records on the leader's disk; from now on only these count."""
        self.safe = end
        self._advance()

    def next_deadline(self) -> int | None:
        """The time at which the next follower falls out of sync; None if none will."""
        return min((d for i in self._caught_up if (d := self._late_at(i)) is not None), default=None)

    def set_role(self, *, leader: bool, end: int) -> None:
        """Set the role; the log ends at `end`. A change of role drops the state of the followers."""
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
        """The time at which a follower is no longer caught up; None if it lacks no record."""
        end = self._ends[replica_id]
        if end >= self.end:
            return None
        at = bisect_right(self._appended, end, key=lambda append: append[0]) - 1
        # Of unknown age: before the start of any clock.
        return self._appended[at][1] + self.lag_ms + 1 if at >= 0 else -(1 << 63)

    def _advance(self) -> None:
        if self.leader and len(self._in_sync) >= self.min_in_sync:
            committed = min((self._ends[i] for i in self._caught_up), default=self.end)
            own = self.end if self.safe is None else min(self.safe, self.end)
            self.high_watermark = max(self.high_watermark, min(committed, own))
