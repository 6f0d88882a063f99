"""Limits on topics, partitions, offsets and timestamps from the filters that Spark pushes down."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kafkacodec.datatypes import replace
from kafkacodec.spark.reading.planning import Pruning

__all__ = ["prune"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def prune(filters: Iterable[Filter]) -> Pruning:
    """The range that must be read so that no record that passes all filters is missed.

    A filter that is not supported excludes nothing. Spark evaluates all filters again on the records.
    """
    pruning = Pruning()
    for condition in filters:
        values = _values(condition)
        column = getattr(condition, "attribute", None)
        if column == ("topic",) and values is not None:
            pruning = replace(pruning, topics=_both(pruning.topics, values))
        elif column == ("partition",) and values is not None:
            pruning = replace(pruning, partitions=_both(pruning.partitions, values))
        elif column == ("offset",):
            low, high = _interval(condition, values)
            pruning = replace(
                pruning,
                start_offset=pruning.start_offset if low is None else max(pruning.start_offset, low),
                end_offset=pruning.end_offset if high is None else min(pruning.end_offset, high),
            )
        elif column == ("timestamp",):
            # Batch headers have only the latest timestamp, so an upper limit excludes nothing.
            earliest = _milliseconds(_interval(condition, values, step=timedelta(0))[0])
            if earliest is not None and earliest > (pruning.start_timestamp or 0):
                pruning = replace(pruning, start_timestamp=earliest)
    return pruning


def _values(condition: Filter) -> frozenset[Any] | None:
    """The values that a column is limited to; None for another kind of filter."""
    match condition:
        case EqualTo(value=value) | EqualNullSafe(value=value) if value is not None:
            return frozenset([value])
        case In(value=listed):
            return frozenset(listed)
    return None


def _both(one: frozenset[Any] | None, other: frozenset[Any]) -> frozenset[Any]:
    return other if one is None else one & other


def _interval(condition: Filter, values: frozenset[Any] | None, step: Any = 1) -> tuple[Any, Any]:
    """The half-open interval that a column is limited to; None for a side without a limit."""
    if values is not None:
        known = [value for value in values if value is not None]
        return (min(known), max(known) + step) if known else (None, None)
    match condition:
        case GreaterThan(value=value) if value is not None:
            return value + step, None
        case GreaterThanOrEqual(value=value) if value is not None:
            return value, None
        case LessThan(value=value) if value is not None:
            return None, value
        case LessThanOrEqual(value=value) if value is not None:
            return None, value + step
    return None, None


def _milliseconds(moment: object) -> int | None:
    """Milliseconds since 1970, rounded down; None for a value that is not a time with a time zone."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        return None
    return (moment - _EPOCH) // _MILLISECOND
