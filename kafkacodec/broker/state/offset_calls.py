"""The requests about committed offsets."""

from __future__ import annotations

from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.groups import AnyGroup, Groups
from kafkacodec.broker.state.machine import Client, Handler
from kafkacodec.broker.state.offsets import answer_of
from kafkacodec.errors import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    INVALID_GROUP_ID,
    NONE,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kafkacodec.messages import keys

__all__ = ["OffsetCalls"]

_GROUPS = 8  # OffsetFetch: several groups in a request
_IDS = 10  # OffsetCommit and OffsetFetch: topics by id
_TXN_IDS = 6  # TxnOffsetCommit
_TXN_STALE = 6  # TxnOffsetCommit: clients know STALE_MEMBER_EPOCH
_EPOCHS = 9  # OffsetCommit: epochs of members, and GROUP_ID_NOT_FOUND


class OffsetCalls:
    """OffsetCommit, OffsetFetch, OffsetDelete and TxnOffsetCommit."""

    def __init__(self, groups: Groups) -> None:
        self._groups, self._offsets = groups, groups.offsets
        self.handlers: dict[int, Handler] = {
            keys.OFFSET_COMMIT: self._commit,
            keys.OFFSET_FETCH: self._fetch,
            keys.OFFSET_DELETE: self._delete,
            keys.TXN_OFFSET_COMMIT: self._commit_in_transaction,
        }

    def _commit(self, request: Any, version: int, client: Client, to: Any) -> None:
        if version == 0:  # of 0.8.1, when offsets were in ZooKeeper, which kept the number only
            for partition in (partition for topic in request.topics for partition in topic.partitions):
                partition.committed_metadata = ""
        codes = self._offsets.check_places(request, version >= _IDS)
        producer = -1, -1
        self._groups.run(request.group_id, partial(self._write, request, version, codes, producer, to))

    def _commit_in_transaction(self, request: Any, version: int, client: Client, to: Any) -> None:
        codes = self._offsets.check_places(request, version >= _TXN_IDS)
        producer = request.producer_id, request.producer_epoch
        self._groups.run(request.group_id, partial(self._write, request, version, codes, producer, to))

    def _write(
        self, request: Any, version: int, codes: dict[tuple[int, int], int], producer: tuple[int, int], to: Any
    ) -> None:
        transactional = producer[0] >= 0
        response = messages.TxnOffsetCommitResponse if transactional else messages.OffsetCommitResponse
        group = self._groups.find(request.group_id)
        code = NONE
        if any((t, p) not in codes for t, topic in enumerate(request.topics) for p in range(len(topic.partitions))):
            code = self._refusal(group, request, version, transactional)

        def written(failed: int) -> None:
            self._groups.reply(to, answer_of(response, request, codes, failed))

        if code:
            written(code)
            return
        if group is not None:
            group.heard_from(request.member_id)
        records = self._offsets.records(request, codes, self._groups.now)
        self._groups.write(request.group_id, records, written, producer)

    def _refusal(self, group: AnyGroup | None, request: Any, version: int, transactional: bool) -> int:
        if group is not None:
            code = group.commit_refusal(request, version, transactional=transactional)
            hides = transactional and version < _TXN_STALE and code == STALE_MEMBER_EPOCH
            return ILLEGAL_GENERATION if hides else code
        if request.generation_id_or_member_epoch < 0:
            return NONE
        if transactional:
            return UNKNOWN_MEMBER_ID
        return GROUP_ID_NOT_FOUND if version >= _EPOCHS else ILLEGAL_GENERATION

    def _fetch(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.OffsetFetchResponse
        stable = request.require_stable
        if version >= _GROUPS:
            rows = [self._fetched(group, version, stable) for group in request.groups]
            self._groups.reply(to, response(groups=rows))
            return
        found = self._offsets.fetch(request.group_id, request.topics, by_id=False, stable=stable)
        partition = response.OffsetFetchResponsePartition
        topics = [
            response.OffsetFetchResponseTopic(name=name, partitions=[partition(**row.to_dict()) for row in rows])
            for name, _, rows in found
        ]
        if version == 0:  # as when offsets were in ZooKeeper
            for row in [row for topic in topics for row in topic.partitions if row.committed_offset == -1]:
                row.error_code = UNKNOWN_TOPIC_OR_PARTITION
        self._groups.reply(to, response(topics=topics))

    def _fetched(self, asked: Any, version: int, stable: bool) -> Any:
        response = messages.OffsetFetchResponse
        group = self._groups.find(asked.group_id)
        code = group.fetch_refusal(asked.member_id, asked.member_epoch) if group is not None else NONE
        row = response.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
        if not code:
            found = self._offsets.fetch(asked.group_id, asked.topics, by_id=version >= _IDS, stable=stable)
            topic = response.OffsetFetchResponseTopics
            row.topics = [topic(name=name, topic_id=known, partitions=rows) for name, known, rows in found]
        return row

    def _delete(self, request: Any, version: int, client: Client, to: Any) -> None:
        self._groups.run(request.group_id, partial(self._delete_now, request, to))

    def _delete_now(self, request: Any, to: Any) -> None:
        response = messages.OffsetDeleteResponse
        group = self._groups.find(request.group_id)
        code = GROUP_ID_NOT_FOUND if group is None else group.delete_refusal()
        if not request.group_id:
            code = INVALID_GROUP_ID
        if code or group is None:
            self._groups.reply(to, response(error_code=code))
            return
        codes = self._offsets.check_places(request, by_id=False)
        subscribed = group.subscribes()
        rows = {
            (t, p): (topic.name, row.partition_index)
            for t, topic in enumerate(request.topics)
            for p, row in enumerate(topic.partitions)
        }
        refused = {at: GROUP_SUBSCRIBED_TO_TOPIC for at, (topic, _) in rows.items() if subscribed(topic)}
        codes = refused | codes
        wanted = {place for at, place in rows.items() if at not in codes}
        here = [place for place in self._offsets.places(request.group_id) if place in wanted]

        def written(failed: int) -> None:
            answer = response(error_code=failed) if failed else answer_of(response, request, codes)
            self._groups.reply(to, answer)

        group.room.write(self._offsets.tombstones(request.group_id, here), written)
