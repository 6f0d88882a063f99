"""Destinations of Spark that keep nothing of what they get: what writing segments cannot be faster than."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

__all__ = ["ThrownAway", "WrittenAlone"]


class ThrownAway(DataSource):
    """A destination that discards its input."""

    @classmethod
    def name(cls) -> str:
        return "thrownaway"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return ThrownAwayWriter()


class ThrownAwayWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class WrittenAlone(DataSource):
    """A destination that writes `record_bytes` ready bytes for each record to a file of the task below `path`.

    As `kafkalog` does, the driver waits for the disk at the end.
    """

    @classmethod
    def name(cls) -> str:
        return "writtenalone"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return WrittenAloneWriter(self.options["path"], int(self.options["record_bytes"]))


@dataclass
class Written(WriterCommitMessage):
    path: str


class WrittenAloneWriter(DataSourceArrowWriter):
    def __init__(self, directory: str, record_bytes: int) -> None:
        self.directory, self.record_bytes = directory, record_bytes

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        ready = b""
        with tempfile.NamedTemporaryFile(dir=self.directory, delete=False) as file:
            for batch in iterator:
                size = batch.num_rows * self.record_bytes
                if size > len(ready):
                    ready = os.urandom(size)
                file.write(memoryview(ready)[:size])
        return Written(file.name)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        for path in {message.path for message in messages if isinstance(message, Written)}:
            with Path(path).open("rb") as file:
                os.fsync(file.fileno())
