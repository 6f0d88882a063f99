"""Write Arrow batches to files, a class per format. Needs pyarrow."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import pyarrow as pa

from kafkacodec.cli.files.json_columns import json_values
from kafkacodec.cli.output import json_line

if TYPE_CHECKING:
    from kafkacodec import RecordColumns
    from kafkacodec.cli.rows._record_text import TextWriter

# Limits of a Parquet row group: large enough to compress and scan well, small enough to hold in memory.
ROW_GROUP_ROWS = 1 << 18
ROW_GROUP_BYTES = 128 << 20


def filled(records: RecordColumns, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the schema, with nulls for those that the records lack."""
    batch = pa.record_batch(records)
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [found.pop(f.name) if f.name in found else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.record_batch(columns, schema=schema)


class Writer(ABC):
    """Writes batches of one schema to a file. A context manager that completes the format and leaves the file open."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, compression: str | None) -> None:
        self._open(file, schema, compression)

    @abstractmethod
    def _open(self, file: BinaryIO, schema: pa.Schema, compression: str | None) -> None: ...

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""

    def write_records(self, records: RecordColumns, schema: pa.Schema) -> None:
        """Append records; columns of the schema that they lack are null."""
        self.write(filled(records, schema))

    @abstractmethod
    def _finish(self) -> None:
        """Write buffered rows."""

    @abstractmethod
    def _close(self) -> None: ...

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            self._close()


class ArrowWriter(Writer):
    """Arrow IPC, the file format."""

    _new = staticmethod(pa.ipc.new_file)

    def _open(self, file: BinaryIO, schema: pa.Schema, compression: str | None) -> None:
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        self._writer = self._new(file, schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows as one record batch."""
        self._writer.write_batch(batch)

    def _finish(self) -> None:
        pass

    def _close(self) -> None:
        self._writer.close()


class ArrowStreamWriter(ArrowWriter):
    """Arrow IPC, the stream format."""

    _new = staticmethod(pa.ipc.new_stream)


class ParquetWriter(Writer):
    """Parquet, many batches to a row group."""

    def _open(self, file: BinaryIO, schema: pa.Schema, compression: str | None) -> None:
        from pyarrow import parquet

        try:
            self._writer = parquet.ParquetWriter(file, schema, compression=compression or "zstd")
        except pa.ArrowNotImplementedError as error:  # structs without fields
            raise click.UsageError(f"Parquet lacks a type of these columns; choose another --format: {error}") from None
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Buffer the batch until there is enough for a row group."""
        self._held.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self._finish()

    def _finish(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held), row_group_size=ROW_GROUP_ROWS)
        self._held, self._rows, self._bytes = [], 0, 0

    def _close(self) -> None:
        self._writer.close()


class CsvWriter(Writer):
    """CSV with a header line. Null is empty without quotes, an empty value is quoted."""

    def _open(self, file: BinaryIO, schema: pa.Schema, compression: str | None) -> None:
        from pyarrow import csv

        self._flat = pa.schema([field.with_type(_text_type(field.type)) for field in schema])
        self._file = file
        self._writer: Any = csv.CSVWriter(file, self._flat)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write bytes as text and headers as JSON."""
        from pyarrow import csv

        columns = [self._cells(column) for column in batch.columns]
        rows = pa.record_batch(columns, names=batch.schema.names)
        if rows.schema.types == self._flat.types:
            self._writer.write_batch(rows)
        else:  # times as text
            csv.write_csv(rows, self._file, csv.WriteOptions(include_header=False))

    def _cells(self, column: pa.Array) -> pa.Array:
        return _as_text(column)

    def _finish(self) -> None:
        pass

    def _close(self) -> None:
        self._writer.close()


class SafeCsvWriter(CsvWriter):
    """CSV for spreadsheets: an apostrophe precedes text that they would take for a formula or for another cell."""

    def _cells(self, column: pa.Array) -> pa.Array:
        column = _as_text(column)
        return _without_formulas(column) if pa.types.is_string(column.type) else column


class JsonLinesWriter(Writer):
    """A JSON object per line."""

    _before, _after = b"", b"\n"

    def _open(self, file: BinaryIO, schema: pa.Schema, compression: str | None) -> None:
        self._file = file
        self._names = schema.names
        self._text: TextWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a line per row."""
        rows = zip(*map(json_values, batch.columns), strict=True)
        lines = (json_line(dict(zip(self._names, row, strict=True))).encode() for row in rows)
        self._write_lines(b"".join(b"".join((self._before, line, self._after)) for line in lines))

    def write_records(self, records: RecordColumns, schema: pa.Schema) -> None:
        """Write a line per record, as `write` does, by the kernel that prints records."""
        if self._text is None:
            self._text = _text_writer(self._before, self._names, self._after)
        row, end = 0, len(records)
        while row < end:
            lines, row = self._text.write(records, row, end)
            self._write_lines(lines)

    def _write_lines(self, lines: bytes) -> None:
        self._file.write(lines)

    def _finish(self) -> None:
        pass

    def _close(self) -> None:
        pass


class JsonWriter(JsonLinesWriter):
    """One JSON array, with an object per line."""

    _before, _after = b",\n", b""
    _is_empty = True

    def _write_lines(self, lines: bytes) -> None:
        if self._is_empty and lines:
            self._is_empty = False
            lines = b"[" + lines.removeprefix(b",")
        self._file.write(lines)

    def _finish(self) -> None:
        self._file.write(b"[]\n" if self._is_empty else b"\n]\n")


def _text_writer(before: bytes, names: list[str], after: bytes) -> TextWriter:
    """What writes columns of records as objects. In a file, no character has to be escaped for being invisible."""
    from kafkacodec.cli.rows._record_text import PRINTABLE, Glyphs, TextWriter

    def constant(text: bytes) -> tuple[str, str | None, bytes, int, int, bool]:
        return "constant", None, text, 0, 0, False

    pieces = [constant(before)]
    for i, name in enumerate(names):
        pieces.append(constant(f"{',' if i else '{'}{json.dumps(name)}:".encode()))
        kind = "json headers" if name == "headers" else "json"
        pieces.append((kind, name, b"null", 0, 0, False))
    return TextWriter([*pieces, constant(b"}" + after)], Glyphs(lambda page: bytes([PRINTABLE]) * 256))


WRITERS: dict[str, type[Writer]] = {
    "arrow": ArrowWriter,
    "arrow-stream": ArrowStreamWriter,
    "csv": CsvWriter,
    "feather": ArrowWriter,
    "json": JsonWriter,
    "jsonl": JsonLinesWriter,
    "ndjson": JsonLinesWriter,
    "parquet": ParquetWriter,
}


def _text_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_binary(kind) or pa.types.is_nested(kind) else kind


def _as_text(column: pa.Array) -> pa.Array:
    """The column as CSV can hold it."""
    if pa.types.is_binary(column.type):
        try:
            return column.cast(pa.string())
        except pa.ArrowInvalid:  # some value is not UTF-8
            return pa.array([None if value is None else _text(value) for value in column.to_pylist()], pa.string())
    if pa.types.is_nested(column.type):
        values = json_values(column)
        return pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in values], pa.string())
    if pa.types.is_temporal(column.type):
        from kafkacodec.values.times import has_far_times, time_texts

        return time_texts(column) if has_far_times(column) else column
    return column


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "0x" + value.hex()


# Text that a spreadsheet takes for a formula, also after blanks; and numbers, which are not formulas.
_FORMULA = r"^[\t\r\n ]*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]|^[\t\r\n]"
_NUMBER = r"^[+\-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+\-]?[0-9]+)?$"


def _without_formulas(texts: pa.Array) -> pa.Array:
    """The texts, with an apostrophe before formulas: spreadsheets then show them as text."""
    import pyarrow.compute as pc

    formula = pc.match_substring_regex(texts, _FORMULA)
    number = pc.match_substring_regex(texts, _NUMBER)
    marked = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(pc.and_not(formula, number), marked, texts)
