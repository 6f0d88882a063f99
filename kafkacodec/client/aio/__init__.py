"""Clients for asyncio: use each in the event loop that it first ran in. Names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.lazy import at_first_use

# Public name -> the module that holds it.
_HOMES = {
    "Admin": "admin",
    "Producer": "producer",
    "KafkaConnection": "connection",
    "Consumer": "consumer",
    "ShareConsumer": "share_consumer",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from kafkacodec.client.aio.admin import Admin as Admin
    from kafkacodec.client.aio.connection import KafkaConnection as KafkaConnection
    from kafkacodec.client.aio.consumer import Consumer as Consumer
    from kafkacodec.client.aio.producer import Producer as Producer
    from kafkacodec.client.aio.share_consumer import ShareConsumer as ShareConsumer


__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
