"""The cluster as a whole: DescribeCluster, FindCoordinator, quorum, elections, reassignments, features, telemetry."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.node import CLUSTER_OPERATIONS, ZERO_UUID
from kafkacodec.broker.state.catalog import FEATURES
from kafkacodec.broker.state.leaders import NO_LEADER, elected, reassigned
from kafkacodec.broker.state.machine import partition_of
from kafkacodec.errors import CODES
from kafkacodec.internal_records import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.net.service import Effect

__all__ = [
    "add_raft_voter",
    "alter_partition_reassignments",
    "alter_replica_log_dirs",
    "describe_cluster",
    "describe_log_dirs",
    "describe_quorum",
    "elect_leaders",
    "find_coordinator",
    "get_telemetry_subscriptions",
    "list_partition_reassignments",
    "push_telemetry",
    "remove_raft_voter",
    "unregister_broker",
    "unregister_controller",
    "update_features",
]

_BROKERS, _CONTROLLERS = 1, 2
_WITHOUT_RESULTS = 2  # of UpdateFeatures
_OF_QUORUM: Final = "kraft.version"
_SEVERAL_KEYS = 4
_SHARE, _SHARE_FROM = 2, 6
_SHARE_KEY: Final = re.compile(r".+:[A-Za-z0-9_-]{22}:\d{1,9}", re.DOTALL)
_COORDINATORS: Final = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE, _SHARE: SHARE_GROUP_STATE}


def describe_cluster(node: Node, request: Request) -> Any:
    """The brokers (KIP-700). v1: brokers or controllers (KIP-919). v2: fenced brokers (KIP-1073)."""
    message = request.message
    response = messages.DescribeClusterResponse()
    if message.endpoint_type != _BROKERS:
        mismatch = message.endpoint_type == _CONTROLLERS
        response.error_code = errors.MISMATCHED_ENDPOINT_TYPE if mismatch else errors.UNSUPPORTED_ENDPOINT_TYPE
        response.error_message = "this endpoint is a broker's"
        return response
    response.cluster_id, response.controller_id = node.cluster_id, node.brokers.controller
    made = response.DescribeClusterBroker
    away = node.brokers.away if message.include_fenced_brokers else []
    for broker in sorted([*node.brokers.running, *away]):
        host, port = node.brokers.address(broker, request.session)
        response.brokers.append(made(broker_id=broker, host=host, port=port, is_fenced=broker in away))
    if message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def find_coordinator(node: Node, request: Request) -> Any:
    """The broker of a coordinator. v1: of groups or of transactions. v4: several keys. v6: of share groups."""
    kind = request.message.key_type if request.version > 0 else 0
    topic = _COORDINATORS.get(kind) if kind != _SHARE or request.version >= _SHARE_FROM else None
    if topic is None:
        return _unknown_coordinators(request, kind)
    return node.with_topic(topic, lambda: node.reply(request.to, _coordinators(node, request, topic)), request.now)


def _unknown_coordinators(request: Request, kind: int) -> Any:
    response = messages.FindCoordinatorResponse()
    if request.version < _SEVERAL_KEYS:
        response.error_code, response.error_message = errors.INVALID_REQUEST, "unknown type of coordinator"
        response.node_id, response.host, response.port = -1, "", -1
        return response
    text = "" if kind == _SHARE else "unknown type of coordinator"
    for key in request.message.coordinator_keys:
        row = response.Coordinator(key=key, node_id=-1, host="", port=-1)
        row.error_code, row.error_message = errors.INVALID_REQUEST, text
        response.coordinators.append(row)
    return response


def _coordinators(node: Node, request: Request, topic: str) -> Any:
    """Return the leaders of the internal topic's partitions with the state of the keys."""
    version = request.version
    response = messages.FindCoordinatorResponse()
    if version < _SEVERAL_KEYS:
        _fill_coordinator(node, request, response, topic, request.message.key)
        if not response.error_code:
            response.error_message = "NONE" if version > 0 else ""
    for key in request.message.coordinator_keys:
        row = response.Coordinator(key=key)
        _fill_coordinator(node, request, row, topic, key)
        response.coordinators.append(row)
    return response


