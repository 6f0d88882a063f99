"""Settings of the coordinators: Kafka's names with underscores, Kafka's defaults, milliseconds."""

from __future__ import annotations

from kafkacodec.datatypes import dataclass

__all__ = ["GroupOptions", "TransactionOptions"]


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Settings of the group coordinator.

    Attributes:
        group_min_session_timeout_ms, group_max_session_timeout_ms: limits of session time-outs in classic groups.
        group_initial_rebalance_delay_ms: how long the first member of an empty classic group waits for others.
        group_max_size: the maximum number of members of a group.
        group_consumer_heartbeat_interval_ms: the heartbeat interval of members of the consumer protocol.
        group_consumer_session_timeout_ms: how long such a member may be silent.
        group_consumer_assignment_interval_ms: how long the targets of such a group stay at least.
        group_share_heartbeat_interval_ms, group_share_session_timeout_ms, group_share_assignment_interval_ms: the same
            for share groups.
        group_share_max_size: the maximum number of members of a share group.
        group_streams_heartbeat_interval_ms, group_streams_session_timeout_ms, group_streams_max_size: the same for
            streams groups.
        group_streams_initial_rebalance_delay_ms: how long the first member of an empty streams group waits for others.
        group_streams_assignment_interval_ms: how long the targets of a streams group stay at least.
        group_streams_num_standby_replicas: the number of standby copies of each state.
        group_streams_rack_aware_assignment_tags: the tags that members should have, separated by commas.
        group_streams_task_offset_interval_ms: how often members say how far their states are.
        group_streams_acceptable_recovery_lag: how far behind a state may be that a task can go on with.
        offset_metadata_max_bytes: the longest text beside a committed offset.
        offsets_retention_ms: the retention of offsets of a group without members (offsets.retention.minutes).
        offsets_retention_check_interval_ms: the interval of checks for expired offsets.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_session_timeout_ms: int = 45_000
    group_share_assignment_interval_ms: int = 1_000
    group_share_max_size: int = 200
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_session_timeout_ms: int = 45_000
    group_streams_max_size: int = 2_147_483_647
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_num_standby_replicas: int = 0
    group_streams_rack_aware_assignment_tags: str = ""
    group_streams_task_offset_interval_ms: int = 60_000
    group_streams_acceptable_recovery_lag: int = 10_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000


@dataclass(frozen=True, slots=True)
class TransactionOptions:
    """Settings of the transaction coordinator.

    Attributes:
        transaction_max_timeout_ms: the longest allowed time-out of a transaction.
        transactional_id_expiration_ms: the retention of an idle transactional id.
        transaction_abort_timed_out_transaction_cleanup_interval_ms: the interval of checks for time-outs.
        transaction_remove_expired_transaction_cleanup_interval_ms: the interval of checks for idle ids.
    """

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 7 * 24 * 3_600_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
