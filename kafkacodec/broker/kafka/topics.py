"""CreateTopics, DeleteTopics, CreatePartitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.configs import topic_rows
from kafkacodec.broker.kafka.node import ZERO_UUID
from kafkacodec.broker.topics.configs import check
from kafkacodec.broker.topics.names import alike, wrong_name
from kafkacodec.datatypes import NamedTuple
from kafkacodec.internal_records import CLUSTER_METADATA

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.state.catalog import Topic

__all__ = ["create_partitions", "create_topics", "delete_topics", "refuses_name", "refuses_topic"]

_MOST_PER_REQUEST = 10_000  # new partitions, and records of new topics
_BY_ID = 6


class _Wrong(NamedTuple):
    code: int
    text: str


def create_topics(node: Node, request: Request) -> Any:
    """Make topics, each for itself. v4: -1 for defaults. v5: the answer has configurations. v7: ids."""
    message = request.message
    response = messages.CreateTopicsResponse()
    names = Counter(topic.name for topic in message.topics)
    if sum(_new_partitions(topic) for topic in message.topics) > _MOST_PER_REQUEST:
        return _refuse_all(node, request, names)
    records: list[bytes] = []
    written = 0
    for topic in message.topics:
        row = response.CreatableTopicResult(name=topic.name, error_message=None)
        wrong = _Wrong(errors.INVALID_REQUEST, "the topic is in the request twice") if names[topic.name] > 1 else None
        if wrong is None:
            wrong = refuses_topic(node, topic, response.topics)
        if wrong is None:
            written += 1 + _new_partitions(topic) + len(topic.configs)
            if written > _MOST_PER_REQUEST:
                return _refuse_all(node, request, names)
            records += _make(node, request, response, row, topic)
        elif names[topic.name] and not any(made.name == topic.name for made in response.topics):
            row.error_code, row.error_message, row.configs = wrong.code, wrong.text, []
        else:
            continue
        response.topics.append(row)
    return node.change_rows(records, request, response, response.topics)


def _new_partitions(topic: Any) -> int:
    count: int = len(topic.assignments) or topic.num_partitions
    return 1 if count == -1 else count


def _refuse_all(node: Node, request: Request, names: Iterable[str]) -> Any:
    """Refuse a request that asks for too much at once: as in Kafka, no part of it is done."""
    text = f"a request makes at most {_MOST_PER_REQUEST} partitions (topics and their configurations count too)"
    response = messages.CreateTopicsResponse()
    response.topics = [
        response.CreatableTopicResult(name=name, error_code=errors.POLICY_VIOLATION, error_message=text, configs=[])
        for name in names
    ]
    return node.change_rows([], request, response, response.topics)


def _make(node: Node, request: Request, response: Any, row: Any, topic: Any) -> list[bytes]:
    """Fill the row of the answer; returns the records."""
    count, factor = len(topic.assignments) or topic.num_partitions, topic.replication_factor
    replicas = [row.broker_ids for row in sorted(topic.assignments, key=lambda row: row.partition_index)]
    if count < 0:
        count = node.config.number("num.partitions")
    if node.quotas.refuses_partitions(request, count):
        row.error_code, row.configs = errors.THROTTLING_QUOTA_EXCEEDED, []
        return []
    configs = {config.name: config.value for config in topic.configs}
    topic_id, records = node.new_topic(topic.name, count, configs, factor, replicas)
    row.num_partitions, row.replication_factor = (
        count,
        len(replicas[0]) if replicas else node.factor(topic.name, factor),
    )
    row.configs = topic_rows(node, configs, response.CreatableTopicConfigs)
    row.topic_id = topic_id
    return [] if request.message.validate_only else records


def refuses_topic(node: Node, topic: Any, made: Sequence[Any]) -> _Wrong | None:
    """Why a topic cannot be made; None if it can."""
    wrong = refuses_name(node, topic.name, (row.name for row in made if not row.error_code))
    return wrong or _refuses_configs(topic) or _refuses_counts(node, topic)


def refuses_name(node: Node, name: str, made: Iterable[str] = ()) -> _Wrong | None:
    """Why no topic of a name can be made, beside others that are made; None if one can."""
    wrong = wrong_name(name)
    if wrong:
        return _Wrong(errors.INVALID_TOPIC_EXCEPTION, f"topic name is invalid: {wrong}")
    if name == CLUSTER_METADATA:  # the same answer as Apache Kafka's
        text = f"'{name}' is the log of the cluster's metadata, which only the broker makes and writes."
        return _Wrong(errors.TOPIC_AUTHORIZATION_FAILED, text)
    if node.catalog.topic(name) is not None:
        return _Wrong(errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if node.is_taken(name):
        return _Wrong(errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists, in another protocol.")
    others = (*node.catalog.names(), *made) if "." in name or "_" in name else ()
    same = next((other for other in others if alike(other) == alike(name)), None)
    if same is not None:
        return _Wrong(errors.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {same}")
    return None


def _refuses_counts(node: Node, topic: Any) -> _Wrong | None:
    if topic.assignments:
        if topic.replication_factor != -1 or topic.num_partitions != -1:
            return _Wrong(errors.INVALID_REQUEST, "an assignment and counts: the counts must be -1")
        numbers = sorted(row.partition_index for row in topic.assignments)
        if numbers != list(range(len(numbers))):
            return _Wrong(errors.INVALID_REPLICA_ASSIGNMENT, "the partitions are not numbered from 0 without a gap")
        return _refuses_replicas(node, [row.broker_ids for row in topic.assignments])
    factor, most = topic.replication_factor, len(node.brokers.ids)
    wrong_factor = _Wrong(
        errors.INVALID_REPLICATION_FACTOR,
        f"the replication factor must be 1 to {most}, the number of brokers, or -1 for the default",
    )
    if factor < -1 or factor == 0:
        return wrong_factor
    if topic.num_partitions == 0 or not -1 <= topic.num_partitions <= _MOST_PER_REQUEST:
        text = f"the number of partitions must be 1 to {_MOST_PER_REQUEST}, or -1 for the default"
        return _Wrong(errors.INVALID_PARTITIONS, text)
    return wrong_factor if factor > most else None


def _refuses_replicas(node: Node, assignments: Sequence[Any]) -> _Wrong | None:
    for brokers in assignments:
        if not node.brokers.may_be(brokers):
            text = f"the brokers are {list(node.brokers.ids)}; {list(brokers)} does not name some of them once"
            return _Wrong(errors.INVALID_REPLICA_ASSIGNMENT, text)
        if len(brokers) != len(assignments[0]):
            return _Wrong(errors.INVALID_REPLICA_ASSIGNMENT, "the partitions have different numbers of replicas")
        if set(brokers) <= set(node.brokers.away):
            return _Wrong(errors.INVALID_REPLICA_ASSIGNMENT, f"none of the brokers {list(brokers)} runs")
    return None


def _refuses_configs(topic: Any) -> _Wrong | None:
    for config in topic.configs:
        wrong = check(config.name, config.value)
        if wrong:
            return _Wrong(errors.INVALID_CONFIG, wrong)
    return None


def delete_topics(node: Node, request: Request) -> Any:
    """Delete topics; their files go a minute later. v6: by id."""
    message = request.message
    by_id = request.version >= _BY_ID
    wanted = [(row.name, row.topic_id) for row in message.topics] if by_id else [
        (name, ZERO_UUID) for name in message.topic_names
    ]  # fmt: skip
    response = messages.DeleteTopicsResponse()
    times = Counter(wanted)
    named = {topic.id for name, _ in times if name is not None and (topic := node.catalog.topic(name)) is not None}
    by_ids = {topic_id for name, topic_id in times if name is None}
    records: list[bytes] = []
    for name, topic_id in times:
        if name is None and topic_id in named and times[name, topic_id] == 1:
            continue  # the row of the name refuses both
        row = response.DeletableTopicResult(name=name, topic_id=topic_id)
        response.responses.append(row)
        if (name is None) == (topic_id == ZERO_UUID) or times[name, topic_id] > 1:
            row.error_code, row.error_message = errors.INVALID_REQUEST, "a topic is named once, by its name or its id"
            continue
        topic = node.topic_by(name, topic_id, name is None)
        if topic is None:
            unknown = errors.UNKNOWN_TOPIC_ID if name is None else errors.UNKNOWN_TOPIC_OR_PARTITION
            row.error_code, row.error_message = unknown, "there is no such topic"
            continue
        row.name, row.topic_id = topic.name, topic.id
        if name is not None and topic.id in by_ids:
            row.error_code, row.error_message = errors.INVALID_REQUEST, "a topic is named once, by its name or its id"
            continue
        if node.quotas.refuses_partitions(request, topic.partitions):
            row.error_code = errors.THROTTLING_QUOTA_EXCEEDED
            continue
        records += node.catalog.removed_topic(topic.id)
    for row in response.responses:
        if row.error_code and row.name is not None and request.version < _BY_ID:
            row.topic_id = ZERO_UUID
    return node.change_rows(records, request, response, response.responses)


def create_partitions(node: Node, request: Request) -> Any:
    """Add partitions to topics (KIP-195)."""
    response = messages.CreatePartitionsResponse()
    times = Counter(topic.name for topic in request.message.topics)
    asked = {topic.name: topic for topic in request.message.topics}
    records: list[bytes] = []
    added = 0
    for name, count in times.items():
        row = response.CreatePartitionsTopicResult(name=name)
        response.results.append(row)
        topic = node.catalog.topic(name)
        if count > 1:
            row.error_code, row.error_message = errors.INVALID_REQUEST, "the topic is in the request twice"
        elif topic is None:
            row.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION
        else:
            added += max(asked[name].count - topic.partitions, 0)
            records += _add(node, request, row, topic, asked[name]) if added <= _MOST_PER_REQUEST else []
    if added > _MOST_PER_REQUEST:
        records = []
        for row in response.results:
            row.error_code, row.error_message = errors.POLICY_VIOLATION, f"a request adds at most {_MOST_PER_REQUEST}"
    return node.change_rows(records, request, response, response.results)


def _add(node: Node, request: Request, row: Any, topic: Topic, asked: Any) -> list[bytes]:
    """The records of a topic's new partitions, or none and an error in the row of the answer."""
    wrong = _refuses_more(node, topic.partitions, asked)
    if wrong is not None:
        row.error_code, row.error_message = wrong
    elif node.quotas.refuses_partitions(request, asked.count - topic.partitions):
        row.error_code = errors.THROTTLING_QUOTA_EXCEEDED
    elif not request.message.validate_only:
        replicas = [row.broker_ids for row in asked.assignments or ()]
        factor = len(node.brokers.replicas(topic.name, 0)[0])
        replicas = replicas or node.brokers.spread(topic.partitions, asked.count, factor)
        return node.catalog.new_partitions(topic.id, topic.partitions, replicas, node.brokers.away)
    return []


def _refuses_more(node: Node, now: int, asked: Any) -> _Wrong | None:
    if asked.count <= now:
        return _Wrong(errors.INVALID_PARTITIONS, f"the number must be at least {now + 1}, not {asked.count}")
    if asked.assignments is None:
        return None
    if len(asked.assignments) != asked.count - now:
        return _Wrong(errors.INVALID_REPLICA_ASSIGNMENT, "there must be an assignment for each new partition")
    return _refuses_replicas(node, [row.broker_ids for row in asked.assignments])
