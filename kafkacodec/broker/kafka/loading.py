"""Loading a coordinator from the records of its internal topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.topics.committed import batches
from kafkacodec.messages.stored import decode_control_record
from kafkacodec.records.decode import decode

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.state.machine import Machine
    from kafkacodec.net.service import Effect

__all__ = ["loaded"]

_COLUMNS: Final = ("offset", "key", "value", "producer_id", "is_transactional", "is_control")


def loaded(node: Node, machine: Machine, now: float) -> Effect:
    """Load the records of its topic into a coordinator, in the order of the log, then start it."""
    topic = node.catalog.topic(machine.topic)
    if topic is not None:
        machine.partitions = topic.partitions  # regardless of the current setting
    for number in range(topic.partitions if topic is not None else 0):
        partition = node.topics.partition(machine.topic, number)
        for batch in batches(partition, partition.high_watermark) if partition is not None else ():
            _load_batches(node, machine, number, batch)
    return node.routed(machine, machine.loaded(now))


def _load_batches(node: Node, machine: Machine, number: int, batch: bytes) -> None:
    groups: Any = node.groups
    has_markers = machine is groups
    table = decode(batch, columns=_COLUMNS, include_control=True)
    rows = zip(*(table[name] for name in _COLUMNS), strict=True)
    for offset, key, value, producer, transactional, control in rows:
        if not control:
            machine.load(key, value, int(producer) if transactional else -1, int(offset))
        elif has_markers:
            marker = decode_control_record(key, value)
            if marker is not None:
                groups.end_transaction(number, int(producer), marker.type == "COMMIT")
