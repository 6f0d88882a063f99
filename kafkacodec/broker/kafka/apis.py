"""THE TABLE of APIs: the function and versions of each. ApiVersions advertises it, and the broker reads no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from kafkacodec.broker.kafka import fetch, groups, list_offsets, metadata, produce, topics, transactions, versions
from kafkacodec.datatypes import NamedTuple
from kafkacodec.messages import APIS, keys

__all__ = ["ADVERTISED", "OLD", "OLD_ADVERTISED", "READ", "TABLE", "Entry"]

Answer = Callable[[Any, Any], Any]
"""Takes the node and a request; returns a response, an Effect, or None if it is answered later."""


class _Seldom:
    """The functions of a module that is imported on the first call, so that a broker starts faster."""

    def __init__(self, name: str) -> None:
        self._name = f"kafkacodec.broker.kafka.{name}"

    def __getattr__(self, function: str) -> Answer:
        def answer(node: Any, request: Any) -> Any:
            return getattr(import_module(self._name), function)(node, request)

        return answer


cluster, configs, producers, users = (_Seldom(name) for name in ("cluster", "configs", "producers", "users"))
acls, tokens = _Seldom("security.acls"), _Seldom("security.tokens")
share, share_offsets, streams = _Seldom("sharing.share"), _Seldom("sharing.offsets"), _Seldom("streams")


class Entry(NamedTuple):
    """One API.

    Attributes:
        versions: the served versions.
        answer: the function.
        advertised: whether ApiVersions lists it. Brokers answer telemetry calls without listing them.
        first: the first version that ApiVersions lists; it lists older ones, since old clients look for them, but a
            request of one closes the connection.
        note: limitations, for the docs.
    """

    versions: range
    answer: Answer
    advertised: bool = True
    first: int | None = None
    note: str = ""


TABLE: Final[Mapping[int, Entry]] = {
    keys.PRODUCE: Entry(range(3, 14), produce.produce, first=0),
    keys.FETCH: Entry(range(4, 19), fetch.fetch),
    keys.LIST_OFFSETS: Entry(range(1, 12), list_offsets.list_offsets),
    keys.METADATA: Entry(range(14), metadata.metadata),
    keys.FIND_COORDINATOR: Entry(range(7), cluster.find_coordinator),
    keys.OFFSET_COMMIT: Entry(range(2, 11), groups.ask),
    keys.OFFSET_FETCH: Entry(range(1, 11), groups.ask),
    keys.OFFSET_DELETE: Entry(range(1), groups.ask),
    keys.JOIN_GROUP: Entry(range(10), groups.ask),
    keys.HEARTBEAT: Entry(range(5), groups.ask),
    keys.LEAVE_GROUP: Entry(range(6), groups.ask),
    keys.SYNC_GROUP: Entry(range(6), groups.ask),
    keys.DESCRIBE_GROUPS: Entry(range(7), groups.describe_groups),
    keys.LIST_GROUPS: Entry(range(6), groups.ask),
    keys.API_VERSIONS: Entry(range(6), versions.api_versions),
    keys.CREATE_TOPICS: Entry(range(2, 8), topics.create_topics),
    keys.DELETE_TOPICS: Entry(range(1, 7), topics.delete_topics),
    keys.DELETE_RECORDS: Entry(range(3), list_offsets.delete_records),
    keys.INIT_PRODUCER_ID: Entry(range(6), transactions.init_producer_id),
    keys.ADD_PARTITIONS_TO_TXN: Entry(range(6), groups.ask),
    keys.ADD_OFFSETS_TO_TXN: Entry(range(5), groups.ask),
    keys.END_TXN: Entry(range(6), groups.ask),
    keys.WRITE_TXN_MARKERS: Entry(range(1, 3), transactions.write_txn_markers),
    keys.TXN_OFFSET_COMMIT: Entry(range(7), transactions.commit_in_transaction),
    keys.DESCRIBE_TRANSACTIONS: Entry(range(1), groups.ask),
    keys.LIST_TRANSACTIONS: Entry(range(3), groups.ask),
    keys.OFFSET_FOR_LEADER_EPOCH: Entry(range(2, 5), list_offsets.offset_for_leader_epoch),
    keys.DESCRIBE_CONFIGS: Entry(range(1, 5), configs.describe_configs),
    keys.ALTER_CONFIGS: Entry(range(3), configs.alter_configs),
    keys.ALTER_REPLICA_LOG_DIRS: Entry(range(1, 3), cluster.alter_replica_log_dirs),
    keys.DESCRIBE_LOG_DIRS: Entry(range(1, 6), cluster.describe_log_dirs),
    keys.CREATE_PARTITIONS: Entry(range(4), topics.create_partitions),
    keys.DELETE_GROUPS: Entry(range(4), groups.ask),
    keys.ELECT_LEADERS: Entry(range(3), cluster.elect_leaders),
    keys.INCREMENTAL_ALTER_CONFIGS: Entry(range(2), configs.incremental_alter_configs),
    keys.ALTER_PARTITION_REASSIGNMENTS: Entry(range(2), cluster.alter_partition_reassignments),
    keys.LIST_PARTITION_REASSIGNMENTS: Entry(range(1), cluster.list_partition_reassignments),
    keys.DESCRIBE_QUORUM: Entry(range(3), cluster.describe_quorum),
    keys.UPDATE_FEATURES: Entry(range(3), cluster.update_features, note="levels can only be raised"),
    keys.DESCRIBE_CLUSTER: Entry(range(3), cluster.describe_cluster),
    keys.DESCRIBE_PRODUCERS: Entry(range(1), producers.describe_producers),
    keys.UNREGISTER_BROKER: Entry(range(1), cluster.unregister_broker),
    keys.ADD_RAFT_VOTER: Entry(range(2), cluster.add_raft_voter, note="there is one voter"),
    keys.REMOVE_RAFT_VOTER: Entry(range(1), cluster.remove_raft_voter, note="there is one voter"),
    keys.UNREGISTER_CONTROLLER: Entry(range(1), cluster.unregister_controller, note="there is one controller"),
    keys.CONSUMER_GROUP_HEARTBEAT: Entry(range(2), groups.ask),
    keys.CONSUMER_GROUP_DESCRIBE: Entry(range(2), groups.describe_groups),
    keys.SHARE_GROUP_HEARTBEAT: Entry(range(1, 2), groups.ask),
    keys.SHARE_GROUP_DESCRIBE: Entry(range(1, 2), groups.describe_groups),
    keys.SHARE_FETCH: Entry(range(1, 3), share.share_fetch),
    keys.SHARE_ACKNOWLEDGE: Entry(range(1, 3), share.share_acknowledge),
    keys.INITIALIZE_SHARE_GROUP_STATE: Entry(range(1), groups.ask),
    keys.READ_SHARE_GROUP_STATE: Entry(range(1), groups.ask),
    keys.WRITE_SHARE_GROUP_STATE: Entry(range(2), groups.ask),
    keys.DELETE_SHARE_GROUP_STATE: Entry(range(1), groups.ask),
    keys.READ_SHARE_GROUP_STATE_SUMMARY: Entry(range(2), groups.ask),
    keys.DESCRIBE_SHARE_GROUP_OFFSETS: Entry(range(2), share_offsets.describe_share_group_offsets),
    keys.ALTER_SHARE_GROUP_OFFSETS: Entry(range(1), groups.ask),
    keys.DELETE_SHARE_GROUP_OFFSETS: Entry(range(1), groups.ask),
    keys.STREAMS_GROUP_HEARTBEAT: Entry(range(2), streams.streams_group_heartbeat),
    keys.STREAMS_GROUP_DESCRIBE: Entry(range(2), groups.describe_groups, note="without descriptions of topologies"),
    keys.GET_TELEMETRY_SUBSCRIPTIONS: Entry(range(1), cluster.get_telemetry_subscriptions, advertised=False),
    keys.PUSH_TELEMETRY: Entry(range(1), cluster.push_telemetry, advertised=False),
    keys.SASL_HANDSHAKE: Entry(range(2), users.sasl_handshake),
    keys.SASL_AUTHENTICATE: Entry(range(3), users.sasl_authenticate),
    keys.DESCRIBE_ACLS: Entry(range(1, 4), acls.describe_acls),
    keys.CREATE_ACLS: Entry(range(1, 4), acls.create_acls),
    keys.DELETE_ACLS: Entry(range(1, 4), acls.delete_acls),
    keys.CREATE_DELEGATION_TOKEN: Entry(range(1, 4), tokens.create_delegation_token),
    keys.RENEW_DELEGATION_TOKEN: Entry(range(1, 3), tokens.renew_delegation_token),
    keys.EXPIRE_DELEGATION_TOKEN: Entry(range(1, 3), tokens.expire_delegation_token),
    keys.DESCRIBE_DELEGATION_TOKEN: Entry(range(1, 4), tokens.describe_delegation_token),
    keys.DESCRIBE_CLIENT_QUOTAS: Entry(range(2), users.describe_client_quotas),
    keys.ALTER_CLIENT_QUOTAS: Entry(range(2), users.alter_client_quotas),
    keys.DESCRIBE_USER_SCRAM_CREDENTIALS: Entry(range(1), users.describe_user_scram_credentials),
    keys.ALTER_USER_SCRAM_CREDENTIALS: Entry(range(1), users.alter_user_scram_credentials),
    keys.LIST_CONFIG_RESOURCES: Entry(range(2), configs.list_config_resources),
    keys.DESCRIBE_TOPIC_PARTITIONS: Entry(range(1), metadata.describe_topic_partitions),
}
"""By API key. It has only complete APIs."""

READ: Final[Mapping[int, range]] = {key: entry.versions for key, entry in TABLE.items()}
"""The versions that the broker reads."""

OLD: Final[Mapping[int, range]] = {
    key: range(versions.stop) if key <= keys.DESCRIBE_TOPIC_PARTITIONS else versions for key, versions in READ.items()
}
"""The versions that it reads for old clients: Apache Kafka 3.9 has all versions from 0 on, 4.0 removed the oldest."""

ADVERTISED: Final[Mapping[int, range]] = {
    key: entry.versions if entry.first is None else range(entry.first, entry.versions.stop)
    for key, entry in TABLE.items()
    if entry.advertised
}
"""The answer of ApiVersions."""

OLD_ADVERTISED: Final[Mapping[int, range]] = {key: OLD[key] for key in ADVERTISED}
"""Its answer when old clients are served."""


def table_rows() -> list[tuple[str, str, str]]:
    """Return the table for the docs: name, versions, limitations."""
    return [
        (APIS[key].name, f"{entry.versions.start}–{entry.versions.stop - 1}", entry.note)
        for key, entry in sorted(TABLE.items())
    ]
