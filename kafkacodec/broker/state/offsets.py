"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit, and their end.

A commit in a transaction is pending until the transaction's marker is in the same partition of ``__consumer_offsets``.
The order of the log decides which offset of a partition counts, not the order of the markers.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from kafkacodec import messages
from kafkacodec.broker.state.machine import Topics
from kafkacodec.broker.state.options import GroupOptions
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import (
    NONE,
    OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
)
from kafkacodec.messages.stored import StoredRecord

__all__ = ["Offsets", "Place", "answer_of", "partitions_by_topic"]

_ZERO = uuid.UUID(int=0)
_UNKNOWN = frozenset((UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION))
_VALUE_VERSION, _VALUE_WITH_EXPIRY = 4, 1

Place = tuple[str, int]
"""A topic and a partition."""


class _Commit(NamedTuple):
    """The value of a record, and its number in the order of the log."""

    number: int
    value: Any


class Offsets:
    """The offsets of all groups.

    Args:
        topics: the topics of the cluster.
        options: see `GroupOptions`.
    """

    def __init__(self, topics: Topics, options: GroupOptions) -> None:
        self._topics, self._options = topics, options
        self._committed: dict[str, dict[Place, _Commit]] = {}
        self._pending: dict[str, dict[int, dict[Place, _Commit]]] = {}  # by group and producer
        self._writers: dict[int, set[str]] = {}  # the groups with something pending, by producer
        self._numbers = count()

    # Records

    def apply(self, key: Any, value: Any, producer_id: int) -> None:
        """Apply a record of a commit."""
        place = key.topic, key.partition
        if value is None:
            _take(self._committed, key.group, place)
            for commits in self._pending.get(key.group, {}).values():
                commits.pop(place, None)
        elif producer_id < 0:
            self._committed.setdefault(key.group, {})[place] = _Commit(next(self._numbers), value)
        else:
            commits = self._pending.setdefault(key.group, {}).setdefault(producer_id, {})
            commits[place] = _Commit(next(self._numbers), value)
            self._writers.setdefault(producer_id, set()).add(key.group)

    def end_transaction(self, producer_id: int, committed: bool, groups: Iterable[str]) -> None:
        """Apply a marker: pending commits of these groups count, or are forgotten."""
        for group in groups:
            producers = self._pending[group]
            for place, commit in producers.pop(producer_id).items():
                present = self._committed.get(group, {}).get(place)
                if committed and (present is None or present.number < commit.number):
                    self._committed.setdefault(group, {})[place] = commit
            if not producers:
                del self._pending[group]
            self._writers[producer_id].discard(group)
        if not self._writers.get(producer_id):
            self._writers.pop(producer_id, None)

    def pending_groups(self, producer_id: int) -> list[str]:
        """The groups with commits in the open transaction of a producer."""
        return sorted(self._writers.get(producer_id, ()))

    def tombstones(self, group: str, places: Iterable[Place]) -> list[StoredRecord]:
        """Return the records that remove offsets."""
        key = messages.OffsetCommitKey
        return [StoredRecord(key(group=group, topic=t, partition=p), None, None) for t, p in places]

    def places(self, group: str) -> list[Place]:
        """Return the partitions with an offset of a group, including pending ones."""
        found = dict.fromkeys(self._committed.get(group, ()))
        for commits in self._pending.get(group, {}).values():
            found.update(dict.fromkeys(commits))
        return list(found)

    def places_of_topics(self, topics: Iterable[str]) -> dict[str, list[Place]]:
        """Return the partitions of topics with offsets, by group."""
        wanted = set(topics)
        groups = {**dict.fromkeys(self._committed), **dict.fromkeys(self._pending)}
        found = {group: [place for place in self.places(group) if place[0] in wanted] for group in groups}
        return {group: places for group, places in found.items() if places}

    # OffsetCommit and TxnOffsetCommit

    def check_places(self, request: Any, by_id: bool) -> dict[tuple[int, int], int]:
        """Return the error codes of unknown partitions in a request, by position in it.

        An unknown topic without partitions has one at position -1.
        """
        codes: dict[tuple[int, int], int] = {}
        for t, topic in enumerate(request.topics):
            if by_id:
                topic.name = self._topics.name_of(topic.topic_id) or ""
            there = self._topics.partitions(topic.name) if topic.name else 0
            missing = UNKNOWN_TOPIC_ID if by_id and not there else UNKNOWN_TOPIC_OR_PARTITION
            if not there and not topic.partitions:
                codes[t, -1] = missing
            for p, partition in enumerate(topic.partitions):
                if not 0 <= partition.partition_index < there:
                    codes[t, p] = missing
        return codes

    def records(self, request: Any, codes: dict[tuple[int, int], int], now: int) -> list[StoredRecord]:
        """Return the records of a commit without the partitions that have error codes; too long texts get one."""
        found: list[StoredRecord] = []
        retention = getattr(request, "retention_time_ms", -1)
        for t, topic in enumerate(request.topics):
            for p, partition in enumerate(topic.partitions):
                text = partition.committed_metadata or ""
                if (t, p) not in codes and _java_length(text) > self._options.offset_metadata_max_bytes:
                    codes[t, p] = OFFSET_METADATA_TOO_LARGE
                if (t, p) in codes:
                    continue
                when = getattr(partition, "commit_timestamp", -1)
                value = messages.OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=text,
                    commit_timestamp=now if when == -1 else when,
                )
                if retention != -1:
                    value.expire_timestamp = _java_sum(value.commit_timestamp, retention)
                elif topic.topic_id != _ZERO:
                    value.topic_id = topic.topic_id
                key = messages.OffsetCommitKey(
                    group=request.group_id, topic=topic.name, partition=partition.partition_index
                )
                version = _VALUE_VERSION if retention == -1 else _VALUE_WITH_EXPIRY
                found.append(StoredRecord(key, value, version))
        return found

    # OffsetFetch

    def fetch(self, group: str, topics: Any, *, by_id: bool, stable: bool) -> list[tuple[str, uuid.UUID, list[Any]]]:
        """Names, ids and rows of the topics of an answer; None asks for all that are committed."""
        if topics is not None:
            return [self._asked(group, topic, by_id, stable) for topic in topics]
        found = []
        for name, numbers in partitions_by_topic(self._committed.get(group, ())).items():
            known = self._topics.id_of(name)
            if not by_id or known is not None:
                rows = [self._row(group, (name, number), stable) for number in numbers]
                found.append((name, known or _ZERO, rows))
        return found

    def _asked(self, group: str, topic: Any, by_id: bool, stable: bool) -> tuple[str, uuid.UUID, list[Any]]:
        if not by_id:
            return topic.name, _ZERO, [self._row(group, (topic.name, n), stable) for n in topic.partition_indexes]
        name = self._topics.name_of(topic.topic_id)
        if name is None:
            rows = [_row(number, UNKNOWN_TOPIC_ID) for number in topic.partition_indexes]
        else:
            rows = [self._row(group, (name, number), stable) for number in topic.partition_indexes]
        return "", topic.topic_id, rows

    def _row(self, group: str, place: Place, stable: bool) -> Any:
        if stable and self._is_pending(group, place):
            return _row(place[1], UNSTABLE_OFFSET_COMMIT)
        commit = self._committed.get(group, {}).get(place)
        return _row(place[1], NONE, None if commit is None else commit.value)

    # Their end

    def expired(self, group: str, start: Callable[[str], int | None], now: int) -> list[Place]:
        """Return the expired offsets of a group.

        Args:
            group: its name.
            start: the start of a topic's retention; -1 for the time of each commit, None while in use.
            now: the time.
        """
        found: list[Place] = []
        for place, commit in self._committed.get(group, {}).items():
            begun, end = start(place[0]), commit.value.expire_timestamp
            if begun is None or self._is_pending(group, place):
                continue
            if end == -1:
                end = (commit.value.commit_timestamp if begun == -1 else begun) + self._options.offsets_retention_ms
            if now >= end:
                found.append(place)
        return found

    def _is_pending(self, group: str, place: Place) -> bool:
        return any(place in commits for commits in self._pending.get(group, {}).values())


