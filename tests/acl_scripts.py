"""Requests of users with one right each, to Apache Kafka with its StandardAuthorizer and to the embedded broker.

`tests/data/broker/acls.json` has Kafka 4.4.0's answers, by request and answer: the users that get it. It is written by
``python -m tests.acl_scripts``, which starts a broker with a listener with SASL and the super user ``admin``, or
``python -m tests.acl_scripts HOST:PORT`` at one that runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import kafkacodec as kc
from kafkacodec.protocol.terms import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES
from tests.sasl_scripts import Talk, scram

GOLDEN = Path(__file__).parent / "data" / "broker" / "acls.json"
ADMIN = ("admin", "admin-secret")
MECHANISM = "SCRAM-SHA-256"
TOPIC, OTHER = "acl-t", "other-t"  # users have rights to what begins with acl-
BATCH = kc.encode([(b"k", b"v")])
MEMBER = uuid.UUID(int=8)  # of a share group
SHORT_ID = "AAAAAAAAAAAAAAAAAAAABw"  # of a topic that is not there

RIGHTS = {
    "topic": ("read", "write", "create", "delete", "alter", "describe", "describe_configs", "alter_configs", "all"),
    "group": ("read", "delete", "describe", "describe_configs", "alter_configs", "all"),
    "cluster": (
        "create", "alter", "describe", "cluster_action", "describe_configs", "alter_configs", "idempotent_write", "all",
    ),
    "transactional_id": ("write", "describe", "all"),
}  # fmt: skip
TOGETHER = {
    "reads": [("topic", "read"), ("group", "read")],
    "writes": [("topic", "write"), ("transactional_id", "write")],
    "describes": [("topic", "describe"), ("group", "describe"), ("transactional_id", "describe")],
    "moves": [("topic", "read"), ("group", "read"), ("topic", "write"), ("transactional_id", "write")],
}


class Rule(NamedTuple):
    """An access control entry."""

    kind: str
    operation: str
    name: str = "acl-"
    pattern: str = "prefixed"
    permission: str = "allow"
    host: str = "*"


EXACT = {
    "denied": [Rule("topic", "all", "*", "literal"), Rule("topic", "read", TOPIC, "literal", "deny")],
    "denied-prefix": [Rule("topic", "all", "*", "literal"), Rule("topic", "describe", permission="deny")],
    "denied-all": [Rule("topic", "read", TOPIC, "literal"), Rule("topic", "all", "*", "literal", "deny")],
    "denied-elsewhere": [Rule("topic", "all"), Rule("topic", "all", permission="deny", host="10.0.0.1")],
    "here": [Rule("topic", "read", host="127.0.0.1")],
    "elsewhere": [Rule("topic", "read", host="10.0.0.1")],
    "subnet": [Rule("topic", "read", host="127.0.0.0/8"), Rule("topic", "write", host="10.0.0.0/8")],
    "narrow-subnet": [Rule("topic", "read", host="127.0.0.2/31"), Rule("topic", "write", host="1.2.3.4/0")],
    "six-subnet": [Rule("topic", "read", host="::/0"), Rule("topic", "write", host="::1/128")],
    "denied-subnet": [Rule("topic", "all"), Rule("topic", "write", permission="deny", host="127.0.0.1/08")],
    "writes-but-one": [Rule("topic", "write", TOPIC), Rule("topic", "write", TOPIC, "literal", "deny")],
    "writes-all-but-some": [Rule("topic", "write", "*", "literal"), Rule("topic", "write", "*", permission="deny")],
    "writes-below": [Rule("topic", "write", TOPIC), Rule("topic", "write", "acl", permission="deny")],
    "writes-above": [Rule("topic", "write", "acl"), Rule("topic", "write", TOPIC, permission="deny")],
    "writes-none": [Rule("topic", "write", "*"), Rule("topic", "write", "*", "literal", "deny")],
    "literal": [Rule("topic", "read", "acl-", "literal"), Rule("topic", "write", TOPIC, "literal")],
    "longer": [Rule("topic", "all", f"{TOPIC}x"), Rule("topic", "describe", f"{TOPIC}", "literal")],
    "creator": [Rule("topic", "create", "new", "literal"), Rule("topic", "describe_configs", "new", "literal")],
    "creator-of-all": [Rule("cluster", "create", "kafka-cluster", "literal"), Rule("topic", "describe_configs")],
}

HOSTS = (
    "127.0.0.1/8", "127.0.0.0/33", "127.0.0.0/-1", "0.0.0.0/0", "127.0.0.0/", "/8", "localhost/8", "127.0.0.0/08",
    "127.0.0.0/8 ", "127/8", "127.0.0.0/8/8", "::1/128", "0::0/0", "::1/129", "[::1]/128", "::ffff:127.0.0.0/104",
    "::ffff:0:0/96", "::127.0.0.1/128", "256.0.0.0/8", "*/8", "127.0.0.01", "127.0.0.0/255.0.0.0", "127.0.0.0\\8", "/",
    "::1/0128", "[::1/128", "::1/", "1::2::3/8", "12345::/8",
)  # fmt: skip


def users() -> dict[str, list[Rule]]:
    """The rights of each user."""
    found: dict[str, list[Rule]] = {"nobody": []}
    for kind, operations in RIGHTS.items():
        found |= {f"{kind}-{operation}": [rule(kind, operation)] for operation in operations}
    return {**found, **{user: [rule(*one) for one in rights] for user, rights in TOGETHER.items()}, **EXACT}


def rule(kind: str, operation: str) -> Rule:
    """The rule that allows an operation."""
    name, pattern = ("kafka-cluster", "literal") if kind == "cluster" else ("acl-", "prefixed")
    return Rule(kind, operation, name, pattern)


def rows(**fields: Any) -> list[dict[str, Any]]:
    """A row for a topic with rights and one without."""
    return [{"name": name, **fields} for name in (TOPIC, OTHER)]


def requests() -> dict[str, tuple[str, int, Any]]:
    """By name: API, version, and fields, or a function that makes them of the topics' ids."""
    nobody = uuid.UUID(int=7)
    commit = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
    transaction = {"transactional_id": "acl-x", "producer_id": 5, "producer_epoch": 0}
    topic_configs = [{"resource_type": 2, "resource_name": name} for name in (TOPIC, OTHER)]
    group_config = {"resource_type": 32, "resource_name": "acl-g"}
    broker = {"resource_type": 4, "resource_name": "1"}
    altered = {"configs": [{"name": "retention.ms", "value": "1000"}]}
    of_broker = {"configs": [{"name": "log.cleaner.threads", "value": "1"}]}
    member = {"group_id": "acl-g", "generation_id": 1, "member_id": "m"}
    creation = {"resource_type": 2, "resource_name": "x", "resource_pattern_type": 3, "principal": "User:x",
                "host": "*", "operation": 3, "permission_type": 3}  # fmt: skip
    nothing = {"resource_type_filter": 2, "resource_name_filter": "none", "pattern_type_filter": 3, "operation": 1,
               "permission_type": 1}  # fmt: skip
    produced = [{"name": name, "partition_data": [{"index": 0, "records": BATCH}]} for name in (TOPIC, OTHER)]
    fetched = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]
    new = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("acl-new", "new")]
    heartbeat = {"group_id": "acl-k", "member_id": "", "member_epoch": 0, "rebalance_timeout_ms": 1000}
    return {
        "produce": ("Produce", 9, {"topic_data": produced, "acks": -1, "timeout_ms": 5000}),
        "produce-transaction": (
            "Produce", 9, {"topic_data": produced, "acks": -1, "timeout_ms": 5000, "transactional_id": "acl-x"}
        ),
        "produce-other-transaction": (
            "Produce", 9, {"topic_data": produced, "acks": -1, "timeout_ms": 5000, "transactional_id": "x"}
        ),
        "fetch": ("Fetch", 12, {"topics": [{"topic": name, "partitions": fetched} for name in (TOPIC, OTHER)],
                                "session_epoch": -1, "max_bytes": 1000}),
        "fetch-replica": ("Fetch", 12, {"topics": [{"topic": TOPIC, "partitions": fetched}], "session_epoch": -1,
                                        "max_bytes": 1000, "replica_id": 1}),
        "list-offsets": ("ListOffsets", 7, {"replica_id": -1, "topics": rows(partitions=[{"timestamp": -2}])}),
        "metadata": ("Metadata", 9, {"topics": [*rows(), {"name": "acl-missing"}, {"name": "missing"}],
                                     "include_topic_authorized_operations": True, "allow_auto_topic_creation": False,
                                     "include_cluster_authorized_operations": True}),
        "metadata-all": ("Metadata", 12, {"topics": None, "include_topic_authorized_operations": True}),
        "metadata-ids": ("Metadata", 12, lambda ids: {"topics": [{"name": None, "topic_id": i} for i in ids.values()]}),
        "produce-ids": ("Produce", 13, lambda ids: {
            "topic_data": [{"topic_id": i, "partition_data": [{"index": 0, "records": BATCH}]} for i in ids.values()],
            "acks": -1, "timeout_ms": 5000}),
        "fetch-ids": ("Fetch", 16, lambda ids: {
            "topics": [{"topic_id": i, "partitions": fetched} for i in ids.values()], "session_epoch": -1,
            "max_bytes": 1000}),
        "commit-ids": ("OffsetCommit", 10, lambda ids: {
            "group_id": "acl-g", "topics": [{"topic_id": i, "partitions": [commit]} for i in ids.values()]}),
        "fetch-offsets-ids": ("OffsetFetch", 10, lambda ids: {"groups": [{
            "group_id": "acl-g", "topics": [{"topic_id": i, "partition_indexes": [0]} for i in ids.values()]}]}),
        "metadata-unknown-id": ("Metadata", 12, {"topics": [{"name": None, "topic_id": nobody}]}),
        "topic-partitions": ("DescribeTopicPartitions", 0, {"topics": rows(), "response_partition_limit": 9}),
        "topic-partitions-all": ("DescribeTopicPartitions", 0, {"topics": [], "response_partition_limit": 9}),
        "find-group": ("FindCoordinator", 3, {"key": "acl-g", "key_type": 0}),
        "find-transaction": ("FindCoordinator", 3, {"key": "acl-x", "key_type": 1}),
        "find-groups": ("FindCoordinator", 4, {"coordinator_keys": ["acl-g", "g"], "key_type": 0}),
        "commit": ("OffsetCommit", 8, {"group_id": "acl-g", "topics": rows(partitions=[commit])}),
        "fetch-offsets": ("OffsetFetch", 7, {"group_id": "acl-g", "topics": rows(partition_indexes=[0])}),
        "fetch-offsets-all": ("OffsetFetch", 7, {"group_id": "acl-g", "topics": None}),
        "fetch-offsets-groups": (
            "OffsetFetch", 8, {"groups": [{"group_id": "acl-g", "topics": None},
                                          {"group_id": "g", "topics": rows(partition_indexes=[0])}]}),
        "offset-delete": (
            "OffsetDelete", 0, {"group_id": "acl-g", "topics": rows(partitions=[{"partition_index": 1}])}
        ),
        "join": ("JoinGroup", 5, {"group_id": "acl-j", "session_timeout_ms": 1, "protocol_type": "consumer",
                                  "protocols": [{"name": "range"}]}),
        "sync": ("SyncGroup", 3, member),
        "heartbeat": ("Heartbeat", 3, member),
        "leave": ("LeaveGroup", 2, {"group_id": "acl-g", "member_id": "m"}),
        "leave-several": ("LeaveGroup", 3, {"group_id": "acl-g", "members": [{"member_id": "m"}]}),
        "describe-groups": (
            "DescribeGroups", 5, {"groups": ["acl-g", "g"], "include_authorized_operations": True}
        ),
        "list-groups": ("ListGroups", 4, {}),
        "delete-groups": ("DeleteGroups", 2, {"groups_names": ["acl-none", "none"]}),
        "consumer-heartbeat": (
            "ConsumerGroupHeartbeat", 0, {**heartbeat, "subscribed_topic_names": [TOPIC, OTHER], "member_epoch": 5}
        ),
        "consumer-heartbeat-one": (
            "ConsumerGroupHeartbeat", 0, {**heartbeat, "subscribed_topic_names": [TOPIC], "member_epoch": 5}
        ),
        "consumer-describe": (
            "ConsumerGroupDescribe", 0, {"group_ids": ["acl-none", "none"], "include_authorized_operations": True}
        ),
        "create-topics": ("CreateTopics", 5, {"topics": new, "timeout_ms": 5000, "validate_only": True}),
        "delete-topics": (
            "DeleteTopics", 5, {"topic_names": ["acl-missing", "missing"], "timeout_ms": 5000}
        ),
        "delete-topics-id": ("DeleteTopics", 6, {"topics": [{"name": None, "topic_id": nobody}], "timeout_ms": 5000}),
        "delete-records": ("DeleteRecords", 2, {"topics": rows(partitions=[{"offset": 0}]), "timeout_ms": 5000}),
        "create-partitions": (
            "CreatePartitions", 3, {"topics": rows(count=5), "validate_only": True, "timeout_ms": 5000}
        ),
        "init-producer": ("InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 1000}),
        "init-transaction": ("InitProducerId", 4, {"transactional_id": "acl-x", "transaction_timeout_ms": 0}),
        "leader-epochs": (
            "OffsetForLeaderEpoch", 4,
            {"replica_id": -1, "topics": [{"topic": n, "partitions": [{"leader_epoch": 0}]} for n in (TOPIC, OTHER)]}),
        "add-partitions": (
            "AddPartitionsToTxn", 3,
            {**{f"v3_and_below_{key}": value for key, value in transaction.items()},
             "v3_and_below_topics": rows(partitions=[0])}),
        "add-partitions-one": (
            "AddPartitionsToTxn", 3,
            {**{f"v3_and_below_{key}": value for key, value in transaction.items()},
             "v3_and_below_topics": [{"name": TOPIC, "partitions": [0]}]}),
        "add-partitions-batch": (
            "AddPartitionsToTxn", 4, {"transactions": [{**transaction, "topics": rows(partitions=[0])}]}),
        "add-offsets": ("AddOffsetsToTxn", 3, {**transaction, "group_id": "acl-g"}),
        "end-transaction": ("EndTxn", 3, {**transaction, "committed": True}),
        "commit-in-transaction": (
            "TxnOffsetCommit", 3, {**transaction, "group_id": "acl-g", "topics": rows(partitions=[commit])}
        ),
        "markers": ("WriteTxnMarkers", 1, {"markers": []}),
        "describe-transactions": ("DescribeTransactions", 0, {"transactional_ids": ["acl-none", "none"]}),
        "list-transactions": ("ListTransactions", 0, {}),
        "describe-producers": ("DescribeProducers", 0, {"topics": rows(partition_indexes=[5])}),
        "describe-acls": ("DescribeAcls", 2, nothing),
        "create-acls": ("CreateAcls", 2, {"creations": [creation]}),
        "describe-acls-by-match": ("DescribeAcls", 2, {**nothing, "resource_name_filter": "acl-t",
                                                       "pattern_type_filter": 2, "operation": 8}),
        "describe-acls-by-name": ("DescribeAcls", 2, {**nothing, "resource_name_filter": "acl-t"}),
        "describe-acls-by-principal": ("DescribeAcls", 2, {**nothing, "resource_name_filter": None,
                                       "pattern_type_filter": 1, "principal_filter": "User:denied"}),
        "create-acls-wrong": ("CreateAcls", 2, {"creations": [{**creation, **change} for change in (
            {"resource_type": 1}, {"resource_type": 4}, {"resource_name": ""}, {"resource_pattern_type": 1},
            {"resource_pattern_type": 2}, {"operation": 1}, {"operation": 12}, {"permission_type": 1},
            {"principal": "x"}, {"principal": ""}, {"host": ""})]}),
        **{f"create-acls-at {host}": ("CreateAcls", 2, {"creations": [{**creation, "host": host}]}) for host in HOSTS},
        "delete-acls-unknown": ("DeleteAcls", 2, {"filters": [{**nothing, **change} for change in (
            {"resource_type_filter": 8}, {"pattern_type_filter": 5}, {"operation": 99}, {"permission_type": 4},
            {"resource_type_filter": 99, "operation": 99}, {"operation": 16})]}),
        "describe-acls-unknown": ("DescribeAcls", 2, {**nothing, "operation": 99}),
        "delete-acls-made": ("DeleteAcls", 2, {"filters": [{**nothing, "resource_name_filter": "x"}]}),
        "delete-acls": ("DeleteAcls", 2, {"filters": [nothing]}),
        "describe-configs": ("DescribeConfigs", 4, {"resources": [
            {**resource, "configuration_keys": ["retention.ms", "node.id", "consumer.session.timeout.ms"]}
            for resource in (*topic_configs, broker, group_config)]}),
        "alter-configs": ("AlterConfigs", 1, {
            "resources": [*({**resource, **altered} for resource in topic_configs), {**broker, **of_broker}],
            "validate_only": True}),
        "incremental-alter-configs": ("IncrementalAlterConfigs", 1, {
            "resources": [*({**resource, **altered} for resource in topic_configs), {**broker, **of_broker},
                          {**group_config, "configs": [{"name": "consumer.session.timeout.ms", "value": "50000"}]}],
            "validate_only": True}),
        "list-config-resources": ("ListConfigResources", 1, {"resource_types": [16]}),
        "log-dirs": ("DescribeLogDirs", 3, {"topics": [{"topic": TOPIC, "partitions": [0]}]}),
        "alter-log-dirs": ("AlterReplicaLogDirs", 2, {
            "dirs": [{"path": "/none", "topics": [{"name": TOPIC, "partitions": [0]}]}]}),
        "elect": ("ElectLeaders", 2, {"topic_partitions": [{"topic": TOPIC, "partitions": [0]}], "timeout_ms": 5000}),
        "reassign": ("AlterPartitionReassignments", 0, {
            "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": None}]}], "timeout_ms": 5000}),
        "list-reassignments": ("ListPartitionReassignments", 0, {"topics": None, "timeout_ms": 5000}),
        "describe-quotas": ("DescribeClientQuotas", 1, {"components": []}),
        "alter-quotas": ("AlterClientQuotas", 1, {"entries": [{
            "entity": [{"entity_type": "user", "entity_name": "u"}],
            "ops": [{"key": "producer_byte_rate", "value": 1000.0}]}], "validate_only": True}),
        "describe-scram": ("DescribeUserScramCredentials", 0, {"users": [{"name": "none"}]}),
        "alter-scram": ("AlterUserScramCredentials", 0, {"deletions": [{"name": "none", "mechanism": 1}]}),
        "cluster": ("DescribeCluster", 0, {"include_cluster_authorized_operations": True}),
        "quorum": ("DescribeQuorum", 0, {"topics": [
            {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}),
        "features": ("UpdateFeatures", 1, {"feature_updates": [
            {"feature": "none", "max_version_level": 1, "upgrade_type": 1}], "validate_only": True,
            "timeout_ms": 5000}),
        "unregister": ("UnregisterBroker", 0, {"broker_id": 99}),
        **transactional_requests(),
        **share_requests(),
        **streams_requests(),
    }  # fmt: skip


def transactional_requests() -> dict[str, tuple[str, int, Any]]:
    """Batches of a producer that nobody has made, which add their partitions to a transaction since version 12."""
    batch = kc.encode([(b"k", b"v")], producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    rest = {"acks": -1, "timeout_ms": 5000}
    found: dict[str, tuple[str, int, Any]] = {}
    for version in (11, 12):
        for name, transaction in (("", "acl-x"), ("-other", "x"), ("-none", None)):
            topics = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]} for topic in (TOPIC, OTHER)]
            fields = {"topic_data": topics, "transactional_id": transaction, **rest}
            found[f"produce-transactional{name}-v{version}"] = ("Produce", version, fields)
    return found


