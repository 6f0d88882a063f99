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
from kafkacodec.log.directory import LogDirectory, discover
from kafkacodec.log.indexes import IndexFile, read_offset_index, read_time_index, read_transaction_index
from kafkacodec.log.partition import Partition
from kafkacodec.log.ranges import SegmentRange
from kafkacodec.log.recover import recover
from kafkacodec.log.report import Finding, Report
from kafkacodec.log.segment import Segment
from kafkacodec.log.segment_writer import PendingSegment, SegmentWriter, remove_unfinished
from kafkacodec.log.transactions import Transactions
from kafkacodec.log.writer import LogWriter

__all__ = [
    "Finding",
    "IndexFile",
    "LeaderEpoch",
    "LogDirectory",
    "LogWriter",
    "Partition",
    "PendingSegment",
    "ProducerSnapshot",
    "Report",
    "Segment",
    "SegmentRange",
    "SegmentWriter",
    "Transactions",
    "discover",
    "read_checkpoint",
    "read_leader_epochs",
    "read_offset_index",
    "read_producer_snapshot",
    "read_properties",
    "read_time_index",
    "read_topic_id",
    "read_transaction_index",
    "recover",
    "remove_unfinished",
]
