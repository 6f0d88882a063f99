"""The requests of a transactional producer, and the codes in their responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.arguments import require_int
from kafkacodec.client.checks import by_partition
from kafkacodec.client.core.calls import Prepare, Versions
from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import UnsupportedVersion
from kafkacodec.messages.keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
)
from kafkacodec.protocol.versions import highest_common

__all__ = ["Offsets", "add_offsets", "add_partitions", "commit_offsets", "end", "faults", "has_version_2", "init"]

Place = tuple[str, int]

_RECOVERS_VERSION: Final = 3  # of InitProducerId: accepts a producer's current id and epoch (KIP-360)
_MEMBER_VERSION: Final = 3  # of TxnOffsetCommit (KIP-447)


class _Position(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True)
class Offsets:
    """Offsets of a group that a transaction commits.

    Args:
        offsets: a number, or an object with offset, leader_epoch and metadata, by topic and partition.
        group: the group id, or an object with group_id, generation, member_id and group_instance_id.

    Raises:
        TypeError, ValueError: an offset or the group is wrong.
    """

    positions: Mapping[Place, _Position]
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None

    @classmethod
    def of(cls, offsets: Mapping[Place, Any], group: Any) -> Offsets:
        """Check and convert the user's arguments."""
        positions = {}
        for (topic, number), value in by_partition("offsets", offsets).items():
            offset = getattr(value, "offset", value)
            require_int(f"the offset of {topic}-{number}", offset, 0, 2**63 - 1)
            epoch, metadata = getattr(value, "leader_epoch", -1), getattr(value, "metadata", "")
            positions[topic, number] = _Position(offset, epoch, metadata or "")
        if isinstance(group, str):
            return cls(positions, group, -1, "", None)
        try:
            return cls(positions, group.group_id, group.generation, group.member_id, group.group_instance_id)
        except AttributeError:
            raise TypeError(f"group must be a group's id or metadata, not {type(group).__name__}") from None


def init(transactional_id: str, timeout_ms: int, producer: tuple[int, int] | None) -> Prepare:
    """InitProducerId: for a new producer, or for a new epoch of the producer with this id and epoch."""

    def prepare(versions: Versions) -> tuple[Any, int]:
        version = highest_common(INIT_PRODUCER_ID, versions)
        if producer is not None and version < _RECOVERS_VERSION:
            raise UnsupportedVersion("a transactional producer that lost a batch needs Kafka 2.5 or later to continue")
        number, epoch = producer or (-1, -1)
        request = messages.InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=number,
            producer_epoch=epoch,
        )
        return request, version

    return prepare


def add_partitions(transactional_id: str, producer: tuple[int, int], partitions: Iterable[Place]) -> Prepare:
    """AddPartitionsToTxn, as clients send it: up to version 3."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    kind = messages.AddPartitionsToTxnRequest
    request = kind(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=n, partitions=p) for n, p in by_topic.items()],
    )
    return lambda versions: (request, highest_common(ADD_PARTITIONS_TO_TXN, versions, range(4)))


def add_offsets(transactional_id: str, producer: tuple[int, int], group_id: str) -> Prepare:
    """AddOffsetsToTxn."""
    request = messages.AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer[0], producer_epoch=producer[1], group_id=group_id
    )
    return lambda versions: (request, highest_common(ADD_OFFSETS_TO_TXN, versions))


def commit_offsets(transactional_id: str, producer: tuple[int, int], offsets: Offsets, highest: int) -> Prepare:
    """TxnOffsetCommit, up to a version."""
    kind = messages.TxnOffsetCommitRequest
    by_topic: dict[str, list[Any]] = {}
    for (topic, number), position in offsets.positions.items():
        entry = kind.TxnOffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=position.offset,
            committed_leader_epoch=position.leader_epoch,
            committed_metadata=position.metadata,
        )
        by_topic.setdefault(topic, []).append(entry)
    request = kind(
        transactional_id=transactional_id,
        group_id=offsets.group_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[kind.TxnOffsetCommitRequestTopic(name=n, partitions=p) for n, p in by_topic.items()],
    )

    def prepare(versions: Versions) -> tuple[Any, int]:
        version = highest_common(TXN_OFFSET_COMMIT, versions, range(highest + 1))
        if version >= _MEMBER_VERSION:
            request.generation_id_or_member_epoch = offsets.generation
            request.member_id = offsets.member_id
            request.group_instance_id = offsets.group_instance_id
        return request, version

    return prepare


def end(transactional_id: str, producer: tuple[int, int], committed: bool, highest: int) -> Prepare:
    """EndTxn, up to a version."""
    request = messages.EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer[0], producer_epoch=producer[1], committed=committed
    )
    return lambda versions: (request, highest_common(END_TXN, versions, range(highest + 1)))


def has_version_2(response: Any) -> bool:
    """Whether an ApiVersions response shows that the cluster uses transactions of version 2 (KIP-890)."""
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    return bool(levels.get("transaction.version", 0) >= 2)


def faults(response: Any) -> dict[int, list[str]]:
    """The error codes in any of these responses, each with its partitions, such as ``orders-0``."""
    rows: Iterable[tuple[int, list[str]]] = [(response.error_code, [])] if hasattr(response, "error_code") else []
    if isinstance(response, messages.AddPartitionsToTxnResponse):
        rows = (
            (part.partition_error_code, [f"{topic.name}-{part.partition_index}"])
            for topic in response.results_by_topic_v3_and_below for part in topic.results_by_partition
        )  # fmt: skip
    elif isinstance(response, messages.TxnOffsetCommitResponse):
        rows = (
            (part.error_code, [f"{topic.name}-{part.partition_index}"])
            for topic in response.topics for part in topic.partitions
        )  # fmt: skip
    found: dict[int, list[str]] = {}
    for code, places in rows:
        if code:
            found.setdefault(code, []).extend(places)
    return found
