"""The names and types of the clients' keyword options; `aio` describes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from kafkacodec.dialects.kafka07.aio import Codec
    from kafkacodec.dialects.kafka07.fetching import Reset

__all__ = ["ConsumerOptions", "ProducerOptions"]


class ProducerOptions(TypedDict, total=False):
    """Of `kafkacodec.dialects.kafka07.aio.Producer`."""

    brokers: str | Iterable[str]
    compression_type: Codec
    linger_ms: float
    batch_messages: int
    batch_bytes: int
    max_message_size: int
    max_queued: int
    connect_timeout_ms: int
    reconnect_interval: int
    session_timeout_ms: int


class ConsumerOptions(TypedDict, total=False):
    """Of `kafkacodec.dialects.kafka07.aio.Consumer`."""

    whitelist: str | None
    blacklist: str | None
    consumer_id: str | None
    auto_offset_reset: Reset
    auto_commit: bool
    auto_commit_interval_ms: int
    fetch_size: int
    max_fetch_size: int
    fetch_backoff_ms: int
    rebalance_retries: int
    rebalance_backoff_ms: int
    request_timeout_ms: int
    session_timeout_ms: int
    connection_timeout_ms: int