def streams_requests() -> dict[str, tuple[str, int, Any]]:
    """Requests of streams groups that are not there; only the first heartbeat of a member may have a topology."""
    heartbeat = {"group_id": "acl-w", "member_id": "m", "member_epoch": 5}

    def part(*sources: str, changelogs: tuple[str, ...] = ()) -> dict[str, Any]:
        rows = [{"name": name, "topic_configs": []} for name in changelogs]
        empty = ("source_topic_regex", "repartition_sink_topics", "repartition_source_topics", "copartition_groups")
        fields = {"subtopology_id": "0", "source_topics": list(sources), "state_changelog_topics": rows}
        return {"topology": {"epoch": 0, "subtopologies": [{**fields, **{name: [] for name in empty}}]}}

    return {
        "streams-heartbeat": ("StreamsGroupHeartbeat", 1, heartbeat),
        "streams-heartbeat-topic": ("StreamsGroupHeartbeat", 1, {**heartbeat, **part(TOPIC)}),
        "streams-heartbeat-topics": ("StreamsGroupHeartbeat", 1, {**heartbeat, **part(TOPIC, OTHER)}),
        "streams-heartbeat-changelog": (
            "StreamsGroupHeartbeat", 1, {**heartbeat, **part(TOPIC, changelogs=("other-log",))}
        ),
        "streams-describe": (
            "StreamsGroupDescribe", 1, {"group_ids": ["acl-none", "none"], "include_authorized_operations": True}
        ),
    }  # fmt: skip


