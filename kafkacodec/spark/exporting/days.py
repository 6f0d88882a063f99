"""Days of timestamps, in UTC: the partition column `date`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.spark.times import bounds

__all__ = ["DAY_MICROSECONDS", "FIRST_DAY", "LAST_DAY", "by_day", "date_of"]

DAY_MICROSECONDS = 86_400_000_000

# 0001-01-01 and 9999-12-31: the dates that Spark, SQL and Python can name.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896


def by_day(batch: pa.RecordBatch) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """The records of a batch by the day of their timestamps, in days since 1970.

    None for those without one, and for days before the year 1 and after 9999, which no date names.
    """
    timestamps = batch.column("timestamp").view(pa.int64())
    if not timestamps.null_count:
        first, last = (bound // DAY_MICROSECONDS for bound in bounds(timestamps) or (0, 0))
        if first == last and FIRST_DAY <= first <= LAST_DAY:
            yield first, batch
            return
    days = np.floor_divide(pc.fill_null(timestamps, 0).to_numpy(), DAY_MICROSECONDS)
    none = np.asarray(pc.is_null(timestamps))
    none |= (days < FIRST_DAY) | (days > LAST_DAY)
    if not none.any() and days.min() == days.max():
        yield int(days[0]), batch
        return
    if none.any():
        yield None, batch.filter(pa.array(none))
    for day in np.unique(days[~none]).tolist():
        yield day, batch.filter(pa.array((days == day) & ~none))


def date_of(day: int | None) -> str | None:
    """A day as ``2026-01-31``."""
    return None if day is None else str(np.datetime64(day, "D"))
