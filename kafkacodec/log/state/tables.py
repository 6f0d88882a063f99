"""Committed offsets, groups and cluster metadata as Arrow tables. Needs pyarrow.

from kafkacodec.log.state.groups import read_committed_offsets
from kafkacodec.log.state.tables import offsets_table
table = offsets_table(read_committed_offsets("/var/lib/kafka/data"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from kafkacodec.arguments import limit
from kafkacodec.errors import CorruptRecord, LimitExceeded
from kafkacodec.log.state.cluster_metadata import ClusterMetadata
from kafkacodec.log.state.group_lag import PartitionLag
from kafkacodec.log.state.groups import CommittedOffset, Group
from kafkacodec.records.decode import DEFAULT_MAX_TOTAL_BYTES
from kafkacodec.signatures import suggests_options

__all__ = ["GROUPS", "LAG", "METADATA", "OFFSETS", "groups_table", "lag_table", "metadata_table", "offsets_table"]

_TIME = pa.timestamp("ms", tz="UTC")

OFFSETS = pa.schema(
    {
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "leader_epoch": pa.int32(),
        "metadata": pa.string(),
        "commit_timestamp": _TIME,
        "expire_timestamp": _TIME,
    }
)
"""A row for a group and partition. Leader epoch and times are null if the commit has none."""

_MEMBER = pa.struct(
    {
        "member_id": pa.string(),
        "instance_id": pa.string(),
        "client_id": pa.string(),
        "client_host": pa.string(),
        "topics": pa.list_(pa.string()),
        "owned": pa.list_(pa.struct({"topic": pa.string(), "partitions": pa.list_(pa.int32())})),
    }
)

GROUPS = pa.schema(
    {
        "group": pa.string(),
        "kind": pa.string(),
        "generation": pa.int32(),
        "protocol_type": pa.string(),
        "protocol": pa.string(),
        "leader": pa.string(),
        "members": pa.list_(_MEMBER),
    }
)
"""A row for a group, as `kafkacodec.log.state.groups.Group`."""

LAG = pa.schema(
    {
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "commit_timestamp": _TIME,
        "start_offset": pa.int64(),
        "end_offset": pa.int64(),
        "log_end_offset": pa.int64(),
        "lag": pa.int64(),
        "timestamp": _TIME,
        "end_timestamp": _TIME,
        "lag_ms": pa.int64(),
        "member_id": pa.string(),
        "client_id": pa.string(),
        "client_host": pa.string(),
    }
)
"""A row for a group and partition, as `kafkacodec.log.PartitionLag`."""

METADATA = {
    "topics": pa.schema({"topic": pa.string(), "topic_id": pa.string(), "num_partitions": pa.int32()}),
    "partitions": pa.schema(
        {
            "topic": pa.string(),
            "partition": pa.int32(),
            "leader": pa.int32(),
            "leader_epoch": pa.int32(),
            "partition_epoch": pa.int32(),
            "replicas": pa.list_(pa.int32()),
            "isr": pa.list_(pa.int32()),
        }
    ),
    "configs": pa.schema(
        {"resource_type": pa.string(), "resource_name": pa.string(), "name": pa.string(), "value": pa.string()}
    ),
    "acls": pa.schema(
        {
            "id": pa.string(),
            "resource_type": pa.int8(),
            "resource_name": pa.string(),
            "pattern_type": pa.int8(),
            "principal": pa.string(),
            "host": pa.string(),
            "operation": pa.int8(),
            "permission_type": pa.int8(),
        }
    ),
    "brokers": pa.schema(
        {
            "broker": pa.int32(),
            "epoch": pa.int64(),
            "rack": pa.string(),
            "fenced": pa.bool_(),
            "endpoints": pa.list_(pa.string()),
        }
    ),
    "features": pa.schema({"feature": pa.string(), "level": pa.int16()}),
}
"""The schemas of `metadata_table`. Ids are text; types and operations of access control are Kafka's numbers."""


@suggests_options
def offsets_table(commits: Iterable[CommittedOffset], *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES) -> pa.Table:
    """The result of `read_committed_offsets` as a table of the schema `OFFSETS`.

    Raises:
        LimitExceeded: the table needs more than `max_total_bytes` of memory.
    """

    def row(commit: CommittedOffset) -> dict[str, Any]:
        fields = commit._asdict()
        for name in ("leader_epoch", "commit_timestamp", "expire_timestamp"):
            fields[name] = None if fields[name] == -1 else fields[name]
        return fields

    return _table(map(row, commits), OFFSETS, max_total_bytes)


@suggests_options
def lag_table(lags: Iterable[PartitionLag], *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES) -> pa.Table:
    """The result of `lag` as a table of the schema `LAG`; errors as in `offsets_table`."""
    return _table((lag._asdict() for lag in lags), LAG, max_total_bytes)


@suggests_options
def groups_table(groups: Iterable[Group], *, max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES) -> pa.Table:
    """The result of `read_consumer_groups` as a table of the schema `GROUPS`; errors as in `offsets_table`."""
    return _table((group.to_dict() for group in groups), GROUPS, max_total_bytes)


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
    return _table(_ROWS[name](metadata), METADATA[name], max_total_bytes)


_ROWS_AT_ONCE = 4096


def _table(rows: Iterator[dict[str, Any]], schema: pa.Schema, max_total_bytes: int) -> pa.Table:
    """A table built in chunks, so that at most one of them exceeds the limit."""
    left = limit("max_total_bytes", max_total_bytes)
    parts: list[pa.RecordBatch] = []
    try:
        while chunk := list(islice(rows, _ROWS_AT_ONCE)):
            parts.append(pa.RecordBatch.from_pylist(chunk, schema))
            left -= parts[-1].nbytes
            if left < 0:
                raise LimitExceeded(f"the table would exceed max_total_bytes ({max_total_bytes})")
    except (pa.ArrowInvalid, OverflowError) as error:
        raise CorruptRecord(f"a stored number is out of range: {error}") from None
    return pa.Table.from_batches(parts, schema)


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
