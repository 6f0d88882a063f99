"""Answers of a read-only broker to requests that would write.

They are Apache Kafka's answers to a client that may read everything and write nothing: clients do not retry, as they
would if a broker could not write. Group coordinators keep their state in memory, so their requests are not refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.kafka.refusals import refusal
from kafkacodec.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from kafkacodec.messages import keys

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["refused"]

REFUSED: Final[Mapping[int, int]] = {
    **dict.fromkeys(
        (keys.PRODUCE, keys.CREATE_TOPICS, keys.DELETE_TOPICS, keys.CREATE_PARTITIONS, keys.DELETE_RECORDS,
         keys.ALTER_CONFIGS, keys.INCREMENTAL_ALTER_CONFIGS),
        TOPIC_AUTHORIZATION_FAILED,
    ),
    **dict.fromkeys(
        (keys.ADD_PARTITIONS_TO_TXN, keys.ADD_OFFSETS_TO_TXN, keys.END_TXN, keys.TXN_OFFSET_COMMIT),
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    **dict.fromkeys(
        (keys.INIT_PRODUCER_ID, keys.WRITE_TXN_MARKERS, keys.ALTER_REPLICA_LOG_DIRS, keys.ELECT_LEADERS,
         keys.ALTER_PARTITION_REASSIGNMENTS, keys.CREATE_ACLS, keys.DELETE_ACLS, keys.ALTER_CLIENT_QUOTAS,
         keys.ALTER_USER_SCRAM_CREDENTIALS, keys.UPDATE_FEATURES, keys.UNREGISTER_BROKER, keys.ADD_RAFT_VOTER,
         keys.REMOVE_RAFT_VOTER, keys.UNREGISTER_CONTROLLER),
        CLUSTER_AUTHORIZATION_FAILED,
    ),
}  # fmt: skip
"""By API key; all other APIs are answered."""


def refused(node: Node, request: Request) -> Any:
    """Return the refusal of a request that would write; None for others."""
    code = REFUSED.get(request.key)
    if code is None:
        return None
    if request.key == keys.INIT_PRODUCER_ID and request.message.transactional_id is not None:
        code = TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return refusal(node, request, code)
