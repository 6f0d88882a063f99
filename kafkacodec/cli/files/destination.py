"""The file that a command writes a table to: its format, and that it appears only when it is complete."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, cast

import click

from kafkacodec.cli.console import is_terminal, note, out_stream, say, standard_output
from kafkacodec.cli.files.standard_input import STANDARD
from kafkacodec.cli.options.gathering import Command, gathered
from kafkacodec.datatypes import dataclass
from kafkacodec.shown import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec import RecordColumns

# Format -> the suffixes of its files. Feather's second version is the Arrow file format, NDJSON a name of JSON lines.
FORMATS = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".ipc"),
    "feather": (".feather",),
    "arrow-stream": (".arrows",),
    "csv": (".csv",),
    "json": (".json",),
    "jsonl": (".jsonl",),
    "ndjson": (".ndjson",),
}
TEXT_FORMATS = ("csv", "json", "jsonl", "ndjson")

_ARROW_CODECS = ("none", "lz4", "zstd")
COMPRESSIONS = {
    "parquet": ("none", "snappy", "gzip", "brotli", "lz4", "zstd"),
    "arrow": _ARROW_CODECS,
    "feather": _ARROW_CODECS,
    "arrow-stream": _ARROW_CODECS,
}


def format_of(path: str) -> str | None:
    """The format that a file's suffix names; None for any other."""
    suffix = os.path.splitext(path)[1].lower()
    return next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)


@dataclass(frozen=True)
class Destination:
    """The output file and its options; `path` is None without ``--output``."""

    format_option: ClassVar[str] = "--format"
    names: ClassVar[tuple[str, ...]] = ("-o", "--output")
    formats: ClassVar[tuple[str, ...]] = tuple(FORMATS)

    path: str | None
    kind: str | None
    compression: str | None
    force: bool
    csv_safe: bool

    def __post_init__(self) -> None:
        if self.path is None and (self.kind or self.compression or self.force or self.csv_safe):
            raise click.UsageError(f"{self.format_option}, --compression, --csv-safe and --force need --output")

    def __bool__(self) -> bool:
        return self.path is not None

    def check(self, inputs: Iterable[str], *, as_json: bool = False) -> None:
        """Refuse an unknown format, a file that exists or is part of the input, ``--json``, bytes on a terminal.

        Raises:
            click.UsageError: with the reason.
        """
        if as_json:
            raise click.UsageError("--json and --output exclude each other")
        kind, path = self._format(), self._name()
        if path == STANDARD:
            if kind not in TEXT_FORMATS and is_terminal(sys.stdout):
                raise click.UsageError(f"{kind} is not text: redirect standard output to a file or a pipe")
            return
        check_new_file(path, inputs, force=self.force)

    def write(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch | RecordColumns]) -> int:
        """Write batches of one schema; returns the number of rows. A file appears when it is complete.

        Args:
            schema: the columns of the file.
            batches: batches with these columns, or records, which may lack some.

        Raises:
            OSError: the file cannot be written, or was created meanwhile and ``--force`` is not given.
            TypeError: a batch has another schema; a writer would read past its columns.
        """
        from kafkacodec.cli.files.writers import WRITERS, SafeCsvWriter
        from kafkacodec.records.columns import RecordColumns

        writer = SafeCsvWriter if self.csv_safe else WRITERS[self._format()]
        rows = 0
        with (
            open_output(self._name(), force=self.force) as file,
            writer(file, schema, self.compression) as table,
        ):
            for batch in batches:
                if isinstance(batch, RecordColumns):
                    table.write_records(batch, schema)
                    rows += len(batch)
                    continue
                if not batch.schema.equals(schema):
                    raise TypeError(f"a batch has the columns {batch.schema}, not {schema}")
                table.write(batch)
                rows += batch.num_rows
        return rows

    def write_table(self, table: pa.Table) -> None:
        """Write a table, and say how many rows on standard error."""
        rows = self.write(table.schema, table.to_batches())
        note(f"{self.shown}: {counted(rows, 'row')}")

    @property
    def shown(self) -> str:
        """The destination in messages."""
        return "standard output" if self.path == STANDARD else self._name()

    def _name(self) -> str:
        assert self.path is not None
        return self.path

    def _format(self) -> str:
        kind = self.kind or format_of(self._name())
        if kind is None:
            reason, formats = f"{self.path}: the suffix", self.formats
            if self.path == STANDARD:
                reason, formats = "standard output", tuple(FORMATS)
            raise click.UsageError(
                f"{reason} names no known format; add {self.format_option} with one of {', '.join(formats)}"
            )
        if self.compression is not None and self.compression not in COMPRESSIONS.get(kind, ()):
            hint = f"; use one of {', '.join(COMPRESSIONS[kind])}" if kind in COMPRESSIONS else ""
            raise click.UsageError(f"--compression {self.compression} does not apply to {kind}{hint}")
        if self.csv_safe and kind != "csv":
            raise click.UsageError(f"--csv-safe does not apply to {kind}")
        return kind


