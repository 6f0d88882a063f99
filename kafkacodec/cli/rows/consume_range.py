"""Which offsets of a topic's partitions `kafkacodec consume` reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from kafkacodec.cli.console import note
from kafkacodec.datatypes import dataclass, field
from kafkacodec.moments import milliseconds

if TYPE_CHECKING:
    from kafkacodec.arguments import IsolationLevel
    from kafkacodec.client import Consumer
    from kafkacodec.client.admin.topic_terms import TopicDescription
    from kafkacodec.client.blocking.topic_admin import TopicAdmin

__all__ = ["Plan", "Range", "Start", "described", "parse_start", "partition_ranges"]

Key = tuple[str, int]
_ELECTION_MS = 5_000  # partitions without a leader for so long have no replica that could become one
_NAMES = {"beginning": "earliest", "earliest": "earliest", "end": "latest", "latest": "latest"}


@dataclass(frozen=True)
class Range:
    """The offsets to read of a partition; `end` is exclusive, None without one."""

    start: int
    end: int | None


@dataclass(frozen=True)
class Plan:
    """What to read.

    Attributes:
        ranges: the offsets by partition.
        later: where partitions begin whose offsets are not known yet: they have no leader, and are read once they do.
        unread: partitions that cannot be read, and why.
    """

    ranges: dict[Key, Range]
    later: dict[Key, Start] = field(default_factory=dict)
    unread: dict[Key, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    """Where to start, as kcat's ``-o`` has it: a name, a time, an offset, or so many records before the end."""

    spec: Any = "earliest"
    offset: int | None = None
    before_end: int | None = None

    @property
    def time(self) -> int | None:
        """The time in milliseconds; None if it starts elsewhere."""
        return self.spec if isinstance(self.spec, int) else None

    def seek(self, consumer: Consumer, key: Key) -> None:
        """Let a consumer begin a partition here, once it has a leader. `before_end` does not count."""
        if self.offset is not None:
            consumer.seek(*key, self.offset)
        elif self.time is not None:
            consumer.seek_to_timestamp(self.time, key)
        elif self.spec == "latest":
            consumer.seek_to_end(key)
        else:
            consumer.seek_to_beginning(key)


def parse_start(text: str) -> Start:
    """A start by its text: ``beginning``, ``end``, an offset, ``-N`` for the last N, ``s@TIME``.

    Raises:
        ValueError: it is none of them.
    """
    if text in _NAMES:
        return Start(_NAMES[text])
    if text.startswith("s@"):
        time = milliseconds(text[2:], "the time after s@")
        if time < 0:
            raise ValueError(f"{text} is before 1970")
        return Start(time)
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return Start(before_end=int(text[1:])) if text.startswith("-") else Start(offset=int(text))
    if text.startswith("e@"):
        raise ValueError("e@TIME is --end-time TIME")
    raise ValueError(
        f"{text!r} is none of beginning, end, stored, an offset, -N for the last N, s@TIME; --output names a file"
    )


def described(admin: TopicAdmin, topics: Iterable[str]) -> dict[str, TopicDescription]:
    """The topics by name. Raises click.ClickException if one is not there."""
    from kafkacodec.errors import ItemErrors

    try:
        return admin.describe_topics(list(dict.fromkeys(topics)))
    except ItemErrors as errors:
        raise click.ClickException("; ".join(f"{name}: {error}" for name, error in errors.errors.items())) from None


def partition_ranges(
    admin: TopicAdmin,
    topics: Iterable[str],
    numbers: Iterable[int],
    start: Start,
    end_time: int | None,
    *,
    to_end: bool,
    isolation_level: IsolationLevel,
) -> Plan:
    """The range of each partition of the topics, or of those with these numbers.

    An offset after the end of a partition is its end; a note says so. Another note names the partitions whose offsets
    are not known, because they have no leader for instance.

    Raises:
        click.ClickException: there is no such topic or partition, or none can be read.
    """
    wanted = set(numbers)
    found_topics = described(admin, topics)
    leaders = {
        (topic.name, part.partition): part.leader
        for topic in found_topics.values()
        for part in topic.partitions
        if not wanted or part.partition in wanted
    }
    missing = wanted - {number for _, number in leaders}
    if missing:
        raise click.ClickException(f"{', '.join(found_topics)}: no partition {min(missing)}")
    firsts, unread = _firsts(admin, leaders)
    later = {}
    if not to_end and end_time is None and start.before_end is None:
        later, unread = dict.fromkeys(unread, start), {}
    if unread and not firsts:
        raise click.ClickException("; ".join(why for why in unread.values()))
    for why in unread.values():
        note(why)

    def found(spec: Any, committed: bool = isolation_level == "read_committed") -> dict[Key, int]:
        level: IsolationLevel = "read_committed" if spec == "latest" and committed else "read_uncommitted"
        listed = admin.list_offsets(dict.fromkeys(firsts, spec), isolation_level=level) if firsts else {}
        return {(key.topic, key.partition): offset.offset for key, offset in listed.items()}

    ends = found("latest")
    if start.offset is not None:
        chosen = {key: _not_after(key, last, start.offset) for key, last in found("latest", committed=False).items()}
    else:
        chosen = found(start.spec) if start.before_end is None else {}
    stops = found(end_time) if end_time is not None else {}
    ranges = {
        key: Range(_start(start, first, ends[key], chosen.get(key)), _end(stops.get(key, -1), ends[key], to_end))
        for key, first in firsts.items()
    }
    return Plan(ranges, later, unread)


def _firsts(admin: TopicAdmin, leaders: dict[Key, int | None]) -> tuple[dict[Key, int], dict[Key, str]]:
    """The first offsets, and why some are not known. An election does not last as long as other answers may."""
    from kafkacodec.errors import ItemErrors

    firsts: dict[Key, int] = {}
    unread: dict[Key, str] = {}
    for led in (True, False):
        keys = [key for key, leader in leaders.items() if (leader is not None) is led]
        if not keys:
            continue
        listed: Mapping[Any, Any]
        try:
            listed = admin.list_offsets(dict.fromkeys(keys, "earliest"), timeout_ms=None if led else _ELECTION_MS)
        except ItemErrors as errors:
            listed = errors.results
            for topic, number in errors.errors:
                why = errors.errors[topic, number] if led else "it has no leader (LEADER_NOT_AVAILABLE)"
                unread[topic, number] = f"{topic}-{number} is not read: {why}"
        firsts |= {(key.topic, key.partition): offset.offset for key, offset in listed.items()}
    return firsts, unread


def _not_after(key: Key, last: int, offset: int) -> int:
    """An offset that is not after the end of the partition: a broker would refuse it."""
    if offset > last:
        note(f"{key[0]}-{key[1]}: offset {offset} is after the end, starting at {last}")
    return min(offset, last)


def _start(start: Start, first: int, end: int, chosen: int | None) -> int:
    if start.before_end is not None:
        return max(first, end - start.before_end)
    return end if chosen is None or chosen < 0 else chosen  # -1: no record is that new


def _end(stop: int, end: int, to_end: bool) -> int | None:
    if stop >= 0:
        return min(stop, end) if to_end else stop
    return end if to_end else None
