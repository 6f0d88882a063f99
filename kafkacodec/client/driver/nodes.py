"""All brokers of a network: which one gets a request, and when one needs attention."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.driver.node import COORDINATION, Node

__all__ = ["Nodes"]

_LANES = 3  # a waiting fetch, another one, and all other requests


class Nodes:
    """The brokers in use, by id.

    Args:
        cluster: the source of addresses and ids.
        max_idle_ms: connections unused for longer are closed; 0 keeps them.
    """

    def __init__(self, cluster: Cluster, max_idle_ms: float) -> None:
        self._cluster = cluster
        self._max_idle_ms = max_idle_ms
        self._nodes: dict[tuple[int, int], Node] = {}
        self._random = random.Random()

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._nodes.values()))

    def get(self, number: int, lane: int = 0) -> Node:
        """One of the connections to a broker."""
        node = self._nodes.get((number, lane))
        if node is None:
            node = self._nodes[number, lane] = Node(number, lane)
        return node

    def free(self, number: int) -> Node:
        """The first connection to a broker that no request holds up, else one whose answers are no longer needed."""
        for lane in range(_LANES):
            node = self.get(number, lane)
            if not node.held:
                return node
        return next((n for lane in range(_LANES) if (n := self.get(number, lane)).given_up), self.get(number))

    def any(self, now: float) -> Node:
        """A broker for a request that any can answer: a connected one, else a known one, else a bootstrap address."""
        ready = [n for n in self if n.ready and n.lane != COORDINATION and now >= n.muted_until]
        if ready:
            return min(ready, key=lambda n: n.load)
        bootstrap = (broker.node for broker in self._cluster.bootstrap)
        known = [self.get(number) for number in (*self._cluster.brokers, *bootstrap)]
        connecting = [n for n in known if n.connecting is not None]
        if connecting:
            return connecting[0]
        self._random.shuffle(known)
        # In turn; bootstrap addresses only if known brokers have failed or must not be tried yet.
        return min(known, key=lambda n: (n.retry_at if n.retry_at > now else 0.0, n.failures, n.number < 0))

    def idle(self, now: float) -> list[Node]:
        """The brokers whose connections have been idle for too long."""
        most = self._max_idle_ms
        return [n for n in self._nodes.values() if most and now - n.used_at >= most and n.ready and not n.load]

    def next_deadline(self, now: float) -> float:
        """When a broker needs attention (a connection, the end of throttling, the idle limit); infinite for never."""
        first = math.inf
        for node in self._nodes.values():
            if node.waiting:
                if node.link is None and node.connecting is None:
                    first = min(first, node.retry_at)
                if node.ready and node.muted_until > now:
                    first = min(first, node.muted_until)
            elif not node.in_flight and node.ready and self._max_idle_ms:
                first = min(first, node.used_at + self._max_idle_ms)
        return first
