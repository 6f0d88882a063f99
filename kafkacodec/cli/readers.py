"""Files of records to encode, as Arrow batches with columns key, value, timestamp, headers, offset. Needs pyarrow."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import click
import pyarrow as pa

from kafkacodec.cli.output import json_line

ROWS = 8192
"""Rows of a batch."""

Names = dict[str, str]
"""Column of a record (key, value, ...) -> what the file calls it."""

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "headers": _HEADERS,
    "offset": pa.int64(),
}


def read_parquet(path: str, names: Names) -> Iterator[pa.RecordBatch]:
    """Batch by batch; only the columns that are wanted."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        wanted = [name for name in names.values() if name in file.schema_arrow.names]
        for batch in file.iter_batches(ROWS, columns=wanted):
            yield _renamed(batch, names)


def read_arrow(path: str, names: Names) -> Iterator[pa.RecordBatch]:
    """Arrow IPC, the file format."""
    with pa.OSFile(path) as source, pa.ipc.open_file(source) as file:
        for number in range(file.num_record_batches):
            yield _renamed(file.get_batch(number), names)


def read_csv(path: str, names: Names) -> Iterator[pa.RecordBatch]:
    """CSV with a header line. An unquoted empty value is null; headers are JSON."""
    from pyarrow import csv

    types = {names[column]: pa.string() for column in ("key", "value", "headers")}
    options = csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    with csv.open_csv(path, convert_options=options) as file:
        for batch in file:
            batch = _renamed(batch, names)
            if "headers" in batch.schema.names:
                rows = [_headers(json.loads(text)) if text else [] for text in batch.column("headers").to_pylist()]
                place = batch.schema.get_field_index("headers")
                batch = batch.set_column(place, "headers", pa.array(rows, _HEADERS))
            yield batch


def read_jsonl(path: str, names: Names) -> Iterator[pa.RecordBatch]:
    """An object per line. Bytes are strings or ``{"base64": "..."}``; other JSON as a value stays JSON text."""
    with open(path, encoding="utf-8") as file:
        lines = enumerate(file, 1)
        while block := list(islice(lines, ROWS)):
            rows = [_row(path, number, line, names) for number, line in block if line.strip()]
            present = [column for column in _TYPES if any(column in row for row in rows)]
            arrays = [pa.array([row.get(column) for row in rows], _TYPES[column]) for column in present]
            yield pa.record_batch(arrays, names=present)


READERS: dict[str, Callable[[str, Names], Iterator[pa.RecordBatch]]] = {
    "arrow": read_arrow,
    "csv": read_csv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
}


def _renamed(batch: pa.RecordBatch, names: Names) -> pa.RecordBatch:
    present = {column: batch.column(name) for column, name in names.items() if name in batch.schema.names}
    if not {"key", "value"} & present.keys():
        raise click.ClickException(f"there is neither a column {names['key']} nor {names['value']}")
    return pa.record_batch(list(present.values()), names=list(present))


def _row(path: str, number: int, line: str, names: Names) -> dict[str, Any]:
    try:
        found = json.loads(line)
        if not isinstance(found, dict):
            raise ValueError("no object")
        row = {column: found[name] for column, name in names.items() if name in found}
        for column in ("key", "value"):
            if column in row:
                row[column] = _content(row[column])
        if "headers" in row:
            row["headers"] = _headers(row["headers"] or [])
        for column in ("timestamp", "offset"):
            if not isinstance(row.get(column), int | None):
                raise ValueError(f"{column} is no integer")
    except (ValueError, TypeError, KeyError) as error:
        raise click.ClickException(f"{path}: line {number}: {error}") from None
    return row


def _headers(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"key": pair["key"], "value": _content(pair["value"])} for pair in pairs]


def _content(value: Any) -> bytes | None:
    """What `kafkacodec convert` made JSON of."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise ValueError(f"base64: {error}") from None
    return json_line(value).encode() if isinstance(value, dict) else json.dumps(value, ensure_ascii=False).encode()
