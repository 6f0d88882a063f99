"""Read files of records as Arrow batches with the columns of `_TYPES`. Needs pyarrow."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from kafkacodec.cli.files import json_rows
from kafkacodec.cli.files.json_rows import Names
from kafkacodec.cli.files.sources import Source

ROWS = 8192
"""Rows in a batch."""

_BLOCK_BYTES = 16 << 20
_PIECE = 1 << 20
_LINE_FEED = 10
_ARROW_FILE = b"ARROW1"


_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "headers": _HEADERS,
    "offset": pa.int64(),
    "partition": pa.int32(),
    "topic": pa.string(),
}


def read_parquet(source: Source, names: Names) -> Iterator[pa.RecordBatch]:
    """Parquet; reads only the named columns."""
    from pyarrow import parquet

    with source.on_disk() as path, parquet.ParquetFile(path) as file:
        names.check("column", file.schema_arrow.names)
        names.check_values("column", file.schema_arrow.names)
        wanted = [name for name in names.of.values() if name in file.schema_arrow.names]
        part = source.size_in_bytes / max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(ROWS, columns=wanted):
            yield _renamed(batch, names)
            source.advance(int(batch.num_rows * part))


def read_arrow(source: Source, names: Names) -> Iterator[pa.RecordBatch]:
    """Arrow IPC: the file format, or the stream format in a file."""
    with source.on_disk() as path, open(path, "rb") as start:
        if start.read(len(_ARROW_FILE)) != _ARROW_FILE:
            start.seek(0)
            yield from _read_stream(start, names)
            return
        with pa.OSFile(path) as opened, pa.ipc.open_file(opened) as file:
            for number in range(file.num_record_batches):
                yield _checked(file.get_batch(number), names)
                source.advance(source.size_in_bytes // file.num_record_batches)


def read_arrow_stream(source: Source, names: Names) -> Iterator[pa.RecordBatch]:
    """Arrow IPC, the stream format."""
    with source.opened() as file:
        yield from _read_stream(file, names)


def _read_stream(file: BinaryIO, names: Names) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(file) as stream:
        for batch in stream:
            yield _checked(batch, names)


def _checked(batch: pa.RecordBatch, names: Names) -> pa.RecordBatch:
    batch.validate(full=True)  # offsets may exceed the buffers, text may not be UTF-8
    return _renamed(batch, names)


def read_csv(source: Source, names: Names) -> Iterator[pa.RecordBatch]:
    """CSV with a header line. An unquoted empty cell is null; headers are JSON."""
    from pyarrow import csv

    types = {names.of[column]: pa.string() for column in ("key", "value", "headers", "topic") if column in names.of}
    options = csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    reading = csv.ReadOptions(block_size=_BLOCK_BYTES)
    first = 1
    with source.opened() as plain, csv.open_csv(plain, reading, convert_options=options) as file:
        for batch in _of_csv(file):
            batch = _renamed(batch, names)
            if "headers" in batch.schema.names:
                rows = [_headers_of(text, row) for row, text in enumerate(batch.column("headers").to_pylist(), first)]
                place = batch.schema.get_field_index("headers")
                batch = batch.set_column(place, "headers", pa.array(rows, _HEADERS))
            yield batch
            first += batch.num_rows


def _of_csv(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except pa.ArrowInvalid as error:
        if "straddl" in str(error):
            raise ValueError(f"a row is longer than {_BLOCK_BYTES >> 20} MiB") from None
        raise


def _headers_of(text: str | None, row: int) -> Any:
    try:
        return json_rows.headers_of_text(text)
    except ValueError as error:
        raise ValueError(f"row {row}: headers: {error}") from None


def read_jsonl(source: Source, names: Names) -> Iterator[pa.RecordBatch]:
    """A JSON object per line. Bytes are strings or ``{"base64": "..."}``; any other value is stored as JSON text."""
    with source.opened() as file:
        rows = (json_rows.row_of_line(place, line, names) for place, line in json_rows.lines(file))
        yield from _batches(rows, names)


def read_json(source: Source, names: Names) -> Iterator[pa.RecordBatch]:
    """One JSON array of objects, or objects that follow one another."""
    with source.opened() as file:
        rows = (json_rows.row_of(place, found, names) for place, found in json_rows.elements(file))
        yield from _batches(rows, names)


def _batches(rows: Iterator[json_rows.Row], names: Names) -> Iterator[pa.RecordBatch]:
    seen: set[str] = set()
    for block in _blocks(rows):
        if not seen:
            names.check_values("field", dict.fromkeys(name for row in block for name in row[json_rows.FIELDS]))
        present = [column for column in _TYPES if any(column in row for row in block)]
        seen.update(present)
        arrays = [pa.array([row.get(column) for row in block], _TYPES[column]) for column in present]
        yield pa.record_batch(arrays, names=present)
    if seen:
        names.require(seen)


def _blocks(rows: Iterator[json_rows.Row]) -> Iterator[list[json_rows.Row]]:
    """Up to `ROWS` rows, fewer if they are large."""
    block: list[json_rows.Row] = []
    size = 0
    for row in rows:
        block.append(row)
        size += len(row.get("key") or b"") + len(row.get("value") or b"")
        if len(block) == ROWS or size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def read_lines(source: Source, names: Names) -> Iterator[pa.RecordBatch]:
    """Each line, without its line feed, is a value."""
    if names.required or names.leaves_out:
        raise ValueError("lines have no columns: each is a value")
    with source.opened() as file:
        for data in _complete_lines(file):
            array = np.frombuffer(data, np.uint8)
            ends = np.flatnonzero(array == _LINE_FEED)
            offsets = np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int32)
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(array[array != _LINE_FEED])]
            yield pa.record_batch([pa.Array.from_buffers(pa.binary(), len(ends), buffers)], names=["value"])


def _complete_lines(file: BinaryIO) -> Iterator[bytes]:
    """The file in pieces that end after a line; the last line gets a line feed if it has none."""
    start: list[bytes] = []
    while piece := file.read(_PIECE):
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*start, piece[:end]])
            start = []
        start.append(piece[end:])
        if sum(map(len, start)) > json_rows.MAX_BYTES:
            raise ValueError(f"a line is longer than {json_rows.MAX_BYTES >> 20} MiB")
    if any(start):
        yield b"".join([*start, b"\n"])


READERS: dict[str, Callable[[Source, Names], Iterator[pa.RecordBatch]]] = {
    "arrow": read_arrow,
    "arrow-stream": read_arrow_stream,
    "csv": read_csv,
    "feather": read_arrow,
    "json": read_json,
    "jsonl": read_jsonl,
    "lines": read_lines,
    "ndjson": read_jsonl,
    "parquet": read_parquet,
}


def decoded(batch: pa.RecordBatch, encodings: dict[str, str], first: int = 0) -> pa.RecordBatch:
    """The batch, which `first` rows precede, with the columns of `encodings` decoded from hex or base64."""
    for column, encoding in encodings.items():
        if encoding != "text" and column in batch.schema.names:
            cells = enumerate(batch.column(column).to_pylist(), first + 1)
            values = [_bytes(f"row {row}: {column}", encoding, value) for row, value in cells]
            batch = batch.set_column(batch.schema.get_field_index(column), column, pa.array(values, pa.binary()))
    return batch


def _bytes(column: str, encoding: str, value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        return binascii.unhexlify(value) if encoding == "hex" else base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        shown = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        raise ValueError(f"{column} {shown[:40]!r} is not {encoding}") from None


def _renamed(batch: pa.RecordBatch, names: Names) -> pa.RecordBatch:
    twice = [name for name in names.of.values() if batch.schema.names.count(name) > 1]
    if twice:
        raise ValueError(f"duplicate column {twice[0]!r}")
    names.check("column", batch.schema.names)
    names.check_values("column", batch.schema.names)
    present = {column: _plain(batch.column(name)) for column, name in names.of.items() if name in batch.schema.names}
    names.require(present)
    return pa.record_batch(list(present.values()), names=list(present))


def _plain(column: pa.Array) -> pa.Array:
    """A view column as plain text or bytes, since pyarrow's `take` does not support views."""
    kinds = {"string_view": pa.string(), "binary_view": pa.binary()}
    return column.cast(kinds[str(column.type)]) if str(column.type) in kinds else column
