"""How the brokers of the model answer for partitions: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import messages
from kafkacodec.errors import (
    FENCED_LEADER_EPOCH,
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    INVALID_REQUIRED_ACKS,
    MESSAGE_TOO_LARGE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)
from kafkacodec.messages.keys import FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, PRODUCE
from tests.reference.model_log import Log

if TYPE_CHECKING:
    from tests.reference.model_broker import Asked, ModelCluster

__all__ = ["HANDLERS", "NO_RESPONSE", "Sessions"]

NO_RESPONSE: Final = object()

LARGEST_BATCH = 1 << 20


def refusal(cluster: ModelCluster, node: int, place: tuple[str, int], epoch: int = -1) -> int:
    """The error code of a partition that this broker cannot answer for; `epoch` is what the client knows."""
    if place not in cluster.logs:
        return UNKNOWN_TOPIC_OR_PARTITION
    known = cluster.leaders[place]
    if known.leader != node:
        return NOT_LEADER_OR_FOLLOWER
    if 0 <= epoch < known.epoch:
        return FENCED_LEADER_EPOCH
    return UNKNOWN_LEADER_EPOCH if epoch > known.epoch else 0


def name_leader(cluster: ModelCluster, place: tuple[str, int], part: Any, response: Any) -> None:
    """Say who leads, for those that asked a broker that does not (KIP-951)."""
    known = cluster.leaders.get(place)
    if known is None or known.leader is None:
        return
    part.current_leader = response.LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.epoch)
    if known.leader not in [endpoint.node_id for endpoint in response.node_endpoints]:
        host, port = f"node{known.leader}", 9090 + known.leader
        response.node_endpoints.append(response.NodeEndpoint(node_id=known.leader, host=host, port=port))


def produce(cluster: ModelCluster, asked: Asked) -> Any:
    """Append to each partition; no response with acks=0."""
    request, version = asked.request, asked.version
    kind = messages.ProduceResponse
    response = kind()
    for topic in request.topic_data:
        name = cluster.topic_name(topic.topic_id) if version >= 13 else topic.name
        entry = kind.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        for data in topic.partition_data:
            part = kind.PartitionProduceResponse(index=data.index, base_offset=-1)
            entry.partition_responses.append(part)
            if name is None:
                part.error_code = UNKNOWN_TOPIC_ID
                continue
            _append(cluster, asked, (name, data.index), data.records, part)
            if part.error_code == NOT_LEADER_OR_FOLLOWER and version >= 10:
                name_leader(cluster, (name, data.index), part, response)
        response.responses.append(entry)
    return NO_RESPONSE if request.acks == 0 else response


def _append(cluster: ModelCluster, asked: Asked, place: tuple[str, int], records: Any, part: Any) -> None:
    failure = cluster.failure(PRODUCE, place)
    data = bytes(records or b"")
    part.error_code = refusal(cluster, asked.node, place) or (
        INVALID_REQUIRED_ACKS if asked.request.acks not in (-1, 0, 1)
        else MESSAGE_TOO_LARGE if len(data) > LARGEST_BATCH
        else UNSUPPORTED_FOR_MESSAGE_FORMAT if data[16:17] != b"\2"
        else 0
    )  # fmt: skip
    if not part.error_code and (failure is None or failure.applied):
        log = cluster.logs[place]
        appended = log.append(data, cluster.leaders[place].epoch)
        part.error_code, part.base_offset = appended.code, appended.base
        part.log_start_offset = log.start
    if failure is not None:
        part.error_code, part.base_offset = failure.code, -1


@dataclass
class Session:
    """A fetch session (KIP-227): the partitions that are wanted, and what was last said of each."""

    epoch: int
    wanted: dict[tuple[str, uuid.UUID, int], Any] = field(default_factory=dict)
    said: dict[tuple[str, uuid.UUID, int], tuple[int, int, int]] = field(default_factory=dict)


class Sessions:
    """The fetch sessions of all brokers; `limit` is how many each has room for."""

    def __init__(self) -> None:
        self.limit = 1000
        self._kept: dict[tuple[int, int], Session] = {}
        self._next = 0

    def lose(self, node: int) -> None:
        """A broker forgets its sessions."""
        self._kept = {key: session for key, session in self._kept.items() if key[0] != node}

    def of(self, node: int, request: Any, wanted: dict[Any, Any], gone: list[Any]) -> tuple[int, int, Session]:
        """Error code, session id of the response, and the session; a passing one where the client wants none."""
        number, epoch = request.session_id, request.session_epoch
        if epoch <= 0:
            self._kept.pop((node, number), None)
            session = Session(1, wanted)
            if epoch < 0 or sum(key[0] == node for key in self._kept) >= self.limit:
                return 0, 0, session
            self._next += 1
            self._kept[node, self._next] = session
            return 0, self._next, session
        known = self._kept.get((node, number))
        if known is None:
            return FETCH_SESSION_ID_NOT_FOUND, 0, Session(0)
        if known.epoch != epoch:
            return INVALID_FETCH_SESSION_EPOCH, 0, Session(0)
        known.wanted.update(wanted)
        for place in gone:
            known.wanted.pop(place, None)
            known.said.pop(place, None)
        return 0, number, known


def fetch(cluster: ModelCluster, asked: Asked) -> Any:
    """The records of each partition, after a wait while there are none."""
    request, version = asked.request, asked.version
    if asked.state is None:  # the session is dealt with once, however long the request waits
        wanted = {(t.topic, t.topic_id, p.partition): p for t in request.topics for p in t.partitions}
        gone = [(t.topic, t.topic_id, p) for t in request.forgotten_topics_data for p in t.partitions]
        asked.state = cluster.sessions.of(asked.node, request, wanted, gone)
    code, number, session = asked.state
    response = messages.FetchResponse(error_code=code, session_id=number)
    if code:
        return response
    budget = request.max_bytes if version >= 3 else 1 << 31
    parts = {}
    for place, entry in session.wanted.items():
        part = parts[place] = _read(cluster, asked, place, entry, budget, response)
        budget -= len(part.records)
    taken = sum(len(part.records) for part in parts.values())
    news = any(part.error_code or part.preferred_read_replica >= 0 for part in parts.values())
    if taken < request.min_bytes and not news and not asked.expired and parts:
        return None
    session.epoch += request.session_epoch > 0  # the one after a full request is 1
    for place, part in parts.items():
        said = (part.high_watermark, part.last_stable_offset, part.log_start_offset)
        known = session.said.get(place)
        if part.records:  # the next response starts with the others
            session.wanted[place] = session.wanted.pop(place)
        quiet = not part.records and not part.error_code and part.preferred_read_replica < 0
        if request.session_epoch > 0 and quiet and part.diverging_epoch.epoch < 0 and known == said:
            continue
        session.said[place] = said
        _topic_of(response, place).partitions.append(part)
    return response


def _topic_of(response: Any, place: tuple[str, uuid.UUID, int]) -> Any:
    for topic in response.responses:
        if (topic.topic, topic.topic_id) == place[:2]:
            return topic
    response.responses.append(response.FetchableTopicResponse(topic=place[0], topic_id=place[1]))
    return response.responses[-1]


def _read(
    cluster: ModelCluster, asked: Asked, place: tuple[str, uuid.UUID, int], entry: Any, budget: int, response: Any
) -> Any:
    """What one partition has, in at most `budget` bytes unless nothing was found before."""
    kind = messages.FetchResponse
    part = kind.PartitionData(partition_index=place[2], records=b"", high_watermark=-1)
    topic = cluster.topic_name(place[1]) if asked.version >= 13 else place[0]
    if topic is None:
        part.error_code = UNKNOWN_TOPIC_ID
        return part
    at = (topic, place[2])
    follower = cluster.read_replicas.get(at)
    leads = cluster.leaders[at].leader == asked.node if at in cluster.leaders else False
    failure = cluster.failure(FETCH, at)
    part.error_code = failure.code if failure else 0
    if not part.error_code and (leads or follower != asked.node):
        part.error_code = refusal(cluster, asked.node, at, entry.current_leader_epoch)
    if part.error_code:
        if part.error_code == NOT_LEADER_OR_FOLLOWER and asked.version >= 16:
            name_leader(cluster, at, part, response)
        return part
    log = cluster.logs[at]
    part.high_watermark, part.last_stable_offset, part.log_start_offset = log.end, log.stable, log.start
    if asked.request.isolation_level == 0:
        part.aborted_transactions = None
    if entry.last_fetched_epoch >= 0:
        epoch, end = log.end_of_epoch(entry.last_fetched_epoch)
        if epoch < entry.last_fetched_epoch or end < entry.fetch_offset:
            part.diverging_epoch = kind.EpochEndOffset(epoch=epoch, end_offset=end)
            return part
    if not log.start <= entry.fetch_offset <= log.end:
        part.error_code = OFFSET_OUT_OF_RANGE
    elif leads and follower not in (None, asked.node) and asked.request.rack_id:
        part.preferred_read_replica = follower
    else:
        _fill(part, log, entry, asked, budget)
    return part


def _fill(part: Any, log: Log, entry: Any, asked: Asked, budget: int) -> None:
    """The bytes of a partition, and the aborted transactions in them."""
    committed = asked.request.isolation_level == 1
    until = log.stable if committed else log.end
    first = budget == asked.request.max_bytes or asked.version < 3
    limit = min(entry.partition_max_bytes, max(budget, 0))
    part.records = log.read(entry.fetch_offset, limit, until, whole_first=first and asked.version >= 3)
    if asked.version >= 3 and not _has_whole_batch(part.records):
        part.records = b""
    if committed:
        kind = messages.FetchResponse.AbortedTransaction
        found = log.aborted_between(entry.fetch_offset, until)
        part.aborted_transactions = [kind(producer_id=producer, first_offset=at) for producer, at in found]


def _has_whole_batch(records: bytes) -> bool:
    return len(records) > 12 and int.from_bytes(records[8:12], "big") + 12 <= len(records)


def list_offsets(cluster: ModelCluster, asked: Asked) -> Any:
    """Offsets by time, or the first and last ones."""
    kind = messages.ListOffsetsResponse
    response = kind()
    for topic in asked.request.topics:
        entry = kind.ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(entry)
        for wanted in topic.partitions:
            place = (topic.name, wanted.partition_index)
            part = kind.ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            entry.partitions.append(part)
            failure = cluster.failure(LIST_OFFSETS, place)
            part.error_code = (
                failure.code if failure else refusal(cluster, asked.node, place, wanted.current_leader_epoch)
            )
            if not part.error_code:
                _offset_of(cluster.logs[place], wanted.timestamp, asked, part)
    return response


def _offset_of(log: Log, timestamp: int, asked: Asked, part: Any) -> None:
    latest = log.stable if asked.request.isolation_level == 1 else log.end
    ends = {-1: (latest, -1), -2: (log.start, -1), -4: (log.start, -1), -3: log.latest_time()}
    found = ends[timestamp] if timestamp in ends else log.at_time(timestamp) if timestamp >= 0 else None
    if found is not None and found[0] <= latest:
        if asked.version == 0:
            part.old_style_offsets = [found[0]]
            return
        part.offset, part.timestamp = found
        part.leader_epoch = log.epoch_at(found[0]) if asked.version >= 4 else -1


def end_offsets(cluster: ModelCluster, asked: Asked) -> Any:
    """Where leader epochs end."""
    kind = messages.OffsetForLeaderEpochResponse
    response = kind()
    for topic in asked.request.topics:
        entry = kind.OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(entry)
        for wanted in topic.partitions:
            place = (topic.topic, wanted.partition)
            part = kind.EpochEndOffset(partition=wanted.partition)
            entry.partitions.append(part)
            failure = cluster.failure(OFFSET_FOR_LEADER_EPOCH, place)
            part.error_code = (
                failure.code if failure else refusal(cluster, asked.node, place, wanted.current_leader_epoch)
            )
            if not part.error_code:
                part.leader_epoch, part.end_offset = cluster.logs[place].end_of_epoch(wanted.leader_epoch)
    return response


HANDLERS = {PRODUCE: produce, FETCH: fetch, LIST_OFFSETS: list_offsets, OFFSET_FOR_LEADER_EPOCH: end_offsets}
