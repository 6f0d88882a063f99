"""Committing what was read at intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.membership import TopicPartition
from kafkacodec.client.groups.offsets import CommittedOffset, Member, OffsetCommit

__all__ = ["AutoCommit"]


class AutoCommit:
    """Commits positions that have changed, every `interval_ms`; nothing while there is no membership. A machine.

    Args:
        cluster: the cluster.
        positions: gives the positions of the partitions that the consumer has now, as far as the application has
            read them.
        member: gives the metadata to commit under; see `OffsetCommit`.
        now: the time.
        interval_ms: between commits.
        request_timeout_ms: how long one answer may take.
        backoff: the wait before a commit is repeated.

    Attributes:
        last_error: why the last commit failed, as a whole or for a partition; None if it succeeded.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Callable[[], Mapping[TopicPartition, CommittedOffset]],
        member: Member,
        *,
        now: float,
        interval_ms: float = 5000,
        request_timeout_ms: float = 30_000,
        backoff: Backoff | None = None,
    ) -> None:
        self.last_error: Exception | None = None
        self._cluster = cluster
        self._positions = positions
        self._member = member
        self._interval_ms = interval_ms
        self._timeout_ms = request_timeout_ms
        self._backoff = backoff or Backoff()
        self._next_at = now + interval_ms
        self._commit: OffsetCommit | None = None
        self._offered: dict[TopicPartition, CommittedOffset] = {}
        self._committed: dict[TopicPartition, CommittedOffset] = {}

    def poll(self, now: float) -> list[Send]:
        """The commit, if it is due."""
        if self._commit is None and now >= self._next_at:
            self._start(now)
        if self._commit is None:
            return []
        sends = self._commit.poll(now)
        self._finish(now)
        return sends

    def next_deadline(self) -> float | None:
        """When the next commit, or attempt, is due."""
        return self._next_at if self._commit is None else self._commit.next_deadline()

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take over the result."""
        if self._commit is not None:
            self._commit.answered(send, answer, now)
            self._finish(now)

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Take over the failure."""
        if self._commit is not None:
            self._commit.failed(send, error, now)
            self._finish(now)

    def _start(self, now: float) -> None:
        self._next_at = now + self._interval_ms
        positions = dict(self._positions()) if self._member() is not None else {}
        # A partition that went away and came back may have been committed by another member meanwhile.
        self._committed = {place: offset for place, offset in self._committed.items() if place in positions}
        self._offered = {place: at for place, at in positions.items() if self._committed.get(place) != at}
        if self._offered:
            self._commit = OffsetCommit(
                self._cluster,
                self._offered,
                self._member,
                deadline=now + max(self._interval_ms, self._timeout_ms),
                request_timeout_ms=self._timeout_ms,
                backoff=self._backoff,
            )

    def _finish(self, now: float) -> None:
        commit = self._commit
        if commit is None or not commit.done:
            return
        self.last_error = commit.error or next(iter(commit.errors.values()), None)
        if commit.error is None:
            self._committed.update({p: at for p, at in self._offered.items() if p not in commit.errors})
        self._commit = None
        self._next_at = now + self._interval_ms
