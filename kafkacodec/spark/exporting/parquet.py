"""Exports to plain Parquet: a directory per run, which appears by one rename, with the offsets after it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.files import publishing
from kafkacodec.log.opening import is_url
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.destination import Destination, Table
from kafkacodec.spark.exporting.options import local_target
from kafkacodec.spark.exporting.report import ExportReport
from kafkacodec.spark.exporting.run_files import RunFiles, StagedFiles
from kafkacodec.spark.reading.checkpoint import Offsets, Position, parse
from kafkacodec.spark.reading.options import TopicPartition

__all__ = ["SUCCESS", "ParquetDirectory"]

SUCCESS = "_SUCCESS"
"""The file with a run's report, as JSON. Readers of Parquet ignore it by its first character."""

_RUN = re.compile(r"run=(\d+)")


class ParquetDirectory(Destination):
    """A directory of Parquet files in Hive's layout, with the number of the run as the first column."""

    def __init__(self, target: str | os.PathLike[str], table: Table) -> None:
        if is_url(os.fspath(target)) and not os.fspath(target).startswith("file:"):
            raise OptionError(
                f"target: {os.fspath(target)}: an object store cannot publish a directory at once; use format "
                "iceberg or delta, or a local directory"
            )
        root = local_target("target", target)
        self._number = _last_run(root)
        found = _success(root, self._number) if self._number else {}
        offsets: Offsets = found.get("offsets", {})
        super().__init__(root, table, parse(offsets))
        for name in ("columns", "partition_by") if found else ():
            before, now = found.get(name), list(getattr(table, name))
            if before != now:
                raise OptionError(
                    f"{name}: {', '.join(now)}, but {root} has {', '.join(before or ())}; choose another target"
                )
        table.check_isolation(found.get("isolation_level"), root)
        for name, kind in found.get("types", {}).items():
            if table.types.get(name) != kind:
                raise OptionError(
                    f"columns: {name} is {table.types.get(name)}, but {root} has {kind}; choose another target"
                )

    def new_run(self) -> str:
        """The next number; two runs at a time have the same one, and the second fails."""
        return f"run={self._number + 1}"

    def commit(self, files: RunFiles, report: ExportReport, positions: Mapping[TopicPartition, Position]) -> None:
        """Write the report, which has the positions, and rename the directory."""
        content = {
            "columns": self.table.columns,
            "types": self.table.types,
            "partition_by": self.table.partition_by,
            "isolation_level": self.table.isolation_level,
            **report.to_dict(),
        }
        assert isinstance(files, StagedFiles)  # as the target is local
        publishing.write_file(os.path.join(files.output, SUCCESS), json.dumps(content, indent=1).encode(), sync=True)
        files.publish()


def _last_run(root: str) -> int:
    """The number of the last run; 0 if there is none.

    Raises:
        OptionError: the directory has something else in it.
    """
    try:
        names = os.listdir(root)
    except FileNotFoundError:
        return 0
    runs = [int(match[1]) for match in map(_RUN.fullmatch, names) if match]
    others = [name for name in names if not _RUN.fullmatch(name) and not name.startswith((".", "_"))]
    if others:
        raise OptionError(f"target: {root} has {min(others)}, which no export wrote; choose an empty directory")
    return max(runs, default=0)


def _success(root: str, number: int) -> dict[str, Any]:
    path = os.path.join(root, f"run={number}", SUCCESS)
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except (FileNotFoundError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("offsets"), dict):
        raise KafkaCodecError(
            f"{path} is missing or damaged, so the end of the export is unknown; restore the file, or export to a "
            "new directory"
        )
    return found
