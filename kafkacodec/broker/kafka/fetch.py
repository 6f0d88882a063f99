"""Fetch (KIP-98, KIP-227, KIP-320, KIP-392, KIP-516, KIP-903)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.clustering.leaders import Leaders
from kafkacodec.broker.kafka.fetch_sessions import FetchSession, Wanted
from kafkacodec.broker.topics.conversion import lowered
from kafkacodec.errors import DecodeError, UnsupportedCodec
from kafkacodec.net.service import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.topics.partition import Partition

__all__ = ["fetch", "refused"]

_BY_ID: Final = 13
_WHOLE_BATCH: Final = 3  # the first one is answered whole if it is larger than asked for
_BATCHES: Final = 4
_MAGIC: Final = (0, 0, 1, 1)  # that clients read, by version before
_FROM_REPLICAS: Final = 11
_HAS_SESSIONS: Final = 7
_SIZE_AT, _SIZE_END = 8, 12  # of a batch
_REPLICA_STATE: Final = 15
_TELLS_LEADER: Final = 16
_OF_LEADERS: Final = (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH)
_ISOLATION: Final = (0, 1)


def fetch(node: Node, request: Request) -> Any:
    """Records of partitions.

    - Before v2: message sets of magic 0, before v4: of magic 1. v3: a first batch that is larger than asked for.
    - v4: read_committed. v5: the log's start. v7: sessions. v9: leader epochs. v12: flexible, diverging epochs.
    - v13: topics by id. v15: the replica's state. v16: leaders. v18: the replica's high watermark.
    """
    message = request.message
    by_id = request.version >= _BY_ID
    sessions = node.brokers.sessions(request)
    session = sessions.begin(message, by_id)
    if isinstance(session, int):
        return messages.FetchResponse(error_code=session)
    _update(node, session, message)
    if session.incremental and not session.partitions:  # it ends
        sessions.forget(session)
        session.id = 0
    work = _Fetch(node, request, session)
    if message.isolation_level not in _ISOLATION and work.reads():
        if not session.incremental:
            sessions.forget(session)
        return _all_wrong(request, errors.UNKNOWN_SERVER_ERROR)
    if work.at_once():
        return work.response()
    node.waiting.park(work, work.logs)
    return None


def refused(node: Node, request: Request, code: int) -> Any:
    """Answer all partitions of a fetch, or of its session, with the same error; the session continues."""
    by_id = request.version >= _BY_ID
    session = node.brokers.sessions(request).begin(request.message, by_id)
    if isinstance(session, int):
        return messages.FetchResponse(error_code=session)
    _update(node, session, request.message)
    work = _Fetch(node, request, session)
    work.refuse(code)
    return work.response()


def _all_wrong(request: Request, code: int) -> Any:
    """The same error for all partitions, also where one is repeated; for topics by id, for the request alone."""
    response = messages.FetchResponse()
    if request.version >= _HAS_SESSIONS:
        response.error_code = code
    for topic in request.message.topics if request.version < _BY_ID else ():
        made = response.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
        made.partitions = [_wrong(asked.partition, code, []) for asked in topic.partitions]
        response.responses.append(made)
    return response


def _wrong(number: int, code: int, aborted: list[Any] | None) -> Any:
    return messages.FetchResponse.PartitionData(
        partition_index=number, error_code=code, high_watermark=-1, aborted_transactions=aborted, records=b""
    )


def _is_cut(records: memoryview) -> bool:
    """Whether there is no more than a part of a batch."""
    size = int.from_bytes(records[_SIZE_AT:_SIZE_END], "big") if len(records) >= _SIZE_END else 0
    return len(records) < _SIZE_END + size


def _update(node: Node, session: FetchSession, message: Any) -> None:
    """Apply the additions and removals of a request to its session."""
    for topic in message.topics:
        key = topic.topic_id if session.by_id else topic.topic
        for asked in topic.partitions:
            known = session.partitions.get((key, asked.partition))
            if known is not None:
                known.asked = asked
            else:
                found = node.topic_by(topic.topic, topic.topic_id, session.by_id)
                name = topic.topic if not session.by_id else found.name if found is not None else None
                session.partitions[key, asked.partition] = Wanted(key, name, asked.partition, asked)
    for topic in message.forgotten_topics_data if session.incremental else ():
        key = topic.topic_id if session.by_id else topic.topic
        for number in topic.partitions:
            session.partitions.pop((key, number), None)


class _Fetch:
    """A fetch, which may wait."""

    def __init__(self, node: Node, request: Request, session: FetchSession) -> None:
        self._node, self._request, self._session_of_fetch = node, request, session
        self._leaders = Leaders(request)
        message = request.message
        self.session, self.to = request.session, request.to
        self.deadline = request.received + max(0, message.max_wait_ms)
        self._waits = message.max_wait_ms > 0
        most = min(message.max_bytes, node.quotas.most_fetched(request))  # more would never be within the quota
        self._min_bytes, self._max_bytes = min(message.min_bytes, most), int(most)
        self._committed = message.isolation_level == 1
        replica = message.replica_state.replica_id if request.version >= _REPLICA_STATE else message.replica_id
        self._follows = replica >= 0
        self._wanted = list(session.partitions.values())
        self._rows: list[tuple[Wanted, Any]] | None = None
        self.logs: list[Hashable] = []

    def refuse(self, code: int) -> None:
        """Make the answer an error."""
        self._rows = [(wanted, _wrong(wanted.number, code, None)) for wanted in self._wanted]

    def reads(self) -> bool:
        """Whether there is one of its partitions."""
        return any(self._find(wanted)[0] is not None for wanted in self._wanted)

    def at_once(self) -> bool:
        """Whether it can be answered now."""
        rows, nbytes, ends = self._read()
        if ends or not self._waits or nbytes >= self._min_bytes:
            self._rows = rows
            return True
        return False

    def enough(self) -> bool:
        """Whether there are as many bytes as it waits for."""
        rows, nbytes, ends = self._read()
        if ends or nbytes >= self._min_bytes:
            self._rows = rows
            return True
        return False

    def answer(self, now: float) -> Reply:
        """The answer, with what there is."""
        return Reply(self.to, self.response())

    def response(self) -> Any:
        """The answer."""
        rows = self._rows if self._rows is not None else self._read()[0]
        session = self._session_of_fetch
        if self._node.catalog.quotas:
            self._request.withhold = self._withholding()
        response = messages.FetchResponse(session_id=session.id)
        made: Any = None
        last: Any = None
        for wanted, row in rows:
            news = wanted.changes(row)
            if session.incremental and not news:
                continue
            if made is None or wanted.topic != last:
                made, last = response.FetchableTopicResponse(), wanted.topic
                response.responses.append(made)
                if session.by_id:
                    made.topic_id = wanted.topic
                else:
                    made.topic = wanted.topic
            made.partitions.append(row)
            if row.records and session.id:  # others come first the next time
                key = (wanted.topic, wanted.number)
                if key in session.partitions:
                    session.partitions[key] = session.partitions.pop(key)
        if not self._follows:
            response.node_endpoints = self._leaders.endpoints(self._node, response.NodeEndpoint)
        return response

    def _withholding(self) -> Callable[[], Any] | None:
        """Return a function that makes the session as it is now, for a client that gets nothing of the answer."""
        if self._follows:
            return None
        session, order = self._session_of_fetch, list(self._session_of_fetch.partitions.items())
        told = [(wanted, wanted.high_watermark, wanted.start_offset) for _, wanted in order]

        def withhold() -> Any:
            if not session.incremental:  # it would begin with this answer
                self._node.brokers.sessions(self._request).forget(session)
                return messages.FetchResponse()
            session.partitions = dict(order)
            for wanted, high_watermark, start_offset in told:
                wanted.high_watermark, wanted.start_offset = high_watermark, start_offset
            return messages.FetchResponse(session_id=session.id)

        return withhold

    def _read(self) -> tuple[list[tuple[Wanted, Any]], int, bool]:
        """The rows, the bytes in them, and whether one of them ends the wait."""
        rows: list[tuple[Wanted, Any]] = []
        unknown: list[tuple[Wanted, Any]] = []  # come last, to consumers those without a name first
        room, total, ends, known = self._max_bytes, 0, False, 0
        self.logs = []
        for wanted in self._wanted:
            partition, code = self._find(wanted)
            if partition is None:
                unknown.append((wanted, _wrong(wanted.number, code, [])))
                continue
            if code:
                rows.append((wanted, _wrong(wanted.number, code, None)))
                ends = True
                continue
            known += 1
            self.logs.append(partition.key)
            try:
                row = self._row(wanted, partition, min(room, wanted.asked.partition_max_bytes), not total)
            except (OSError, DecodeError) as error:
                row = _wrong(wanted.number, self._node.topics.unreadable(*partition.key, error), None)
            size = len(row.records)
            total += size
            room = max(0, room - size)
            ends = ends or row.error_code != 0 or row.diverging_epoch.epoch >= 0
            rows.append((wanted, row))
        if not self._follows:
            unknown.sort(key=lambda one: one[0].name is not None)
        return rows + unknown, total, ends or not known

    def _find(self, wanted: Wanted) -> tuple[Partition | None, int]:
        """Return the partition of this name, if there is one, and an error with it if its topic has another id."""
        node, may = self._node, self._request.may
        if wanted.name is None and not isinstance(wanted.topic, str):
            topic = node.catalog.topic_of(wanted.topic)
            if topic is None:
                return None, errors.UNKNOWN_TOPIC_ID
            wanted.name = topic.name
        if may is not None:
            allowed = may("cluster_action", "cluster") if self._follows else may("read", "topic", wanted.name or "")
            if not allowed:
                return None, errors.TOPIC_AUTHORIZATION_FAILED
        partition = node.topics.partition(wanted.name or "", wanted.number)
        if partition is not None and not isinstance(wanted.topic, str) and partition.topic_id != wanted.topic:
            return partition, errors.INCONSISTENT_TOPIC_ID  # a topic of that name was created again
        if partition is not None:
            return partition, errors.NONE
        return None, node.topics.missing(wanted.name or "", wanted.number)

    def _row(self, wanted: Wanted, partition: Partition, room: int, first: bool) -> Any:
        asked = wanted.asked
        code = self._refuses(partition, asked.current_leader_epoch)
        if code:
            row = _wrong(wanted.number, code, None)
            if code in _OF_LEADERS and self._request.version >= _TELLS_LEADER:
                self._leaders.add(self._node, row.current_leader, *partition.key)
            return row
        row = messages.FetchResponse.PartitionData(
            partition_index=wanted.number, high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset, log_start_offset=partition.start_offset, records=b"",
        )  # fmt: skip
        row.aborted_transactions = None
        if asked.last_fetched_epoch >= 0:
            code = self._diverges(row, partition, asked)
            if code:
                return _wrong(wanted.number, code, None)
            if row.diverging_epoch.epoch >= 0:
                return row
        if not partition.start_offset <= asked.fetch_offset <= partition.high_watermark:
            return _wrong(wanted.number, errors.OFFSET_OUT_OF_RANGE, None)
        version = self._request.version
        whole = first and version >= _WHOLE_BATCH
        is_more = asked.fetch_offset < (row.last_stable_offset if self._committed else row.high_watermark)
        if room < 0 and is_more:
            return _wrong(wanted.number, errors.UNKNOWN_SERVER_ERROR, None)
        found = partition.read(asked.fetch_offset, room, at_least_one=whole, committed=self._committed)
        row.records = found.records
        cut = version >= _WHOLE_BATCH and not whole and len(found.records) and _is_cut(found.records)
        if cut:
            row.records = b""
        if version < _BATCHES:
            try:
                row.records = lowered(found.records, _MAGIC[version], asked.fetch_offset)
            except UnsupportedCodec:
                return _wrong(wanted.number, errors.UNSUPPORTED_COMPRESSION_TYPE, None)
            except DecodeError:
                return _wrong(wanted.number, errors.CORRUPT_MESSAGE, None)
        if self._committed and not cut:
            made = messages.FetchResponse.AbortedTransaction
            row.aborted_transactions = [made(producer_id=one, first_offset=offset) for one, offset in found.aborted]
        return row

    def _refuses(self, partition: Partition, epoch: int) -> int:
        """Return the error if this broker does not serve a partition; only consumers may read from a replica."""
        brokers, broker = self._node.brokers, self._request.broker
        if not brokers.has(broker, *partition.key):
            return int(errors.NOT_LEADER_OR_FOLLOWER)
        code = partition.epoch_error(max(epoch, -1))
        if not code and self._follows:
            return int(errors.UNKNOWN_LEADER_EPOCH if epoch >= 0 else errors.NOT_LEADER_OR_FOLLOWER)
        if not code and self._request.version < _FROM_REPLICAS:
            return self._node.leader_error(self._request, *partition.key)
        return code

    def _diverges(self, row: Any, partition: Partition, asked: Any) -> int:
        """Report where the client's log diverges, from the epoch of its last record."""
        epoch, end = partition.end_of_epoch(asked.last_fetched_epoch)
        if epoch < 0:
            return int(errors.OFFSET_OUT_OF_RANGE)
        if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
            row.diverging_epoch.epoch, row.diverging_epoch.end_offset = epoch, end
        return int(errors.NONE)
