"""Copying another replica's log: steps for a driver, which executes them and returns their results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol, TypeAlias

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.replicas.roles import NO_EPOCH, Role, Roles, next_epoch

__all__ = [
    "NO_TICKET",
    "Accept",
    "Ask",
    "AskAll",
    "Copy",
    "Diverged",
    "Flush",
    "KeepGroups",
    "Lead",
    "Learn",
    "NotElected",
    "Promise",
    "ReplicaLog",
    "Steps",
    "Truncate",
    "elect",
    "follow",
    "follow_groups",
]

NO_TICKET = -1
_TRIES = 5

Key = tuple[str, int]
Fields = Mapping[str, Any]


class ReplicaLog(Protocol):
    """The current log of a partition."""

    @property
    def end(self) -> int:
        """The offset of the next record."""

    @property
    def leader_epoch(self) -> int:
        """The newest leader epoch, -1 for none."""

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return the newest epoch not above `epoch`, and its end."""


class Ask(NamedTuple):
    """A request to a broker; results in the fields of its answer. A refusal ends the steps."""

    broker: int
    command: str
    args: dict[str, Any]


class AskAll(NamedTuple):
    """A request to all other brokers; results in the answers by broker, once `enough` grant it, or all have come."""

    command: str
    args: dict[str, Any]
    enough: int


class Truncate(NamedTuple):
    """Cut the log off at an offset."""

    offset: int


class Copy(NamedTuple):
    """Append batches unchanged, and let the log start at the other's start."""

    records: bytes
    epoch: int
    start: int


class Flush(NamedTuple):
    """Wait until the log is on the disk."""


class Promise(NamedTuple):
    """Serve no older leader, and lead no longer; kept on the disk."""

    epoch: int


class Accept(NamedTuple):
    """The log has all up to the beginning of an epoch; kept on the disk."""

    epoch: int


class Lead(NamedTuple):
    """Lead from now on; kept on the disk."""

    epoch: int


class KeepGroups(NamedTuple):
    """Store the groups of the topic from a text, with their version, on the disk."""

    groups: bytes
    epoch: int
    ticket: int


class Learn(NamedTuple):
    """Records before an offset are committed."""

    high_watermark: int


Step: TypeAlias = Ask | AskAll | Truncate | Copy | Flush | Promise | Accept | Lead | Learn | KeepGroups
Steps: TypeAlias = Generator[Step, Any, Any]


class NotElected(Exception):
    """The broker cannot lead."""


class Diverged(Exception):
    """The other log lacks committed records, so one of the two logs is wrong; nothing was changed."""


class _Copying:
    """The steps to another broker's log. `name` is the partition, `epoch` the leader's or the candidate's."""

    def __init__(self, log: ReplicaLog, name: Key, broker: int, epoch: int) -> None:
        self.log, self.broker, self.epoch = log, broker, epoch
        self._args = {"topic": name[0], "partition": name[1]}

    def ask(self, command: str, **args: Any) -> Ask:
        return Ask(self.broker, command, {**self._args, **args})

    def agree(self, committed: int) -> Steps:
        """Cut off records that the other log lacks (KIP-101)."""
        last = self.log.leader_epoch
        while last > NO_EPOCH:
            found = yield self.ask("REPLICA_EPOCH", epoch=last)
            theirs, their_end = found["epoch"], found["end"]
            mine, my_end = self.log.epoch_end(theirs) if theirs > NO_EPOCH else (NO_EPOCH, their_end)
            cut = min(their_end, my_end, self.log.end)
            if cut < committed:
                raise Diverged(f"broker {self.broker} has nothing from offset {cut} on, but {committed} is committed")
            yield Truncate(cut)
            if mine in (theirs, last):
                return
            last = mine

    def fetch(self, known: int | None = None) -> Steps:
        """Fetch the next records, or a high watermark beyond `known`; return the answer."""
        found = yield self.ask("REPLICA_RECORDS", offset=self.log.end, epoch=self.epoch, hw=known)
        if found["records"]:
            yield Copy(found["records"], found["of"], found["start"])
        return found


