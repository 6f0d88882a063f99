"""The group coordinator: all requests about groups and committed offsets."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.classic_calls import ClassicCalls
from kafkacodec.broker.state.consumers.calls import ConsumerCalls
from kafkacodec.broker.state.groups import Groups
from kafkacodec.broker.state.machine import Client, Topics
from kafkacodec.broker.state.members import EMPTY
from kafkacodec.broker.state.offset_calls import OffsetCalls
from kafkacodec.broker.state.options import GroupOptions
from kafkacodec.broker.state.sharing.calls import ShareCalls
from kafkacodec.broker.state.sharing.group import ShareGroup
from kafkacodec.broker.state.sharing.offset_calls import ShareOffsetCalls
from kafkacodec.broker.state.sharing.starts import ShareStarts
from kafkacodec.broker.state.streams.calls import StreamsCalls
from kafkacodec.errors import GROUP_ID_NOT_FOUND, INVALID_GROUP_ID, NON_EMPTY_GROUP
from kafkacodec.messages import keys
from kafkacodec.net.service import Effect

__all__ = ["GroupCoordinator"]


_WRITE_AGAIN_MS = 1_000
_JAVA_BLANK = "".join(map(chr, range(33)))
_FILTERED = {"NotReady": "not_ready"}
"""States whose words in filters are not those of answers, in small letters."""


class GroupCoordinator(Groups):
    """The groups of a cluster, as a machine over ``__consumer_offsets``.

    Args:
        topics: the topics of the cluster.
        partitions: the number of partitions of ``__consumer_offsets``.
        options: see `GroupOptions`.
        new_id: makes the ids of members.
        share_enabled: whether the cluster's features have share groups.
    """

    def __init__(
        self,
        topics: Topics,
        partitions: int = 50,
        options: GroupOptions | None = None,
        *,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
        share_enabled: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(topics, partitions, options or GroupOptions(), new_id)
        self._consumers = ConsumerCalls(self)
        self._starts = ShareStarts(self)
        self._shares = ShareCalls(self, self._starts, share_enabled)
        self._streams = StreamsCalls(self)
        self.missing_topics = self._streams.missing_topics
        self.handlers = {
            **ClassicCalls(self, self._consumers).handlers,
            **self._consumers.handlers,
            **OffsetCalls(self).handlers,
            **self._shares.handlers,
            **ShareOffsetCalls(self, self._starts, share_enabled).handlers,
            **self._streams.handlers,
            keys.DESCRIBE_GROUPS: self._describe,
            keys.LIST_GROUPS: self._list,
            keys.DELETE_GROUPS: self._delete,
        }

    def start(self) -> None:
        """Set the timers of loaded members and offsets."""
        super().start()
        self._consumers.start()
        self._shares.start()
        self._streams.start()

    def topics_changed(self) -> None:
        """Match regular expressions again, since topics came, went or grew."""
        self.topics_version += 1

    def topics_deleted(self, names: Collection[str], now: float) -> Effect:
        """Remove the offsets of deleted topics, and the states of share groups for them."""
        self._at(now)
        self.topics_changed()
        for share in [group for group in self.groups.values() if isinstance(group, ShareGroup)]:
            self.run(share.name, partial(self._starts.topics_gone, share, names))
        for group, places in self.offsets.places_of_topics(names).items():
            self.run(group, partial(self._forget, group, places))
        return self._effect()

    def _forget(self, group: str, places: list[tuple[str, int]]) -> None:
        def written(code: int) -> None:
            if code:
                again = partial(self._forget, group, places)
                self.set_timer(group, f"forget {places[0]}", self.now + _WRITE_AGAIN_MS, again)

        self.write(group, self.offsets.tombstones(group, places), written, (-1, -1))

    def _describe(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.DescribeGroupsResponse
        rows = []
        for name in request.groups:
            group = self.find_classic(name)
            if group is not None:
                rows.append(group.described())
                continue
            row = response.DescribedGroup(group_id=name, group_state="Dead")
            if version > 5:
                row.error_code, row.error_message = GROUP_ID_NOT_FOUND, f"Group {name} not found."
            rows.append(row)
        self.reply(to, response(groups=rows))

    def _list(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.ListGroupsResponse
        states = {state.strip(_JAVA_BLANK).lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        rows = [
            response.ListedGroup(
                group_id=name, protocol_type=group.protocol_type or "", group_state=group.state, group_type=group.kind
            )
            for name, group in sorted(self.groups.items())
            if (not states or _FILTERED.get(group.state, group.state.lower()) in states)
            and (not types or group.kind in types)
        ]
        self.reply(to, response(groups=rows))

    def _delete(self, request: Any, version: int, client: Client, to: Any) -> None:
        response = messages.DeleteGroupsResponse
        names = list(dict.fromkeys(request.groups_names))
        codes: dict[str, int] = {}

        def done(name: str, code: int) -> None:
            codes[name] = code
            if len(codes) == len(names):
                rows = [response.DeletableGroupResult(group_id=each, error_code=codes[each]) for each in names]
                self.reply(to, response(results=rows))

        if not names:
            self.reply(to, response())
        for name in names:
            self.run(name, partial(self._delete_one, name, partial(done, name)))

    def _delete_one(self, name: str, done: Callable[[int], None]) -> None:
        group = self.find(name)
        if group is None:
            done(GROUP_ID_NOT_FOUND if name else INVALID_GROUP_ID)
        elif group.state != EMPTY:
            done(NON_EMPTY_GROUP)
        elif isinstance(group, ShareGroup):
            self._starts.delete(group, done)
        else:
            group.room.write(self.tombstones(name), done)
