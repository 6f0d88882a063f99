"""The records and tables that a consumer returns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafkacodec.arguments import column_names
from kafkacodec.client.consuming.positions import Key
from kafkacodec.datatypes import NamedTuple
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.decode import columns_between
from kafkacodec.records.plan import NOWHERE, PLACE_COLUMNS, RECORD_COLUMNS

__all__ = ["TABLE_COLUMNS", "ConsumedColumns", "ConsumerRecord", "no_rows", "table_columns"]

TABLE_COLUMNS: Final = (*PLACE_COLUMNS, *RECORD_COLUMNS)


class ConsumerRecord(NamedTuple):
    """A record of a consumer.

    Attributes:
        topic (str): its topic.
        partition (int): its partition.
        offset (int): its offset in the partition.
        timestamp (int | None): ms since 1970, None without one.
        timestamp_type (int): 0 create time, 1 log append time, -1 none.
        key (Any): bytes, or what the key deserializer made of them; None for a null key.
        value (Any): likewise; None for a null value (a tombstone in a compacted topic).
        headers (tuple[tuple[str, bytes | None], ...]): in the order of the record; keys may repeat.
        leader_epoch (int | None): of the leader that took the record; None before Kafka 0.11's format.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int | None


class ConsumedColumns(RecordColumns):
    """A table of a consumer: the columns ``topic`` string and ``partition`` int32, then those of `RecordColumns`.

    Attributes:
        next_offsets (dict[tuple[str, int], int]): for each partition that was read for the table, the offset where
            reading continues, also after control records and aborted records only.
    """

    next_offsets: dict[Key, int]


def table_columns(names: Iterable[str] | None) -> tuple[str, ...]:
    """The columns to build in their usual order, ``offset`` always. Raises TypeError, ValueError."""
    wanted = {"offset", *column_names(names, TABLE_COLUMNS, TABLE_COLUMNS)}
    return tuple(name for name in TABLE_COLUMNS if name in wanted)


def no_rows(names: tuple[str, ...]) -> RecordColumns:
    """No records, in the columns of a consumer's tables."""
    return next(columns_between(b"", 0, None, place=NOWHERE, max_rows=1, max_bytes=1, columns=names))