def answer_of(response: Any, request: Any, codes: Mapping[tuple[int, int], int], code: int = NONE) -> Any:
    """Return the answer to OffsetCommit, TxnOffsetCommit or OffsetDelete: `code` for partitions without their own.

    Rows of a repeated topic are together if something is unknown, since only then Kafka merges answers.
    """
    topic_class, partition_class = (getattr(response, response.__name__ + part) for part in ("Topic", "Partition"))
    merges = not _UNKNOWN.isdisjoint(codes.values())
    topics: dict[Any, Any] = {}
    for t, topic in enumerate(request.topics):
        if not topic.partitions and (t, -1) not in codes:
            continue
        key = (topic.name, getattr(topic, "topic_id", None)) if merges else t
        row = topics.setdefault(key, topic_class(name=topic.name))
        if hasattr(topic, "topic_id"):
            row.topic_id = topic.topic_id
        row.partitions += [
            partition_class(partition_index=row.partition_index, error_code=codes.get((t, p), code))
            for p, row in enumerate(topic.partitions)
        ]
    return response(topics=list(topics.values()))


def partitions_by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """Partitions by their topics."""
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


def _row(partition: int, code: int, value: Any = None) -> Any:
    row = messages.OffsetFetchResponse.OffsetFetchResponsePartitions
    if value is None:
        return row(partition_index=partition, committed_offset=-1, metadata="", error_code=code)
    return row(
        partition_index=partition,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        error_code=code,
    )


def _take(groups: dict[str, dict[Place, _Commit]], group: str, place: Place) -> None:
    if group in groups:
        groups[group].pop(place, None)
        if not groups[group]:
            del groups[group]


def _java_sum(one: int, other: int) -> int:
    """The sum of two int64, which overflows as in Kafka: what never ends has ended."""
    return (one + other + (1 << 63)) % (1 << 64) - (1 << 63)


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-be", "surrogatepass")) // 2
