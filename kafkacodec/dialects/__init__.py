"""Protocols besides the Kafka protocol of today.

Modules, loaded on first use:
    zookeeper: what Kafka 0.7 kept in ZooKeeper, and how its consumers shared partitions.
    line: the line protocol V1.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkacodec.dialects import line, zookeeper

__all__ = ["line", "zookeeper"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
