"""Committed offsets, groups and cluster metadata as Arrow tables. Needs pyarrow.

from kafkacodec.log.state.groups import read_committed_offsets
from kafkacodec.log.state.tables import offsets_table
table = offsets_table(read_committed_offsets("/var/lib/kafka/data"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from kafkacodec.log.state.group_lag import PartitionLag
from kafkacodec.log.state.groups import CommittedOffset, CommittedOffsets, Group, Groups
from kafkacodec.log.state.metadata_image import ClusterMetadata
from kafkacodec.log.state.table_schemas import GROUPS, LAG, METADATA, OFFSETS
from kafkacodec.named_rows import table_of
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES
from kafkacodec.signatures import suggests_options

__all__ = ["GROUPS", "LAG", "METADATA", "OFFSETS", "groups_table", "lag_table", "metadata_table", "offsets_table"]


@suggests_options
def offsets_table(commits: Iterable[CommittedOffset], *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES) -> pa.Table:
    """The result of `read_committed_offsets` as a table of the schema `OFFSETS`.

    Raises:
        LimitExceeded: the table needs more than `max_total_bytes` of memory.
    """
    return table_of(map(CommittedOffsets.cells, commits), OFFSETS, max_total_bytes)


@suggests_options
def lag_table(lags: Iterable[PartitionLag], *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES) -> pa.Table:
    """The result of `lag` as a table of the schema `LAG`; errors as in `offsets_table`."""
    return table_of((lag._asdict() for lag in lags), LAG, max_total_bytes)


@suggests_options
def groups_table(groups: Iterable[Group], *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES) -> pa.Table:
    """The result of `read_consumer_groups` as a table of the schema `GROUPS`; errors as in `offsets_table`."""
    return table_of(map(Groups.cells, groups), GROUPS, max_total_bytes)


@suggests_options
def metadata_table(metadata: ClusterMetadata, name: str, *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES) -> pa.Table:
    """A part of the result of `read_cluster_metadata` as a table.

    Args:
        metadata: the state.
        name: one of `METADATA`: ``topics``, ``partitions``, ``configs``, ``acls``, ``brokers``, ``features``.
        max_total_bytes: the limit of the table's memory, in bytes.

    Returns:
        pyarrow.Table: of the schema ``METADATA[name]``, sorted by its first columns.

    Raises:
        ValueError: an unknown table.
        CorruptRecord: a number is out of the column's range.
        LimitExceeded: the table needs more than `max_total_bytes`.
    """
    if name not in METADATA:
        raise ValueError(f"unknown table {name!r}; tables are {', '.join(METADATA)}")
    return table_of(_ROWS[name](metadata), METADATA[name], max_total_bytes)


def _topics(metadata: ClusterMetadata) -> Iterator[dict[str, Any]]:
    for topic, facts in sorted(metadata.topics.items()):
        yield {"topic": topic, "topic_id": str(facts["topic_id"]), "num_partitions": len(facts["partitions"])}


def _partitions(metadata: ClusterMetadata) -> Iterator[dict[str, Any]]:
    for topic, facts in sorted(metadata.topics.items()):
        for number, partition in sorted(facts["partitions"].items()):
            yield {"topic": topic, "partition": number} | partition


def _configs(metadata: ClusterMetadata) -> Iterator[dict[str, Any]]:
    for resource, values in sorted(metadata.configs.items()):
        kind, _, name = resource.partition(":")
        for config, value in sorted(values.items()):
            yield {"resource_type": kind, "resource_name": name, "name": config, "value": value}


def _acls(metadata: ClusterMetadata) -> Iterator[dict[str, Any]]:
    for acl_id, entry in sorted(metadata.acls.items()):
        yield {"id": str(acl_id)} | entry


def _brokers(metadata: ClusterMetadata) -> Iterator[dict[str, Any]]:
    for broker, facts in sorted(metadata.brokers.items()):
        yield {"broker": broker} | facts


def _features(metadata: ClusterMetadata) -> Iterator[dict[str, Any]]:
    for feature, level in sorted(metadata.features.items()):
        yield {"feature": feature, "level": level}


_ROWS: dict[str, Callable[[ClusterMetadata], Iterator[dict[str, Any]]]] = {
    "topics": _topics,
    "partitions": _partitions,
    "configs": _configs,
    "acls": _acls,
    "brokers": _brokers,
    "features": _features,
}
