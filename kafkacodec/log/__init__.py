"""Log files on disk: segments, partitions and log directories, with their indexes."""

from __future__ import annotations

from kafkacodec.log.checkpoints import (
    LeaderEpoch,
    ProducerSnapshot,
    read_checkpoint,
    read_leader_epochs,
    read_producer_snapshot,
    read_properties,
    read_topic_id,
)
from kafkacodec.log.indexes import IndexFile, read_offset_index, read_time_index, read_transaction_index

__all__ = [
    "IndexFile",
    "LeaderEpoch",
    "ProducerSnapshot",
    "read_checkpoint",
    "read_leader_epochs",
    "read_offset_index",
    "read_producer_snapshot",
    "read_properties",
    "read_time_index",
    "read_topic_id",
    "read_transaction_index",
]
