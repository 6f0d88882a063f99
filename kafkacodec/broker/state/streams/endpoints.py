"""Which partitions are behind each address for interactive queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.machine import Topics
from kafkacodec.broker.state.streams.member import StreamsMember
from kafkacodec.broker.state.streams.tasks import Task
from kafkacodec.broker.state.streams.topology import Topology, read_by

__all__ = ["endpoint_rows"]


def endpoint_rows(members: Iterable[StreamsMember], topology: Topology, topics: Topics) -> list[Any]:
    """Return the rows of a heartbeat's answer: for each member with an address, the partitions of its tasks."""
    response = messages.StreamsGroupHeartbeatResponse
    return [
        response.EndpointToPartitions(
            user_endpoint=response.Endpoint(host=member.endpoint.host, port=member.endpoint.port),
            active_partitions=_rows(member.assigned.active, topology, topics),
            standby_partitions=_rows(member.assigned.standby | member.assigned.warmup, topology, topics),
        )
        for member in members
        if member.endpoint is not None
    ]  # fmt: skip


def _rows(tasks: Collection[Task], topology: Topology, topics: Topics) -> list[Any]:
    row = messages.StreamsGroupHeartbeatResponse.TopicPartition
    by_part: dict[str, list[int]] = {}
    for name, number in sorted(tasks):
        by_part.setdefault(name, []).append(number)
    rows = []
    for name, numbers in by_part.items():
        for topic in dict.fromkeys(read_by(topology.parts[name])) if name in topology.parts else ():
            count = topics.partitions(topic)
            here = [number for number in numbers if number < count]
            if here:
                rows.append(row(topic=topic, partitions=here))
    return rows
