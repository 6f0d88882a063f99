"""Clients of Kafka brokers: blocking clients here, asyncio clients in `aio`.

Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.lazy import at_first_use

# Public name -> the module that holds it; "" for modules.
_HOMES = {
    "ANY": "core.calls",
    "Acl": "admin.acls",
    "AclFilter": "admin.acls",
    "Admin": "blocking.admin",
    "Append": "admin.configs",
    "CONTROLLER": "core.calls",
    "ClientSettings": "options",
    "ConfigResource": "admin.configs",
    "Delivery": "producing._delivery",
    "Coordinator": "core.calls",
    "ConsumedColumns": "consuming.record",
    "Consumer": "blocking.consumer",
    "ConsumerRecord": "consuming.record",
    "ConsumerSettings": "consuming.settings",
    "FeatureUpdate": "admin.cluster",
    "GroupOffset": "admin.offsets",
    "KafkaConnection": "blocking.connection",
    "METRICS": "core.metrics",
    "NewPartitions": "admin.topic_terms",
    "NewTopic": "admin.topic_terms",
    "PreparedTransaction": "core.prepared",
    "Producer": "blocking.producer",
    "ProducerSettings": "producing.settings",
    "RecordMetadata": "producing.outcome",
    "ShareConsumer": "blocking.share_consumer",
    "ShareConsumerSettings": "sharing.settings",
    "ShareRecord": "sharing.deliveries",
    "Reply": "core.relay",
    "ScramCredential": "admin.scram",
    "Subtract": "admin.configs",
    "TableDelivery": "producing._delivery",
    "TableMetadata": "producing.outcome",
    "TopicPartition": ".assignment.partitions",
    "export_metrics": "telemetry",
    "aio": "",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from kafkacodec.assignment.partitions import TopicPartition as TopicPartition
    from kafkacodec.client import aio as aio
    from kafkacodec.client.admin.acls import Acl as Acl, AclFilter as AclFilter
    from kafkacodec.client.admin.cluster import FeatureUpdate as FeatureUpdate
    from kafkacodec.client.admin.configs import Append as Append, ConfigResource as ConfigResource, Subtract as Subtract
    from kafkacodec.client.admin.offsets import GroupOffset as GroupOffset
    from kafkacodec.client.admin.scram import ScramCredential as ScramCredential
    from kafkacodec.client.admin.topic_terms import NewPartitions as NewPartitions, NewTopic as NewTopic
    from kafkacodec.client.blocking.admin import Admin as Admin
    from kafkacodec.client.blocking.connection import KafkaConnection as KafkaConnection
    from kafkacodec.client.blocking.consumer import Consumer as Consumer
    from kafkacodec.client.blocking.producer import Producer as Producer
    from kafkacodec.client.blocking.share_consumer import ShareConsumer as ShareConsumer
    from kafkacodec.client.consuming.record import (
        ConsumedColumns as ConsumedColumns,
        ConsumerRecord as ConsumerRecord,
    )
    from kafkacodec.client.consuming.settings import ConsumerSettings as ConsumerSettings
    from kafkacodec.client.core.calls import ANY as ANY, CONTROLLER as CONTROLLER, Coordinator as Coordinator
    from kafkacodec.client.core.metrics import METRICS as METRICS
    from kafkacodec.client.core.prepared import PreparedTransaction as PreparedTransaction
    from kafkacodec.client.core.relay import Reply as Reply
    from kafkacodec.client.options import ClientSettings as ClientSettings
    from kafkacodec.client.producing._delivery import Delivery as Delivery, TableDelivery as TableDelivery
    from kafkacodec.client.producing.outcome import RecordMetadata as RecordMetadata, TableMetadata as TableMetadata
    from kafkacodec.client.producing.settings import ProducerSettings as ProducerSettings
    from kafkacodec.client.sharing.deliveries import ShareRecord as ShareRecord
    from kafkacodec.client.sharing.settings import ShareConsumerSettings as ShareConsumerSettings
    from kafkacodec.client.telemetry import export_metrics as export_metrics


__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
