"""Protocols other than the current Kafka protocol.

Modules, loaded on first use:
    kafka07: the wire and log formats of Kafka 0.6 and 0.7.
    zookeeper: the ZooKeeper nodes of Kafka 0.7, and the assignment of partitions to its consumers.
    rewrite: the group calls of the "client rewrite" proposal.
    line: the line protocol V1.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacodec.dialects import kafka07, line, rewrite, zookeeper

__all__ = ["kafka07", "line", "rewrite", "zookeeper"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
