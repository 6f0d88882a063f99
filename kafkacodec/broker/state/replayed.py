"""The metadata of read-only directories, as records that are applied but not written."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import messages
from kafkacodec.broker.state.catalog import FEATURES
from kafkacodec.broker.state.leaders import NO_LEADER
from kafkacodec.errors import DecodeError
from kafkacodec.internal_records import CLUSTER_METADATA, CONSUMER_OFFSETS
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.log.state.metadata_image import ClusterMetadata
from kafkacodec.protocol.terms import CONFIG_RESOURCES

if TYPE_CHECKING:
    from kafkacodec.log.growing.frozen_directory import FrozenDirectory

__all__ = ["replayed"]

_log = logging.getLogger("kafkacodec.broker")
_NAMES: Final = uuid.UUID("5a0c1f6e-1d2b-4a57-9a0e-7d2f0c1b6a11")  # of ids that follow from names


def replayed(directory: FrozenDirectory, node_id: int, group_partitions: int) -> Iterator[Any]:
    """Return metadata records with one broker as the leader of all partitions in directories.

    Topics, ids and configurations come from ``__cluster_metadata`` if it exists, others from the names of partition
    directories. Partitions that are elsewhere, or cannot be read, have no leader.

    Args:
        directory: the directories.
        node_id: the broker.
        group_partitions: of ``__consumer_offsets`` if it is missing.
    """
    if not directory.found:
        _log.warning("no partition's directory in %s: the broker serves no topics", ", ".join(directory.paths))
    known = _known(directory)
    for name, level in (known.features or {name: level for name, (_, _, level) in FEATURES.items()}).items():
        if level:
            yield messages.FeatureLevelRecord(name=name, feature_level=level)
    here: dict[str, set[int]] = {}
    for name, number in directory.found:
        here.setdefault(name, set()).add(number)
    here.setdefault(CONSUMER_OFFSETS, set())
    here.pop(CLUSTER_METADATA, None)
    for name in dict.fromkeys([*known.topics, *here]):
        of_log: Mapping[str, Any] = known.topics.get(name, {"partitions": {}})
        topic_id = of_log.get("topic_id") or directory.topic_id(name) or uuid.uuid5(_NAMES, name)
        yield messages.TopicRecord(name=name, topic_id=topic_id)
        numbers = here.get(name, set()) | of_log["partitions"].keys()
        count = max(numbers) + 1 if numbers else group_partitions
        for number in range(count):
            now = of_log["partitions"].get(number, {"leader_epoch": 0, "replicas": []})
            epoch = _epoch(directory, name, number, now["leader_epoch"])
            has = number in here.get(name, ()) or name == CONSUMER_OFFSETS
            leads = has and (name, number) not in directory.unreadable
            yield messages.PartitionRecord(
                partition_id=number, topic_id=topic_id, leader=node_id if leads else NO_LEADER,
                replicas=[node_id] if has else list(now["replicas"]), isr=[node_id] if leads else [],
                leader_epoch=epoch, partition_epoch=0,
            )  # fmt: skip
    yield from _configs(known)


def _epoch(directory: FrozenDirectory, name: str, number: int, known: int) -> int:
    """Return the epoch of the metadata, or a newer one of the log."""
    if (name, number) not in directory.found:
        return known
    try:
        return max(known, directory.open(name, number).leader_epoch)
    except OSError:
        return known  # it is not served


def _known(directory: FrozenDirectory) -> ClusterMetadata:
    for path in directory.paths:
        problems: list[DecodeError] = []
        try:
            found = read_cluster_metadata(path, problems=problems)
        except FileNotFoundError:
            continue
        except (OSError, DecodeError) as error:
            problems.append(error)  # type: ignore[arg-type]
            found = ClusterMetadata()
        for problem in problems:
            _log.warning("part of the cluster's metadata cannot be read: %s", problem)
        return found
    return ClusterMetadata()


def _configs(known: ClusterMetadata) -> Iterator[Any]:
    for resource, values in known.configs.items():
        kind, _, name = resource.partition(":")
        number = CONFIG_RESOURCES.get(kind.replace("-", "_"))
        if number is None:
            continue
        for key, value in values.items():
            yield messages.ConfigRecord(resource_type=number, resource_name=name, name=key, value=value)
