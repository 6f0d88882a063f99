"""StreamsGroupHeartbeat: checks the topics of a topology, and creates the internal ones that are missing (KIP-1071)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import messages
from kafkacodec.broker.kafka.groups import client_of
from kafkacodec.broker.kafka.node import Inner
from kafkacodec.broker.kafka.topics import refuses_topic
from kafkacodec.broker.state.streams.configuring import MISSING_INTERNAL_TOPICS, InternalTopic
from kafkacodec.broker.state.streams.topology import topology_topics
from kafkacodec.broker.topics.names import wrong_name
from kafkacodec.errors import STREAMS_INVALID_TOPOLOGY
from kafkacodec.net.service import Effect

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["streams_group_heartbeat"]

_FEATURE: Final = "streams.version"
_SHOWN: Final = 3  # topics in a text


def streams_group_heartbeat(node: Node, request: Request) -> Any:
    """Pass a heartbeat to the coordinator; then create missing internal topics, if the client may do that."""
    message, machine = request.message, node.groups
    wrong = _wrong_topics(node, message)
    if wrong:
        return messages.StreamsGroupHeartbeatResponse(error_code=STREAMS_INVALID_TOPOLOGY, error_message=wrong)

    def answered(answer: Any) -> Effect:
        if answer.error_code or answer.member_epoch < 0 or node.frozen:
            return node.reply(request.to, answer)
        missing = machine.missing_topics(message.group_id)
        records = [*_enabled(node), *_made(node, request, answer, missing)]
        return node.change(records, lambda code: node.reply(request.to, answer), request.now)

    def asked() -> Effect:
        effect = machine.receive(message, request.version, client_of(request), Inner(answered), request.now)
        return node.routed(machine, effect)

    return node.with_topic(machine.topic, asked, request.now)


def _wrong_topics(node: Node, message: Any) -> str:
    """Why a topology cannot have these topics; empty if it can."""
    names = topology_topics(message.topology)
    internal = sorted(name for name in names if node.is_internal(name))
    if internal:
        return f"a topology cannot use Kafka's internal topics: {', '.join(internal)}"
    invalid = sorted(name for name in names if wrong_name(name))
    return f"names of topics are invalid: {', '.join(invalid)}" if invalid else ""


def _enabled(node: Node) -> list[bytes]:
    """The record that turns streams groups on, with the first of them: before 4.2, Apache Kafka would not open a
    directory with it.
    """
    return [] if node.catalog.metadata.features.get(_FEATURE) else [node.catalog.feature(_FEATURE, 1)]


def _made(node: Node, request: Request, answer: Any, missing: Collection[InternalTopic]) -> list[bytes]:
    """The records of missing topics; the status of those that cannot be created says why."""
    may = request.may
    refused = [
        topic.name
        for topic in missing
        if may is not None and not may("create", "cluster") and not may("create", "topic", topic.name)
    ]
    if refused:
        _explain(answer, f"; Unauthorized to CREATE on topics {', '.join(refused)}.")
        return []
    records: list[bytes] = []
    failed = []
    for topic in missing:
        made = messages.CreateTopicsRequest.CreatableTopic(name=topic.name, num_partitions=topic.partitions)
        config = messages.CreateTopicsRequest.CreatableTopicConfig
        made.replication_factor = topic.factor
        made.configs = [config(name=name, value=value) for name, value in topic.configs.items()]
        wrong = refuses_topic(node, made, ())
        if wrong is None:
            records += node.new_topic(topic.name, topic.partitions, topic.configs, topic.factor)[1]
        else:
            failed.append(f"{topic.name} ({wrong.text})")
    if failed:
        more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        _explain(answer, f"; Creation failed: {', '.join(failed[:_SHOWN])}{more}.")
    return records


def _explain(answer: Any, text: str) -> None:
    for status in answer.status:
        if status.status_code == MISSING_INTERNAL_TOPICS:
            status.status_detail += text
