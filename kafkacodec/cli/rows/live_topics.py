"""Topics as brokers describe them, for ``kafkacodec topics --bootstrap``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.output import Column, counted, print_table, size
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import ItemErrors, UnsupportedVersion

if TYPE_CHECKING:
    from kafkacodec.client import Admin
    from kafkacodec.client.admin.offsets import OffsetAndTimestamp
    from kafkacodec.client.admin.replicas import LogDir

__all__ = ["LivePartition", "LiveTopic", "live_partitions", "show_partitions", "show_topics"]


class LivePartition(NamedTuple):
    """A partition of a cluster.

    `leader` is None while there is none: then offsets are unknown too. `size_in_bytes` is that of the leader's replica,
    None if brokers do not tell it to this client.
    """

    topic: str
    partition: int
    internal: bool
    leader: int | None
    replicas: list[int]
    isr: list[int]
    start_offset: int | None
    end_offset: int | None
    size_in_bytes: int | None

    @property
    def offsets(self) -> int | None:
        """How many offsets it has, at most so many records."""
        return None if self.start_offset is None or self.end_offset is None else self.end_offset - self.start_offset

    @property
    def notes(self) -> list[str]:
        """What is wrong with it, as text."""
        if self.leader is None:
            return ["no leader"]
        missing = sorted(set(self.replicas) - set(self.isr))
        return [f"not in sync: {', '.join(map(str, missing))}"] if missing else []


class LiveTopic(NamedTuple):
    """A topic of a cluster, summed up; a sum is None if a part of it is unknown."""

    topic: str
    internal: bool
    num_partitions: int
    replicas: int
    offsets: int | None
    size_in_bytes: int | None
    notes: list[str]


def live_partitions(admin: Admin, wanted: Callable[[str, int], bool]) -> list[LivePartition]:
    """The partitions of all topics that are wanted by topic and number, in order."""
    names = admin.list_topics(include_internal=True)
    described = admin.describe_topics(names)
    found = {
        (topic.name, part.partition): (topic, part)
        for topic in described.values()
        for part in topic.partitions
        if wanted(topic.name, part.partition)
    }
    led = [key for key, (_, part) in found.items() if part.leader is not None]
    starts: Mapping[Any, OffsetAndTimestamp] = admin.list_offsets(dict.fromkeys(led, "earliest"))
    ends: Mapping[Any, OffsetAndTimestamp] = admin.list_offsets(dict.fromkeys(led, "latest"))
    sizes = _sizes(admin)
    return [
        LivePartition(
            topic.name,
            part.partition,
            topic.internal,
            part.leader,
            part.replicas,
            part.isr,
            starts[key].offset if key in starts else None,
            ends[key].offset if key in ends else None,
            sizes.get((part.leader, *key)),
        )
        for key, (topic, part) in sorted(found.items(), key=lambda item: item[0])
    ]


def _per_topic(partitions: Sequence[LivePartition]) -> list[LiveTopic]:
    """The topics of partitions."""
    topics: dict[str, list[LivePartition]] = {}
    for part in partitions:
        topics.setdefault(part.topic, []).append(part)
    return [
        LiveTopic(
            name,
            parts[0].internal,
            len(parts),
            max(len(part.replicas) for part in parts),
            _sum([part.offsets for part in parts]),
            _sum([part.size_in_bytes for part in parts]),
            [f"{name}-{part.partition}: {text}" for part in parts for text in part.notes],
        )
        for name, parts in topics.items()
    ]


def _sum(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _sizes(admin: Admin) -> dict[tuple[Any, ...], int]:
    """The sizes of replicas by broker, topic and partition; empty where a broker does not tell them."""
    brokers: Mapping[int, Mapping[str, LogDir]]
    try:
        brokers = admin.describe_log_dirs()
    except UnsupportedVersion:
        return {}
    except ItemErrors as refused:
        brokers = refused.results
    return {
        (broker, *key): replica.size
        for broker, dirs in brokers.items()
        for described in dirs.values()
        for key, replica in described.replicas.items()
        if not replica.future
    }


def show_partitions(found: Sequence[LivePartition], order: str, *, as_json: bool) -> None:
    """Print a line per partition."""
    lines = sorted(found, key=lambda part: (*_key(part, order), part.topic, part.partition))
    cells: dict[Column, Callable[[LivePartition], str]] = {
        Column("partition", stretch=True, cut_start=True): lambda part: f"{part.topic}-{part.partition}",
        Column("start", right=True): lambda part: _number(part.start_offset),
        Column("end", right=True): lambda part: _number(part.end_offset),
        Column("size", right=True): lambda part: _size(part.size_in_bytes),
        Column("leader", right=True): lambda part: _number(part.leader),
        Column("replicas"): lambda part: ",".join(map(str, part.replicas)),
        Column("in sync"): lambda part: ",".join(map(str, part.isr)),
        Column("notes", below=True): lambda part: ", ".join(part.notes),
    }
    _show(lines, cells, found, as_json)


def show_topics(found: Sequence[LivePartition], order: str, *, as_json: bool) -> None:
    """Print a line per topic."""
    lines = sorted(_per_topic(found), key=lambda topic: (*_key(topic, order), topic.topic))
    cells: dict[Column, Callable[[LiveTopic], str]] = {
        Column("topic", stretch=True): lambda topic: topic.topic,
        Column("parts", right=True): lambda topic: f"{topic.num_partitions:,}",
        Column("replicas", right=True): lambda topic: f"{topic.replicas:,}",
        Column("offsets", right=True): lambda topic: _number(topic.offsets),
        Column("size", right=True): lambda topic: _size(topic.size_in_bytes),
        Column("notes", below=True): lambda topic: ", ".join(topic.notes),
    }
    _show(lines, cells, found, as_json)


def _key(line: LivePartition | LiveTopic, order: str) -> tuple[int, ...]:
    """Internal topics last; by size or number of offsets, the largest first."""
    by = {"size": line.size_in_bytes, "records": line.offsets}.get(order)
    return int(line.internal), -(by or 0)


def _show(lines: Sequence[Any], cells: dict[Column, Callable[[Any], str]], found: Any, as_json: bool) -> None:
    if as_json:
        for line in lines:
            say_json({**line._asdict(), "offsets": line.offsets, "notes": line.notes})
        return
    rows = [
        [[value(line) for value in cells.values()] for line in lines if line.internal == kind] for kind in (False, True)
    ]
    print_table(list(cells), [*rows[0], *(["internal topics:"] if all(rows) else []), *rows[1]])
    total = _sum([part.size_in_bytes for part in found])
    parts = [counted(len({part.topic for part in found}), "topic"), counted(len(found), "partition")]
    say(", ".join([*parts, *([] if total is None else [size(total)])]))


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _size(count: int | None) -> str:
    return "-" if count is None else size(count)
