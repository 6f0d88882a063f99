"""The file that a command writes a table to: its format, and that it appears only when it is complete."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.inputs import Command, gathered
from kafkacodec.log.publishing import new_file

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = {
    "parquet": [".parquet", ".pq"],
    "arrow": [".arrow", ".feather", ".ipc"],
    "csv": [".csv"],
    "jsonl": [".jsonl", ".ndjson"],
}

COMPRESSIONS = {"parquet": ("none", "snappy", "gzip", "brotli", "lz4", "zstd"), "arrow": ("none", "lz4", "zstd")}


@dataclass(frozen=True)
class Destination:
    """The output file and its options; `path` is None without ``--output``."""

    path: str | None
    kind: str | None
    compression: str | None
    force: bool
    csv_safe: bool

    def __post_init__(self) -> None:
        if self.path is None and (self.kind or self.compression or self.force or self.csv_safe):
            raise click.UsageError("--format, --compression, --csv-safe and --force need --output")

    def __bool__(self) -> bool:
        return self.path is not None

    def check(self, inputs: Iterable[str], *, as_json: bool = False) -> None:
        """Refuse an unknown format, a file that exists or is part of the input, and ``--json``.

        Raises:
            click.UsageError: with the reason.
        """
        if as_json:
            raise click.UsageError("--json and --output exclude each other")
        self._format()
        path = self._name()
        if not os.path.lexists(path):
            return
        if os.path.exists(path) and any(os.path.samefile(path, name) or _is_inside(path, name) for name in inputs):
            raise click.UsageError(f"{path} is part of the input; choose another output")
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            raise click.UsageError(f"{path} is a device or a pipe; choose a regular file")
        if not self.force:
            raise click.UsageError(f"{path} exists; --force replaces it")

    def write(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
        """Write batches of one schema; returns the number of rows. The file appears when it is complete.

        Raises:
            OSError: the file cannot be written, or was created meanwhile and ``--force`` is not given.
            TypeError: a batch has another schema; a writer would read past its columns.
        """
        from kafkacodec.cli.writers import WRITERS, SafeCsvWriter

        writer = SafeCsvWriter if self.csv_safe else WRITERS[self._format()]
        rows = 0
        with (
            new_file(self._name(), replace=self.force) as file,
            writer(file, schema, self.compression) as table,
        ):
            for batch in batches:
                if not batch.schema.equals(schema):
                    raise TypeError(f"a batch has the columns {batch.schema}, not {schema}")
                table.write(batch)
                rows += batch.num_rows
        return rows

    def write_table(self, table: pa.Table) -> None:
        """Write a table."""
        self.write(table.schema, table.to_batches())

    def _name(self) -> str:
        assert self.path is not None
        return self.path

    def _format(self) -> str:
        suffix = os.path.splitext(self._name())[1].lower()
        kind = self.kind or next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)
        if kind is None:
            raise click.UsageError(f"{self.path}: the suffix names no known format; add --format")
        if self.compression is not None and self.compression not in COMPRESSIONS.get(kind, ()):
            hint = f"; use one of {', '.join(COMPRESSIONS[kind])}" if kind in COMPRESSIONS else ""
            raise click.UsageError(f"--compression {self.compression} does not apply to {kind}{hint}")
        if self.csv_safe and kind != "csv":
            raise click.UsageError(f"--csv-safe does not apply to {kind}")
        return kind


def _is_inside(path: str, directory: str) -> bool:
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(directory), ""))


def destination_options(*, required: bool = False) -> Callable[[Command], Command]:
    """Add the options of `Destination` to a command, as one argument, ``output``."""
    options = (
        click.option(
            *("-o", "--output", "path"),
            required=required,
            type=click.Path(dir_okay=False),
            help="The file to write: Parquet, Arrow IPC, CSV or JSON lines.",
        ),
        click.option("--format", "kind", type=click.Choice(list(FORMATS)), help="Default: by the output's suffix."),
        click.option(
            "--compression",
            help="Parquet: zstd (default), snappy, gzip, brotli, lz4 or none; Arrow: none (default), lz4 or zstd.",
        ),
        click.option("--csv-safe", is_flag=True, help="CSV: put ' before text that spreadsheets run as formulas."),
        click.option("--force", is_flag=True, help="Replace the output if it exists."),
    )

    def give(command: Command) -> Command:
        return gathered(command, "output", Destination, options)

    return give
