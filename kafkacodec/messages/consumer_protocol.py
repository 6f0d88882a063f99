"""The consumer protocol: the bytes in which classic consumers exchange subscriptions and assignments.

JoinGroup carries subscriptions, SyncGroup assignments; DescribeGroups and ``__consumer_offsets`` have both. Each is an
int16 version and the message of that version. Source: KIP-429 (versions 1 and 2), KIP-881 (version 3), and Kafka's
ConsumerProtocol class for how other versions are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kafkacodec._core._buffer import octets
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import CorruptRecord, EncodeError, Truncated
from kafkacodec.messages.registry import message_class

if TYPE_CHECKING:
    from kafkacodec.messages.classes import Message
    from kafkacodec.messages.types import ConsumerProtocolAssignment, ConsumerProtocolSubscription

__all__ = [
    "StickyUserData",
    "decode_assignment",
    "decode_sticky_user_data",
    "decode_subscription",
    "encode_assignment",
    "encode_sticky_user_data",
    "encode_subscription",
]

M = TypeVar("M", bound="Message")


def decode_subscription(data: Any) -> ConsumerProtocolSubscription:
    """A consumer's subscription: ``topics``, ``user_data``, ``owned_partitions``, ``generation_id``, ``rack_id``.

    A newer version is read as the newest known one, and bytes after the message are ignored, as Kafka does. A message
    that ends before the fields of its version do (kafka-go, KafkaJS 1.x) is read as version 0, as brokers read all.

    Raises:
        DecodeError: not a subscription in version 0 either, or a negative version.
    """
    found: ConsumerProtocolSubscription = _decode("ConsumerProtocolSubscription", data)
    return found


def decode_assignment(data: Any) -> ConsumerProtocolAssignment:
    """A consumer's assignment: ``assigned_partitions`` (``topic``, ``partitions``) and ``user_data``.

    Empty bytes, which a group has while it rebalances, are an empty assignment. Versions and errors are as in
    `decode_subscription`.
    """
    if not len(data):
        empty: Any = message_class("ConsumerProtocolAssignment")()
        return empty  # type: ignore[no-any-return]
    found: ConsumerProtocolAssignment = _decode("ConsumerProtocolAssignment", data)
    return found


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = 3) -> bytes:
    """The bytes of a subscription, its version first; the reverse of `decode_subscription`.

    Raises:
        EncodeError: a value does not fit; `path` names the field.
        UnsupportedVersion: a version that is not from 0 to 3.
    """
    return _encode(subscription, version)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = 3) -> bytes:
    """The bytes of an assignment; errors as in `encode_subscription`."""
    return _encode(assignment, version)


class StickyUserData(NamedTuple):
    """What Kafka's sticky assignors remember in ``user_data``.

    Attributes:
        generation (int): the group's generation, -1 if the data has none.
        previous_assignment (dict[str, list[int]]): the partitions that the member had, by topic. Empty for the
            cooperative assignor, which uses ``owned_partitions`` instead.
    """

    generation: int
    previous_assignment: dict[str, list[int]]


def decode_sticky_user_data(data: Any, *, cooperative: bool = False) -> StickyUserData:
    """The ``user_data`` in a subscription for the assignor ``sticky`` or, with `cooperative`, ``cooperative-sticky``.

    Raises:
        DecodeError: the bytes are something else.
    """
    reader = _Reader(data)
    if cooperative:
        return StickyUserData(reader.integer(), {})
    previous: dict[str, list[int]] = {}
    for _ in range(reader.count(6)):
        topic = reader.string()
        previous.setdefault(topic, []).extend(reader.integer() for _ in range(reader.count(4)))
    return StickyUserData(reader.integer() if reader.left else -1, previous)


def encode_sticky_user_data(data: StickyUserData, *, cooperative: bool = False) -> bytes:
    """The reverse of `decode_sticky_user_data`, as Kafka's assignors write it.

    Raises:
        EncodeError: a value does not fit.
    """
    parts = []
    try:
        if not cooperative:
            parts.append(len(data.previous_assignment).to_bytes(4, "big"))
            for topic, partitions in data.previous_assignment.items():
                name = topic.encode()
                parts += [len(name).to_bytes(2, "big", signed=True), name, len(partitions).to_bytes(4, "big")]
                parts += [partition.to_bytes(4, "big", signed=True) for partition in partitions]
        parts.append(data.generation.to_bytes(4, "big", signed=True))
    except (OverflowError, UnicodeEncodeError) as fault:
        raise EncodeError(f"sticky user data: {fault}") from None
    return b"".join(parts)


class _Reader:
    """Integers and strings of the old protocol, from the start of a buffer."""

    def __init__(self, data: Any) -> None:
        self.data, self.at = octets(data), 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        if size < 0:
            raise CorruptRecord(f"negative length {size}", position=self.at)
        if size > self.left:
            raise Truncated(f"{size} bytes expected, {self.left} left", position=self.at)
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def integer(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def count(self, least: int) -> int:
        """The number of entries, each of at least so many bytes."""
        count = self.integer()
        if not 0 <= count * least <= self.left:
            raise CorruptRecord(f"{count} entries do not fit the {self.left} bytes left", position=self.at - 4)
        return count

    def string(self) -> str:
        start = self.at
        try:
            return self.take(self.integer(2)).decode()
        except UnicodeDecodeError:
            raise CorruptRecord("a topic is not UTF-8", position=start) from None


def _decode(name: str, data: Any) -> Any:
    cls = message_class(name)
    version = _Reader(data).integer(2)
    if version < 0:
        raise CorruptRecord(f"negative version {version}", position=0)
    try:
        return cls.decode_prefix(data, min(version, cls.valid_versions[-1]), 2)[0]
    except Truncated:
        if not version:
            raise
        return cls.decode_prefix(data, 0, 2)[0]


def _encode(message: Message, version: int) -> bytes:
    body = message.encode(version)
    return version.to_bytes(2, "big") + body
