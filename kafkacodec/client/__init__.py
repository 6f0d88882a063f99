"""Clients of Kafka brokers: blocking ones here, the same for asyncio in `aio`.

Names load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name -> the module that holds it. Names under None are submodules.
_HOMES: dict[str, str | None] = {
    "ANY": "kafkacodec.client.core.calls",
    "Acl": "kafkacodec.client.admin.acls",
    "AclFilter": "kafkacodec.client.admin.acls",
    "Admin": "kafkacodec.client.blocking.admin",
    "Append": "kafkacodec.client.admin.configs",
    "CONTROLLER": "kafkacodec.client.core.calls",
    "ConfigResource": "kafkacodec.client.admin.configs",
    "Delivery": "kafkacodec.client.producing.delivery",
    "Coordinator": "kafkacodec.client.core.calls",
    "ConsumedColumns": "kafkacodec.client.consuming.record",
    "Consumer": "kafkacodec.client.blocking.consumer",
    "ConsumerRecord": "kafkacodec.client.consuming.record",
    "FeatureUpdate": "kafkacodec.client.admin.cluster",
    "GroupOffset": "kafkacodec.client.admin.offsets",
    "KafkaConnection": "kafkacodec.client.blocking.connection",
    "METRICS": "kafkacodec.client.core.metrics",
    "NewPartitions": "kafkacodec.client.admin.topics",
    "NewTopic": "kafkacodec.client.admin.topics",
    "Producer": "kafkacodec.client.blocking.producer",
    "RecordMetadata": "kafkacodec.client.producing.delivery",
    "ShareConsumer": "kafkacodec.client.blocking.share_consumer",
    "ShareRecord": "kafkacodec.client.sharing.deliveries",
    "Reply": "kafkacodec.client.core.relay",
    "ScramCredential": "kafkacodec.client.admin.scram",
    "Subtract": "kafkacodec.client.admin.configs",
    "TableDelivery": "kafkacodec.client.producing.delivery",
    "TableMetadata": "kafkacodec.client.producing.delivery",
    "TopicPartition": "kafkacodec.client.admin.operations",
    "export_metrics": "kafkacodec.client.telemetry",
    "aio": None,
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from kafkacodec.client import aio as aio
    from kafkacodec.client.admin.acls import Acl as Acl, AclFilter as AclFilter
    from kafkacodec.client.admin.cluster import FeatureUpdate as FeatureUpdate
    from kafkacodec.client.admin.configs import Append as Append, ConfigResource as ConfigResource, Subtract as Subtract
    from kafkacodec.client.admin.offsets import GroupOffset as GroupOffset
    from kafkacodec.client.admin.operations import TopicPartition as TopicPartition
    from kafkacodec.client.admin.scram import ScramCredential as ScramCredential
    from kafkacodec.client.admin.topics import NewPartitions as NewPartitions, NewTopic as NewTopic
    from kafkacodec.client.blocking.admin import Admin as Admin
    from kafkacodec.client.blocking.connection import KafkaConnection as KafkaConnection
    from kafkacodec.client.blocking.consumer import Consumer as Consumer
    from kafkacodec.client.blocking.producer import Producer as Producer
    from kafkacodec.client.blocking.share_consumer import ShareConsumer as ShareConsumer
    from kafkacodec.client.consuming.record import (
        ConsumedColumns as ConsumedColumns,
        ConsumerRecord as ConsumerRecord,
    )
    from kafkacodec.client.core.calls import ANY as ANY, CONTROLLER as CONTROLLER, Coordinator as Coordinator
    from kafkacodec.client.core.metrics import METRICS as METRICS
    from kafkacodec.client.core.relay import Reply as Reply
    from kafkacodec.client.producing.delivery import (
        Delivery as Delivery,
        RecordMetadata as RecordMetadata,
        TableDelivery as TableDelivery,
        TableMetadata as TableMetadata,
    )
    from kafkacodec.client.sharing.deliveries import ShareRecord as ShareRecord
    from kafkacodec.client.telemetry import export_metrics as export_metrics


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'kafkacodec.client' has no attribute {name!r}") from None
    module = importlib.import_module(home or f"kafkacodec.client.{name}")
    value = module if home is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