class RecordDestination(Destination):
    """That of a command whose ``-o`` and ``--format`` mean something else."""

    format_option = "--output-format"
    names = ("--output",)


def check_new_file(path: str, inputs: Iterable[str], *, force: bool) -> None:
    """Refuse a file that exists, unless `force` is set, or that is part of the input.

    Raises:
        click.UsageError: with the reason.
    """
    from kafkacodec.log.opening import is_url  # completing an option needs no logs

    if is_url(path):
        tables = "; convert --partition-by with --format iceberg or delta writes tables there"
        raise click.UsageError(f"{path}: a file is written to this machine{tables}")
    if not os.path.lexists(path):
        return
    there = [name for name in inputs if os.path.exists(name)] if os.path.exists(path) else []
    if any(os.path.samefile(path, name) or _is_inside(path, name) for name in there):
        raise click.UsageError(f"{path} is part of the input; choose another output")
    if os.path.isdir(path):
        raise click.UsageError(f"{path} is a directory; choose a file")
    mode = os.lstat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise click.UsageError(f"{path} is a device or a pipe; choose a regular file")
    if not force:
        raise click.UsageError(f"{path} exists; --force replaces it")


def open_output(path: str, *, force: bool) -> AbstractContextManager[BinaryIO]:
    """A file to write to, which appears at the end, when it is complete; or standard output.

    Raises:
        OSError: the file cannot be written, or was created meanwhile and `force` is not set.
    """
    if path == STANDARD:
        stream = out_stream()
        return nullcontext(cast(BinaryIO, _Terminal() if is_terminal(stream) else _Counted(stream.buffer)))
    from kafkacodec.log.files.publishing import new_file

    return new_file(path, replace=force)


class _Counted(io.RawIOBase):
    """Standard output with a position, which the formats with a table of contents need; a pipe has none."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._position = stream, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with standard_output:
            self._position += self._stream.write(data)
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        with standard_output:
            self._stream.flush()


class _Terminal(io.RawIOBase):
    """A terminal, which gets text line by line, without control characters."""

    def __init__(self) -> None:
        self._rest = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in lines:
            say(line.decode("utf-8", "backslashreplace"))
        return memoryview(data).nbytes


def _is_inside(path: str, directory: str) -> bool:
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(directory), ""))


def destination_options(
    kind: type[Destination] = Destination, *, required: bool = False
) -> Callable[[Command], Command]:
    """Add the options of a `Destination` to a command, as one argument, ``output``."""
    options = (
        click.option(
            *(*kind.names, "path"),
            required=required,
            type=click.Path(allow_dash=True),
            help=f"The file to write, or - for standard output, with {kind.format_option}.",
        ),
        click.option(
            *(kind.format_option, "kind"), type=click.Choice(kind.formats), help="Default: by the output's suffix."
        ),
        click.option(
            "--compression",
            help="Parquet: zstd (default), snappy, gzip, brotli, lz4 or none; Arrow: none (default), lz4 or zstd.",
        ),
        click.option("--csv-safe", is_flag=True, help="CSV: put ' before text that spreadsheets run as formulas."),
        click.option("--force", is_flag=True, help="Replace the output if it exists."),
    )

    def give(command: Command) -> Command:
        return gathered(command, "output", kind, options)

    return give