def share_requests() -> dict[str, tuple[str, int, Any]]:
    """Requests of share groups and of their coordinator. Groups, sessions and partitions are not there."""
    heartbeat = {"group_id": "acl-s", "member_id": "m", "member_epoch": 5}
    names = [{"topic_name": name, "partitions": [0]} for name in (TOPIC, OTHER)]
    starts = [{"topic_name": n, "partitions": [{"partition_index": 0, "start_offset": 0}]} for n in (TOPIC, OTHER)]

    def session(epoch: int) -> Any:
        def fields(ids: dict[str, Any]) -> dict[str, Any]:
            rows = [{"topic_id": ids[name], "partitions": [{"partition_index": 99}]} for name in (TOPIC, OTHER)]
            return {"group_id": "acl-s", "member_id": str(MEMBER), "share_session_epoch": epoch, "topics": rows}

        return fields

    def fetch(ids: dict[str, Any]) -> dict[str, Any]:
        return {**session(0)(ids), "max_records": 10, "batch_size": 10, "max_bytes": 1000}

    def state(**more: Any) -> Any:
        partition = {"partition": 0, **more}
        return lambda ids: {"group_id": "acl-s", "topics": [{"topic_id": ids[TOPIC], "partitions": [partition]}]}

    group = [{"group_id": "acl-none", "topics": names}, {"group_id": "none", "topics": None}]
    return {
        "share-heartbeat": ("ShareGroupHeartbeat", 1, {**heartbeat, "subscribed_topic_names": [TOPIC, OTHER]}),
        "share-heartbeat-one": ("ShareGroupHeartbeat", 1, {**heartbeat, "subscribed_topic_names": [TOPIC]}),
        "share-heartbeat-unchanged": ("ShareGroupHeartbeat", 1, heartbeat),
        "share-describe": (
            "ShareGroupDescribe", 1, {"group_ids": ["acl-none", "none"], "include_authorized_operations": True}
        ),
        "share-fetch": ("ShareFetch", 1, fetch),
        "share-fetch-unknown-session": ("ShareFetch", 1, session(5)),
        "share-acknowledge": ("ShareAcknowledge", 1, session(1)),
        "share-offsets": ("DescribeShareGroupOffsets", 0, {"groups": group}),
        "share-offsets-alter": ("AlterShareGroupOffsets", 0, {"group_id": "acl-none", "topics": starts}),
        "share-offsets-alter-other": ("AlterShareGroupOffsets", 0, {"group_id": "none", "topics": starts}),
        "share-offsets-delete": (
            "DeleteShareGroupOffsets", 0,
            {"group_id": "acl-none", "topics": [{"topic_name": TOPIC}, {"topic_name": OTHER}]},
        ),
        "find-share": ("FindCoordinator", 6, {"key_type": 2, "coordinator_keys": [f"acl-s:{SHORT_ID}:0"]}),
        "share-state-initialize": ("InitializeShareGroupState", 0, state(state_epoch=1, start_offset=0)),
        "share-state-read": ("ReadShareGroupState", 0, state()),
        "share-state-summary": ("ReadShareGroupStateSummary", 0, state()),
        "share-state-write": ("WriteShareGroupState", 0, state(state_epoch=1, start_offset=-1)),
        "share-state-delete": ("DeleteShareGroupState", 0, state()),
    }  # fmt: skip


