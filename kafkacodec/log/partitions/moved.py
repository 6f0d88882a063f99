"""Partitions that were moved by hand from a directory of a broker to another one: checkpoints do not know it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kafkacodec.errors import DecodeError
from kafkacodec.log.opening import full_path, optional
from kafkacodec.log.opening.checkpoints import read_properties
from kafkacodec.log.partitions.inside import has_directory
from kafkacodec.log.partitions.partition import Partition

__all__ = ["without_moved"]


def without_moved(found: Iterable[Partition]) -> list[Partition]:
    """The partitions without those that only the checkpoints of a directory name, and that another one has whole.

    That is another directory of the same broker: a replica of another broker does not make up for a lost one. It has to
    reach the end that the checkpoint names; otherwise records are lost all the same.
    """
    partitions = list(found)
    there: dict[tuple[str | None, int | None], list[Partition]] = {}
    for partition in partitions:
        if has_directory(partition) and partition.state == "current":
            there.setdefault((partition.topic, partition.partition), []).append(partition)

    def is_elsewhere(absent: Partition) -> bool:
        others = there.get((absent.topic, absent.partition), [])
        node = _node_of(absent) if others else None
        return node is not None and any(_node_of(other) == node and _reaches(other, absent) for other in others)

    return [partition for partition in partitions if has_directory(partition) or not is_elsewhere(partition)]


def _node_of(partition: Partition) -> tuple[str, str] | None:
    """The cluster and the broker that a partition's data directory belongs to; None if it does not say so."""
    place = os.path.join(os.path.dirname(full_path(partition.path)), "meta.properties")
    found: dict[str, str] = {}
    with optional(place):
        found = read_properties(place)
    node = found.get("node.id", found.get("broker.id"))
    return None if node is None else (found.get("cluster.id", ""), node)


def _reaches(other: Partition, absent: Partition) -> bool:
    try:
        return other.end_offset() >= absent.recovery_point
    except (DecodeError, OSError):  # a check of that partition tells why it cannot be read
        return False
