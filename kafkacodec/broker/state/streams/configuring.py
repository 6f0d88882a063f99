"""The partitions of a topology's internal topics, its tasks, and what is wrong with its topics."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from kafkacodec.broker.state.machine import Topics
from kafkacodec.broker.state.streams.topology import Refusal, Topology, read_by
from kafkacodec.datatypes import NamedTuple, dataclass, field
from kafkacodec.errors import STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR

__all__ = [
    "ASSIGNMENT_DELAYED",
    "MISSING_CLIENT_TAGS",
    "MISSING_INTERNAL_TOPICS",
    "SHUTDOWN_APPLICATION",
    "STALE_TOPOLOGY",
    "Configured",
    "InternalTopic",
    "Problem",
    "configured",
]

(
    STALE_TOPOLOGY,
    MISSING_SOURCE_TOPICS,
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_INTERNAL_TOPICS,
    SHUTDOWN_APPLICATION,
    ASSIGNMENT_DELAYED,
    MISSING_CLIENT_TAGS,
) = range(7)

_SHOWN: Final = 3  # topics in a text


class Problem(NamedTuple):
    """Why a topology is not ready: the code of a status, and its text."""

    code: int
    text: str


class InternalTopic(NamedTuple):
    """A repartition or changelog topic; factor -1 for the broker's default."""

    name: str
    partitions: int
    factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Configured:
    """A topology with the topics of a cluster.

    Attributes:
        tasks: the number of tasks of each subtopology, if source topics exist and have the right partitions.
        internal: internal topics by name, likewise.
        missing: those that have to be created.
        problem: why it is not ready; None if it is.
    """

    tasks: Mapping[str, int] = field(default_factory=dict)
    internal: Mapping[str, InternalTopic] = field(default_factory=dict)
    missing: Collection[InternalTopic] = ()
    problem: Problem | None = None


