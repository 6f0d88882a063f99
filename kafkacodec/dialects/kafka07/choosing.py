"""The choice of a message's partition, as in 0.7's producers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import BrokerError, EncodeError

if TYPE_CHECKING:
    from kafkacodec.dialects.zookeeper import Registry

__all__ = ["Target", "choose", "java_hash", "place_of_key"]

_INT_BITS = 32


class Target(NamedTuple):
    """A partition of a broker; -1: the broker chooses one."""

    broker: int
    partition: int


def java_hash(text: str) -> int:
    """The hash of a text in Java, an int of 32 bits.

    >>> java_hash("user1"), java_hash("polygenelubricants")
    (111578566, -2147483648)
    """
    data = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFFFFFF
    return found - (1 << _INT_BITS) if found >> (_INT_BITS - 1) else found


def place_of_key(key: str, count: int) -> int:
    """Return the index of a key's partition among a number of partitions.

    Raises:
        EncodeError: its hash is the int without an absolute value, for which Kafka 0.7 finds no partition either.
    """
    found = java_hash(key)
    if found == -(1 << (_INT_BITS - 1)) and found % count:
        raise EncodeError(f"key {key!r} belongs to no partition: its hash in Java has no absolute value")
    return abs(found) % count


def choose(registry: Registry, topic: str, key: str | None, draw: Callable[[int], int]) -> Target | None:
    """Return the partition for a message; None: its broker has no address now.

    It sorts the partitions of brokers with the topic by number. A key belongs to one of these partitions. Without a key
    it draws any of them, or partition 0 of another broker, where the message creates the topic. If no broker has the
    topic, each has a partition 0 of it.

    Args:
        registry: brokers and topics.
        topic, key: of the message.
        draw: a number below another.

    Raises:
        BrokerError: there is no broker.
        EncodeError: as for `place_of_key`.
        LimitExceeded: as for `Registry.producer_targets`.
    """
    if key is None:
        found = [Target(*target) for target in registry.producer_targets(topic)]
    else:
        listed = registry.topics.get(topic, {})
        found = [Target(broker, i) for broker in sorted(listed) for i in range(listed[broker])]
        found = found or [Target(broker, 0) for broker in sorted(registry.brokers)]
    if not found:
        raise BrokerError(f"topic {topic!r}: no broker is registered")
    target = found[draw(len(found)) if key is None else place_of_key(key, len(found))]
    return target if target.broker in registry.brokers else None