def _fill_coordinator(node: Node, request: Request, row: Any, topic: str, key: str) -> None:
    if topic == SHARE_GROUP_STATE and not _SHARE_KEY.fullmatch(key):
        row.error_code, row.error_message = errors.INVALID_REQUEST, ""
        row.node_id, row.host, row.port = -1, "", -1
        return
    broker = node.brokers.leader(topic, partition_of(key, node.partitions(topic) or 1))
    row.node_id, row.error_message = broker, ""
    if broker == NO_LEADER:
        row.host, row.port, row.error_code = "", -1, errors.COORDINATOR_NOT_AVAILABLE
    else:
        row.host, row.port = node.brokers.address(broker, request.session)


def describe_quorum(node: Node, request: Request) -> Any:
    """The quorum of controllers, which is this broker (KIP-595, KIP-836, KIP-853)."""
    response = messages.DescribeQuorumResponse()
    host, port = node.address(request.session)
    end = node.topics.metadata_end()
    asked = [(topic.topic_name, [row.partition_index for row in topic.partitions]) for topic in request.message.topics]
    is_quorum = asked == [(CLUSTER_METADATA, [0])]  # no other place may be asked about, too
    for topic in request.message.topics:
        rows = []
        for partition in topic.partitions:
            row = response.PartitionData(partition_index=partition.partition_index, error_message="")
            rows.append(row)
            if not is_quorum:
                row.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
                row.error_message = "there is no quorum for it"
                continue
            voter = response.ReplicaState(
                replica_id=node.id, log_end_offset=end, last_fetch_timestamp=int(request.now),
                last_caught_up_timestamp=int(request.now),
            )  # fmt: skip
            if request.version > 1:
                voter.replica_directory_id = node.catalog.directory_id
                listener = response.Listener(name="CONTROLLER", host=host, port=port)
                response.nodes = [response.Node(node_id=node.id, listeners=[listener])]
            row.leader_id, row.leader_epoch, row.high_watermark, row.current_voters = node.id, 1, end, [voter]
        response.topics.append(response.TopicData(topic_name=topic.topic_name, partitions=rows))
    response.error_message = ""
    return response


def describe_log_dirs(node: Node, request: Request) -> Any:
    """The data directory with the sizes of its partitions (KIP-113)."""
    message = request.message
    response = messages.DescribeLogDirsResponse()
    if message.topics is None:
        wanted: dict[str, list[int] | None] = dict.fromkeys(node.catalog.names())
    else:
        wanted = {}
        for asked in message.topics:
            wanted[asked.topic] = list(dict.fromkeys([*(wanted.get(asked.topic) or ()), *asked.partitions]))
    total, usable = node.topics.room()
    row = response.DescribeLogDirsResult(log_dir=node.topics.path, total_bytes=total, usable_bytes=usable)
    for name, numbers in wanted.items():
        topic = node.catalog.topic(name)
        if topic is None:
            continue
        chosen = range(topic.partitions) if numbers is None else [n for n in numbers if 0 <= n < topic.partitions]
        chosen = [n for n in chosen if node.brokers.has(request.broker, name, n)]
        made = response.DescribeLogDirsTopic(name=name)
        for number in chosen:
            partition = node.topics.partition(name, number)
            size = 0 if partition is None else partition.size
            made.partitions.append(response.DescribeLogDirsPartition(partition_index=number, partition_size=size))
        if made.partitions:
            row.topics.append(made)
    response.results = [row]
    return response


def alter_replica_log_dirs(node: Node, request: Request) -> Any:
    """There is one directory, so that nothing can be moved (KIP-113)."""
    response = messages.AlterReplicaLogDirsResponse()
    topics: dict[str, dict[int, int]] = {}
    for directory in request.message.dirs:
        known = directory.path == node.topics.path
        for topic in directory.topics:
            for number in topic.partitions:
                code = errors.LOG_DIR_NOT_FOUND
                if known:
                    there = node.topics.partition(topic.name, number) is not None
                    code = errors.NONE if there else errors.UNKNOWN_TOPIC_OR_PARTITION
                topics.setdefault(topic.name, {})[number] = code
    made = response.AlterReplicaLogDirPartitionResult
    for name, codes in topics.items():
        rows = [made(partition_index=number, error_code=code) for number, code in codes.items()]
        response.results.append(response.AlterReplicaLogDirTopicResult(topic_name=name, partitions=rows))
    return response


