"""THE TABLE of the rights that each API needs, with the answers of Kafka's StandardAuthorizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors
from kafkacodec.broker.kafka.node import TOPIC_OPERATIONS
from kafkacodec.broker.kafka.refusals import INDEXES, PARTITIONS, SHARED_TOPICS, TOPICS
from kafkacodec.broker.kafka.security.rules import CLUSTER, Each, Hides, May, Rule, Special, Whole
from kafkacodec.broker.state.streams.topology import topology_topics
from kafkacodec.messages import keys
from kafkacodec.protocol.terms import CONFIG_RESOURCES

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["RIGHTS"]

_GROUP, _TRANSACTION = errors.GROUP_AUTHORIZATION_FAILED, errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_CLUSTER, _TOPIC = errors.CLUSTER_AUTHORIZATION_FAILED, errors.TOPIC_AUTHORIZATION_FAILED
_TRANSACTIONAL, _ATTRIBUTES_AT = 0x10, 21


def _transactional(node: Node, request: Request, may: May) -> int:
    """Records of a transaction need a right to its id."""
    rows = (part.records for topic in request.message.topic_data for part in topic.partition_data if part.records)
    name = request.message.transactional_id
    if any(len(data) > 22 and data[_ATTRIBUTES_AT + 1] & _TRANSACTIONAL for data in rows):
        return errors.NONE if name is not None and may("write", "transactional_id", name) else _TRANSACTION
    return errors.NONE


def _producer_id(node: Node, request: Request, may: May) -> int:
    name = request.message.transactional_id
    if name is not None:
        return errors.NONE if may("write", "transactional_id", name) else _TRANSACTION
    return errors.NONE if may("idempotent_write", "cluster") or may.any("write", "topic") else _CLUSTER


_COORDINATED: Final = {0: ("group", _GROUP), 1: ("transactional_id", _TRANSACTION)}
_SEVERAL_KEYS: Final = 4


def _coordinator(node: Node, request: Request, may: May) -> int:
    kind, code = _COORDINATED.get(request.message.key_type, ("", _CLUSTER))
    if request.message.key_type not in _COORDINATED:
        return errors.NONE if may("cluster_action", "cluster") else code
    if request.version >= _SEVERAL_KEYS:
        return errors.NONE
    return errors.NONE if may("describe", kind, request.message.key) else code


def _coordinators(node: Node, request: Request, may: May, response: Any) -> None:
    """Rows of keys without the right."""
    kind, code = _COORDINATED.get(request.message.key_type, ("", 0))
    for row in response.coordinators if kind else ():
        if not may("describe", kind, row.key):
            row.error_code, row.error_message = code, errors.error(code).name
            row.node_id, row.host, row.port = -1, "", -1


def _subscribed(node: Node, request: Request, may: May) -> int:
    names = request.message.subscribed_topic_names or ()
    return errors.NONE if all(may("describe", "topic", name) for name in names) else _TOPIC


def _of_topology(node: Node, request: Request, may: May) -> int:
    names = topology_topics(request.message.topology)
    return errors.NONE if all(may("describe", "topic", name) for name in names) else _TOPIC


def _own_topologies(node: Node, request: Request, may: May, response: Any) -> None:
    """A group whose topics the client may not see gets an error instead of its description."""
    for at, row in enumerate(response.groups):
        if not all(may("describe", "topic", name) for name in topology_topics(row.topology)):
            text = "the group uses topics that the client may not describe"
            response.groups[at] = type(row)(group_id=row.group_id, error_code=_TOPIC, error_message=text)


def _own_topics(node: Node, request: Request, may: May, response: Any) -> None:
    """Leave out hidden topics from a list of all; set the allowed operations of the others."""
    message = request.message
    names = message.topics
    named = names is not None and (len(names) > 0 or (request.key == keys.METADATA and request.version > 0))
    if not named:
        response.topics = [row for row in response.topics if row.error_code or may("describe", "topic", row.name)]
    shows = request.key == keys.METADATA and message.include_topic_authorized_operations
    for row in response.topics:
        if shows and row.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION:
            row.topic_authorized_operations = TOPIC_OPERATIONS
        if row.topic_authorized_operations >= 0:
            row.topic_authorized_operations = may.bits("topic", row.name, row.topic_authorized_operations)


def _own_cluster(node: Node, request: Request, may: May, response: Any) -> None:
    every = response.cluster_authorized_operations
    if every >= 0:
        allowed = may("describe", "cluster")
        response.cluster_authorized_operations = may.bits("cluster", CLUSTER, every) if allowed else 0


def _own_operations(node: Node, request: Request, may: May, response: Any) -> None:
    for row in response.groups:
        if row.authorized_operations >= 0:
            row.authorized_operations = may.bits("group", row.group_id, row.authorized_operations)


def _own_groups(node: Node, request: Request, may: May, response: Any) -> None:
    if not may("describe", "cluster"):
        response.groups = [row for row in response.groups if may("describe", "group", row.group_id)]


def _own_transactions(node: Node, request: Request, may: May, response: Any) -> None:
    rows = response.transaction_states
    response.transaction_states = [row for row in rows if may("describe", "transactional_id", row.transactional_id)]


_OF_GROUPS: Final = 8


def _own_offsets(node: Node, request: Request, may: May, response: Any) -> None:
    """Leave out topics without the right from a list of all; answer named ones with an error."""
    if request.version >= _OF_GROUPS:
        asked = {row.group_id: row.topics for row in request.message.groups}
        for group in response.groups:
            group.topics = _own_rows(node, may, group.topics, asked.get(group.group_id))
    elif request.message.topics is None:
        response.topics = _own_rows(node, may, response.topics, None)


def _own_rows(node: Node, may: May, rows: Iterable[Any], asked: Any) -> list[Any]:
    found = []
    for topic in rows:
        name = topic.name or node.name_of(topic.topic_id)
        if name is None or may("describe", "topic", name):
            found.append(topic)
        elif asked is not None:
            found.append(topic)
            for row in topic.partitions:
                row.committed_offset, row.committed_leader_epoch = -1, -1
                row.metadata, row.error_code = "", _TOPIC
    return found


def _may_make(may: May, name: str) -> bool:
    return may("create", "cluster") or may("create", "topic", name)


def _making(node: Node, request: Request, may: May, row: Any) -> int:
    return errors.NONE if _may_make(may, row.name) else _TOPIC


def _making_missing(node: Node, request: Request, may: May, row: Any) -> int:
    """The right of Metadata to create missing topics."""
    makes = request.version < _TELLS_CREATION or request.message.allow_auto_topic_creation
    missing = row.name is not None and node.catalog.topic(row.name) is None
    if not missing or not makes or not node.config.flag("auto.create.topics.enable"):
        return errors.NONE
    return _making(node, request, may, row)


_TELLS_CREATION: Final = 4


def _deleting(node: Node, request: Request, may: May, row: Any) -> int:
    """A visible and existing topic."""
    name = row if isinstance(row, str) else row.name or node.name_of(row.topic_id)
    if name is None or node.catalog.topic(name) is None:
        return errors.NONE
    return errors.NONE if may("delete", "cluster") or may("delete", "topic", name) else _TOPIC


def _seeing_deleted(node: Node, request: Request, may: May, row: Any) -> int:
    name = row if isinstance(row, str) else row.name or node.name_of(row.topic_id)
    sees = name is None or may("delete", "cluster") or may("describe", "topic", name)
    return errors.NONE if sees else _TOPIC


def _following(node: Node, request: Request, may: May, row: Any) -> int:
    return errors.NONE if may("cluster_action", "cluster") or may("describe", "topic", row.topic) else _TOPIC


def _made(node: Node, request: Request, may: May, response: Any) -> None:
    """Show the configurations of created topics only to clients that may see them."""
    for row in response.topics:
        if not row.error_code and not may("describe_configs", "topic", row.name):
            row.topic_config_error_code = _TOPIC
            row.num_partitions = row.replication_factor = -1
            row.configs = []


_OF_RESOURCES: Final = {CONFIG_RESOURCES["topic"]: ("topic", _TOPIC), CONFIG_RESOURCES["group"]: ("group", _GROUP)}


def _of_resource(operation: str, may: May, row: Any) -> int:
    kind, code = _OF_RESOURCES.get(row.resource_type, ("cluster", _CLUSTER))
    name: str = CLUSTER if kind == "cluster" else row.resource_name
    return errors.NONE if may(operation, kind, name) else code


def _describing_configs(node: Node, request: Request, may: May, row: Any) -> int:
    return _of_resource("describe_configs", may, row)


def _altering_configs(node: Node, request: Request, may: May, row: Any) -> int:
    return _of_resource("alter_configs", may, row)


def _of_share_offsets(node: Node, request: Request, may: May, response: Any) -> None:
    """Leave out topics without the right from a list of all; answer named ones with an error."""
    named = {group.group_id for group in request.message.groups if group.topics is not None}
    for group in response.groups:
        denied = [row for row in group.topics if not may("describe", "topic", row.topic_name)]
        for part in (part for row in denied for part in row.partitions):
            part.error_code, part.start_offset, part.leader_epoch, part.lag = _TOPIC, -1, -1, -1
        if group.group_id not in named:
            group.topics = [row for row in group.topics if row not in denied]


_TRANSACTION_ID: Final = "transactional_id"


def _topic_rows(operation: str, **fields: Any) -> Each:
    return Each("topic", operation, **{"asked": "topics", "answered": "topics", **fields})


def _resources(answered: str, refuses: Any) -> Each:
    return Each("topic", "", "resources", answered, "resource_name", refuses=refuses)


def _of_group(operation: str, name: str = "group_id", **fields: Any) -> Whole:
    return Whole("group", operation, name, _GROUP, **fields)


def _of_transaction(name: str = _TRANSACTION_ID, **fields: Any) -> Whole:
    return Whole(_TRANSACTION_ID, "write", name, _TRANSACTION, **fields)


def _of_cluster(operation: str, **fields: Any) -> Whole:
    return Whole("cluster", operation, **fields)


_JOINS: Final = [_of_group("read")]
_ALTERS: Final = [_of_cluster("alter")]
_DESCRIBES: Final = [_of_cluster("describe")]
_ACTS: Final = [_of_cluster("cluster_action")]
_HEARTBEATS: Final[list[Rule]] = [_of_group("read"), Special(_subscribed)]

SHARE_STATES: Final = (
    keys.INITIALIZE_SHARE_GROUP_STATE, keys.READ_SHARE_GROUP_STATE, keys.WRITE_SHARE_GROUP_STATE,
    keys.DELETE_SHARE_GROUP_STATE, keys.READ_SHARE_GROUP_STATE_SUMMARY,
)  # fmt: skip

RIGHTS: Final[Mapping[int, Sequence[Rule]]] = {
    keys.PRODUCE: [Special(_transactional), _topic_rows("write", asked="topic_data", answered="responses")],
    keys.FETCH: [],  # in fetch.py, since the rows of a session are not in the request
    keys.LIST_OFFSETS: [_topic_rows("describe")],
    keys.METADATA: [
        _topic_rows("describe"),
        _topic_rows("create", refuses=_making_missing),
        Hides(_own_topics),
        Hides(_own_cluster),
    ],
    keys.DESCRIBE_TOPIC_PARTITIONS: [_topic_rows("describe"), Hides(_own_topics)],
    keys.FIND_COORDINATOR: [Special(_coordinator), Hides(_coordinators)],
    keys.OFFSET_COMMIT: [_of_group("read"), _topic_rows("read")],
    keys.OFFSET_FETCH: [
        _of_group("describe", versions=range(8)),
        _topic_rows("describe", versions=range(8), levels=[TOPICS, INDEXES], others={"committed_offset": -1}),
        Each("group", "describe", "groups", "groups", "group_id", _GROUP, range(8, 1 << 15)),
        Hides(_own_offsets),
    ],
    keys.OFFSET_DELETE: [_of_group("delete"), _topic_rows("read", levels=[TOPICS, PARTITIONS])],
    keys.JOIN_GROUP: _JOINS,
    keys.SYNC_GROUP: _JOINS,
    keys.HEARTBEAT: _JOINS,
    keys.LEAVE_GROUP: _JOINS,
    keys.DESCRIBE_GROUPS: [
        Each("group", "describe", "groups", "groups", "", _GROUP),
        Hides(_own_operations),
    ],
    keys.LIST_GROUPS: [Hides(_own_groups)],
    keys.DELETE_GROUPS: [Each("group", "delete", "groups_names", "results", "", _GROUP)],
    keys.CONSUMER_GROUP_HEARTBEAT: _HEARTBEATS,
    keys.CONSUMER_GROUP_DESCRIBE: [
        Each("group", "describe", "group_ids", "groups", "", _GROUP),
        Hides(_own_operations),
    ],
    keys.SHARE_GROUP_HEARTBEAT: _HEARTBEATS,
    keys.SHARE_GROUP_DESCRIBE: [
        Each("group", "describe", "group_ids", "groups", "", _GROUP),
        Hides(_own_operations),
    ],
    keys.STREAMS_GROUP_HEARTBEAT: [_of_group("read"), Special(_of_topology)],
    keys.STREAMS_GROUP_DESCRIBE: [
        Each("group", "describe", "group_ids", "groups", "", _GROUP),
        Hides(_own_operations),
        Hides(_own_topologies),
    ],
    keys.SHARE_FETCH: _JOINS,  # topics in sharing/share.py, since the rows of a session are not in the request
    keys.SHARE_ACKNOWLEDGE: _JOINS,
    keys.DESCRIBE_SHARE_GROUP_OFFSETS: [
        Each("group", "describe", "groups", "groups", "group_id", _GROUP),
        Hides(_of_share_offsets),
    ],
    keys.ALTER_SHARE_GROUP_OFFSETS: [
        _of_group("read"),
        _topic_rows("read", answered="responses", name="topic_name", levels=[SHARED_TOPICS, PARTITIONS]),
    ],
    keys.DELETE_SHARE_GROUP_OFFSETS: [
        _of_group("delete"),
        _topic_rows("read", answered="responses", name="topic_name", levels=[SHARED_TOPICS], goes_on=True),
    ],
    **dict.fromkeys(SHARE_STATES, _ACTS),
    keys.CREATE_TOPICS: [_topic_rows("create", refuses=_making), Hides(_made)],
    keys.DELETE_TOPICS: [
        Each("topic", "describe", "topic_names", "responses", "", versions=range(6), refuses=_seeing_deleted),
        _topic_rows("describe", answered="responses", versions=range(6, 1 << 15), refuses=_seeing_deleted),
        Each("topic", "delete", "topic_names", "responses", "", versions=range(6), refuses=_deleting),
        _topic_rows("delete", answered="responses", versions=range(6, 1 << 15), refuses=_deleting),
    ],
    keys.DELETE_RECORDS: [_topic_rows("delete")],
    keys.CREATE_PARTITIONS: [_topic_rows("alter", answered="results")],
    keys.INIT_PRODUCER_ID: [Special(_producer_id)],
    keys.OFFSET_FOR_LEADER_EPOCH: [_topic_rows("describe", name="topic", refuses=_following)],
    keys.ADD_PARTITIONS_TO_TXN: [
        _of_transaction("v3_and_below_transactional_id", versions=range(4)),
        _topic_rows(
            "write",
            asked="v3_and_below_topics",
            answered="results_by_topic_v3_and_below",
            versions=range(4),
            rest=errors.OPERATION_NOT_ATTEMPTED,
        ),
        _of_cluster("cluster_action", versions=range(4, 1 << 15)),
    ],
    keys.ADD_OFFSETS_TO_TXN: [_of_transaction(), _of_group("read")],
    keys.END_TXN: [_of_transaction()],
    keys.TXN_OFFSET_COMMIT: [_of_transaction(), _of_group("read"), _topic_rows("read")],
    keys.WRITE_TXN_MARKERS: _ACTS,
    keys.DESCRIBE_TRANSACTIONS: [
        Each(_TRANSACTION_ID, "describe", "transactional_ids", "transaction_states", "", _TRANSACTION)
    ],
    keys.LIST_TRANSACTIONS: [Hides(_own_transactions)],
    keys.DESCRIBE_PRODUCERS: [_topic_rows("read")],
    keys.DESCRIBE_ACLS: _DESCRIBES,
    keys.CREATE_ACLS: _ALTERS,
    keys.DELETE_ACLS: _ALTERS,
    keys.DESCRIBE_CONFIGS: [_resources("results", _describing_configs)],
    keys.ALTER_CONFIGS: [_resources("responses", _altering_configs)],
    keys.INCREMENTAL_ALTER_CONFIGS: [_resources("responses", _altering_configs)],
    keys.LIST_CONFIG_RESOURCES: [_of_cluster("describe_configs")],
    keys.DESCRIBE_LOG_DIRS: _DESCRIBES,
    keys.ALTER_REPLICA_LOG_DIRS: _ALTERS,
    keys.ELECT_LEADERS: _ALTERS,
    keys.ALTER_PARTITION_REASSIGNMENTS: _ALTERS,
    keys.LIST_PARTITION_REASSIGNMENTS: _DESCRIBES,
    keys.DESCRIBE_CLIENT_QUOTAS: [_of_cluster("describe_configs")],
    keys.ALTER_CLIENT_QUOTAS: [_of_cluster("alter_configs")],
    keys.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBES,
    keys.ALTER_USER_SCRAM_CREDENTIALS: _ALTERS,
    keys.DESCRIBE_CLUSTER: [Hides(_own_cluster)],
    keys.DESCRIBE_QUORUM: _DESCRIBES,
    keys.UPDATE_FEATURES: _ALTERS,
    keys.UNREGISTER_BROKER: _ALTERS,
    keys.ADD_RAFT_VOTER: _ALTERS,
    keys.REMOVE_RAFT_VOTER: _ALTERS,
    keys.UNREGISTER_CONTROLLER: _ALTERS,
}
"""By API key, in the order of the checks. Other APIs need no right."""
