"""The ZooKeeper nodes of Kafka 0.7 as typed values, and the assignment of partitions to its consumers.

    /brokers/ids/BROKER                              creator:host:port                      ephemeral
    /brokers/topics/TOPIC/BROKER                     number of partitions on that broker    ephemeral
    /consumers/GROUP/ids/CONSUMER                    the consumer's subscription            ephemeral
    /consumers/GROUP/owners/TOPIC/BROKER-PARTITION   the consumer thread that reads it      ephemeral
    /consumers/GROUP/offsets/TOPIC/BROKER-PARTITION  the next offset to read

All other nodes on these paths are empty. This module does not connect to ZooKeeper.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, TypeAlias

from kafkacodec.assignment.dividing import assign_range
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import DecodeError, EncodeError, LimitExceeded
from kafkacodec.patterns import PatternError, whole_matcher
from kafkacodec.shown import counted, repr_of
from kafkacodec.signatures import suggests_options

__all__ = [
    "DEFAULT_MAX_PARTITIONS",
    "DEFAULT_MAX_THREADS",
    "Blacklist",
    "BrokerNode",
    "ConsumerNode",
    "Node",
    "OffsetNode",
    "OwnerNode",
    "Registry",
    "Static",
    "Subscription",
    "TopicNode",
    "Whitelist",
    "assign",
    "parse_node",
    "parse_subscription",
]

DEFAULT_MAX_PARTITIONS = 100_000
"""Default limit on the partitions of one topic, over all brokers, that a `Registry` lists."""

DEFAULT_MAX_THREADS = 100_000
"""Default limit on the consumer threads of one group and topic that a `Registry` lists."""


@dataclass(frozen=True, slots=True)
class Static:
    """Topics by name, each with the number of threads that read it."""

    topics: Mapping[str, int]

    def threads(self, topic: str) -> int:
        """The number of threads that read `topic`."""
        return self.topics.get(topic, 0)

    def __str__(self) -> str:
        counts = ",".join(f"{json.dumps(topic, ensure_ascii=False)}: {n}" for topic, n in self.topics.items())
        return f"{{ {counts} }}"


@dataclass(frozen=True, slots=True)
class _Filter:
    """Topics by a regular expression.

    The expression has Java's syntax. RE2 matches it in linear time and supports the common subset; see
    `kafkacodec.patterns`.
    """

    pattern: str
    streams: int
    marker: ClassVar[str]
    wanted: ClassVar[bool]

    def threads(self, topic: str) -> int:
        """The number of threads that read `topic`.

        Raises:
            DecodeError: RE2 does not support the expression.
            ImportError: google-re2 is not installed (the extra ``patterns``).
        """
        try:
            found = whole_matcher(self.pattern)(topic)
        except PatternError as e:
            raise DecodeError(f"topic filter: {e}") from None
        return self.streams if found is self.wanted else 0

    def __str__(self) -> str:
        return f"{self.marker}{self.streams}{self.marker}{self.pattern}"


class Whitelist(_Filter):
    """All topics that match a regular expression, each read by `streams` threads."""

    __slots__ = ()
    marker = "*"
    wanted = True


class Blacklist(_Filter):
    """All topics that do not match a regular expression, each read by `streams` threads."""

    __slots__ = ()
    marker = "!"
    wanted = False


Subscription: TypeAlias = Static | Whitelist | Blacklist

_LARGEST_INT = (1 << 31) - 1
_FILTER = re.compile(r"([*!])([0-9]{1,9})\1(.*)", re.DOTALL).fullmatch
_FILTERS = {cls.marker: cls for cls in (Whitelist, Blacklist)}


def parse_subscription(text: str) -> Subscription:
    """The value of a consumer node: ``{ "topic": threads, ... }``, ``*threads*regex`` or ``!threads!regex``.

    Raises:
        DecodeError: other text, or fewer than one thread.
    """
    if text[:1] in _FILTERS:
        match = _FILTER(text)
        if match is None or int(match[2]) < 1:
            raise DecodeError(f"invalid topic filter {text[:80]!r}")
        return _FILTERS[match[1]](match[3], int(match[2]))
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError):
        raise DecodeError(f"invalid topic count {text[:80]!r}") from None
    if not isinstance(counts, dict) or not all(type(n) is int and 1 <= n <= _LARGEST_INT for n in counts.values()):
        raise DecodeError(f"invalid topic count {text[:80]!r}")
    return Static(counts)


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A live broker. `creator` is free text, which often contains the host."""

    broker_id: int
    creator: str
    host: str
    port: int
    ephemeral: ClassVar[bool] = True

    @property
    def path(self) -> str:
        """The node's path."""
        return f"/brokers/ids/{self.broker_id}"

    @property
    def data(self) -> str:
        """The node's data."""
        if ":" in self.creator or ":" in self.host:
            raise EncodeError(f"colon in creator {self.creator!r} or host {self.host!r}", path=self.path)
        return f"{self.creator}:{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TopicNode:
    """A broker that has partitions of a topic: 0 to `partitions` - 1."""

    topic: str
    broker_id: int
    partitions: int
    ephemeral: ClassVar[bool] = True

    @property
    def path(self) -> str:
        """The node's path."""
        return f"/brokers/topics/{_name(self.topic)}/{self.broker_id}"

    @property
    def data(self) -> str:
        """The node's data."""
        return str(self.partitions)


