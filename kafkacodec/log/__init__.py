"""Log files on disk: segments, partitions and log directories, with their indexes.

Modules that write, and those that decode the messages of internal topics, load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.lazy import at_first_use
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
from kafkacodec.log.report import Finding, Report
from kafkacodec.log.segment import Segment
from kafkacodec.log.topic import Topic
from kafkacodec.log.transactions import Transactions

if TYPE_CHECKING:
    from kafkacodec.log.analysis.contents import RecordStatistics, record_statistics
    from kafkacodec.log.analysis.difference import ChangedRecord, Difference, OffsetRange
    from kafkacodec.log.analysis.histograms import SizeHistogram, TimeHistogram
    from kafkacodec.log.analysis.key_statistics import KeyStatistics, KeyUse
    from kafkacodec.log.analysis.log_diff import diff
    from kafkacodec.log.analysis.partition_statistics import (
        PartitionStatistics,
        merge_statistics,
        per_topic,
        statistics,
    )
    from kafkacodec.log.analysis.recompression import CodecResult, CodecTrial, codec_trial
    from kafkacodec.log.analysis.segment_totals import SegmentStatistics, segment_statistics
    from kafkacodec.log.cluster_metadata import ClusterMetadata, read_cluster_metadata
    from kafkacodec.log.following import Follower, Growth
    from kafkacodec.log.from_end import read_last
    from kafkacodec.log.group_lag import PartitionLag, lag
    from kafkacodec.log.groups import (
        CommittedOffset,
        Group,
        GroupMember,
        OwnedPartitions,
        read_committed_offsets,
        read_consumer_groups,
    )
    from kafkacodec.log.recovery import recover
    from kafkacodec.log.schemas import read_schemas
    from kafkacodec.log.segment_writer import PendingSegment, SegmentWriter, remove_unfinished
    from kafkacodec.log.tables import groups_table, lag_table, metadata_table, offsets_table
    from kafkacodec.log.tiered.directories import UploadedSegment, uploads
    from kafkacodec.log.writer import LogWriter

# Public name -> the module that holds it.
_HOMES = {
    "ChangedRecord": "analysis.difference",
    "ClusterMetadata": "cluster_metadata",
    "CodecResult": "analysis.recompression",
    "CodecTrial": "analysis.recompression",
    "CommittedOffset": "groups",
    "Difference": "analysis.difference",
    "Follower": "following",
    "Group": "groups",
    "GroupMember": "groups",
    "Growth": "following",
    "KeyStatistics": "analysis.key_statistics",
    "KeyUse": "analysis.key_statistics",
    "LogWriter": "writer",
    "OffsetRange": "analysis.difference",
    "OwnedPartitions": "groups",
    "PartitionLag": "group_lag",
    "PartitionStatistics": "analysis.partition_statistics",
    "PendingSegment": "segment_writer",
    "RecordStatistics": "analysis.contents",
    "SegmentStatistics": "analysis.segment_totals",
    "SegmentWriter": "segment_writer",
    "SizeHistogram": "analysis.histograms",
    "TimeHistogram": "analysis.histograms",
    "UploadedSegment": "tiered.directories",
    "codec_trial": "analysis.recompression",
    "diff": "analysis.log_diff",
    "groups_table": "tables",
    "lag": "group_lag",
    "lag_table": "tables",
    "merge_statistics": "analysis.partition_statistics",
    "metadata_table": "tables",
    "offsets_table": "tables",
    "per_topic": "analysis.partition_statistics",
    "read_cluster_metadata": "cluster_metadata",
    "read_committed_offsets": "groups",
    "read_consumer_groups": "groups",
    "read_last": "from_end",
    "read_schemas": "schemas",
    "record_statistics": "analysis.contents",
    "recover": "recovery",
    "remove_unfinished": "segment_writer",
    "segment_statistics": "analysis.segment_totals",
    "statistics": "analysis.partition_statistics",
    "uploads": "tiered.directories",
}

__all__ = [
    "ChangedRecord",
    "ClusterMetadata",
    "CodecResult",
    "CodecTrial",
    "CommittedOffset",
    "Difference",
    "Finding",
    "Follower",
    "Group",
    "GroupMember",
    "Growth",
    "IndexFile",
    "KeyStatistics",
    "KeyUse",
    "LeaderEpoch",
    "LogDirectory",
    "LogWriter",
    "OffsetRange",
    "OwnedPartitions",
    "Partition",
    "PartitionLag",
    "PartitionStatistics",
    "PendingSegment",
    "ProducerSnapshot",
    "RecordStatistics",
    "Report",
    "Segment",
    "SegmentRange",
    "SegmentStatistics",
    "SegmentWriter",
    "SizeHistogram",
    "TimeHistogram",
    "Topic",
    "Transactions",
    "UploadedSegment",
    "codec_trial",
    "diff",
    "discover",
    "groups_table",
    "lag",
    "lag_table",
    "merge_statistics",
    "metadata_table",
    "offsets_table",
    "per_topic",
    "read_checkpoint",
    "read_cluster_metadata",
    "read_committed_offsets",
    "read_consumer_groups",
    "read_last",
    "read_leader_epochs",
    "read_offset_index",
    "read_producer_snapshot",
    "read_properties",
    "read_schemas",
    "read_time_index",
    "read_topic_id",
    "read_transaction_index",
    "record_statistics",
    "recover",
    "remove_unfinished",
    "segment_statistics",
    "statistics",
    "uploads",
]


__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
