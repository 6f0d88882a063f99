"""The options of share consumers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from kafkacodec.arguments import one_of, require_int
from kafkacodec.client.options import ClientOptions, ClientSettings
from kafkacodec.datatypes import dataclass, field
from kafkacodec.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES

__all__ = ["AcknowledgementMode", "ShareConsumerOptions", "ShareConsumerSettings"]

AcknowledgementMode = Literal["implicit", "explicit"]

Deserializer = Callable[[bytes], Any]


class ShareConsumerOptions(ClientOptions, total=False):
    """The keyword options of share consumers; `ShareConsumerSettings` describes them."""

    share_acknowledgement_mode: AcknowledgementMode
    max_poll_interval_ms: int
    check_crcs: bool
    max_decompressed_bytes: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_poll_records: int
    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShareConsumerSettings(ClientSettings):
    """The checked options of a share consumer: those of `ClientSettings`, and these. Times are in ms.

    Args:
        group_id: the share group.
        share_acknowledgement_mode: ``"implicit"``: asking for more records accepts the previous ones that were
            not released or rejected. ``"explicit"``: each record must be acknowledged before asking for more.
        max_poll_interval_ms: a member that does not ask for records for this long leaves its group.
        check_crcs: verify checksums.
        max_decompressed_bytes: the most bytes of one batch's records, decompressed; a larger one raises LimitExceeded.
        fetch_min_bytes: a broker answers when it has this many bytes, or after `fetch_max_wait_ms`.
        fetch_max_bytes: the most bytes in one response.
        fetch_max_wait_ms: how long a broker may wait for `fetch_min_bytes`.
        max_poll_records: how many records a broker returns at a time; it may add a few to complete a batch.
        key_deserializer, value_deserializer: called with the bytes of each key or value that is not null.

    Raises:
        TypeError, ValueError: an option has a wrong type or value.
    """

    group_id: str
    share_acknowledgement_mode: AcknowledgementMode = "implicit"
    max_poll_interval_ms: int = 300_000
    check_crcs: bool = True
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 << 20
    fetch_max_wait_ms: int = 500
    max_poll_records: int = 500
    key_deserializer: Deserializer | None = field(default=None, repr=False)
    value_deserializer: Deserializer | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("share_acknowledgement_mode", self.share_acknowledgement_mode, get_args(AcknowledgementMode))
        require_int("max_poll_records", self.max_poll_records, 1, 2**31 - 1)
        if not self.group_id:
            raise ValueError("group_id must not be empty")
        for name in ("key_deserializer", "value_deserializer"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise TypeError(f"{name} must be callable, not {type(getattr(self, name)).__name__}")