class _Wrong(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.problem = Problem(code, text)


def configured(topology: Topology, topics: Topics) -> Configured:
    """Compare a topology with the topics of the cluster.

    Raises:
        Refusal: the topology itself is invalid.
    """
    try:
        return _configured(topology, topics)
    except _Wrong as wrong:
        return Configured(problem=wrong.problem)


def _configured(topology: Topology, topics: Topics) -> Configured:
    parts = topology.parts
    missing = sorted({name for part in parts.values() for name in part.source_topics if not topics.partitions(name)})
    if missing:
        raise _Wrong(MISSING_SOURCE_TOPICS, f"source topics do not exist: {_some(missing)}")
    counts = _Counts(topology, topics)
    counts.decide_repartitions()
    counts.check_copartitions()
    tasks = counts.decide_tasks()
    internal = {name: topic for part in parts.values() for name, topic in counts.internal(part)}
    for name, topic in internal.items():
        found = topics.partitions(name)
        if found and found != topic.partitions:
            text = f"topic {name} has {found} partitions; the topology needs {topic.partitions}"
            raise _Wrong(INCORRECTLY_PARTITIONED_TOPICS, text)
    absent = [topic for name, topic in sorted(internal.items()) if not topics.partitions(name)]
    problem = None
    if absent:
        text = f"internal topics do not exist yet: {_some([topic.name for topic in absent])}"
        problem = Problem(MISSING_INTERNAL_TOPICS, text)
    return Configured(tasks, internal, absent, problem)


class _Counts:
    """The numbers of partitions; those of topics that exist come first."""

    def __init__(self, topology: Topology, topics: Topics) -> None:
        self._parts, self._topics = topology.parts, topics
        infos = [info for part in self._parts.values() for info in part.repartition_source_topics]
        self._fixed = {info.name: info.partitions for info in infos if info.partitions}
        self._flexible = {info.name for info in infos if not info.partitions}
        self._decided: dict[str, int] = dict(self._fixed)

    def of(self, topic: str) -> int:
        """The number of partitions of a topic; 0 if it is not known."""
        return self._topics.partitions(topic) or self._decided.get(topic, 0)

    def _known(self, topic: str) -> int:
        count = self.of(topic)
        if count < 1:
            raise Refusal(UNKNOWN_SERVER_ERROR, f"the number of partitions of topic {topic} is not known")
        return count

    def decide_repartitions(self) -> None:
        """A topic that the application repartitions has as many partitions as the largest topic of its writer."""
        readers: dict[str, list[str]] = {}
        for name, part in self._parts.items():
            for info in part.repartition_source_topics:
                readers.setdefault(info.name, []).append(name)
        waiting, ready = dict.fromkeys(self._parts), deque(self._parts)
        while ready:
            name = ready.popleft()
            part = self._parts[name]
            most = max(self._largest(part), default=0)
            if name not in waiting or not most:
                continue
            del waiting[name]
            for sink in part.repartition_sink_topics:
                if sink not in self._decided:
                    self._decided[sink] = most
                    ready.extend(reader for reader in readers.get(sink, ()) if reader in waiting)
        for name in waiting:
            if any(sink not in self._decided for sink in self._parts[name].repartition_sink_topics):
                text = "the partitions of repartition topics do not follow from others: the topology may have a loop"
                raise Refusal(STREAMS_INVALID_TOPOLOGY, text)
        for topic in readers:
            if topic not in self._decided:
                text = f"repartition topic {topic} is read, and no subtopology writes it"
                raise Refusal(STREAMS_INVALID_TOPOLOGY, text)

    def _largest(self, part: Any) -> Iterator[int]:
        yield from (self._decided.get(info.name, 0) for info in part.repartition_source_topics)
        yield from (self._topics.partitions(topic) for topic in part.source_topics)

    def check_copartitions(self) -> None:
        """Topics that are joined have the same number of partitions."""
        for part in self._parts.values():
            for group in part.copartition_groups:
                names = set(_picked(part.source_topics, group.source_topics))
                infos = _picked(part.repartition_source_topics, group.repartition_source_topics)
                names.update(info.name for info in infos)
                if names:
                    self._copartition(names)

    def _copartition(self, names: set[str]) -> None:
        counts = {name: self._known(name) for name in sorted(names)}
        repartitions = {name for name in names if name in self._fixed or name in self._flexible}
        given = {name: count for name, count in counts.items() if name not in repartitions}
        if given:
            wanted = _same(given)
        elif self._fixed:
            wanted = _same({name: self._known(name) for name in sorted(self._fixed)})
        else:
            wanted = max(counts.values())
        for name in sorted(repartitions):
            if name in self._fixed and counts[name] != wanted:
                text = f"repartition topic {name} has {counts[name]} partitions, the topics read with it {wanted}"
                raise _Wrong(INCORRECTLY_PARTITIONED_TOPICS, text)
            self._decided[name] = wanted

    def decide_tasks(self) -> dict[str, int]:
        """Return the number of tasks of each subtopology: the largest of its topics; changelogs have as many."""
        tasks = {}
        for name, part in self._parts.items():
            tasks[name] = max((self._known(topic) for topic in read_by(part)), default=0)
            if not tasks[name]:
                raise Refusal(STREAMS_INVALID_TOPOLOGY, f"subtopology {name} has no source topics")
            self._decided.update((info.name, tasks[name]) for info in part.state_changelog_topics)
        return tasks

    def internal(self, part: Any) -> Iterator[tuple[str, InternalTopic]]:
        """The internal topics of a subtopology."""
        for info in (*part.repartition_source_topics, *part.state_changelog_topics):
            count = info.partitions or self._decided[info.name]
            if count < 1:
                raise Refusal(UNKNOWN_SERVER_ERROR, f"topic {info.name} has {count} partitions")
            configs = {config.key: config.value for config in info.topic_configs}
            yield info.name, InternalTopic(info.name, count, info.replication_factor or -1, configs)


def _picked(rows: Any, numbers: Collection[int]) -> list[Any]:
    """The rows of a copartition group."""
    if not all(0 <= number < len(rows) for number in numbers):
        raise Refusal(UNKNOWN_SERVER_ERROR, "a copartition group has a topic that its subtopology does not read")
    return [rows[number] for number in numbers]


def _same(counts: Mapping[str, int]) -> int:
    numbers = set(counts.values())
    if len(numbers) > 1:
        shown = ", ".join(f"{name} has {count}" for name, count in counts.items())
        text = f"topics that are read together need equally many partitions: {shown}"
        raise _Wrong(INCORRECTLY_PARTITIONED_TOPICS, text)
    return numbers.pop()


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
