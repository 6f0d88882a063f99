"""The line protocol as a service whose partitions have replicas on other brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.dialects.line import Asked, LineCodec, LineRequest, LineService, not_stored
from kafkacodec.broker.dialects.line_storage import Counts
from kafkacodec.broker.dialects.replicas.storage import ReplicaTopicStorage
from kafkacodec.broker.topics.partition import Synced
from kafkacodec.dialects.line.broker import Reply as LineReply
from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.replicas.broker import ReplicatedBroker
from kafkacodec.dialects.line.replicas.roles import stored_roles
from kafkacodec.net.service import Append, Effect, Reply, together

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.dialects.line.replicas.broker import Wish

__all__ = ["ReplicaCodec", "ReplicaService"]

_ALL: Final = " acks=all"


class ReplicaCodec(LineCodec):
    """The codec of a connection of a broker with replicas: each line is a request."""

    def received(self, count: int) -> list[LineRequest]:
        """The lines that are now complete."""
        return list(self._reader.receive(self._memory[:count]))


class ReplicaService(LineService):
    """The service of a broker with replicas.

    Records with acks=all that come together are stored as one batch: at the next tick, which is due at once.

    Args:
        inside: what it uses of the broker.
        broker_id: its id.
        replicas: how many brokers have the partitions.
        min_in_sync: on how many disks a record must be.

    Attributes:
        storage, roles, machine: what it decides with.
        wished: called with the partitions whose role may have to change.
    """

    def __init__(self, inside: Inside, broker_id: int, replicas: int, min_in_sync: int) -> None:
        super().__init__(inside)
        self.wished: Callable[[dict[tuple[str, int], Wish]], None] = _ignored
        self.storage = self._storage = ReplicaTopicStorage(inside)
        self.roles = stored_roles(inside.path, leads=broker_id == 0)
        self._broker_id, self._replicas, self._min_in_sync = broker_id, replicas, min_in_sync
        self._is_due = False

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
        """Answer a line, or keep it until it is replicated."""
        self.clock(now)
        asked = Asked(session, to)
        if isinstance(request, str) and request.endswith(_ALL):
            found = self.machine.receive(request, self._now, asked)
            self._is_due = True
            return self.effect(found, stores=False)
        before = self.effect(())  # what is taken is stored first: after a promise it would be too late
        assert not isinstance(request, list)
        return together([before, self.effect(self.machine.receive(request, self._now, asked))])

    def tick(self, now: float) -> Effect:
        """Do what is due."""
        self._is_due = False
        return super().tick(now)

    def next_deadline(self) -> float | None:
        """When `tick` is needed."""
        return 0.0 if self._is_due else self.machine.next_deadline()

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """A log is on the disk: more may be committed."""
        return self.flushed(now)

    def flushed(self, now: float) -> Effect:
        """More is on the disk, or in a log."""
        self.clock(now)
        return self.effect(self.machine.stored(self._now))

    def clock(self, now: float) -> int:
        """The time for the machine."""
        self._now = max(self._now, int(now))
        return self._now

    def effect(self, found: Iterable[LineReply], *, stores: bool = True) -> Effect:
        """What is to be done after a call of the machine."""
        lost = self._stored() if stores else {}
        wishes = self.machine.take_wishes()
        if wishes:
            self.wished(wishes)
        replies = _to_host(found)
        if lost:
            return Effect((), not_stored(replies))
        written = self._storage.take_written() if stores else []
        if not written:
            return Effect((), replies)
        appends = [Append(log, Synced(), log, "flushed") for log in written]
        early = Effect((), _to_host(self.machine.stored(self._now)))  # replicas may have it before this disk has
        return together([Effect(appends, replies, lost=partial(not_stored, replies)), early])

    def _replies(self, found: list[LineReply]) -> Effect:
        return self.effect(found)


def _ignored(_: dict[tuple[str, int], Wish]) -> None:
    """Before the broker has begun, nothing can be asked of others."""


def _to_host(found: Iterable[LineReply]) -> list[Reply]:
    return [Reply(reply.connection.to, reply.line) for reply in found]  # type: ignore[attr-defined]