@dataclass(frozen=True, slots=True)
class ConsumerNode:
    """A live consumer and its subscription. The id starts with the group's name and an underscore."""

    group: str
    consumer_id: str
    subscription: Subscription
    ephemeral: ClassVar[bool] = True

    @property
    def path(self) -> str:
        """The node's path."""
        return f"/consumers/{_name(self.group)}/ids/{_name(self.consumer_id)}"

    @property
    def data(self) -> str:
        """The node's data."""
        return str(self.subscription)

    def threads(self, topic: str) -> list[str]:
        """The names of the threads that read `topic`.

        Raises:
            LimitExceeded: more than `DEFAULT_MAX_THREADS`.
            DecodeError: the topic filter is invalid or unsupported.
        """
        count = self.thread_count(topic)
        if count > DEFAULT_MAX_THREADS:
            raise LimitExceeded(f"{count} threads exceed the limit of {DEFAULT_MAX_THREADS}", path=self.path)
        return [f"{self.consumer_id}-{i}" for i in range(count)]

    def thread_count(self, topic: str) -> int:
        """The number of threads that read `topic`. Raises DecodeError if the topic filter is invalid or unsupported."""
        try:
            return self.subscription.threads(topic)
        except DecodeError as e:
            raise e.within(self.path) from None


@dataclass(frozen=True, slots=True)
class OwnerNode:
    """The consumer thread that reads a partition."""

    group: str
    topic: str
    broker_id: int
    partition: int
    thread: str
    ephemeral: ClassVar[bool] = True

    @property
    def path(self) -> str:
        """The node's path."""
        return f"/consumers/{_name(self.group)}/owners/{_name(self.topic)}/{self.broker_id}-{self.partition}"

    @property
    def data(self) -> str:
        """The node's data."""
        return self.thread


@dataclass(frozen=True, slots=True)
class OffsetNode:
    """The offset from which a group continues reading a partition. It outlives the consumers."""

    group: str
    topic: str
    broker_id: int
    partition: int
    offset: int
    ephemeral: ClassVar[bool] = False

    @property
    def path(self) -> str:
        """The node's path."""
        return f"/consumers/{_name(self.group)}/offsets/{_name(self.topic)}/{self.broker_id}-{self.partition}"

    @property
    def data(self) -> str:
        """The node's data."""
        return str(self.offset)


Node: TypeAlias = BrokerNode | TopicNode | ConsumerNode | OwnerNode | OffsetNode


def _name(text: str) -> str:
    if not text or "/" in text:
        raise EncodeError(f"{text!r} cannot be a node name: it is empty or has a slash")
    return text


def _integer(text: str, low: int, high: int) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text, re.ASCII) or not low <= int(text) <= high:
        raise DecodeError(f"{text[:40]!r} is not an integer from {low} to {high}")
    return int(text)


def _count(text: str) -> int:
    """A number that Kafka 0.7 keeps as a non-negative int: broker ids, partitions, ports."""
    return _integer(text, 0, _LARGEST_INT)


def _offset(text: str) -> int:
    return _integer(text, -(1 << 63), (1 << 63) - 1)


def _broker(parts: tuple[str, ...], data: str) -> Node:
    fields = data.split(":")
    if len(fields) < 3:  # clients of 0.7 ignore the rest
        raise DecodeError(f"{data[:80]!r} is not creator:host:port")
    return BrokerNode(_count(parts[0]), fields[0], fields[1], _count(fields[2]))


_PARTITION = r"([0-9]+)-([0-9]+)"
# The paths of nodes with data, and their parsers.
_NODES: list[tuple[Callable[[str], re.Match[str] | None], Callable[[tuple[str, ...], str], Node]]] = [
    (re.compile(path).fullmatch, make)
    for path, make in (
        (r"/brokers/ids/([0-9]+)", _broker),
        (r"/brokers/topics/([^/]+)/([0-9]+)", lambda p, data: TopicNode(p[0], _count(p[1]), _count(data))),
        (r"/consumers/([^/]+)/ids/([^/]+)", lambda p, data: ConsumerNode(p[0], p[1], parse_subscription(data))),
        (
            rf"/consumers/([^/]+)/owners/([^/]+)/{_PARTITION}",
            lambda p, data: OwnerNode(p[0], p[1], _count(p[2]), _count(p[3]), data),
        ),
        (
            rf"/consumers/([^/]+)/offsets/([^/]+)/{_PARTITION}",
            lambda p, data: OffsetNode(p[0], p[1], _count(p[2]), _count(p[3]), _offset(data)),
        ),
    )
]


def parse_node(path: str, data: str | None) -> Node | None:
    """The node at `path` with `data`; None if it is not the path of a node with data.

    Raises:
        DecodeError: the data is invalid; `path` of the error is the node's.
    """
    for match, make in _NODES:
        if (found := match(path)) is not None:
            if data is None:
                raise DecodeError("the node has no data", path=path)
            try:
                return make(found.groups(), data)
            except DecodeError as e:
                raise e.within(path) from None
    return None


