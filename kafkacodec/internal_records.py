"""What brokers write for themselves: the internal topics, and the types of control records.

Sources: `org.apache.kafka.common.internals.Topic` and `org.apache.kafka.common.record.ControlRecordType`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Literal

from kafkacodec.datatypes import NamedTuple

Coordinator = Literal["group", "transaction", "share"]

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
CLUSTER_METADATA: Final = "__cluster_metadata"
REMOTE_LOG_METADATA: Final = "__remote_log_metadata"


class InternalTopic(NamedTuple):
    """A topic that brokers write for themselves.

    Attributes:
        coordinator (str | None): what writes and reads it; None for another part of a broker.
        compacted (bool | None): whether it is always or never compacted; None if its configuration decides.
    """

    coordinator: Coordinator | None
    compacted: bool | None


INTERNAL_TOPICS: Final[dict[str, InternalTopic]] = {
    CONSUMER_OFFSETS: InternalTopic("group", True),
    TRANSACTION_STATE: InternalTopic("transaction", True),
    SHARE_GROUP_STATE: InternalTopic("share", None),
    CLUSTER_METADATA: InternalTopic(None, False),
    REMOTE_LOG_METADATA: InternalTopic(None, None),
}
"""The internal topics by name."""


class ControlType(IntEnum):
    """The types of control records: the second int16 of their keys."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
