"""The destination of an export: the part that all formats have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import pyarrow as pa

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.opening import is_url
from kafkacodec.log.storage.access import ENVIRONMENT, S3Access
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.report import ExportReport
from kafkacodec.spark.exporting.run_files import RunFiles, StagedFiles, UploadedFiles
from kafkacodec.spark.reading.checkpoint import Position
from kafkacodec.spark.reading.options import TopicPartition
from kafkacodec.spark.schema import COLUMNS, arrow_schema

__all__ = ["Destination", "Table"]


class Table(NamedTuple):
    """The exported table: its columns without the date, by what its files are partitioned, and of which records."""

    schema: pa.Schema
    partition_by: tuple[str, ...]
    read_committed: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema.names)

    @property
    def types(self) -> dict[str, str]:
        """The types of decoded columns; those of the others are always the same."""
        plain = arrow_schema([name for name in self.columns if name in COLUMNS])
        return {field.name: str(field.type) for field in self.schema if field not in plain}

    @property
    def isolation_level(self) -> str:
        """Which records it has, as the option of the source says it."""
        return "read_committed" if self.read_committed else "read_uncommitted"

    def check_isolation(self, stored: str | None, place: str) -> None:
        """Refuse to add to runs of the other isolation level: nobody could tell later which records are committed.

        Args:
            stored: the isolation level of the runs at `place`; None if there is none.

        Raises:
            OptionError: it is the other one.
        """
        if stored not in (None, self.isolation_level):
            raise OptionError(
                f"isolationLevel: {self.isolation_level}, but {place} has records of {stored}; choose {stored} or "
                "another target"
            )


class Destination(ABC):
    """A directory or table that runs are added to.

    Attributes:
        root: the directory of its files, or a URL.
        positions: where the next run starts.
        stored: the columns that files have.
        access: how S3 is reached, for a URL.
    """

    access: S3Access = ENVIRONMENT

    def __init__(self, root: str, table: Table, positions: Mapping[TopicPartition, Position]) -> None:
        self.root = root
        self.table = table
        self.positions = positions

    @property
    def stored(self) -> pa.Schema:
        """The columns of the files; by default without those in the names of the directories."""
        return pa.schema([field for field in self.table.schema if field.name not in self.table.partition_by])

    @abstractmethod
    def new_run(self) -> str:
        """The name of the directory for the files of the next run, below the root."""

    @abstractmethod
    def commit(self, files: RunFiles, report: ExportReport, positions: Mapping[TopicPartition, Position]) -> None:
        """Make the files of a run visible, and store the positions after it.

        Raises:
            KafkaCodecError: another run was committed in the meantime.
            OSError: a file cannot be written or renamed.
        """

    def run_files(self, run: str) -> RunFiles:
        """The still empty set of files of a new run."""
        by = self.table.partition_by
        if is_url(self.root):
            return UploadedFiles(self.root, run, by, self.access)
        return StagedFiles.of(self.root, run, by)
