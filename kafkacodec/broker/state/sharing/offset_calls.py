"""Requests that change the positions of share groups: AlterShareGroupOffsets and DeleteShareGroupOffsets (KIP-932)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.groups import Groups
from kafkacodec.broker.state.machine import Client, Handler, Room
from kafkacodec.broker.state.sharing.group import ShareGroup, Stated
from kafkacodec.broker.state.sharing.starts import ShareStarts
from kafkacodec.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    error,
)
from kafkacodec.messages import keys

__all__ = ["ShareOffsetCalls"]


class ShareOffsetCalls:
    """Both requests, for groups without members.

    Args:
        groups: all groups.
        starts: the states of their partitions.
        enabled: whether the cluster's features have share groups.
    """

    def __init__(self, groups: Groups, starts: ShareStarts, enabled: Callable[[], bool]) -> None:
        self._groups, self._starts, self._enabled = groups, starts, enabled
        self.handlers: dict[int, Handler] = {
            keys.ALTER_SHARE_GROUP_OFFSETS: self._alter,
            keys.DELETE_SHARE_GROUP_OFFSETS: self._delete,
        }

    def _refusal(self, request: Any, group: Any) -> int:
        """Why the offsets of a group may not be changed."""
        if not self._enabled():
            return UNSUPPORTED_VERSION
        if not request.group_id:
            return INVALID_GROUP_ID
        if group is None:  # offsets that are set make it
            return GROUP_ID_NOT_FOUND if isinstance(request, messages.DeleteShareGroupOffsetsRequest) else NONE
        if not isinstance(group, ShareGroup):
            return GROUP_ID_NOT_FOUND
        return NON_EMPTY_GROUP if group.members else NONE

    def _refused(self, request: Any, group: Any, response: Any, to: Any) -> bool:
        """Answer with an error if the offsets cannot change."""
        code = self._refusal(request, group)
        if code:
            said = None if code == UNSUPPORTED_VERSION else f"the offsets stay: {error(code).__name__}"
            self._groups.reply(to, response(error_code=code, error_message=said))
        return bool(code)

    def _alter(self, request: Any, version: int, client: Client, to: Any) -> None:
        self._groups.run(request.group_id, partial(self._alter_now, request, to))

    def _alter_now(self, request: Any, to: Any) -> None:
        response = messages.AlterShareGroupOffsetsResponse
        group = self._groups.find(request.group_id)
        if self._refused(request, group, response, to):
            return
        rows, stated, starts = self._altered(request)
        answer = response(responses=rows)

        def done(codes: dict[tuple[uuid.UUID, int], int]) -> None:
            for topic in rows:
                for row in topic.partitions:
                    code = codes.get((topic.topic_id, row.partition_index), NONE)
                    if code and not row.error_code:
                        row.error_code, row.error_message = code, f"the state stays: {error(code).__name__}"
            self._groups.reply(to, answer)

        if not starts and (group is not None or all(self._groups.topics.id_of(row.topic_name) is None for row in rows)):
            self._groups.reply(to, answer)
        elif isinstance(group, ShareGroup):
            self._starts.begin(group, stated, starts, done)
        else:
            self._make(request.group_id, stated, starts, done, to)

    def _make(self, name: str, stated: Stated, starts: Any, done: Any, to: Any) -> None:
        """Make a group of offsets alone."""
        group = ShareGroup(Room(self._groups, name), self._groups.topics)

        def written(code: int) -> None:
            now = self._groups.find(name)
            if code or not isinstance(now, ShareGroup):
                self._groups.reply(to, messages.AlterShareGroupOffsetsResponse(error_code=code or GROUP_ID_NOT_FOUND))
            elif not starts:
                done({})
            else:
                self._starts.begin(now, stated, starts, done)

        group.room.write([group.epoch_record(group.epoch, 0), group.target_epoch_record(group.epoch, 0)], written)

    def _altered(self, request: Any) -> tuple[list[Any], Stated, dict[tuple[uuid.UUID, int], int]]:
        """The rows of the answer, and the partitions that get a new start."""
        response = messages.AlterShareGroupOffsetsResponse
        rows: dict[str, Any] = {}
        stated: Stated = {}
        starts: dict[tuple[uuid.UUID, int], int] = {}
        for topic in request.topics:
            topic_id = self._groups.topics.id_of(topic.topic_name)
            count = self._groups.topics.partitions(topic.topic_name)
            empty = response.AlterShareGroupOffsetsResponseTopic(topic_name=topic.topic_name)
            made = rows.setdefault(topic.topic_name, empty)
            for asked in topic.partitions:
                row = response.AlterShareGroupOffsetsResponsePartition(partition_index=asked.partition_index)
                made.partitions.append(row)
                if topic_id is not None and 0 <= asked.partition_index < count:
                    starts[topic_id, asked.partition_index] = asked.start_offset
                    numbers = stated.get(topic_id, ("", frozenset()))[1] | {asked.partition_index}
                    stated[topic_id] = topic.topic_name, numbers
                else:
                    row.error_code, row.error_message = UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
            if topic_id is not None:
                made.topic_id = topic_id
        return list(rows.values()), stated, starts

    def _delete(self, request: Any, version: int, client: Client, to: Any) -> None:
        self._groups.run(request.group_id, partial(self._delete_now, request, to))

    def _delete_now(self, request: Any, to: Any) -> None:
        response = messages.DeleteShareGroupOffsetsResponse
        group = self._groups.find(request.group_id)
        if self._refused(request, group, response, to):
            return
        assert isinstance(group, ShareGroup)
        rows = []
        known: dict[uuid.UUID, str] = {}
        for topic in request.topics:
            row = response.DeleteShareGroupOffsetsResponseTopic(topic_name=topic.topic_name)
            topic_id = self._groups.topics.id_of(topic.topic_name)
            has = topic_id in group.started
            if topic_id in known:
                continue
            rows.append(row)
            if topic_id is None or not has:
                row.error_code, row.error_message = UNKNOWN_TOPIC_OR_PARTITION, "the group has not read this topic"
            else:
                row.topic_id = known_id = topic_id
                known[known_id] = topic.topic_name

        def done(codes: dict[uuid.UUID, int]) -> None:
            for row in rows:
                row.error_code = row.error_code or codes.get(row.topic_id, NONE)
            self._groups.reply(to, response(responses=rows))

        if known:
            self._starts.delete_of(group, known, done)
        else:
            done({})
