"""The admin client for asyncio."""

from __future__ import annotations

from kafkacodec.client.admin.acls import AclOperations
from kafkacodec.client.admin.cluster import ClusterOperations
from kafkacodec.client.admin.configs import ConfigOperations
from kafkacodec.client.admin.groups import GroupOperations
from kafkacodec.client.admin.quorum import QuorumOperations
from kafkacodec.client.admin.quotas import QuotaOperations
from kafkacodec.client.admin.replicas import ReplicaOperations
from kafkacodec.client.admin.scram import ScramOperations
from kafkacodec.client.admin.share_offsets import ShareOffsetOperations
from kafkacodec.client.admin.streams_groups import StreamsGroupOperations
from kafkacodec.client.admin.tokens import TokenOperations
from kafkacodec.client.admin.transactions import TransactionOperations
from kafkacodec.client.aio.topic_admin import AdminSettings as AdminSettings, TopicAdmin
from kafkacodec.client.core.foreign_names import knows

__all__ = ["Admin", "AdminSettings"]


@knows("Admin")
class Admin(
    ConfigOperations,
    GroupOperations,
    StreamsGroupOperations,
    ShareOffsetOperations,
    AclOperations,
    TransactionOperations,
    QuotaOperations,
    ScramOperations,
    TokenOperations,
    ReplicaOperations,
    ClusterOperations,
    QuorumOperations,
    TopicAdmin,
):
    """Administers a Kafka cluster; an asynchronous context manager.

    Each call finds the responsible brokers (controller, coordinators, leaders, all), and repeats requests after
    temporary failures, up to its ``timeout_ms`` or ``default_api_timeout_ms``. A call on several items does all that it
    can and raises `ItemErrors` if some fail; its ``errors`` and ``results`` are by item. If a broker is too old for a
    call, it raises UnsupportedVersion, which names the API and the first release that has it.

    Args:
        bootstrap_servers: ``host:port`` of some brokers, in one text with commas or as a list.
        **options: `kafkacodec.client.ClientSettings` describes them.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """
