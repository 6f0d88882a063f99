"""Reading the ZooKeeper nodes of brokers, topics and groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkacodec.dialects.kafka07.positions import Place
from kafkacodec.dialects.zookeeper import OffsetNode, Registry, parse_node

if TYPE_CHECKING:
    from kafkacodec.net.zookeeper import ZooKeeper

__all__ = ["BROKERS", "TOPICS", "offset_node", "read_offsets", "read_registry"]

BROKERS, TOPICS = "/brokers/ids", "/brokers/topics"


async def read_registry(
    zookeeper: ZooKeeper, *, topics: Iterable[str] | None, group: str | None = None, watch: bool = True
) -> Registry:
    """Read brokers, topics (None: all) and members of a group; with a watch, the next change is reported once."""
    nodes: dict[str, str | None] = {}
    parents = [BROKERS, *([] if group is None else [f"/consumers/{group}/ids"])]
    if topics is None:
        topics = await zookeeper.children(TOPICS, watch=watch)
    parents += (f"{TOPICS}/{topic}" for topic in topics)
    for parent in parents:
        for name in await zookeeper.children(parent, watch=watch):
            path = f"{parent}/{name}"
            content = await zookeeper.get(path)
            if content is not None:  # otherwise it has gone meanwhile
                nodes[path] = content
    return Registry(nodes)


def offset_node(group: str, place: Place, offset: int = 0) -> OffsetNode:
    """Return the node of a group's committed offset in a partition."""
    return OffsetNode(group, place.topic, place.broker, place.partition, offset)


async def read_offsets(zookeeper: ZooKeeper, group: str, places: Iterable[Place]) -> dict[Place, int | None]:
    """Read a group's committed offsets. Raises DecodeError: one is not a number."""
    found: dict[Place, int | None] = {}
    for place in places:
        path = offset_node(group, place).path
        content = await zookeeper.get(path)
        node = None if content is None else parse_node(path, content)
        # Clients of 0.7 commit -1 when they could not ask a broker.
        found[place] = node.offset if isinstance(node, OffsetNode) and node.offset >= 0 else None
    return found