HIDDEN = frozenset((
    "throttle_time_ms", "error_message", "brokers", "cluster_id", "topic_id", "nodes", "current_voters", "observers",
    "producer_id", "base_offset", "log_start_offset", "high_watermark", "last_stable_offset", "offset", "end_offset",
    "records", "leader_epoch", "offset_lag", "host", "port", "node_id", "message", "member_id", "last_offset",
    "low_watermark", "controller_id", "high_watermark", "leader_id", "log_append_time_ms", "committed_offset",
    "log_dir", "total_bytes", "usable_bytes", "partition_size", "documentation", "synonyms", "timestamp",
    "config_source",
    "is_cordoned", "voters", "finalized_features", "committed_leader_epoch", "isr_nodes", "replica_nodes", "replicas",
    "assignment_epoch", "group_epoch", "is_sensitive", "config_type", "read_only", "is_default",
))  # fmt: skip


def shown(value: Any) -> Any:
    """What of an answer is a matter of rights."""
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items() if key not in HIDDEN and item != []}
    if isinstance(value, list):
        kept = [row for row in value if not _is_foreign(row)]
        return sorted((shown(row) for row in kept), key=lambda row: json.dumps(row, default=str))
    return value


def _is_foreign(row: Any) -> bool:
    """A topic or a group that no request is about: brokers have more of them."""
    name = row.get("name") or row.get("group_id") or "" if isinstance(row, dict) else ""
    return isinstance(name, str) and name.startswith("__")