def follow(log: ReplicaLog, name: Key, broker: int, epoch: int, accepted: int, committed: int, me: int) -> Steps:
    """Follow a leader until the driver stops.

    Args:
        log: the own log.
        name: topic and partition.
        broker, epoch: the leader, and its promised epoch.
        accepted: the newest accepted epoch.
        committed: the high watermark.
        me: the replica id for the leader.

    Raises:
        Diverged: see there.
    """
    copying = _Copying(log, name, broker, epoch)
    yield from copying.agree(committed)
    has_reported, known = False, None
    while True:
        found = yield from copying.fetch(known)
        if found["records"] or accepted < epoch:
            yield Flush()
        if accepted < epoch and log.end >= found["begin"]:
            yield Accept(epoch)
            accepted, has_reported = epoch, False
        if has_reported and not found["records"]:
            known = min(found["hw"], log.end)
            yield Learn(known)
            continue
        report = yield copying.ask("REPLICA_FETCH", replica_id=me, offset=log.end, epoch=epoch)
        has_reported, known = True, min(report["hw"], log.end)
        yield Learn(known)


def follow_groups(topic: str, broker: int, epoch: int, me: int) -> Steps:
    """Follow the topic's groups at the leader of partition 0, until the driver stops."""
    ticket = NO_TICKET
    while True:
        args = {"topic": topic, "partition": 0, "epoch": epoch, "replica_id": me, "ticket": ticket}
        found = yield Ask(broker, "REPLICA_GROUPS", args)
        if found["groups"]:
            yield KeepGroups(found["groups"], epoch, found["ticket"])
        ticket = found["ticket"]


def elect(log: ReplicaLog, name: Key, roles: Roles, broker_id: int, replicas: int, needed: int, count: int) -> Steps:
    """Become the leader.

    Args:
        log: the own log.
        name: topic and partition.
        roles: the own roles.
        broker_id: the own id.
        replicas: the number of brokers.
        needed: the number of promises, including its own.
        count: the number of the topic's partitions.

    Raises:
        NotElected: too few brokers answer, or they know a newer leader.
        Diverged: see there.
    """
    known, refused = max(roles[name].promised, replicas - 1), NO_EPOCH  # a new log has epoch 0
    for _ in range(_TRIES):
        epoch = next_epoch(max(known, refused), broker_id, replicas)
        yield Promise(epoch)
        args = {"topic": name[0], "count": count, "partition": name[1], "epoch": epoch}
        answers = yield AskAll("REPLICA_PROMISE", args, needed - 1)
        granted = {broker: fields for broker, fields in answers.items() if fields["granted"]}
        if len(granted) + 1 >= needed:
            yield from _catch_up(log, name, roles, granted, epoch)
            if name[1] == 0:
                yield from _get_groups(name[0], roles[name], granted, epoch)
            yield Flush()
            yield Accept(epoch)
            yield Lead(epoch)
            return
        refused = max((fields["promised"] for fields in answers.values() if not fields["granted"]), default=NO_EPOCH)
        if refused < epoch:
            raise NotElected(f"{len(granted) + 1} replicas can be reached, and {needed} are needed")
    raise NotElected(f"other brokers have promised epoch {refused}: they are about to lead")


def _catch_up(log: ReplicaLog, name: Key, roles: Roles, granted: Mapping[int, Fields], epoch: int) -> Steps:
    """Copy the log of the most complete replica, if it is not this one."""
    role, newest = roles[name], _newness(granted)
    best = max(granted, key=newest, default=None)
    if best is None or newest(best) <= (role.accepted, log.end):
        return
    copying = _Copying(log, name, best, epoch)
    yield from copying.agree(role.high_watermark)
    while log.end < granted[best]["end"]:
        found = yield from copying.fetch()
        if not found["records"]:
            raise NotElected(f"broker {best} has promised records up to {granted[best]['end']}, but gives none")


def _get_groups(topic: str, role: Role, granted: Mapping[int, Fields], epoch: int) -> Steps:
    """Get the newest groups, if others have them."""
    newest = {broker: (fields["group_epoch"], fields["group_ticket"]) for broker, fields in granted.items()}
    best = max(newest, key=lambda broker: newest[broker], default=None)
    if best is None or newest[best] <= (role.group_epoch, role.group_ticket):
        return
    args = {"topic": topic, "partition": 0, "epoch": epoch, "replica_id": 1, "ticket": NO_TICKET}
    found = yield Ask(best, "REPLICA_GROUPS", args)
    yield KeepGroups(found["groups"], *newest[best])


def _newness(granted: Mapping[int, Fields]) -> Callable[[int], tuple[int, int]]:
    return lambda broker: (granted[broker]["accepted"], granted[broker]["end"])
