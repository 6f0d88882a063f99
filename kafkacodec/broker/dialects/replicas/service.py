"""The line protocol as a service whose partitions have replicas on other brokers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.dialects.line import Asked, LineCodec, LineRequest, LineService, not_kept, not_stored
from kafkacodec.broker.dialects.line_files import FILES
from kafkacodec.broker.dialects.line_storage import Counts
from kafkacodec.broker.dialects.replicas.storage import ReplicaTopicStorage
from kafkacodec.broker.topics.partition import Synced
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.broker import Reply as LineReply
from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.replicas.broker import ReplicatedBroker
from kafkacodec.dialects.line.replicas.roles import ROLES, stored_roles
from kafkacodec.net.service import NOTHING, Append, Effect, Reply, together

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.dialects.line.replicas.broker import Wish

__all__ = ["ReplicaCodec", "ReplicaService"]

_ALL: Final = " acks=all"
_LOOK_MS: Final = 100
_log = logging.getLogger("kafkacodec.broker")


class ReplicaCodec(LineCodec):
    """The codec of a connection of a broker with replicas: each line is a request."""

    def received(self, count: int) -> list[LineRequest]:
        """Return the lines that are now complete."""
        return list(self._reader.receive(self._memory[:count]))


class ReplicaService(LineService):
    """The service of a broker with replicas.

    It stores records with acks=all that come together as one batch, at the next tick, which is due at once.

    Args:
        inside: the part of the broker that it uses.
        broker_id: its id.
        replicas: the number of brokers with the partitions.
        min_in_sync: the number of disks that must have a record.

    Attributes:
        storage, roles, machine: its state.
        files: pending writes for the flushing thread.
        wished: called with the partitions whose role may have to change.
    """

    def __init__(self, inside: Inside, broker_id: int, replicas: int, min_in_sync: int) -> None:
        super().__init__(inside)
        self.wished: Callable[[dict[tuple[str, int], Wish]], None] = _ignored
        self.storage = self._storage = ReplicaTopicStorage(inside)
        self.files = self._storage.files
        self.roles = stored_roles(inside.path, self._changed_roles, leads=broker_id == 0)
        self._broker_id, self._replicas, self._min_in_sync = broker_id, replicas, min_in_sync
        self._is_due = False
        self._looked_at = -_LOOK_MS
        self._deadline: int | None = None
        self._asked = 0  # the version of the files whose write was requested

    @cached_property
    def machine(self) -> ReplicatedBroker:
        """The state machine."""
        config = BrokerConfig(
            topics=Counts(self._inside.catalog),
            default_partitions=self._inside.config.number("num.partitions"),
            replication_factor=self._replicas,
            min_in_sync=self._min_in_sync,
            replica_lag_ms=self._inside.config.number("replica.lag.time.max.ms"),
        )
        return ReplicatedBroker(self.storage, config, self.roles, self._broker_id, now=self._now)

    @property
    def _broker(self) -> ReplicatedBroker:
        return self.machine

    def receive(self, request: LineRequest, session: Any, to: Any, now: float) -> Effect:
        """Answer a line, or keep the request until it is replicated."""
        self.clock(now)
        asked = Asked(session, to)
        if isinstance(request, str) and request.endswith(_ALL):
            found = self.machine.receive(request, self._now, asked)
            self._is_due = True
            return self.effect(found, stores=False)
        before = self.effect(())  # accepted records are stored first: after a promise it would be too late
        assert not isinstance(request, list)
        return together([before, self.effect(self.machine.receive(request, self._now, asked))])

    def tick(self, now: float) -> Effect:
        """Do what is due."""
        self._is_due = False
        return super().tick(now)

    def next_deadline(self) -> float | None:
        """Return when `tick` is needed.

        The machine checks each partition for that, so it is asked only now and then: its times are longer than that.
        """
        if self._is_due:
            return 0.0
        if self._now >= self._looked_at + _LOOK_MS:
            self._looked_at, self._deadline = self._now, self.machine.next_deadline()
            return self._deadline
        again = self._looked_at + _LOOK_MS
        return again if self._deadline is None else min(self._deadline, again)

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """A log is on the disk, so more may be committed; or the files are."""
        if not isinstance(token, _Kept):
            return self.effect(self.machine.stored(self.clock(now), [token]))
        return self.effect(self.machine.kept_groups(token.tickets, self.clock(now)))

    def not_appended(self, token: Any, error: Exception, now: float) -> Effect:
        """A log could not be flushed, and `Effect.lost` answers its requests; or the files could not be written."""
        if not isinstance(token, _Kept):
            return NOTHING
        _log.warning("line protocol: %s; will be tried again", error)
        self._asked = 0
        return Effect((), _to_host(self.machine.lost_groups(self.clock(now))))

    def clock(self, now: float) -> int:
        """The host's time, for the machine: other brokers wait for this one."""
        self._now = max(self._now, int(now))
        return self._now

    def effect(self, found: Iterable[LineReply], *, stores: bool = True) -> Effect:
        """Return the effect of a call of the machine."""
        has_lost, refused = self._stored() if stores else (False, [])
        wishes = self.machine.take_wishes()
        if wishes:
            self.wished(wishes)
        replies = _to_host((*found, *refused))
        if has_lost:
            replies = not_stored(replies)
        written = self._storage.take_written() if stores else []
        appends = [Append(log, Synced(), log, "flushed") for log in written]
        if not self.files.has_saved(ROLES):  # no answer may tell of a role that a crash could undo
            return Effect([*appends, self._keeping()], replies, lost=partial(not_kept, replies))
        others = []
        if self._asked < self.files.version:
            others.append(Effect([self._keeping()], ()))
        if not written:
            return together([Effect((), replies), *others])
        # Replicas may have it before this disk has.
        others.append(Effect((), _to_host(self.machine.stored(self._now, written))))
        return together([Effect(appends, replies, lost=partial(not_stored, replies)), *others])

    def _keeping(self) -> Append:
        """Write the files, then send the answers that wait for their contents."""
        self._asked = self.files.version
        return Append(FILES, Synced(), _Kept(self.machine.tickets()), "flushed")

    def _changed_roles(self) -> None:
        self.files.change(ROLES, self.roles.rows)

    def _replies(self, found: list[LineReply], *, tells_of_groups: bool = False) -> Effect:
        return self.effect(found)


class _Kept(NamedTuple):
    """The files are on the disk: the last tickets of their groups, by topic."""

    tickets: dict[str, int]


def _ignored(_: dict[tuple[str, int], Wish]) -> None:
    """Ignore calls until the broker has started."""


def _to_host(found: Iterable[LineReply]) -> list[Reply]:
    return [Reply(reply.connection.to, reply.line) for reply in found]  # type: ignore[attr-defined]
