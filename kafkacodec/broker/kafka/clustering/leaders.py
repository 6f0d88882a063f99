"""The leaders of partitions in answers to misdirected requests (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["Leaders"]


class Leaders:
    """The leaders that an answer names, and their addresses."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._named: set[int] = set()

    def add(self, node: Node, row: Any, topic: str, number: int) -> None:
        """Fill the row of a leader: id and epoch."""
        row.leader_id = node.brokers.leader(topic, number)
        found = node.catalog.partition(topic, number)
        row.leader_epoch = -1 if found is None else found["leader_epoch"]
        self._named.add(row.leader_id)

    def endpoints(self, node: Node, row: Any) -> list[Any]:
        """Return the rows of the named brokers."""
        if not self._named:
            return []
        reached = [one for one in node.reached(self._request) if one[0] in self._named]
        return [row(node_id=broker, host=host, port=port) for broker, host, port in reached]
