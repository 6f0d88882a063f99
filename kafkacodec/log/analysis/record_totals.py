"""Totals of a segment that batch headers lack, from its decoded records."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkacodec.dialects import kafka07
from kafkacodec.errors import DecodeError
from kafkacodec.log.analysis.batch_rows import NO_TIME
from kafkacodec.log.analysis.batch_totals import BatchTotals
from kafkacodec.log.opening import StoredFile
from kafkacodec.log.order.corrections import Corrections
from kafkacodec.log.reading.ranges import KEPT_BEFORE
from kafkacodec.log.segments.kinds import BATCHES
from kafkacodec.log.segments.walk import Damage
from kafkacodec.records.columns import Problems, RecordColumns
from kafkacodec.records.decode import columns_between
from kafkacodec.records.plan import DEFAULT_MAX_VIEW_BYTES, NOWHERE, plan_of
from kafkacodec.records.reading import read_chunks

__all__ = ["count_messages", "count_records"]

_HEADER_SIZE = 61
"""The part of a batch of magic 2 that is never compressed, in bytes."""

_ROWS = 65536
_COLUMNS = ("offset", "timestamp", "key", "value", "is_control")


def count_records(
    file: StoredFile, total: BatchTotals, until: int | None, misplaced: Corrections | None = None
) -> Iterator[Damage]:
    """Read a segment's records, and set the totals in `total` that only records show.

    Args:
        file: the segment.
        total: the totals from the headers; changed.
        until: do not count records from this offset on; None: count all.
        misplaced: the wrong offsets of the segment, if there are some: their batches are damage.

    Yields:
        Damage: each unreadable place, whose records do not count.
    """
    if misplaced is not None:
        yield from _count(file, _placed(file, misplaced, until), total)
        total.uncompressed_bytes = None
        return
    plan = plan_of(columns=_COLUMNS, include_control=True, end_offset=until, on_error="skip", layout="view")
    plan = plan._replace(search_partial=True)
    decoder = plan.decoder(file.view())
    whole = yield from _count(file, read_chunks(decoder, "skip", _ROWS, DEFAULT_MAX_VIEW_BYTES), total)
    if whole:
        compressed = sum(n for name, n in total.formats.items() if name.startswith("v2/") and name != "v2/none")
        plain = total.codec_bytes["none"]
        total.uncompressed_bytes = plain + compressed * _HEADER_SIZE + decoder.decompressed_bytes
    else:
        total.uncompressed_bytes = None


def _placed(file: StoredFile, misplaced: Corrections, until: int | None) -> Iterator[RecordColumns]:
    """The records of the batches with right offsets, and problems for all other bytes."""
    for start, end, problem in misplaced.stretches(0, file.size, file.path):
        if start < end:
            yield from columns_between(
                file.view(start, end),
                start,
                end,
                max_rows=_ROWS,
                max_bytes=None,
                place=NOWHERE,
                columns=_COLUMNS,
                include_control=True,
                end_offset=until,
                on_error="skip",
                layout="view",
            )
        if problem is not None:
            left_out = BATCHES.nothing({"columns": _COLUMNS, "include_control": True, "layout": "view"})
            left_out.consumed, left_out.problems = end + problem.size_in_bytes, Problems([problem])
            yield left_out


def count_messages(file: StoredFile, total: BatchTotals, base_offset: int) -> Iterator[Damage]:
    """As `count_records`, for a segment of Kafka 0.6 or 0.7; the uncompressed size is not known."""
    chunks = kafka07.iter_columns(
        file.view(), initial_offset=base_offset, columns=("offset", "timestamp", "key", "value"), on_error="skip"
    )
    missing = 0
    for damage in _count(file, chunks, total):
        missing += damage.end - damage.start
        yield damage
    total.uncompressed_bytes, total.missing_offsets = None, missing


def _count(file: StoredFile, chunks: Iterable[RecordColumns], total: BatchTotals) -> Generator[Damage, None, bool]:
    """Add the records of chunks; returns whether all could be read."""
    whole = True
    sums = dict.fromkeys(("num_records", "num_keys", "tombstones", "key_bytes", "value_bytes"), 0)
    total.first_offset = total.last_offset = total.first_timestamp = total.last_timestamp = None
    for chunk in chunks:
        file.check_size()
        for name, number in _sums(chunk).items():
            sums[name] += number
        if len(chunk):
            _extend(total, chunk)
        for problem in chunk.problems:
            whole = False
            assert isinstance(problem.exception, DecodeError)
            stop = problem.position + problem.size_in_bytes
            yield Damage(problem.position, stop, problem.exception.within(file.path))
        file.drop_before(chunk.consumed - KEPT_BEFORE)
    for name, number in sums.items():
        setattr(total, name, number)
    return whole


def _sums(chunk: RecordColumns) -> dict[str, int]:
    data = _data(chunk)
    with_key = _valid(chunk, "key") & data
    return {
        "num_records": len(chunk),
        "num_keys": int(np.count_nonzero(with_key)),
        "tombstones": int(np.count_nonzero(with_key & ~_valid(chunk, "value"))),
        "key_bytes": int(_sizes(chunk, "key").sum(where=data, dtype=np.int64)),
        "value_bytes": int(_sizes(chunk, "value").sum(where=data, dtype=np.int64)),
    }


def _data(chunk: RecordColumns) -> npt.NDArray[np.bool_]:
    """Which rows are no control records."""
    return ~chunk["is_control"] if "is_control" in chunk.column_names else np.ones(len(chunk), np.bool_)


def _extend(total: BatchTotals, chunk: RecordColumns) -> None:
    """Extend the offsets of the records, and the times of those that are data, by those of a chunk."""
    offsets, times = chunk["offset"], chunk["timestamp"].astype(np.int64)[_data(chunk)]
    total.first_offset = int(offsets[0]) if total.first_offset is None else total.first_offset
    total.last_offset = int(offsets[-1])
    times = times[times != NO_TIME]
    if not len(times):
        return
    if total.first_timestamp is None or total.last_timestamp is None:
        total.first_timestamp, total.last_timestamp = int(times[0]), int(times[0])
    total.last_timestamp = max(total.last_timestamp, int(times.max()))


def _valid(chunk: RecordColumns, name: str) -> npt.NDArray[np.bool_]:
    """Which rows of a column are not null."""
    validity = chunk.buffers(name)["validity"]
    if validity is None:
        return np.ones(len(chunk), np.bool_)
    return np.unpackbits(validity, count=len(chunk), bitorder="little").view(np.bool_)


def _sizes(chunk: RecordColumns, name: str) -> npt.NDArray[np.int32]:
    """The sizes of keys or values; 0 for null."""
    parts: dict[str, Any] = chunk.buffers(name)
    sizes: npt.NDArray[np.int32] = parts["views"]["size"] if "views" in parts else np.diff(parts["offsets"])
    return sizes
