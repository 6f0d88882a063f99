"""The task for a column of blobs: it explodes the column into records, and into rows that list damage."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from kafkacodec.datatypes import dataclass
from kafkacodec.errors import DecodeError, LimitExceeded
from kafkacodec.records.blobs import decode_batches
from kafkacodec.records.columns import Problem, RecordColumns
from kafkacodec.records.plan import OnError
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.reading.tasks import ROWS, Shaper, log_problems
from kafkacodec.spark.times import FarTimes, beyond_spark

__all__ = ["PROBLEMS", "Explosion"]

logger = logging.getLogger("kafkacodec.spark")

# Blobs are decoded in groups of about this many bytes, whose records fit one or a few Arrow batches.
_BLOB_BYTES = 1 << 20

PROBLEMS = StructField(
    "problems",
    ArrayType(
        StructType(
            [
                StructField("position", LongType()),
                StructField("size", LongType()),
                StructField("baseOffset", LongType()),
                StructField("message", StringType()),
            ]
        )
    ),
)
"""The column that lists the damage of a blob."""

_FIELDS = [("position", pa.int64()), ("size", pa.int64()), ("baseOffset", pa.int64()), ("message", pa.string())]
_PROBLEMS_TYPE = pa.list_(pa.struct(_FIELDS))

_SKIPS = "decode_batches with mode='PERMISSIVE' skips damage"

# How the path of an exception begins in the problems of `kafkacodec.decode_batches`.
_ROW = re.compile(r"row (\d+)")


@dataclass(frozen=True)
class Explosion:
    """The columns to build from a column of blobs, and the options."""

    column: str
    columns: Sequence[str]
    keep: Sequence[str]
    on_error: OnError
    problems: bool
    max_total_bytes: int

    def explode(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records of the blobs after the kept columns of their rows, in batches of at most `ROWS`.

        Raises:
            DecodeError: with `on_error` of ``raise``, the first damage; the message names the column and the row.
            LimitExceeded: a time that Spark cannot hold, likewise; or the limit of memory.
        """
        with without_traceback():
            yield from self._exploded(batches)

    def _exploded(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shaper = Shaper(self.columns)
        for source in batches:
            for start, chunk in self._chunks(source.column(self.column), shaper):
                rows = pa.array(chunk["row"] + start)
                far = self._far_times(start, chunk)
                records = shaper.shape(chunk)
                for first in range(0, len(chunk), ROWS):
                    yield self._output(source, rows[first : first + ROWS], records.slice(first, ROWS))
                if self.problems:
                    yield from self._damage(source, start, chunk, far, shaper)
                else:
                    log_problems(f"column {self.column}", chunk)
                    for found in far.values():
                        logger.warning("%s", found.error())

    def _far_times(self, start: int, chunk: RecordColumns) -> dict[int, FarTimes]:
        """The rows of the source with records whose times Spark cannot hold.

        Raises:
            LimitExceeded: there is one, and errors are raised.
        """
        if "timestamp" not in self.columns:
            return {}
        instead = "decode_batches with mode=PERMISSIVE reads null" if self.on_error == "raise" else None
        offsets, times = chunk["offset"], pa.record_batch(chunk).column("timestamp")
        found: dict[int, FarTimes] = {}
        far = beyond_spark(times)
        rows, first = np.unique(chunk["row"][far], return_index=True)  # they are in order
        for row, here in zip(rows.tolist(), np.split(far, first[1:]), strict=False):
            found[row + start] = FarTimes(self._place(row + start), instead)
            found[row + start].check(offsets[here], times.take(pa.array(here)))
        return found

    def _chunks(self, blobs: pa.Array, shaper: Shaper) -> Iterator[tuple[int, RecordColumns]]:
        """The records of each group of blobs, with the group's first row."""
        for start, stop in _groups(blobs):
            chunk = self._decode(blobs[start:stop], shaper, start)
            if self.problems and None in _by_row(chunk):
                # Too many to list, or exceptions without a path: decode the blobs one at a time, to know the rows.
                yield from ((row, self._decode(blobs[row : row + 1], shaper, row)) for row in range(start, stop))
            else:
                yield start, chunk

    def _decode(self, blobs: pa.Array, shaper: Shaper, start: int) -> RecordColumns:
        """The records of blobs that begin at a row of the batch. Errors name the column and the row."""
        try:
            return decode_batches(
                blobs, columns=shaper.core_columns, on_error=self.on_error, max_total_bytes=self.max_total_bytes
            )
        except DecodeError as error:
            if not isinstance(error, LimitExceeded):
                error.advised(_SKIPS)
            match = _ROW.match(error.path or "")
            if match is None:
                raise error.within(f"column {self.column}") from None
            error.path = self._place(start + int(match[1])) + (error.path or "")[match.end() :]
            raise

    def _place(self, row: int) -> str:
        return f"column {self.column}, row {row} of its batch"

    def _damage(
        self, source: pa.RecordBatch, start: int, chunk: RecordColumns, far: dict[int, FarTimes], shaper: Shaper
    ) -> Iterator[pa.RecordBatch]:
        """A row for each blob of a chunk that is damaged, or that has times that are null."""
        damage = {start + (row or 0): problems for row, problems in _by_row(chunk).items()}
        for row, found in far.items():
            damage.setdefault(row, []).append(dict.fromkeys(dict(_FIELDS)) | {"message": str(found.error())})
        if damage:
            nothing = pa.RecordBatch.from_arrays(
                [pa.nulls(len(damage), field.type) for field in shaper.schema], schema=shaper.schema
            )
            yield self._output(source, pa.array(damage, pa.int64()), nothing, list(damage.values()))

    def _output(
        self,
        source: pa.RecordBatch,
        rows: pa.Array,
        records: pa.RecordBatch,
        problems: list[list[Mapping[str, object]]] | None = None,
    ) -> pa.RecordBatch:
        """The kept columns of these rows of the source, the columns of the records, and the problems if asked for."""
        columns = {name: source.column(name).take(rows) for name in self.keep}
        columns |= dict(zip(records.schema.names, records.columns, strict=True))
        if self.problems:
            missing = pa.nulls(len(rows), _PROBLEMS_TYPE)
            columns[PROBLEMS.name] = missing if problems is None else pa.array(problems, _PROBLEMS_TYPE)
        return pa.RecordBatch.from_pydict(columns)


def _by_row(chunk: RecordColumns) -> dict[int | None, list[Mapping[str, object]]]:
    """The problems of each row that has any; None stands for an unknown row."""
    found = defaultdict(list)
    for problem in chunk.problems:
        match = _ROW.match(getattr(problem.exception, "path", None) or "")
        found[int(match[1]) if match else None].append(_described(problem, f"{match[0]}: " if match else ""))
    return dict(found)


def _described(problem: Problem, prefix: str) -> Mapping[str, object]:
    """A problem as an element of the column; the message without the prefix, which names the row of the group."""
    return {
        "position": problem.position,
        "size": problem.size_in_bytes,
        "baseOffset": problem.base_offset,
        "message": str(problem.exception).removeprefix(prefix),
    }


def _groups(blobs: pa.Array) -> Iterator[tuple[int, int]]:
    """Runs of rows whose blobs total about `_BLOB_BYTES`; a larger blob is a run by itself."""
    lengths = np.asarray(pc.fill_null(pc.binary_length(blobs), 0))
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _BLOB_BYTES, side="right")))
        yield start, stop
        start = stop