def assign(partitions: Iterable[str], consumer_threads: Iterable[str]) -> dict[str, str]:
    """The consumer thread of each partition, as every 0.7 consumer of a group computes it.

    Partitions (``BROKER-PARTITION``) and threads are sorted as strings, so that ``0-10`` precedes ``0-2``. Each thread
    gets a range of partitions; the first ranges may be one larger.

    >>> assign(["0-0", "0-1", "0-10", "0-2"], ["g_c-1", "g_c-0", "g_d-0"])
    {'0-0': 'g_c-0', '0-1': 'g_c-0', '0-10': 'g_c-1', '0-2': 'g_d-0'}
    """
    runs = assign_range(sorted(set(partitions)), sorted(set(consumer_threads)))
    return {partition: thread for thread, run in runs.items() for partition in run}


class Registry:
    """A snapshot of the tree, for queries over several nodes.

    Args:
        nodes: data by path, as read from ZooKeeper; other paths are ignored.
        max_partitions: the most partitions of one topic that a query lists. (A node can claim any number.)
        max_threads: the most threads of one group and topic that a query lists.

    Attributes:
        brokers (dict[int, BrokerNode]): brokers with an address, by id.
        topics (dict[str, dict[int, int]]): the number of partitions, by topic and broker.
        consumers, owners, offsets (list): the nodes of these kinds.
        problems (list[DecodeError]): nodes with invalid data, which are ignored; ``path`` is the node's.
    """

    @suggests_options
    def __init__(
        self,
        nodes: Mapping[str, str | None],
        *,
        max_partitions: int = DEFAULT_MAX_PARTITIONS,
        max_threads: int = DEFAULT_MAX_THREADS,
    ) -> None:
        self.brokers: dict[int, BrokerNode] = {}
        self.topics: dict[str, dict[int, int]] = {}
        self.consumers: list[ConsumerNode] = []
        self.owners: list[OwnerNode] = []
        self.offsets: list[OffsetNode] = []
        self.problems: list[DecodeError] = []
        self._max_partitions = max_partitions
        self._max_threads = max_threads
        for path, data in nodes.items():
            try:
                self._add(parse_node(path, data))
            except DecodeError as e:
                self.problems.append(e)

    def __repr__(self) -> str:
        return repr_of(self, counted(len(self.brokers), "broker"), counted(len(self.topics), "topic"))

    def _add(self, node: Node | None) -> None:
        match node:
            case BrokerNode():
                self.brokers[node.broker_id] = node
            case TopicNode():
                self.topics.setdefault(node.topic, {})[node.broker_id] = node.partitions
            case ConsumerNode():
                self.consumers.append(node)
            case OwnerNode():
                self.owners.append(node)
            case OffsetNode():
                self.offsets.append(node)

    def partitions(self, topic: str) -> list[str]:
        """The partitions of a topic, each ``BROKER-PARTITION``, in string order.

        Raises:
            LimitExceeded: more than `max_partitions`.
        """
        counts = self.topics.get(topic, {})
        self._check_count(topic, counts)
        return sorted(f"{broker}-{i}" for broker, count in counts.items() for i in range(count))

    def consumer_threads(self, group: str, topic: str) -> list[str]:
        """The threads of a group that read a topic, in string order.

        Raises:
            LimitExceeded: more than `max_threads`.
            DecodeError: a topic filter of the group is invalid or unsupported, so that the threads are unknown.
        """
        consumers = [consumer for consumer in self.consumers if consumer.group == group]
        total = sum(consumer.thread_count(topic) for consumer in consumers)
        if total > self._max_threads:
            raise LimitExceeded(f"{total} threads exceed the limit of {self._max_threads}", path=f"{group}/{topic}")
        return sorted(thread for consumer in consumers for thread in consumer.threads(topic))

    def assignment(self, group: str, topic: str) -> dict[str, str]:
        """The consumer thread of each partition of a topic; see `assign`.

        Raises:
            DecodeError: as for `partitions` and `consumer_threads`.
        """
        return assign(self.partitions(topic), self.consumer_threads(group, topic))

    def producer_targets(self, topic: str) -> list[tuple[int, int]]:
        """The (broker id, partition) pairs that a producer may send to, on brokers with an address.

        A broker that does not list the topic has partition 0 of it: the first message creates the topic.

        Raises:
            LimitExceeded: more than `max_partitions`.
        """
        listed = self.topics.get(topic, {})
        counts = {broker: max(listed.get(broker, 0), 1) for broker in sorted(self.brokers)}
        self._check_count(topic, counts)
        return [(broker, i) for broker, count in counts.items() for i in range(count)]

    def _check_count(self, topic: str, counts: Mapping[int, int]) -> None:
        total = sum(counts.values())
        if total > self._max_partitions:
            raise LimitExceeded(f"{total} partitions exceed the limit of {self._max_partitions}", path=topic)


def __dir__() -> list[str]:
    return list(__all__)
