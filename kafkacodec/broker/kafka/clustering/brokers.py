"""The pretended brokers: their addresses, which of them run, and which partitions they lead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kafkacodec.broker.state.leaders import NO_LEADER, spread
from kafkacodec.net.addresses import EVERYWHERE

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.fetch_sessions import FetchSessions
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.state.catalog import Catalog

__all__ = ["Brokers"]

Address = tuple[str, int]


class Brokers:
    """The brokers of a cluster. A single one leads everything, whatever the metadata says.

    Args:
        ids: their ids, in order.
        catalog: has the leaders.
        sessions: makes the fetch sessions of a broker.
        frozen: the directory is read-only: even a single broker leads only what the metadata says.

    Attributes:
        ids: see above.
        several: whether there is more than one, or one that does not lead everything.
        running: the ids of the running brokers, in order.
    """

    def __init__(
        self, ids: Sequence[int], catalog: Catalog, sessions: Callable[[], FetchSessions], *, frozen: bool = False
    ) -> None:
        self.ids = tuple(ids)
        self.several = len(self.ids) > 1 or frozen
        self._frozen = frozen
        self.running = list(self.ids)
        self._catalog, self._sessions = catalog, sessions
        self._fetching = {broker: sessions() for broker in self.ids}
        self._places: dict[str, tuple[int, int]] = {}  # by the name of a listener: whose it is, and its number there
        self._addresses: dict[tuple[int, int], Address] = {}

    # Addresses

    def listens(self, broker: int, number: int, name: str, address: Address) -> None:
        """Add a listener of a broker; all brokers have the same number of listeners."""
        self._places[name] = broker, number
        self._addresses[broker, number] = address

    def of(self, session: Any) -> int:
        """Return the broker of a connection."""
        return self._places[session.listener.name][0] if self.several else self.ids[0]

    def address(self, broker: int, session: Any) -> Address:
        """Return host and port at which the client of a connection reaches a broker.

        Where the broker listens on all addresses, the host is the one that the client has connected to.
        """
        address: Address = session.listener.address
        if self.several:
            address = self._addresses[broker, self._places[session.listener.name][1]]
        return (session.reached_at or address[0], address[1]) if address[0] in EVERYWHERE else address

    def addresses(self, broker: int) -> list[Address]:
        """Host and port of each listener of a broker."""
        return [address for (of, _), address in sorted(self._addresses.items()) if of == broker]

    # Running brokers

    @property
    def controller(self) -> int:
        """The broker that answers name as the controller; all brokers accept its requests."""
        return self.running[0] if self.running else self.ids[0]

    def stopped(self, broker: int) -> None:
        """Note that a broker has stopped, and drop its fetch sessions."""
        self.running.remove(broker)
        self._fetching[broker] = self._sessions()

    def started(self, broker: int) -> None:
        """A broker runs again."""
        self.running = sorted([*self.running, broker])

    def sessions(self, request: Request) -> FetchSessions:
        """Return the fetch sessions of a request's broker."""
        return self._fetching[request.broker]

    def may_be(self, replicas: Sequence[int]) -> bool:
        """Whether these replicas are valid: some of the brokers, each once."""
        return bool(replicas) and len(set(replicas)) == len(replicas) and set(replicas) <= set(self.ids)

    # Leaders

    def leader(self, topic: str, number: int) -> int:
        """Return the broker that leads a partition; `NO_LEADER` if there is none, or no such partition."""
        if not self.several:
            return self.ids[0]
        found = self._catalog.partition(topic, number)
        return NO_LEADER if found is None else int(found["leader"])

    def leads(self, broker: int, topic: str, number: int) -> bool:
        """Whether a broker leads a partition."""
        return not self.several or self.leader(topic, number) == broker

    def has(self, broker: int, topic: str, number: int) -> bool:
        """Whether a broker has a replica of a partition."""
        found = self._catalog.partition(topic, number) if self.several else None
        return not self.several or (found is not None and broker in found["replicas"])

    def replicas(self, topic: str, number: int) -> tuple[list[int], list[int], list[int]]:
        """Return the replicas of a partition, those in sync, and those that do not run."""
        if not self.several:
            return list(self.ids), list(self.ids), []
        found = self._catalog.partition(topic, number) or {"replicas": [], "isr": []}
        replicas: list[int] = list(found["replicas"])
        # A read-only broker has no leader for what it cannot read.
        unread = self._frozen and found.get("leader") == NO_LEADER
        away = [broker for broker in replicas if unread or broker not in self.running]
        return replicas, [broker for broker in found["isr"] if broker not in away], away

    def may_lead_again(self, topic: str, number: int) -> list[int]:
        """Return the brokers of which one must start before a partition without a leader gets one."""
        found = self._catalog.partition(topic, number)
        return list(found["isr"]) if found is not None and self.leader(topic, number) == NO_LEADER else []

    @property
    def away(self) -> list[int]:
        """The ids of the stopped brokers, in order."""
        return [broker for broker in self.ids if broker not in self.running]

    def spread(self, first: int, end: int, factor: int) -> list[list[int]]:
        """The replicas of new partitions from `first` to `end`."""
        return spread(self.running, self.away, first, end, factor)
