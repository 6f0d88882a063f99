"""The options of consumers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from kafkacodec.arguments import ISOLATION_LEVELS, IsolationLevel, one_of, require_int
from kafkacodec.client.consuming.reset_policy import reset_policy
from kafkacodec.client.options import ClientOptions, ClientSettings
from kafkacodec.datatypes import dataclass, field
from kafkacodec.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES

__all__ = ["ConsumerOptions", "ConsumerSettings", "GroupProtocol"]

GroupProtocol = Literal["classic", "consumer"]

AutoOffsetReset = Literal["earliest", "latest", "none"] | str
"""Or ``"by_duration:P1D"``, with any ISO 8601 duration."""

Deserializer = Callable[[bytes], Any]


class ConsumerOptions(ClientOptions, total=False):
    """The keyword options of consumers; `ConsumerSettings` describes them."""

    group_id: str | None
    group_instance_id: str | None
    group_protocol: GroupProtocol
    group_remote_assignor: str | None
    partition_assignment_strategy: Any
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: AutoOffsetReset
    isolation_level: IsolationLevel
    check_crcs: bool
    max_decompressed_bytes: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    prefetch_bytes: int
    max_poll_records: int
    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None


# Options that only one protocol has: Java's client refuses them with the other, too (KIP-848).
_OF_PROTOCOL: dict[GroupProtocol, tuple[str, ...]] = {
    "classic": ("partition_assignment_strategy", "session_timeout_ms", "heartbeat_interval_ms"),
    "consumer": ("group_remote_assignor",),
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ConsumerSettings(ClientSettings):
    """The checked options of a consumer: those of `ClientSettings`, and these. Times are in ms.

    Args:
        group_id: the group to join and to commit offsets for. Without one, partitions are assigned by `assign` or
            by `subscribe` to all partitions of topics, and nothing can be committed.
        group_instance_id: makes a static member, which keeps its partitions over a restart (KIP-345).
        group_protocol: ``"classic"``, or ``"consumer"`` for the protocol of Kafka 4 (KIP-848).
        group_remote_assignor: the broker's assignor, for the protocol ``"consumer"``.
        partition_assignment_strategy: the assignors of the classic protocol by preference: ``"range"``,
            ``"roundrobin"``, ``"sticky"``, ``"cooperative-sticky"``, or objects; one or several.
        session_timeout_ms, heartbeat_interval_ms: of the classic protocol; in the other one, the broker sets them.
        max_poll_interval_ms: a member that does not ask for records for this long leaves its group.
        enable_auto_commit: commit every `auto_commit_interval_ms`, before partitions are revoked, and in `close`. Only
            with a group. Only processed records are committed: those after which the application has asked for more.
        auto_commit_interval_ms: the time between automatic commits.
        auto_offset_reset: where a partition without a valid position starts: ``"earliest"``, ``"latest"``,
            ``"by_duration:PT1H"`` (the first record that is not older than that), or ``"none"`` for an error.
        isolation_level: ``"read_committed"`` gives only records of committed transactions.
        check_crcs: verify checksums.
        max_decompressed_bytes: the most bytes of one batch's records, decompressed; a larger one raises LimitExceeded.
        fetch_min_bytes: a broker answers when it has this many bytes, or after `fetch_max_wait_ms`.
        fetch_max_bytes: the most bytes in one response.
        fetch_max_wait_ms: how long a broker may wait for `fetch_min_bytes`.
        max_partition_fetch_bytes: the most bytes of one partition in a response; a larger batch is still returned. The
            default is larger than that of Java's client (1 MiB), since a large response costs less per record.
        prefetch_bytes: the most memory for records fetched ahead of the application.
        max_poll_records: the most records that `getmany` returns.
        key_deserializer, value_deserializer: called with the bytes of each key or value that is not null, in records
            that are given as objects; columns hold bytes.

    Raises:
        TypeError, ValueError: an option has a wrong type or value.
    """

    group_id: str | None = None
    group_instance_id: str | None = None
    group_protocol: GroupProtocol = "classic"
    group_remote_assignor: str | None = None
    partition_assignment_strategy: Any = ("range", "cooperative-sticky")
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    auto_offset_reset: AutoOffsetReset = "latest"
    isolation_level: IsolationLevel = "read_uncommitted"
    check_crcs: bool = True
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 << 20
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 8 << 20
    prefetch_bytes: int = 64 << 20
    max_poll_records: int = 500
    key_deserializer: Deserializer | None = field(default=None, repr=False)
    value_deserializer: Deserializer | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("isolation_level", self.isolation_level, ISOLATION_LEVELS)
        one_of("group_protocol", self.group_protocol, get_args(GroupProtocol))
        require_int("max_poll_records", self.max_poll_records, 1, 2**31 - 1)
        reset_policy(self.auto_offset_reset)
        if self.group_id is not None and self.group_protocol == "classic":
            self._check_heartbeats()
        self._check_group()
        for name in ("group_id", "group_instance_id", "group_remote_assignor"):
            value = getattr(self, name)
            if value == "":
                raise ValueError(f"{name} is empty")
        for name in ("key_deserializer", "value_deserializer"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                from kafkacodec.client.core.java_serializers import not_callable

                raise not_callable(name, getattr(self, name))

    def _check_group(self) -> None:
        """Options without effect are refused: those of the other protocol, and a static member of no group."""
        for protocol, names in _OF_PROTOCOL.items():
            for name in names if protocol != self.group_protocol else ():
                if getattr(self, name) != getattr(ConsumerSettings, name):
                    raise ValueError(
                        f"{name} has no effect with group_protocol={self.group_protocol!r}: "
                        f"leave it out, or use {protocol!r}"
                    )
        if self.group_instance_id is not None and self.group_id is None:
            raise ValueError("group_instance_id has no effect without group_id")

    def _check_heartbeats(self) -> None:
        """Heartbeats must be more frequent than the session timeout, or the group removes the member."""
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms must be less than session_timeout_ms, but they are "
                f"{self.heartbeat_interval_ms} and {self.session_timeout_ms}"
            )
