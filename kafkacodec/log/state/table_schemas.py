"""The schemas of the tables of committed offsets, groups, lag and cluster metadata."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["GROUPS", "LAG", "METADATA", "OFFSETS"]

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
        "missing_offsets": pa.int64(),
        "problem": pa.string(),
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
