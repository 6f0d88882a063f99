"""Leaders among several pretended brokers: decisions over the metadata, as records of its log.

All brokers share one log for each partition, so every running replica is in sync.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafkacodec.broker.state.catalog import Catalog, Topic

__all__ = ["NO_LEADER", "elected", "moved", "reassigned", "registrations", "settled", "spread", "started", "stopped"]

NO_LEADER: Final = -1


def registrations(
    catalog: Catalog, ids: Sequence[int], addresses: Callable[[int], Iterable[tuple[str, int]]]
) -> list[bytes]:
    """Return the records that register the brokers of a directory, which lead all its partitions.

    Args:
        catalog: the current state.
        ids: of the brokers.
        addresses: host and port of each listener of a broker.
    """
    known = catalog.metadata.brokers
    records = [] if known or catalog.metadata.features else catalog.first_records()
    for broker in ids:
        if broker not in known:
            points = [("PLAINTEXT", host, port) for host, port in addresses(broker)]
            records.append(catalog.registered(broker, uuid.uuid4(), points))
        elif known[broker]["fenced"]:
            records.append(catalog.fenced(broker, fenced=False))
    records += [catalog.unregistered(broker) for broker in known if broker not in ids]
    return records + settled(catalog, ids)


def spread(running: Sequence[int], others: Sequence[int], first: int, end: int, factor: int) -> list[list[int]]:
    """Return the replicas of the partitions from `first` to `end`: each starts with the next running broker."""
    found = []
    for number in range(first, end):
        at = number % len(running) if running else 0
        found.append([*running[at:], *running[:at], *others][:factor])
    return found


def stopped(catalog: Catalog, broker: int, running: Collection[int]) -> list[bytes]:
    """Return the records for a broker that stops: another replica leads its partitions, or none."""
    records = []
    for topic, number, now in _partitions(catalog):
        if broker not in now["isr"]:
            continue
        isr = [one for one in now["isr"] if one != broker]
        leader = None
        if now["leader"] == broker:
            leader = next((one for one in now["replicas"] if one in isr and one in running), NO_LEADER)
        if leader is not None or isr:  # the last one stays, since only it may lead again
            records.append(catalog.changed_partition(topic.id, number, leader=leader, isr=isr or None))
    return records


def started(catalog: Catalog, broker: int, running: Collection[int]) -> list[bytes]:
    """Return the records for a broker that starts again: it is in sync, and leads partitions that only it can lead."""
    records = []
    for topic, number, now in _partitions(catalog):
        if broker not in now["replicas"] or (now["leader"] == NO_LEADER and broker not in now["isr"]):
            continue
        leader = broker if now["leader"] == NO_LEADER else None
        isr = [one for one in now["replicas"] if one in running]
        if leader is not None or isr != now["isr"]:
            records.append(catalog.changed_partition(topic.id, number, leader=leader, isr=isr))
    return records


def moved(catalog: Catalog, topic: Topic, number: int, to: int, running: Collection[int]) -> bytes:
    """Return the record that makes a broker the leader; a broker without a replica replaces the previous leader."""
    now: Any = catalog.partition(topic.name, number)
    replicas = list(now["replicas"])
    if to in replicas:
        return catalog.changed_partition(topic.id, number, leader=to)
    at = replicas.index(now["leader"]) if now["leader"] in replicas else 0
    replicas[at] = to
    return reassigned(catalog, topic, number, replicas, running, leader=to)


def reassigned(
    catalog: Catalog, topic: Topic, number: int, replicas: Sequence[int], running: Collection[int],
    leader: int | None = None,
) -> bytes:  # fmt: skip
    """Return the record that gives a partition other replicas at once; the leader stays if it is one of them."""
    now: Any = catalog.partition(topic.name, number)
    isr = [one for one in replicas if one in running]
    if leader is None and now["leader"] not in isr:
        leader = isr[0] if isr else NO_LEADER
    return catalog.changed_partition(topic.id, number, leader=leader, isr=isr or list(replicas[:1]), replicas=replicas)


def elected(catalog: Catalog, topic: Topic, number: int, *, unclean: bool, running: Collection[int]) -> bytes | None:
    """Return the record of an election: of the preferred replica, or of any if none leads; None if it is impossible."""
    now: Any = catalog.partition(topic.name, number)
    candidates = now["replicas"] if unclean else now["replicas"][:1]
    leader = next((one for one in candidates if one in running), None)
    if leader is None:
        return None
    isr = [one for one in now["replicas"] if one in running]
    return catalog.changed_partition(topic.id, number, leader=leader, isr=None if isr == now["isr"] else isr)


def settled(catalog: Catalog, brokers: Sequence[int]) -> list[bytes]:
    """Return the records for a directory of other brokers: the current brokers take over, one replica for each."""
    records = []
    for topic, number, now in _partitions(catalog):
        replicas = [one for one in now["replicas"] if one in brokers]
        replicas = replicas or spread(brokers, (), number, number + 1, 1)[0]
        if replicas != now["replicas"] or replicas != now["isr"] or now["leader"] not in replicas:
            leader = None if now["leader"] in replicas else replicas[0]
            records.append(catalog.changed_partition(topic.id, number, leader=leader, isr=replicas, replicas=replicas))
    return records


def _partitions(catalog: Catalog) -> Iterator[tuple[Topic, int, dict[str, Any]]]:
    for name in catalog.names():
        topic = catalog.topic(name)
        for number in range(topic.partitions if topic is not None else 0):
            now = catalog.partition(name, number)
            if topic is not None and now is not None:
                yield topic, number, now
