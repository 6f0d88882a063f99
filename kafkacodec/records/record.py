"""A record as a Python object."""

from __future__ import annotations

from kafkacodec.datatypes import NamedTuple

__all__ = ["Record"]


class Record(NamedTuple):
    """One record.

    Attributes:
        offset (int): its offset in the partition.
        timestamp (int | None): ms since the epoch, None without one.
        timestamp_type (int): 0 create time, 1 log append time, -1 none.
        key (bytes | None): None for a null key.
        value (bytes | None): None for a null value (a tombstone in a compacted topic).
        headers (tuple[tuple[str, bytes | None], ...]): in the order of the record; keys may repeat.
    """

    offset: int
    timestamp: int | None
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
