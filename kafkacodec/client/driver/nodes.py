"""All brokers of a network: which one gets a request, and when one needs attention."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from kafkacodec.chance import RANDOM
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.driver.node import COORDINATION, Node

__all__ = ["SLOW_MS", "Nodes"]

SLOW_MS: Final = 2_000.0
"""How long a request may take before it is told."""

_LANES: Final = 3  # a waiting fetch, another one, and all other requests


class Nodes:
    """The brokers in use, by id.

    Args:
        cluster: the source of addresses and ids.
        max_idle_ms: connections unused for longer are closed; 0 keeps them.

    Attributes:
        slow_at: when the first request takes so long that it is to be told, as of the last call of `next_deadline`.
    """

    def __init__(self, cluster: Cluster, max_idle_ms: float) -> None:
        self._cluster = cluster
        self._max_idle_ms = max_idle_ms
        self._nodes: dict[tuple[int, int], Node] = {}
        self.slow_at = math.inf

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
            node = self._nodes.get((number, lane)) or self.get(number, lane)
            if not (node.in_flight or node.waiting) or not node.held:
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
        RANDOM.shuffle(known)
        # In turn; bootstrap addresses only if known brokers have failed or must not be tried yet.
        return min(known, key=lambda n: (n.retry_at if n.retry_at > now else 0.0, n.failures, n.number < 0))

    def close_idle(self, now: float) -> None:
        """Close the connections that have been idle for too long."""
        most = self._max_idle_ms
        if most:
            for node in list(self._nodes.values()):
                if now - node.used_at >= most and node.ready and not node.load:
                    node.close_idle()

    def next_deadline(self, now: float) -> float:
        """When a broker needs attention: a connection, the end of throttling, the idle limit, or a request that takes
        so long that it is to be told; infinite for never."""
        first = slow = math.inf
        for node in self._nodes.values():
            if node.waiting:
                if node.link is None and node.connecting is None and node.retry_at < first:
                    first = node.retry_at
                if now < node.muted_until < first and node.ready:
                    first = node.muted_until
            elif not node.in_flight:
                if self._max_idle_ms and node.link is not None and node.link.ready:
                    first = min(first, node.used_at + self._max_idle_ms)
                if node.connecting is None:
                    continue
            if node.quiet_until <= now and (awaited := node.awaited) is not None and awaited[0] + SLOW_MS < slow:
                slow = awaited[0] + SLOW_MS
        self.slow_at = slow
        return min(first, slow)