class Client(Talk):
    """A user's connection."""

    def __init__(self, server: str, user: str, password: str) -> None:
        super().__init__({"SASL": server})
        exchange = scram(MECHANISM, user, password)
        if user == ADMIN[0]:
            assert not self.plain(user, password).error_code
            return
        self.handshake(MECHANISM)
        answer = self.token(exchange.first())
        assert not answer.error_code, answer
        assert not self.token(exchange.step(bytes(answer.auth_bytes)) or b"").error_code

    def answer(self, api: str, version: int, **fields: Any) -> Any:
        """What is answered, as plain values; "closed" if nothing is."""
        found = self.ask(api, version, **fields)
        return "closed" if found is None else found.to_dict()


def prepare(server: str) -> None:
    """Make topics, a group, users and their rights."""
    from kafkacodec.net.sasl.scram_keys import salted_password

    admin = Client(server, *ADMIN)
    topics = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in (TOPIC, OTHER)]
    admin.answer("CreateTopics", 5, topics=topics, timeout_ms=20_000)
    salt = b"salt of them all"
    made = [
        {"name": user, "mechanism": 1, "iterations": 4096, "salt": salt,
         "salted_password": salted_password("sha256", user, salt, 4096)} for user in users()
    ]  # fmt: skip
    admin.answer("AlterUserScramCredentials", 0, deletions=[], upsertions=made)
    creations = [
        {"resource_type": RESOURCES[one.kind], "resource_name": one.name, "principal": f"User:{user}",
         "resource_pattern_type": PATTERNS[one.pattern], "host": one.host, "operation": OPERATIONS[one.operation],
         "permission_type": PERMISSIONS[one.permission]}
        for user, rights in users().items() for one in rights
    ]  # fmt: skip
    answer = admin.answer("CreateAcls", 3, creations=creations)
    assert not any(row["error_code"] for row in answer["results"]), answer
    found = ("commit", "init-transaction", "find-group", "find-transaction", "find-share", "init-producer", "commit")
    for name in found:
        api, version, fields = requests()[name]
        for _ in range(100):
            answer = admin.answer(api, version, **fields)
            if '"error_code": 1' not in json.dumps(shown(answer)):
                break
            time.sleep(0.1)
    for _ in range(100):  # until the rights hold
        client = Client(server, "topic-read", "topic-read")
        answer = client.answer("Metadata", 9, topics=[{"name": TOPIC}])
        client.close()
        if not answer["topics"][0]["error_code"]:
            break
        time.sleep(0.1)
    admin.close()


