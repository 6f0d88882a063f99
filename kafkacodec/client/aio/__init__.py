"""Clients for asyncio: use each in the event loop that it first ran in. Names load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name -> the module that holds it.
_HOMES: dict[str, str] = {
    "Admin": "kafkacodec.client.aio.admin",
    "Producer": "kafkacodec.client.aio.producer",
    "KafkaConnection": "kafkacodec.client.aio.connection",
    "Consumer": "kafkacodec.client.aio.consumer",
    "ShareConsumer": "kafkacodec.client.aio.share_consumer",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from kafkacodec.client.aio.admin import Admin as Admin
    from kafkacodec.client.aio.connection import KafkaConnection as KafkaConnection
    from kafkacodec.client.aio.consumer import Consumer as Consumer
    from kafkacodec.client.aio.producer import Producer as Producer
    from kafkacodec.client.aio.share_consumer import ShareConsumer as ShareConsumer


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'kafkacodec.client.aio' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
