"""Requests of transactional producers, and checks before writes in transactions (KIP-98, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.groups import ask, client_of
from kafkacodec.broker.kafka.node import Inner
from kafkacodec.broker.state.offsets import answer_of
from kafkacodec.broker.state.verification import VERIFY_VERSION, verification, verified
from kafkacodec.broker.topics.partition import EndMarker
from kafkacodec.internal_records import CONSUMER_OFFSETS, TRANSACTION_STATE
from kafkacodec.messages import keys
from kafkacodec.net.service import Append, Effect

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.topics.partition import Partition

_IDS = 6  # of TxnOffsetCommit: topics by id
_NEXT_EPOCHS = 2  # the version of transactions whose markers have the next epoch

__all__ = ["commit_in_transaction", "init_producer_id", "verify", "write_txn_markers"]


def init_producer_id(node: Node, request: Request) -> Any:
    """A producer id, for a transactional id or without one; ids are reserved first (KIP-98, KIP-360)."""
    return node.with_producer_ids(lambda: ask(node, request), request.now)


def verify(
    node: Node, request: Request, transactional_id: str, producer: tuple[int, int],
    places: Iterable[tuple[str, int]], then: Callable[[dict[tuple[str, int], int]], Effect],
) -> Effect:  # fmt: skip
    """Ask whether partitions belong to a transaction, then continue with an error code for each (KIP-890)."""
    machine = node.machines[keys.ADD_PARTITIONS_TO_TXN]
    question = verification(request.key, request.version, transactional_id, producer, places)

    def answered(answer: Any) -> Effect:
        return then(verified(answer, request.key, request.version))

    def asked() -> Effect:
        effect = machine.receive(question, VERIFY_VERSION, client_of(request), Inner(answered), request.now)
        return node.routed(machine, effect)

    return node.with_topic(TRANSACTION_STATE, asked, request.now)


def commit_in_transaction(node: Node, request: Request) -> Any:
    """TxnOffsetCommit: offsets that count when the transaction is committed (KIP-98, KIP-890)."""
    message = request.message
    groups: Any = node.machines[request.key]
    log = groups.log_of(message.group_id)
    places = groups.offsets.check_places(message, request.version >= _IDS)

    def refuse(code: int) -> Effect:
        return node.reply(request.to, answer_of(messages.TxnOffsetCommitResponse, message, places, code))

    def checked(codes: dict[tuple[str, int], int]) -> Effect:
        code = codes.get(log, errors.NONE)
        if code:
            return refuse(code)
        effect: Effect = ask(node, request)
        return effect

    def begun() -> Effect:
        producer = (message.producer_id, message.producer_epoch)
        return verify(node, request, message.transactional_id, producer, [log], checked)

    rows = ((t, p) for t, topic in enumerate(message.topics) for p in range(len(topic.partitions)))
    if not message.group_id or all(row in places for row in rows):
        return refuse(errors.INVALID_GROUP_ID)
    return node.with_topic(CONSUMER_OFFSETS, begun, request.now)


def write_txn_markers(node: Node, request: Request) -> Any:
    """Write the markers of another coordinator (KIP-98)."""
    response = messages.WriteTxnMarkersResponse()
    appends: list[Append] = []
    left = [0]
    rows: dict[Any, Any] = {}  # of producers, of their topics, and of partitions
    for marker in request.message.markers:
        made = rows.get(marker.producer_id)
        if made is None:
            made = rows[marker.producer_id] = response.WritableTxnMarkerResult(producer_id=marker.producer_id)
            response.markers.append(made)
        data = EndMarker(marker.producer_id, marker.producer_epoch, marker.transaction_result,
                         marker.coordinator_epoch, node.clock())  # fmt: skip
        for topic in marker.topics:
            place = marker.producer_id, topic.name
            if place not in rows:
                rows[place] = response.WritableTxnMarkerTopicResult(name=topic.name)
                made.topics.append(rows[place])
            for number in topic.partition_indexes:
                row = response.WritableTxnMarkerPartitionResult(partition_index=number)
                if rows.setdefault((*place, number), row) is not row:
                    continue
                rows[place].partitions.append(row)
                row.error_code = _refuses_marker(node.topics.partition(topic.name, number), marker)
                if not row.error_code:
                    appends.append(Append((topic.name, number), data, _marked(node, request, row, left, response)))
    left[0] = len(appends)
    return Effect(appends) if appends else response


def _refuses_marker(partition: Partition | None, marker: Any) -> int:
    """The error of a marker that is older than what the partition has of its producer."""
    if partition is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    number, epoch, version = marker.producer_id, marker.producer_epoch, marker.transaction_version
    if min(number, epoch) < 0:
        return errors.UNKNOWN_SERVER_ERROR
    known = partition.log.producers.get(number)
    is_next = version >= _NEXT_EPOCHS and partition.is_open(number)  # its marker has the epoch after its records
    if known is not None and epoch < known.producer_epoch + is_next:
        return errors.INVALID_PRODUCER_EPOCH
    if version < 0:
        return errors.UNKNOWN_SERVER_ERROR
    if known is None:
        return errors.NONE
    return errors.TRANSACTION_COORDINATOR_FENCED if marker.coordinator_epoch < known.coordinator_epoch else errors.NONE


def _marked(node: Node, request: Request, row: Any, left: list[int], response: Any) -> Any:
    def done(result: Any, error: Exception | None, now: float) -> Effect:
        if error is not None:
            row.error_code = errors.KAFKA_STORAGE_ERROR
        left[0] -= 1
        return Effect() if left[0] else node.reply(request.to, response)

    return done
