"""Protocols other than the current Kafka protocol.

Modules, loaded on first use:
    kafka07: the wire and log formats of Kafka 0.6 and 0.7.
    zookeeper: the ZooKeeper nodes of Kafka 0.7, and the assignment of partitions to its consumers.
    rewrite: the group calls of the "client rewrite" proposal.
    line: the line protocol V1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.lazy import at_first_use

if TYPE_CHECKING:
    from kafkacodec.dialects import kafka07, line, rewrite, zookeeper

__all__ = ["kafka07", "line", "rewrite", "zookeeper"]


__getattr__ = at_first_use(__name__, dict.fromkeys(__all__, ""))


def __dir__() -> list[str]:
    return list(__all__)