def elect_leaders(node: Node, request: Request) -> Any:
    """Elect the preferred replicas, or any for partitions without a leader (KIP-183, KIP-460)."""
    message = request.message
    response = messages.ElectLeadersResponse()
    known_kind = request.version < 1 or message.election_type in (0, 1)
    if not known_kind and message.topic_partitions != []:
        response.error_code = errors.INVALID_REQUEST
    records: list[bytes] = []
    for name, numbers in _to_elect(node, message):
        made = response.ReplicaElectionResult(topic=name)
        for number in numbers:
            code, record = errors.INVALID_REQUEST, None
            if known_kind:
                code, record = _election(node, name, number, unclean=request.version > 0 and message.election_type == 1)
            if record is not None:
                records.append(record)
            elif message.topic_partitions is None:
                continue  # of all, those are answered that were elected
            text = CODES[code].name if code else None
            made.partition_result.append(
                response.PartitionResult(partition_id=number, error_code=code, error_message=text)
            )
        if made.partition_result or message.topic_partitions is not None:
            response.replica_election_results.append(made)
    parts = [part for made in response.replica_election_results for part in made.partition_result]
    return node.change_rows(records, request, response, parts)


def _to_elect(node: Node, message: Any) -> list[tuple[str, Iterable[int]]]:
    if message.topic_partitions is not None:
        return [(topic.topic, topic.partitions) for topic in message.topic_partitions]
    return [(name, range(node.partitions(name))) for name in node.names()]


def _election(node: Node, name: str, number: int, *, unclean: bool) -> tuple[int, bytes | None]:
    topic = node.catalog.topic(name)
    now = node.catalog.partition(name, number)
    if topic is None or now is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION, None
    leader = node.brokers.leader(name, number)
    if leader != NO_LEADER and (not node.brokers.several or unclean or leader == now["replicas"][0]):
        return errors.ELECTION_NOT_NEEDED, None
    record = elected(node.catalog, topic, number, unclean=unclean, running=node.brokers.running)
    if record is None:
        away = errors.ELIGIBLE_LEADERS_NOT_AVAILABLE if unclean else errors.PREFERRED_LEADER_NOT_AVAILABLE
        return away, None
    return errors.NONE, record


def alter_partition_reassignments(node: Node, request: Request) -> Any:
    """Give partitions other replicas. This completes at once, since all brokers share one log (KIP-455)."""
    message = request.message
    records: list[bytes] = []
    if not message.topics:
        return messages.AlterPartitionReassignmentsResponse(error_message="")
    response = messages.AlterPartitionReassignmentsResponse(error_message=None)
    response.allow_replication_factor_change = message.allow_replication_factor_change
    for topic in message.topics:
        made = response.ReassignableTopicResponse(name=topic.name)
        for asked in topic.partitions:
            code, text = errors.NONE, None
            if node.catalog.partition(topic.name, asked.partition_index) is None:
                code, text = errors.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
            elif asked.replicas is None:
                code = errors.NO_REASSIGNMENT_IN_PROGRESS
            elif not node.brokers.may_be(asked.replicas):
                code, text = errors.INVALID_REPLICA_ASSIGNMENT, f"the brokers are {list(node.brokers.ids)}"
            elif node.brokers.several:
                records += _reassignment(node, topic.name, asked)
            part = response.ReassignablePartitionResponse(
                partition_index=asked.partition_index, error_code=code, error_message=text
            )
            made.partitions.append(part)
        response.responses.append(made)
    parts = [part for made in response.responses for part in made.partitions]
    return node.change_rows(records, request, response, parts)


def _reassignment(node: Node, name: str, asked: Any) -> list[bytes]:
    topic, number = node.catalog.topic(name), asked.partition_index
    if topic is None:
        return []
    return [reassigned(node.catalog, topic, number, list(asked.replicas), node.brokers.running)]


def list_partition_reassignments(node: Node, request: Request) -> Any:
    """None (KIP-455)."""
    return messages.ListPartitionReassignmentsResponse(error_message=None)


