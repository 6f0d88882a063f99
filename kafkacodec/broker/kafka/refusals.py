"""Answers that consist of one error: its place in each API's response, for each row of the request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors
from kafkacodec.broker.kafka import fetch, metadata, versions
from kafkacodec.datatypes import NamedTuple
from kafkacodec.messages import APIS, keys
from kafkacodec.net.service import CLOSE

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["INDEXES", "PARTITIONS", "SHARED_TOPICS", "TOPICS", "refusal", "refused_rows"]

_ALL_VERSIONS: Final = range(1 << 15)


def refusal(node: Node, request: Request, code: int) -> Any:
    """Return a response that consists of an error; `CLOSE` if the client expects no response."""
    special = _SPECIAL.get(request.key)
    if special is not None:
        found = special(node, request, code)
        if found is not None:
            return found
    made = APIS[request.key].response
    for rows in _ROWS.get(request.key, ()):
        if request.version in rows.versions:
            name = rows.levels[0].answered or rows.levels[1].answered
            return made.from_dict({name: _answered(request.message, rows.levels, {**rows.others, rows.field: code})})
    return made.from_dict({"error_code": code, **_OTHERS.get(request.key, {})})


def refused_rows(request: Request, levels: Sequence[_Level], end: Mapping[str, Any]) -> Any:
    """Return a response with an error in each of the innermost rows of some lists, regardless of its API."""
    return APIS[request.key].response.from_dict({levels[0].answered: _answered(request.message, levels, end)})


class _Level(NamedTuple):
    """A list of a request, and the list of the response with a row for each of its rows.

    Attributes:
        asked: the lists of the request, usually one.
        answered: the list of the response; empty if it has the rows of the next level instead.
        copied: fields of the response's rows, with the request's field; `_ITSELF` if rows are plain values.
    """

    asked: tuple[str, ...]
    answered: str
    copied: Mapping[str, str]


class _Rows(NamedTuple):
    """The place of the error in a response that has it in rows.

    Attributes:
        levels: the lists from the outermost to the one whose rows have the error.
        versions: with this place.
        others: further fields of a row with an error, if they are not the defaults.
        field: the name of the error's field.
    """

    levels: Sequence[_Level]
    versions: range = _ALL_VERSIONS
    others: Mapping[str, Any] = {}
    field: str = "error_code"


_ITSELF: Final = ""


def _answered(asked: Any, levels: Sequence[_Level], end: Mapping[str, Any]) -> list[dict[str, Any]]:
    level, below = levels[0], levels[1:]
    found: list[dict[str, Any]] = []
    for row in (row for name in level.asked for row in getattr(asked, name) or ()):
        if not level.answered:
            found += _answered(row, below, end)
            continue
        made = {to: row if of is _ITSELF else _plain(getattr(row, of)) for to, of in level.copied.items()}
        found.append({**made, below[0].answered: _answered(row, below, end)} if below else {**made, **end})
    return found


def _plain(value: Any) -> Any:
    return [row.to_dict() for row in value] if isinstance(value, list) else value


def _same(name: str, *fields: str) -> _Level:
    return _Level((name,), name, {field: field for field in fields})


def _plain_rows(asked: str, answered: str, field: str) -> _Level:
    return _Level((asked,), answered, {field: _ITSELF})


TOPICS: Final = _same("topics", "name")
_TOPICS_OR_IDS: Final = _same("topics", "name", "topic_id")
SHARED_TOPICS: Final = _Level(("topics",), "responses", {"topic_name": "topic_name"})
PARTITIONS: Final = _same("partitions", "partition_index")
INDEXES: Final = _plain_rows("partition_indexes", "partitions", "partition_index")
_PLAIN_PARTITIONS: Final = _plain_rows("partitions", "partitions", "partition_index")
_RESOURCE: Final = {"resource_type": "resource_type", "resource_name": "resource_name"}

_STATES: Final = [_Level(("topics",), "results", {"topic_id": "topic_id"}), _same("partitions", "partition")]
_OF_STATES: Final = (
    keys.INITIALIZE_SHARE_GROUP_STATE, keys.READ_SHARE_GROUP_STATE, keys.WRITE_SHARE_GROUP_STATE,
    keys.DELETE_SHARE_GROUP_STATE, keys.READ_SHARE_GROUP_STATE_SUMMARY,
)  # fmt: skip

_ROWS: Final[Mapping[int, Sequence[_Rows]]] = {
    keys.PRODUCE: [
        _Rows(
            [
                _Level(("topic_data",), "responses", {"name": "name", "topic_id": "topic_id"}),
                _Level(("partition_data",), "partition_responses", {"index": "index"}),
            ],
            others={"base_offset": -1},
        )
    ],
    keys.LIST_OFFSETS: [_Rows([TOPICS, PARTITIONS])],
    keys.OFFSET_COMMIT: [_Rows([_TOPICS_OR_IDS, PARTITIONS])],
    keys.OFFSET_FETCH: [
        _Rows([TOPICS, INDEXES], range(2), {"committed_offset": -1}),
        _Rows([_same("groups", "group_id")], range(8, 1 << 15)),
    ],
    keys.FIND_COORDINATOR: [
        _Rows([_plain_rows("coordinator_keys", "coordinators", "key")], range(4, 1 << 15), {"node_id": -1, "port": -1})
    ],
    keys.DESCRIBE_GROUPS: [_Rows([_plain_rows("groups", "groups", "group_id")])],
    keys.CREATE_TOPICS: [_Rows([TOPICS])],
    keys.DELETE_TOPICS: [
        _Rows([_plain_rows("topic_names", "responses", "name")], range(6)),
        _Rows([_Level(("topics",), "responses", {"name": "name", "topic_id": "topic_id"})]),
    ],
    keys.DELETE_RECORDS: [_Rows([TOPICS, PARTITIONS], others={"low_watermark": -1})],
    keys.OFFSET_FOR_LEADER_EPOCH: [_Rows([_same("topics", "topic"), _same("partitions", "partition")])],
    keys.ADD_PARTITIONS_TO_TXN: [
        _Rows(
            [
                _Level(("v3_and_below_topics",), "results_by_topic_v3_and_below", {"name": "name"}),
                _plain_rows("partitions", "results_by_partition", "partition_index"),
            ],
            range(4),
            field="partition_error_code",
        )
    ],
    keys.WRITE_TXN_MARKERS: [_Rows([_same("markers", "producer_id"), TOPICS, INDEXES])],
    keys.TXN_OFFSET_COMMIT: [_Rows([_TOPICS_OR_IDS, PARTITIONS])],
    keys.CREATE_ACLS: [_Rows([_Level(("creations",), "results", {})])],
    keys.DELETE_ACLS: [_Rows([_Level(("filters",), "filter_results", {})])],
    keys.DESCRIBE_CONFIGS: [_Rows([_Level(("resources",), "results", _RESOURCE)])],
    keys.ALTER_CONFIGS: [_Rows([_Level(("resources",), "responses", _RESOURCE)])],
    keys.INCREMENTAL_ALTER_CONFIGS: [_Rows([_Level(("resources",), "responses", _RESOURCE)])],
    keys.ALTER_REPLICA_LOG_DIRS: [
        _Rows([_Level(("dirs",), "", {}), _Level(("topics",), "results", {"topic_name": "name"}), _PLAIN_PARTITIONS])
    ],
    keys.CREATE_PARTITIONS: [_Rows([_Level(("topics",), "results", {"name": "name"})])],
    keys.DELETE_GROUPS: [_Rows([_plain_rows("groups_names", "results", "group_id")])],
    keys.ELECT_LEADERS: [
        _Rows(
            [
                _Level(("topic_partitions",), "replica_election_results", {"topic": "topic"}),
                _plain_rows("partitions", "partition_result", "partition_id"),
            ],
            range(1),
        )
    ],
    keys.ALTER_CLIENT_QUOTAS: [_Rows([_same("entries", "entity")])],
    keys.ALTER_USER_SCRAM_CREDENTIALS: [_Rows([_Level(("deletions", "upsertions"), "results", {"user": "name"})])],
    keys.DESCRIBE_PRODUCERS: [_Rows([TOPICS, INDEXES])],
    keys.DESCRIBE_TRANSACTIONS: [_Rows([_plain_rows("transactional_ids", "transaction_states", "transactional_id")])],
    keys.CONSUMER_GROUP_DESCRIBE: [_Rows([_plain_rows("group_ids", "groups", "group_id")])],
    keys.SHARE_GROUP_DESCRIBE: [_Rows([_plain_rows("group_ids", "groups", "group_id")])],
    keys.STREAMS_GROUP_DESCRIBE: [_Rows([_plain_rows("group_ids", "groups", "group_id")])],
    keys.DESCRIBE_SHARE_GROUP_OFFSETS: [_Rows([_same("groups", "group_id")])],
    **{key: [_Rows(_STATES)] for key in _OF_STATES},
}
"""By API key, for errors that are not at the top of the response."""

_WITH_TOP: Final[Mapping[int, Sequence[_Level]]] = {
    keys.ELECT_LEADERS: [
        _Level(("topic_partitions",), "replica_election_results", {"topic": "topic"}),
        _plain_rows("partitions", "partition_result", "partition_id"),
    ],
    keys.ALTER_PARTITION_REASSIGNMENTS: [
        _Level(("topics",), "responses", {"name": "name"}),
        PARTITIONS,
    ],
}
"""By API key, where an error of the whole request is in its rows, too."""

_OTHERS: Final[Mapping[int, Mapping[str, Any]]] = {
    keys.FIND_COORDINATOR: {"node_id": -1, "port": -1},
    keys.INIT_PRODUCER_ID: {"producer_id": -1, "producer_epoch": -1},
    keys.JOIN_GROUP: {"generation_id": -1},
}
"""Further fields of responses that consist of an error, if they are not the defaults."""


def _produce(node: Node, request: Request, code: int) -> Any:
    return CLOSE if request.message.acks == 0 else None


_OF_SESSIONS: Final = frozenset(
    (errors.FETCH_SESSION_ID_NOT_FOUND, errors.INVALID_FETCH_SESSION_EPOCH, errors.FETCH_SESSION_TOPIC_ID_ERROR)
)


def _fetch(node: Node, request: Request, code: int) -> Any:
    return None if code in _OF_SESSIONS and request.version >= _HAS_SESSIONS else fetch.refused(node, request, code)


_HAS_SESSIONS: Final = 7


def _metadata(node: Node, request: Request, code: int) -> Any:
    whole = code == errors.REBOOTSTRAP_REQUIRED and request.version >= _REBOOTSTRAPS
    if whole:
        return None
    response = metadata.refused(node, request, code)
    if code == errors.ILLEGAL_SASL_STATE:  # nobody has logged in, so it shows nothing
        response.brokers, response.cluster_id, response.controller_id = [], None, -1
        response.topics = response.topics if request.message.topics else []
    return response


_REBOOTSTRAPS: Final = 13


def _describe_log_dirs(node: Node, request: Request, code: int) -> Any:
    """Before v3 the response has no field for an error: clients take an empty list as one."""
    return None if request.version >= _LOG_DIRS_FAIL else APIS[request.key].response()


_LOG_DIRS_FAIL: Final = 3


def _api_versions(node: Node, request: Request, code: int) -> Any:
    if code == errors.UNSUPPORTED_VERSION:
        request.message = None  # as if the version were not known
        return versions.api_versions(node, request)
    return None


def _describe_topic_partitions(node: Node, request: Request, code: int) -> Any:
    asked = [row.name for row in request.message.topics]
    names = asked or ([] if code == errors.ILLEGAL_SASL_STATE else node.names())
    rows = [{"name": name, "error_code": code} for name in names]
    return APIS[request.key].response.from_dict({"topics": rows})


def _everywhere(node: Node, request: Request, code: int) -> Any:
    """Put the error at the top and in the rows."""
    if code != errors.CLUSTER_AUTHORIZATION_FAILED or (request.key, request.version) == (keys.ELECT_LEADERS, 0):
        return None
    response = refused_rows(request, _WITH_TOP[request.key], {"error_code": code})
    response.error_code = code
    return response


def _describe_quotas(node: Node, request: Request, code: int) -> Any:
    return APIS[request.key].response(error_code=code, entries=None)


def _describe_scram(node: Node, request: Request, code: int) -> Any:
    if code != errors.CLUSTER_AUTHORIZATION_FAILED:
        return None
    rows = [{"user": "", "error_code": code} for _ in request.message.users or ()]
    return APIS[request.key].response.from_dict({"error_code": code, "results": rows})


_SPECIAL: Final[Mapping[int, Callable[[Node, Request, int], Any]]] = {
    keys.PRODUCE: _produce,
    keys.FETCH: _fetch,
    keys.METADATA: _metadata,
    keys.API_VERSIONS: _api_versions,
    keys.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    keys.DESCRIBE_CLIENT_QUOTAS: _describe_quotas,
    keys.DESCRIBE_USER_SCRAM_CREDENTIALS: _describe_scram,
    keys.ELECT_LEADERS: _everywhere,
    keys.ALTER_PARTITION_REASSIGNMENTS: _everywhere,
    keys.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
}
"""By API key, what decides first; None leaves it to the tables."""
