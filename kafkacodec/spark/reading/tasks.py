"""The task of a read: it decodes ranges of segment files to Arrow batches of Spark's schema."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from kafkacodec.errors import CorruptRecord, DecodeError, LimitExceeded, MissingOffsets
from kafkacodec.log import SegmentRange
from kafkacodec.log.opening import is_url
from kafkacodec.log.order.continuity import Gaps
from kafkacodec.log.reading.ranges import Lost
from kafkacodec.log.storage.access import ENVIRONMENT, S3Access
from kafkacodec.log.storage.stores import use
from kafkacodec.records.columns import Problem, RecordColumns
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.schema import COLUMNS, LOG_COLUMNS, METADATA, METADATA_FIELDS, arrow_schema, core_columns
from kafkacodec.spark.times import FarTimes, microseconds, values_of, with_values

__all__ = ["ROWS", "SKIPS", "Shaper", "log_problems", "read_ranges"]

logger = logging.getLogger("kafkacodec.spark")

SKIPS = "mode=PERMISSIVE skips and logs damage"
"""The advice of errors about damage."""

# Rows per Arrow batch: the columns of this many ordinary records stay in the processor's cache.
ROWS = 8192

# Bytes of keys, values and headers of one: rows of 110 bytes still come in whole batches.
BYTES = 1 << 20


def read_ranges(
    ranges: Iterable[SegmentRange],
    names: Sequence[str],
    *,
    permissive: bool,
    gaps: Gaps = "error",
    fail_on_data_loss: bool = True,
    access: S3Access = ENVIRONMENT,
    note: Callable[[str, Sequence[Problem]], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of these ranges in batches of at most `ROWS` rows, with the columns `names`.

    With `permissive`, damage and unreadable files are logged and skipped, but not what an object store does not give.
    Offsets missing between segments are damage unless `gaps` is ``accept``. Offsets that were deleted or truncated
    since the ranges were planned are an error with `fail_on_data_loss`, and logged without it. What is logged is also
    given to `note`, with the file's path.
    `access` tells how to reach S3.

    Raises:
        MissingOffsets: offsets were deleted or truncated since.
        DecodeError: the first damage, with the file's path; or a timestamp that Spark cannot hold. With `permissive`,
            such are null, and each range with any is logged.
        OSError: a file cannot be read.
    """
    use(access)
    shaper = Shaper(names)
    on_error: Literal["skip", "raise"] = "skip" if permissive else "raise"
    lost: Lost = "error" if fail_on_data_loss else "report"
    with without_traceback():
        for piece in ranges:
            far = FarTimes(_place(piece), None if permissive else "mode=PERMISSIVE reads null")
            try:
                for chunk in piece.read(
                    gaps=gaps, lost=lost, max_rows=ROWS, max_bytes=BYTES, columns=shaper.core_columns, on_error=on_error
                ):
                    log_problems(piece.path, chunk)
                    if note is not None and chunk.problems:
                        note(piece.path, chunk.problems)
                    if len(chunk):
                        yield shaper.shape(chunk, far, piece.path)
            except MissingOffsets as error:  # data loss, or a gap that is not to be skipped
                if error.reason.startswith("gap "):
                    raise
                raise error.advised("failOnDataLoss=false reads on") from None
            except (OSError, DecodeError) as error:  # of the file itself: damage inside it is skipped by on_error
                if not permissive and isinstance(error, DecodeError) and not isinstance(error, LimitExceeded):
                    error.advised(SKIPS)
                if not permissive or not _may_skip(piece.path, error, fail_on_data_loss):
                    raise
                logger.warning("%s: skipped: %s", piece.path, error)
                if note is not None:
                    note(piece.path, [_unreadable(piece, error)])
            if far.count:
                logger.warning("%s", far.error())
                if note is not None:
                    note(piece.path, [Problem(piece.start_position, None, 0, far.error())])


def _place(piece: SegmentRange) -> str:
    return piece.path if piece.topic is None or piece.partition is None else f"{piece.topic}-{piece.partition}"


def _may_skip(path: str, error: OSError | DecodeError, fail_on_data_loss: bool) -> bool:
    """Whether a file is damaged or gone. An object that a store does not give is neither: Spark tries again."""
    if isinstance(error, FileNotFoundError):
        return not fail_on_data_loss
    return isinstance(error, DecodeError) or not is_url(path)


def _unreadable(piece: SegmentRange, error: OSError | DecodeError) -> Problem:
    """The problem of a range whose file cannot be read."""
    reason = error if isinstance(error, DecodeError) else CorruptRecord(str(error), position=piece.start_position)
    return Problem(piece.start_position, piece.offsets[0], piece.size_in_bytes, reason)


def log_problems(name: str, chunk: RecordColumns) -> None:
    """Log the problems of a chunk."""
    for problem in chunk.problems:
        if isinstance(problem.exception, MissingOffsets):  # nothing is skipped: the bytes are not there
            logger.warning("%s", problem.exception)
            continue
        logger.warning(
            "%s: skipped %s bytes from byte %s: %s", name, problem.size_in_bytes, problem.position, problem.exception
        )


class Shaper:
    """Makes Spark's columns from the decoder's."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.schema = arrow_schema(names)
        self.core_columns = core_columns(names)

    def shape(self, chunk: RecordColumns, far: FarTimes | None = None, path: str | None = None) -> pa.RecordBatch:
        """A chunk as a record batch of Spark's schema; `path` is that of its file.

        Timestamps that Spark cannot hold are null; `far` gets to know them.

        Copies timestamps, their types, headers' nulls and epochs only.

        Raises:
            LimitExceeded: there is such a timestamp, and `far` does not only count them.
        """
        decoded = pa.record_batch(chunk)
        if far is not None and "timestamp" in self.names:
            far.check(chunk["offset"], decoded.column("timestamp"))
        columns = []
        for name in self.names:
            if name == METADATA:
                columns.append(_metadata(decoded, path))
                continue
            core = COLUMNS[name].core
            column = decoded.column(core)
            columns.append(_CONVERSIONS[core](column) if core in _CONVERSIONS else column)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _metadata(decoded: pa.RecordBatch, path: str | None) -> pa.Array:
    """Where records are in their file, and who wrote them."""
    columns = [
        pa.repeat(pa.scalar(path, kind), decoded.num_rows) if core == "path" else decoded.column(core).cast(kind)
        for core, kind in METADATA_FIELDS.values()
    ]
    return pa.StructArray.from_arrays(columns, fields=list(LOG_COLUMNS[METADATA].arrow))


def _wider(column: pa.Array) -> pa.Array:
    """Integers of 8 bits as Spark's of 32."""
    return with_values(column, pa.int32(), values_of(column, np.dtype("i1")).astype("<i4"))


def null_when_empty(headers: pa.Array) -> pa.Array:
    """The headers column as in Spark's Kafka source: null instead of an empty list."""
    rows = len(headers)
    present = np.diff(headers.offsets.to_numpy()) > 0
    bitmap = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    nulls = rows - int(np.count_nonzero(present))
    target = COLUMNS["headers"].arrow
    entries = pa.StructArray.from_arrays(headers.values.flatten(), fields=list(target.value_type))
    return pa.ListArray.from_buffers(target, rows, [bitmap, headers.offsets.buffers()[1]], nulls, children=[entries])


# Decoder's column -> the type that Spark requires; the other columns have it already.
_CONVERSIONS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "timestamp": microseconds,
    "timestamp_type": _wider,
    "headers": null_when_empty,
}
