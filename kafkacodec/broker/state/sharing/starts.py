"""States of partitions at the share coordinator, for share groups that start to read them (KIP-932).

The group coordinator records that a state is being initialized, asks the share coordinator, and records that the state
exists. It deletes a state in the same way.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.groups import Groups
from kafkacodec.broker.state.sharing.group import ShareGroup, Stated
from kafkacodec.errors import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NONE

__all__ = ["ShareStarts"]

_UNKNOWN_OFFSET = -1
_VERSION = 0  # of InitializeShareGroupState and DeleteShareGroupState


class ShareStarts:
    """The states of all groups' partitions.

    Args:
        groups: all groups.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def initialize(self, group: ShareGroup) -> None:
        """Initialize the states of partitions that members subscribe to."""
        missing: Stated = {}
        for topic_id, (name, numbers) in group.without_state(group.counts(group.members.values())).items():
            left = frozenset(number for number in numbers if (topic_id, number) not in group.asked)
            if left:
                missing[topic_id] = name, left
        if missing:
            starts = {(t, n): _first(group, t) for t, (_, numbers) in missing.items() for n in numbers}
            self.begin(group, missing, starts, lambda codes: None)

    def begin(
        self, group: ShareGroup, stated: Stated, starts: Mapping[tuple[uuid.UUID, int], int],
        then: Callable[[dict[tuple[uuid.UUID, int], int]], None],
    ) -> None:  # fmt: skip
        """Record the initialization of states, ask for it, record the result; `then` gets the errors."""
        group.asked |= starts.keys()

        def recorded(code: int) -> None:
            now = self._groups.find(group.name)
            if code or not isinstance(now, ShareGroup):
                group.asked.difference_update(starts)
                then(dict.fromkeys(starts, code or GROUP_ID_NOT_FOUND))
            else:
                now.asked |= starts.keys()
                self._groups.ask(_initialization(now, starts), _VERSION, answered)

        def answered(answer: Any) -> None:
            codes = {(r.topic_id, p.partition): p.error_code for r in answer.results for p in r.partitions}
            self._groups.run(group.name, partial(self._started, group.name, stated, codes, then))

        group.room.write([group.state_record(_with(group.starting, stated), group.started, group.deleting)], recorded)

    def _started(
        self, name: str, stated: Stated, codes: dict[tuple[uuid.UUID, int], int],
        then: Callable[[dict[tuple[uuid.UUID, int], int]], None],
    ) -> None:  # fmt: skip
        group = self._groups.find(name)
        if not isinstance(group, ShareGroup):
            then(dict.fromkeys(codes, GROUP_ID_NOT_FOUND))
            return
        group.asked -= codes.keys()
        good: Stated = {
            topic_id: (topic, frozenset(n for n in numbers if not codes.get((topic_id, n), NONE)))
            for topic_id, (topic, numbers) in stated.items()
        }

        def written(code: int) -> None:
            then({place: known or code for place, known in codes.items()})

        starting = _without(group.starting, good)  # others may have a state, which is deleted with the group
        group.room.write([group.state_record(starting, _with(group.started, good), group.deleting)], written)

    def delete_of(
        self, group: ShareGroup, topics: Mapping[uuid.UUID, str], then: Callable[[dict[uuid.UUID, int]], None]
    ) -> None:
        """Record the deletion of topics' states, ask for it, record the result; `then` gets the errors."""
        counts = {topic_id: range(self._groups.topics.partitions(name)) for topic_id, name in topics.items()}
        places = {topic_id: sorted(_numbers(group, topic_id) or counts[topic_id]) for topic_id in topics}
        starting = {t: row for t, row in group.starting.items() if t not in topics}
        started = {t: row for t, row in group.started.items() if t not in topics}

        def recorded(code: int) -> None:
            if code:
                then(dict.fromkeys(topics, code))
            else:
                self._groups.ask(_deletion(group.name, places), _VERSION, answered)

        def answered(answer: Any) -> None:
            codes = {r.topic_id: max((p.error_code for p in r.partitions), default=NONE) for r in answer.results}
            self._groups.run(group.name, partial(deleted, codes))

        def deleted(codes: dict[uuid.UUID, int]) -> None:
            now = self._groups.find(group.name)
            if not isinstance(now, ShareGroup):
                then(codes)
                return
            left = {t: name for t, name in now.deleting.items() if t not in topics or codes.get(t)}
            done = now.state_record(now.starting, now.started, left)
            now.room.write([done], lambda code: then({t: codes.get(t) or code for t in topics}))

        group.room.write([group.state_record(starting, started, {**group.deleting, **topics})], recorded)

    def delete(self, group: ShareGroup, done: Callable[[int], None]) -> None:
        """Delete a group without members, and its states."""
        topics = {t: name for t, (name, _) in {**group.starting, **group.started}.items()}

        def deleted(codes: dict[uuid.UUID, int]) -> None:
            code = max(codes.values(), default=NONE)
            now = self._groups.find(group.name)
            if code or not isinstance(now, ShareGroup):
                done(code)
            elif now.members:
                done(NON_EMPTY_GROUP)
            else:
                now.room.write(now.tombstones(), done)

        if topics:
            self.delete_of(group, topics, deleted)
        else:
            deleted({})

    def topics_gone(self, group: ShareGroup, names: Iterable[str]) -> None:
        """Forget a group's states of deleted topics."""
        gone = set(names)
        topics = {t: name for t, (name, _) in {**group.starting, **group.started}.items() if name in gone}
        if topics:
            self.delete_of(group, topics, lambda codes: None)


def _first(group: ShareGroup, topic_id: uuid.UUID) -> int:
    """Where the group begins; new partitions of a topic that it reads are read from their start."""
    return 0 if group.started.get(topic_id, ("", ()))[1] else _UNKNOWN_OFFSET


def _with(stated: Stated, more: Stated) -> Stated:
    found = dict(stated)
    for topic_id, (name, numbers) in more.items():
        found[topic_id] = name, found.get(topic_id, (name, frozenset()))[1] | numbers
    return found


def _without(stated: Stated, less: Stated) -> Stated:
    nothing: frozenset[int] = frozenset()
    return {t: (name, numbers - less.get(t, (name, nothing))[1]) for t, (name, numbers) in stated.items()}


def _numbers(group: ShareGroup, topic_id: uuid.UUID) -> frozenset[int]:
    nothing: frozenset[int] = frozenset()
    return group.starting.get(topic_id, ("", nothing))[1] | group.started.get(topic_id, ("", nothing))[1]


def _initialization(group: ShareGroup, starts: Mapping[tuple[uuid.UUID, int], int]) -> Any:
    request = messages.InitializeShareGroupStateRequest
    topics: dict[uuid.UUID, list[Any]] = {}
    for (topic_id, number), offset in sorted(starts.items()):
        row = request.PartitionData(partition=number, state_epoch=group.epoch, start_offset=offset)
        topics.setdefault(topic_id, []).append(row)
    rows = [request.InitializeStateData(topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()]
    return request(group_id=group.name, topics=rows)


def _deletion(name: str, places: Mapping[uuid.UUID, Iterable[int]]) -> Any:
    request = messages.DeleteShareGroupStateRequest
    rows = [
        request.DeleteStateData(
            topic_id=topic_id, partitions=[request.PartitionData(partition=number) for number in numbers]
        )
        for topic_id, numbers in places.items()
    ]
    return request(group_id=name, topics=rows)