def answers(server: str) -> dict[str, list[Any]]:
    """By request: pairs of an answer and the users who get it, after `prepare`."""
    found: dict[str, dict[str, list[str]]] = {}
    admin = Client(server, *ADMIN)
    named = admin.answer("Metadata", 12, topics=rows())["topics"]
    admin.close()
    ids = {row["name"]: row["topic_id"] for row in named}
    for user in [ADMIN[0], *users()]:
        password = ADMIN[1] if user == ADMIN[0] else user
        client = Client(server, user, password)
        for name, (api, version, fields) in requests().items():
            answer = client.answer(api, version, **(fields(ids) if callable(fields) else fields))
            if answer == "closed":
                client.close()
                client = Client(server, user, password)
            text = json.dumps(shown(answer), default=str, sort_keys=True)
            found.setdefault(name, {}).setdefault(text, []).append(user)
        client.close()
    return {name: [[json.loads(text), who] for text, who in by.items()] for name, by in found.items()}


def main(server: str) -> None:
    """Write the golden file."""
    prepare(server)
    GOLDEN.write_text(json.dumps(answers(server), indent=None, separators=(",", ":")).replace('],["', '],\n["') + "\n")


def main_of_a_new_broker() -> None:
    """Write the golden file, with a broker of the newest release that is started for it."""
    from tests.integration.secure_kafka import AuthorizingBroker

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        broker = AuthorizingBroker(Path(directory), ADMIN)
        broker.start()
        try:
            main(broker.sasl)
        finally:
            broker.stop()


if __name__ == "__main__":
    main(sys.argv[1]) if sys.argv[1:] else main_of_a_new_broker()
