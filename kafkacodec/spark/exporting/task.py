"""The task of an export: it reads ranges of segments and writes their records to Parquet files."""

from __future__ import annotations

import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import pyarrow as pa

from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.log import SegmentRange
from kafkacodec.log.formats import layout
from kafkacodec.records.columns import Problem
from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import without_traceback
from kafkacodec.spark.exporting.days import by_day
from kafkacodec.spark.exporting.files import RecordFile
from kafkacodec.spark.exporting.options import FileOptions
from kafkacodec.spark.exporting.report import ExportedFile, ExportProblem
from kafkacodec.spark.exporting.run_files import RunFiles
from kafkacodec.spark.exporting.typed import TypedColumns
from kafkacodec.spark.reading.observing import key_of
from kafkacodec.spark.reading.options import ReadOptions, TopicPartition
from kafkacodec.spark.reading.tasks import read_ranges

__all__ = ["RESULT", "ExportTask", "Written"]

RESULT = "task long, written string"
"""Spark's schema of what tasks return: a row for each."""

_MOST_OPEN = 16
"""Files of a partition that are written at the same time; with more days at once, the oldest file is closed."""


class Written(NamedTuple):
    """The result of a task: its files, with their paths in the staging directory, and the data it left out."""

    files: list[ExportedFile]
    problems: list[ExportProblem]

    def dump(self) -> str:
        """The same as text."""
        return json.dumps([[asdict(file) for file in self.files], self.problems])

    @classmethod
    def load(cls, text: str) -> Written:
        """What `dump` has written."""
        files, problems = json.loads(text)
        return cls([ExportedFile(**file) for file in files], [ExportProblem(*problem) for problem in problems])


@dataclass(frozen=True)
class ExportTask:
    """The function that Spark sends to the tasks of a run.

    Attributes:
        pieces: the pickled ranges of each task.
        reading: the options of the reader.
        columns: the columns that are read.
        typed: what makes typed columns of them; None if keys and values stay bytes.
        stored: the columns that the files have.
        by_date: whether days have files of their own.
        files: how files are written.
        output: where the files go.
    """

    pieces: Mapping[int, bytes]
    reading: ReadOptions
    columns: tuple[str, ...]
    typed: TypedColumns | None
    stored: pa.Schema
    by_date: bool
    files: FileOptions
    output: RunFiles

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function for ``mapInArrow``: rows with the numbers of tasks become rows with what they have done."""
        settle()
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            with without_traceback():
                done = [self.write(number).dump() for number in numbers]
            yield pa.record_batch([pa.array(numbers, pa.int64()), pa.array(done, pa.string())], ["task", "written"])

    def write(self, task: int) -> Written:
        """Do one task.

        Raises:
            DecodeError, OSError: as `read_ranges`; or a file cannot be written.
        """
        written = Written([], [])
        directory = self.output.begin(task)
        files = _OpenFiles(directory, self, task, written.files)
        try:
            for piece in pickle.loads(self.pieces[task]):
                key = key_of(piece)
                for batch in self._read(piece, key, written.problems):
                    for day, rows in by_day(batch) if self.by_date else ((None, batch),):
                        files.write(key, day, rows)
            files.close()
        finally:
            self.output.end(directory)
        return written

    def _read(
        self, piece: SegmentRange, key: TopicPartition, problems: list[ExportProblem]
    ) -> Iterator[pa.RecordBatch]:
        def note(path: str, found: Sequence[Problem]) -> None:
            shown = "" if layout.stands_for_log(path) else path
            for p in found:
                message = str(p.exception).removeprefix(f"{path}: ")
                problems.append(ExportProblem(*key, shown, p.position, p.size_in_bytes, message))

        batches = read_ranges(
            (piece,),
            self.columns,
            permissive=self.reading.permissive,
            gaps=self.reading.gaps,
            fail_on_data_loss=self.reading.fail_on_data_loss,
            access=self.reading.access,
            note=note,
        )
        if self.typed is None:
            yield from batches
            return
        errors = 0
        for batch in batches:
            found, more = self.typed.decode(batch, key)
            errors += more
            yield found
        if errors:
            text = f"{errors} keys or values could not be decoded; the columns of errors have the reasons"
            problems.append(ExportProblem(*key, piece.path, None, None, text))


class _OpenFiles:
    """The files that a task is writing: one for each day of the current partition."""

    def __init__(self, directory: str, work: ExportTask, task: int, done: list[ExportedFile]) -> None:
        self._directory, self._work = directory, work
        self._task, self._count, self._done = task, 0, done
        self._key: TopicPartition | None = None
        self._open: OrderedDict[int | None, RecordFile] = OrderedDict()

    def write(self, key: TopicPartition, day: int | None, rows: pa.RecordBatch) -> None:
        """Append the records of one partition and day."""
        if key != self._key:
            self.close()
            self._key = key
        if day not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._finish(next(iter(self._open)))
            path = os.path.join(self._directory, f"part-{self._task:05}-{self._count:05}.parquet")
            self._count += 1
            self._open[day] = RecordFile(path, self._work.stored, self._work.files)
        self._open.move_to_end(day)
        if self._open[day].write(rows) >= self._work.files.file_bytes:
            self._finish(day)

    def close(self) -> None:
        """Complete all files."""
        for day in list(self._open):
            self._finish(day)

    def _finish(self, day: int | None) -> None:
        assert self._key is not None
        file = self._open.pop(day).close(*self._key, day)
        self._done.append(self._work.output.add(self._directory, file))
