"""The assigned partitions of a consumer: their positions, and what their next fetch needs first.

A partition has two positions. `PartitionState.position` is the next record for the user; `PartitionState.fetching` is
where the next fetch starts, ahead of it by what is kept. Each change that makes kept records wrong (a seek, a pause,
the end of the assignment) gives the partition a new `version`: what was fetched for an older one is dropped.

An error of a partition is handled only when no fetched records of it are left: until then it is not fetched, and the
next fetch brings the same error again. So the user gets all records before an error.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from kafkacodec.client.consuming.reset_policy import LATEST, ResetPolicy
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import LocalProtocolError, NoOffset

__all__ = ["FIRST_BYTES", "NO_END", "Changes", "Failure", "Key", "PartitionState", "Position", "Positions", "Watch"]

NO_END: Final = (1 << 63) - 1
FIRST_BYTES: Final = 128 << 10
_OF_THE_READER: Final = frozenset({"position", "processed"})  # they do not affect fetches

Key = tuple[str, int]
"""A topic and the number of a partition."""


class Position(NamedTuple):
    """An offset, and the leader epoch of the record before it; -1 if it is not known."""

    offset: int
    leader_epoch: int = -1


class Watch:
    """The partitions changed since the last check, which then need not check all.

    Attributes:
        whole: whether to check all, since the assignment has changed.
        changed: added to by any thread, taken from the left.
    """

    __slots__ = ("changed", "whole")

    def __init__(self) -> None:
        self.whole = True
        self.changed: deque[PartitionState] = deque()

    def take(self) -> dict[PartitionState, None] | None:
        """Return changed partitions, in order; None for all. For the thread of the loop."""
        if self.whole:
            self.whole = False
            self.changed.clear()
            return None
        return {self.changed.popleft(): None for _ in range(len(self.changed))}


@dataclass(eq=False, slots=True)
class Changes:
    """A count of changes to the partitions, and their watchers."""

    count: int = 0
    watches: list[Watch] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class PartitionState:
    """An assigned partition.

    Attributes:
        changes: counts all that is set here.
        position: of the next record for the user; None while it is looked up.
        processed: the position when the user last came back for more, or committed: what automatic commits may commit.
        fetching: where the next fetch starts; None without a position.
        end: reading ends before this offset; `NO_END` if it never does.
        version: changes when what was fetched must be dropped.
        turned_back: the version that the reader has sent back to be fetched again, and no longer reads.
        kept: the number of fetched parts of this version that the user has not read to the end.
        awaits_committed: the group's committed offset is not known yet.
        sought: the timestamp to look up for a position, `EARLIEST` or `LATEST`.
        in_vain: the timestamp that no record reaches, while the end is looked up instead.
        end_before: the end, while that timestamp is looked up again.
        topic_id: of the topic that the position is in; None if it is not known yet.
        validated_epoch: the leader epoch at which the position is known to be valid; -1 before the first.
        draining: not fetched until the kept records are read; the next fetch brings the error again.
        failing: an error waits for the user.
        next_at, failures: the earliest time of the next request, and the number of failures in a row.
        high_watermark, last_stable_offset, log_start_offset: of the last fetch; -1 if not known.
        preferred, preferred_until: a follower to read from (KIP-392), and until when.
        partition_bytes: the limit of the next fetch, if a batch needs more than usual; else 0.
        first_bytes: the limit of the next fetch after a seek, which may be for a single record; 0 for the usual one.
        empty_at: the position at which a fetch without a wait found nothing.
        turn: the turn of the last fetch that brought records; partitions that waited longer come first.
    """

    changes: Changes = field(repr=False)
    topic: str
    number: int
    position: Position | None = None
    processed: Position | None = None
    fetching: Position | None = None
    end: int = NO_END
    version: int = 0
    turned_back: int = -1
    kept: int = 0
    paused: bool = False
    awaits_committed: bool = False
    sought: int | None = None
    in_vain: int | None = None
    end_before: Position | None = None
    topic_id: uuid.UUID | None = None
    validated_epoch: int = -1
    draining: bool = False
    failing: bool = False
    next_at: float = 0.0
    failures: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    preferred: int | None = None
    preferred_until: float = 0.0
    partition_bytes: int = 0
    first_bytes: int = 0
    empty_at: Position | None = None
    turn: int = 0

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        changes = self.changes
        changes.count += 1
        if name not in _OF_THE_READER:
            for watch in changes.watches:
                if not watch.changed or watch.changed[-1] is not self:
                    watch.changed.append(self)

    @property
    def key(self) -> Key:
        """Topic and number."""
        return self.topic, self.number

    @property
    def read(self) -> bool:
        """Whether reading has reached the end."""
        return self.position is not None and self.position.offset >= self.end != NO_END  # a seek may go to that offset

    def is_current(self, version: int) -> bool:
        """Whether what was fetched for this version is still wanted."""
        return self.version == version != self.turned_back

    def __repr__(self) -> str:
        return f"<{self.topic}-{self.number} at {self.position}>"


class Failure(NamedTuple):
    """An error about a partition, for the user. It holds while the partition has this version."""

    state: PartitionState
    version: int
    error: Exception

    @property
    def holds(self) -> bool:
        """Whether it must still be reported."""
        return self.state.is_current(self.version)


class Positions:
    """The assigned partitions.

    Args:
        policy: where partitions without a valid position start.
        wall_clock: seconds since 1970, for policies by duration.

    Attributes:
        partitions: the assigned partitions.
        failures: errors for the user, taken from the left.
        dropped: called with a partition before its version changes.
        changes: the count of changes to the partitions.
    """

    def __init__(self, policy: ResetPolicy, wall_clock: Callable[[], float] = time.time) -> None:
        self.policy = policy
        self.changes = Changes()
        self.partitions: dict[Key, PartitionState] = {}
        self.failures: deque[Failure] = deque()
        self.dropped: Callable[[PartitionState], None] = lambda state: None
        self._wall_clock = wall_clock

    def watch(self) -> Watch:
        """A new look-out for changes."""
        made = Watch()
        self.changes.watches.append(made)
        return made

    # Assignment

    def assign(self, keys: Iterable[Key], *, committed: bool) -> None:
        """Set the assigned partitions. Partitions that were assigned before keep their state.

        With `committed`, new partitions wait for `set_committed`; otherwise they start as the policy says.
        """
        before = self.partitions
        # Other threads look at the partitions: they see those from before or those from now.
        self.partitions = {key: before.get(key) or self._new(key, committed) for key in dict.fromkeys(keys)}
        self.changes.count += 1
        for watch in self.changes.watches:
            watch.whole = True
        for key, state in before.items():
            if key not in self.partitions:
                self._drop(state)
        for state in self.partitions.values():
            if state.end != NO_END:  # what was fetched after it is to be read now
                state.end = NO_END
                self.rewind(state)

    @property
    def read(self) -> bool:
        """Whether every partition is read to its end; never true if one has no end."""
        return bool(self.partitions) and all(state.read for state in self.partitions.values())

    def _new(self, key: Key, committed: bool) -> PartitionState:
        state = PartitionState(self.changes, *key, awaits_committed=committed)
        if not committed:
            self.reset(state)
        return state

    def state(self, key: Key) -> PartitionState:
        """An assigned partition. Raises LocalProtocolError if it is not assigned."""
        found = self.partitions.get(key)
        if found is None:
            raise LocalProtocolError(f"partition {key[0]}-{key[1]} is not assigned to this consumer")
        return found

    def topic_ids(self) -> dict[str, uuid.UUID]:
        """The known ids of the topics that the positions refer to."""
        return {state.topic: state.topic_id for state in self.partitions.values() if state.topic_id is not None}

    # Finding a position

    def set_committed(self, key: Key, position: Position | None) -> None:
        """Start at the group's committed position, or by the policy if there is none."""
        state = self.partitions.get(key)
        if state is None or not state.awaits_committed:
            return
        state.awaits_committed = False
        if position is None:
            self.reset(state)
        else:
            self._start(state, position)

    def reset(self, state: PartitionState, reason: Exception | None = None) -> None:
        """Start as the policy says. If the policy is an error, the user gets `reason`, or NoOffset."""
        if not self.policy.refuses:
            self.look_up(state, self.policy.at(self._wall_clock() * 1000))
            return
        place = f"{state.topic}-{state.number}"
        self.fail(
            state,
            reason or NoOffset(f'{place}: no committed offset, and auto_offset_reset is "none": seek to a position'),
        )

    def look_up(self, state: PartitionState, timestamp: int) -> None:
        """Replace the position by that of a timestamp."""
        self._drop(state)
        state.position = state.processed = state.fetching = None
        state.awaits_committed, state.sought = False, timestamp
        state.in_vain = state.end_before = None

    def none_found(self, state: PartitionState) -> None:
        """Start at the end, since no record is as late as the timestamp.

        A record may arrive before the end is known and must not be skipped, so the timestamp is looked up again.
        """
        timestamp = state.sought
        if state.end_before is not None:
            self._start(state, state.end_before)
        elif timestamp is not None:
            self.look_up(state, LATEST)
            state.in_vain = timestamp

    def found(self, state: PartitionState, position: Position) -> None:
        """Take the result of a look-up."""
        if state.in_vain is not None:
            self.look_up(state, state.in_vain)
            state.end_before = position
        elif state.sought is not None:
            next_at, failures = state.next_at, state.failures
            self._start(state, position)
            state.next_at, state.failures = next_at, failures  # it may not be in range either

    def seek(self, key: Key, position: Position) -> None:
        """Continue at another position."""
        state = self.state(key)
        self._drop(state)
        state.awaits_committed = False
        self._start(state, position)
        state.first_bytes = FIRST_BYTES

    def forget_epoch(self, state: PartitionState) -> None:
        """Drop the leader epoch of a position from which nothing was fetched yet."""
        if state.fetching is not None and state.fetching == state.position:
            offset = Position(state.fetching.offset)
            state.processed = offset if state.processed == state.position else state.processed
            state.position = state.fetching = offset
            state.next_at, state.failures = 0.0, 0

    def _start(self, state: PartitionState, position: Position) -> None:
        state.sought = state.in_vain = state.end_before = None
        state.position = state.processed = state.fetching = position
        state.topic_id, state.validated_epoch = None, -1
        state.next_at, state.failures, state.first_bytes = 0.0, 0, 0

    # While reading

    def processed(self, key: Key, offset: int) -> None:
        """Count returned records before this offset as processed."""
        state = self.partitions.get(key)
        if state is None or state.position is None or state.processed is None:
            return
        if state.processed.offset < offset <= state.position.offset:
            state.processed = state.position if offset == state.position.offset else Position(offset)

    def pause(self, key: Key) -> None:
        """Stop fetching; what is kept is dropped, and fetched again after `resume`."""
        state = self.state(key)
        if not state.paused:
            self.rewind(state)
            state.paused = True

    def resume(self, key: Key) -> None:
        """Fetch again after `pause`."""
        self.state(key).paused = False

    def rewind(self, state: PartitionState) -> None:
        """Drop what is kept and fetch again from the user's position, or find one."""
        self._drop(state)
        state.fetching = state.position
        if state.position is None and state.sought is None and not state.awaits_committed:
            self.reset(state)  # the error that there is no position is dropped, too

    def fail(self, state: PartitionState, error: Exception) -> None:
        """Report an error to the user. The partition is not fetched until `again`."""
        state.failing = True
        self.failures.append(Failure(state, state.version, error))

    def failure(self, state: PartitionState) -> Exception | None:
        """The error of a partition that the user has not seen yet."""
        waiting = (f.error for f in self.failures if f.state is state and f.version == state.version)
        return next(waiting, None)

    def again(self, state: PartitionState, version: int) -> None:
        """Retry at the user's position after an error; the error returns while its cause lasts."""
        if state.version == version:
            self.rewind(state)

    def _drop(self, state: PartitionState) -> None:
        self.dropped(state)
        state.version += 1
        state.kept = 0
        state.draining = state.failing = False
        state.partition_bytes = 0