def update_features(node: Node, request: Request) -> Any:
    """Check changes of features, and raise their levels (KIP-584, KIP-1022)."""
    message = request.message
    response = messages.UpdateFeaturesResponse
    now = node.catalog.metadata.features
    for update in message.feature_updates:
        wrong = _wrong_level(now, update)
        if wrong is None and not message.validate_only:
            wrong = _cannot_change(now, update)
        if wrong is not None:
            return response(error_code=errors.INVALID_UPDATE_VERSION, error_message=wrong)

    def changed(code: int) -> Effect:
        answer = response(error_code=code, error_message=None)
        if request.version < _WITHOUT_RESULTS:
            made = response.UpdatableFeatureResult
            rows = [made(feature=update.feature, error_message="NONE") for update in message.feature_updates]
            answer.results = [] if code else rows
        return node.reply(request.to, answer)

    raised = [] if message.validate_only else message.feature_updates
    records = [
        node.catalog.feature(update.feature, update.max_version_level)
        for update in raised
        if now.get(update.feature, 0) < update.max_version_level
    ]
    return node.change(records, changed, request.now)


def _cannot_change(now: Any, update: Any) -> str | None:
    level, before = update.max_version_level, now.get(update.feature, 0)
    if level < before:
        return f"{update.feature} is at level {before}; this broker can only raise levels"
    if level > before and update.feature == _OF_QUORUM:
        return f"{update.feature} stays as it is: the quorum cannot be changed"
    return None


def _wrong_level(now: Any, update: Any) -> str | None:
    known = FEATURES.get(update.feature)
    level, before = update.max_version_level, now.get(update.feature, 0)
    if known is None:
        return f"there is no feature {update.feature!r}"
    low, high, _ = known
    if not low <= level <= high:
        return f"{update.feature} has the levels {low} to {high}"
    if update.upgrade_type not in (1, 2, 3):
        return f"{update.upgrade_type} is no type of an upgrade"
    if level < before and update.upgrade_type == 1:
        return f"{update.feature} {level} is a downgrade from {before}"
    return None


def unregister_broker(node: Node, request: Request) -> Any:
    """There is no other broker (KIP-631)."""
    code = errors.BROKER_ID_NOT_REGISTERED
    return messages.UnregisterBrokerResponse(error_code=code, error_message=CODES[code].name)


def add_raft_voter(node: Node, request: Request) -> Any:
    """The quorum is this broker alone (KIP-853)."""
    text = "the quorum cannot be changed"
    return messages.AddRaftVoterResponse(error_code=errors.INVALID_REQUEST, error_message=text)


def remove_raft_voter(node: Node, request: Request) -> Any:
    """The quorum is this broker alone (KIP-853)."""
    text = "the quorum cannot be changed"
    return messages.RemoveRaftVoterResponse(error_code=errors.UNSUPPORTED_VERSION, error_message=text)


def unregister_controller(node: Node, request: Request) -> Any:
    """The only controller is this broker, and active; Apache Kafka asks it to resign before."""
    if request.message.controller_id == node.id:
        text = "the active controller cannot be unregistered"
        return messages.UnregisterControllerResponse(error_code=errors.INVALID_REQUEST, error_message=text)
    code = errors.CONTROLLER_ID_NOT_REGISTERED
    return messages.UnregisterControllerResponse(error_code=code, error_message=CODES[code].name)


def get_telemetry_subscriptions(node: Node, request: Request) -> Any:
    """Answer that the broker wants no metrics (KIP-714)."""
    asked = request.message.client_instance_id
    return messages.GetTelemetrySubscriptionsResponse(
        client_instance_id=uuid.uuid4() if asked == ZERO_UUID else asked,
        subscription_id=1,
        accepted_compression_types=[4, 3, 1, 2],
        push_interval_ms=300_000,
        telemetry_max_bytes=1 << 20,
        delta_temporality=True,
    )


def push_telemetry(node: Node, request: Request) -> Any:
    """Answer that the broker wants no metrics (KIP-714)."""
    return messages.PushTelemetryResponse(error_code=errors.INVALID_REQUEST)
