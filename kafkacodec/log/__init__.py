"""Log files on disk: segments, partitions and log directories, with their indexes.

All of it loads at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.lazy import at_first_use

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
    from kafkacodec.log.analysis.polars_scan import scan_polars
    from kafkacodec.log.analysis.recompression import CodecResult, CodecTrial, codec_trial
    from kafkacodec.log.analysis.segment_totals import SegmentStatistics, segment_statistics
    from kafkacodec.log.checking.report import Finding, Report
    from kafkacodec.log.formats.checkpoints import LeaderEpoch, ProducerSnapshot
    from kafkacodec.log.formats.indexes import IndexFile
    from kafkacodec.log.opening.checkpoints import (
        read_checkpoint,
        read_leader_epochs,
        read_producer_snapshot,
        read_properties,
        read_topic_id,
    )
    from kafkacodec.log.opening.indexes import read_offset_index, read_time_index, read_transaction_index
    from kafkacodec.log.partitions.directory import LogDirectory, discover
    from kafkacodec.log.partitions.following import Follower, Growth
    from kafkacodec.log.partitions.from_end import read_last
    from kafkacodec.log.partitions.partition import Partition
    from kafkacodec.log.partitions.segment import Segment
    from kafkacodec.log.partitions.selection import Selection
    from kafkacodec.log.partitions.topic import Topic
    from kafkacodec.log.reading.ranges import SegmentRange
    from kafkacodec.log.reading.transactions import Transactions
    from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
    from kafkacodec.log.state.group_lag import PartitionLag, lag
    from kafkacodec.log.state.groups import (
        CommittedOffset,
        Group,
        GroupMember,
        OwnedPartitions,
        read_committed_offsets,
        read_consumer_groups,
    )
    from kafkacodec.log.state.metadata_image import ClusterMetadata
    from kafkacodec.log.state.schemas import read_schemas
    from kafkacodec.log.state.tables import groups_table, lag_table, metadata_table, offsets_table
    from kafkacodec.log.tiered.directories import UploadedSegment, uploads
    from kafkacodec.log.writing.recovery import recover
    from kafkacodec.log.writing.segment_writer import PendingSegment, SegmentWriter, remove_unfinished
    from kafkacodec.log.writing.writer import LogWriter

# Public name -> the module that holds it.
_HOMES = {
    "ChangedRecord": "analysis.difference",
    "ClusterMetadata": "state.metadata_image",
    "CodecResult": "analysis.recompression",
    "CodecTrial": "analysis.recompression",
    "CommittedOffset": "state.groups",
    "Difference": "analysis.difference",
    "Finding": "checking.report",
    "Follower": "partitions.following",
    "Group": "state.groups",
    "GroupMember": "state.groups",
    "Growth": "partitions.following",
    "IndexFile": "formats.indexes",
    "KeyStatistics": "analysis.key_statistics",
    "KeyUse": "analysis.key_statistics",
    "LeaderEpoch": "formats.checkpoints",
    "LogDirectory": "partitions.directory",
    "LogWriter": "writing.writer",
    "OffsetRange": "analysis.difference",
    "OwnedPartitions": "state.groups",
    "Partition": "partitions.partition",
    "PartitionLag": "state.group_lag",
    "PartitionStatistics": "analysis.partition_statistics",
    "PendingSegment": "writing.segment_writer",
    "ProducerSnapshot": "formats.checkpoints",
    "RecordStatistics": "analysis.contents",
    "Report": "checking.report",
    "Segment": "partitions.segment",
    "SegmentRange": "reading.ranges",
    "SegmentStatistics": "analysis.segment_totals",
    "SegmentWriter": "writing.segment_writer",
    "Selection": "partitions.selection",
    "SizeHistogram": "analysis.histograms",
    "TimeHistogram": "analysis.histograms",
    "Topic": "partitions.topic",
    "Transactions": "reading.transactions",
    "UploadedSegment": "tiered.directories",
    "codec_trial": "analysis.recompression",
    "diff": "analysis.log_diff",
    "discover": "partitions.directory",
    "groups_table": "state.tables",
    "lag": "state.group_lag",
    "lag_table": "state.tables",
    "merge_statistics": "analysis.partition_statistics",
    "metadata_table": "state.tables",
    "offsets_table": "state.tables",
    "per_topic": "analysis.partition_statistics",
    "read_checkpoint": "opening.checkpoints",
    "read_cluster_metadata": "state.cluster_metadata",
    "read_committed_offsets": "state.groups",
    "read_consumer_groups": "state.groups",
    "read_last": "partitions.from_end",
    "read_leader_epochs": "opening.checkpoints",
    "read_offset_index": "opening.indexes",
    "read_producer_snapshot": "opening.checkpoints",
    "read_properties": "opening.checkpoints",
    "read_schemas": "state.schemas",
    "read_time_index": "opening.indexes",
    "read_topic_id": "opening.checkpoints",
    "read_transaction_index": "opening.indexes",
    "record_statistics": "analysis.contents",
    "recover": "writing.recovery",
    "remove_unfinished": "writing.segment_writer",
    "scan_polars": "analysis.polars_scan",
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
    "Selection",
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
    "scan_polars",
    "segment_statistics",
    "statistics",
    "uploads",
]


__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
