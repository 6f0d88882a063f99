"""Where an export goes: what all formats have in common."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

import pyarrow as pa

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log import publishing
from kafkacodec.spark.checkpoint import Position
from kafkacodec.spark.exporting.days import date_of
from kafkacodec.spark.exporting.options import DATE
from kafkacodec.spark.exporting.report import ExportedFile, ExportReport
from kafkacodec.spark.options import TopicPartition
from kafkacodec.spark.schema import COLUMNS, arrow_schema

__all__ = ["Destination", "Table", "partition_directory", "partition_values"]

_NULL = "__HIVE_DEFAULT_PARTITION__"


class Table(NamedTuple):
    """The exported table: its columns without the date, and by what its files are partitioned."""

    schema: pa.Schema
    partition_by: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema.names)

    @property
    def types(self) -> dict[str, str]:
        """The types of decoded columns; those of the others are always the same."""
        plain = arrow_schema([name for name in self.columns if name in COLUMNS])
        return {field.name: str(field.type) for field in self.schema if field not in plain}


class Destination(ABC):
    """A directory or table that runs are added to.

    Attributes:
        root: the directory of its files.
        positions: where the next run starts.
        stored: the columns that files have.
    """

    def __init__(self, root: str, table: Table, positions: Mapping[TopicPartition, Position]) -> None:
        self.root = root
        self.table = table
        self.positions = positions

    @property
    def stored(self) -> pa.Schema:
        """The columns that files have: by default, not those that the directories' names tell."""
        return pa.schema([field for field in self.table.schema if field.name not in self.table.partition_by])

    @abstractmethod
    def new_run(self) -> str:
        """The name of the directory for the files of the next run, below the root."""

    @abstractmethod
    def commit(self, output: str, report: ExportReport, positions: Mapping[TopicPartition, Position]) -> None:
        """Make a run visible, whose files are in the directory `output`, with the positions after it.

        Raises:
            KafkaCodecError: another run has been committed meanwhile.
            OSError: a file cannot be written or renamed.
        """

    def publish(self, output: str, run: str) -> None:
        """Give the directory of a run its name.

        Raises:
            KafkaCodecError: another run has it.
            OSError: it cannot be renamed.
        """
        os.makedirs(self.root, exist_ok=True)
        try:
            os.rename(output, os.path.join(self.root, run))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            raise KafkaCodecError(
                f"another export has written {run} of {self.root} meanwhile; this one did nothing, run it again"
            ) from None
        publishing.sync_names(self.root, run)


def partition_values(partition_by: Sequence[str], file: ExportedFile) -> dict[str, str | None]:
    """The values of a file's partition columns, as text."""
    values = {"topic": file.topic, "partition": str(file.partition), DATE: date_of(file.day)}
    return {name: values[name] for name in partition_by}


def partition_directory(partition_by: Sequence[str], file: ExportedFile) -> str:
    """The directory of a file below that of its run, as Hive names it: ``topic=orders/partition=0``."""
    values = partition_values(partition_by, file)
    return "/".join(f"{name}={_NULL if value is None else quote(value, safe=' ')}" for name, value in values.items())
