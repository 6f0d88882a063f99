"""A member of a consumer group and its rebalances, without I/O: its steps, and their results."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.kafka07.positions import Place
from kafkacodec.dialects.zookeeper import ConsumerNode, OwnerNode, Static
from kafkacodec.errors import BrokerError, DecodeError, KafkaCodecError

if TYPE_CHECKING:
    from kafkacodec.dialects.zookeeper import Registry, Subscription

__all__ = ["Claim", "Member", "Read", "ReadOffsets", "Release", "Start", "Step", "Stop", "Wait", "rebalance"]


class Read(NamedTuple):
    """Read the brokers, the topics and the members of the group; the answer is a Registry."""


class ReadOffsets(NamedTuple):
    """Read the group's committed offsets; the answer is a number or None for each partition."""

    places: tuple[Place, ...]


class Stop(NamedTuple):
    """Stop fetching, drop fetched messages that were not returned, and commit consumed messages."""


class Release(NamedTuple):
    """Delete nodes of owned partitions."""

    nodes: tuple[OwnerNode, ...]


class Claim(NamedTuple):
    """Make the node of an owned partition; the answer is whether it is there with this content."""

    node: OwnerNode


class Start(NamedTuple):
    """Fetch partitions from their committed offsets, or from the start of a new group."""

    offsets: Mapping[Place, int | None]


class Wait(NamedTuple):
    """Wait before the next try."""

    milliseconds: float
    reason: str


Step: TypeAlias = Read | ReadOffsets | Stop | Release | Claim | Start | Wait
"""The next step. Send its result into `rebalance`, or throw the KafkaCodecError of its failure."""


class Member:
    """A member of a group.

    Args:
        group: the group's name.
        consumer_id: the member's, which starts with the group's name.
        subscription: its topics.

    Attributes:
        owned (tuple[OwnerNode, ...]): the nodes of the partitions that it owns.
    """

    def __init__(self, group: str, consumer_id: str, subscription: Subscription) -> None:
        self.group, self.consumer_id, self.subscription = group, consumer_id, subscription
        self.owned: tuple[OwnerNode, ...] = ()

    @property
    def node(self) -> ConsumerNode:
        """The node that makes it a member."""
        return ConsumerNode(self.group, self.consumer_id, self.subscription)

    def topics(self, registry: Registry) -> list[str]:
        """Return the topics that it reads. Raises DecodeError: its filter is not a supported regular expression."""
        if isinstance(self.subscription, Static):
            return sorted(self.subscription.topics)
        return sorted(topic for topic in registry.topics if self.subscription.threads(topic))

    def share(self, registry: Registry) -> tuple[OwnerNode, ...]:
        """Return the nodes for its share of the partitions.

        Raises:
            DecodeError: a node on which all members must agree is invalid.
            LimitExceeded: too many partitions or threads.
        """
        topics = self.topics(registry)
        within = (f"/consumers/{self.group}/ids/", *(f"/brokers/topics/{topic}/" for topic in topics))
        for problem in registry.problems:
            if problem.path is not None and problem.path.startswith(within):
                raise problem
        found = []
        for topic in topics:
            own = set(self.node.threads(topic))
            for name, thread in registry.assignment(self.group, topic).items():
                if thread in own:
                    broker, _, partition = name.partition("-")
                    found.append(OwnerNode(self.group, topic, int(broker), int(partition), thread))
        return tuple(found)


def rebalance(member: Member, *, retries: int, backoff_ms: float) -> Generator[Step, Any, None]:
    """Yield the steps by which a member takes its share of the partitions.

    It reads everything, stops, releases its partitions, and claims its share. If another member still owns a part of
    that, it claims nothing, and tries again after a while; the others do the same.

    Args:
        member: the member; its `owned` changes.
        retries: the number of tries.
        backoff_ms: the wait between two.

    Raises:
        BrokerError: all tries failed; the text has the reason of the last one.
    """
    reason = ""
    for _ in range(retries):
        try:
            reason = yield from _try(member)
        except KafkaCodecError as error:
            reason = str(error)
            yield Stop()
        if not reason:
            return
        yield Wait(backoff_ms, reason)
    raise BrokerError(f"{member.consumer_id} has not got its share of the partitions in {retries} tries: {reason}")


def _try(member: Member) -> Generator[Step, Any, str]:
    """One try. Returns why it has not succeeded."""
    registry: Registry = yield Read()
    yield Stop()
    released, member.owned = member.owned, ()
    yield Release(released)
    share = member.share(registry)
    for number, node in enumerate(share):
        claimed: bool = yield Claim(node)
        if not claimed:
            yield Release(share[:number])
            return f"{node.path} is still owned by another member"
    member.owned = share
    places = tuple(Place(node.topic, node.broker_id, node.partition) for node in share)
    try:
        offsets = yield ReadOffsets(places)
    except DecodeError:
        member.owned = ()
        yield Release(share)
        raise
    yield Start(offsets)
    return ""
