"""One partition as its broker sees it: role, followers in sync, high watermark. No I/O, no clock of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["LEADER_ID", "Partition"]

# The text gives the leader replica id 0.
LEADER_ID = 0


@dataclass(slots=True)
class _Follower:
    end: int
    # When it was last known to have all that the leader had.
    caught_up_at: int
    # When it last reported, and where the leader ended then: reaching that end later proves it was caught up then.
    reported_at: int
    leader_end: int


@dataclass(slots=True)
class Partition:
    """The replication state of a partition.

    Offsets count records; an end is the offset of the next one. A follower is in sync while it has everything below
    the high watermark and has had all that the leader had within the last `lag_ms`. The high watermark is the least
    end of the replicas in sync, and never falls.

    Attributes:
        lag_ms (int): how long a follower may stay behind.
        end (int): the offset of the next record here.
        high_watermark (int): records below it are committed.
        leader (bool): the role of this broker.
    """

    lag_ms: int
    end: int = 0
    high_watermark: int = 0
    leader: bool = True
    _followers: dict[int, _Follower] = field(default_factory=dict)
    _in_sync: set[int] = field(default_factory=lambda: {LEADER_ID})

    def __post_init__(self) -> None:
        self._advance()

    @property
    def in_sync(self) -> list[int]:
        """The ids of the replicas in sync, this leader's first."""
        return sorted(self._in_sync)

    def appended(self, end: int, now: int) -> None:
        """The leader's log now ends at `end`."""
        for follower in self._followers.values():
            if follower.end == self.end:
                follower.caught_up_at = now
        self.end = end
        self._advance()

    def reported(self, replica_id: int, end: int, now: int) -> None:
        """A follower says where its copy ends; `end` must not lie beyond the leader's."""
        follower = self._followers.get(replica_id)
        if follower is None:
            follower = self._followers[replica_id] = _Follower(end, now - self.lag_ms - 1, now, self.end)
        if end == self.end:
            follower.caught_up_at = now
        elif end >= follower.leader_end:
            follower.caught_up_at = max(follower.caught_up_at, follower.reported_at)
        follower.end, follower.reported_at, follower.leader_end = end, now, self.end
        if end < self.high_watermark:
            self._in_sync.discard(replica_id)
        elif not self._is_late(follower, now):
            self._in_sync.add(replica_id)
        self._advance()

    def expire(self, now: int) -> None:
        """Take the followers that are late out of the replicas in sync."""
        self._in_sync -= {i for i, f in self._followers.items() if self._is_late(f, now)}
        self._advance()

    def next_deadline(self) -> int | None:
        """When the next follower in sync would become late; None where none can."""
        behind = [f for i, f in self._followers.items() if i in self._in_sync and f.end < self.end]
        return min((f.caught_up_at + self.lag_ms + 1 for f in behind), default=None)

    def set_role(self, *, leader: bool, end: int) -> None:
        """Take the role, the log ending at `end`.

        What is known of followers belongs to one term as leader and is forgotten with it.
        """
        if leader == self.leader:
            return
        self.leader = leader
        self.end = end
        self._followers.clear()
        self._in_sync = {LEADER_ID}
        if leader:
            self._advance()

    def _is_late(self, follower: _Follower, now: int) -> bool:
        return follower.end < self.end and now - follower.caught_up_at > self.lag_ms

    def _advance(self) -> None:
        ends = [self.end if i == LEADER_ID else self._followers[i].end for i in self._in_sync]
        self.high_watermark = max(self.high_watermark, min(ends))
