"""Read files of records as Arrow batches with columns key, value, timestamp, headers, offset. Needs pyarrow."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from kafkacodec.cli.output import json_line

ROWS = 8192
"""Rows in a batch."""


class Names(NamedTuple):
    """The file's names of the columns key, value and so on, and the columns that it must have."""

    of: dict[str, str]
    required: frozenset[str]

    def require(self, present: Iterable[str]) -> None:
        """Raise ValueError if a required column is missing."""
        missing = sorted(self.of[column] for column in self.required.difference(present))
        if missing:
            raise ValueError(f"missing column {missing[0]!r}")


_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "headers": _HEADERS,
    "offset": pa.int64(),
}


def read_parquet(path: str, names: Names) -> Iterator[pa.RecordBatch]:
    """Parquet; reads only the named columns."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        wanted = [name for name in names.of.values() if name in file.schema_arrow.names]
        for batch in file.iter_batches(ROWS, columns=wanted):
            yield _renamed(batch, names)


def read_arrow(path: str, names: Names) -> Iterator[pa.RecordBatch]:
    """Arrow IPC, the file format."""
    with pa.OSFile(path) as source, pa.ipc.open_file(source) as file:
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            batch.validate(full=True)  # offsets may exceed the buffers, text may not be UTF-8
            yield _renamed(batch, names)


def read_csv(path: str, names: Names) -> Iterator[pa.RecordBatch]:
    """CSV with a header line. An unquoted empty cell is null; headers are JSON."""
    from pyarrow import csv

    types = {names.of[column]: pa.string() for column in ("key", "value", "headers")}
    options = csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    with csv.open_csv(path, convert_options=options) as file:
        for batch in file:
            batch = _renamed(batch, names)
            if "headers" in batch.schema.names:
                rows = [_csv_headers(text) for text in batch.column("headers").to_pylist()]
                place = batch.schema.get_field_index("headers")
                batch = batch.set_column(place, "headers", pa.array(rows, _HEADERS))
            yield batch


def read_jsonl(path: str, names: Names) -> Iterator[pa.RecordBatch]:
    """A JSON object per line. Bytes are strings or ``{"base64": "..."}``; any other value is stored as JSON text."""
    seen: set[str] = set()
    with open(path, encoding="utf-8") as file:
        lines = enumerate(file, 1)
        while block := list(islice(lines, ROWS)):
            rows = [_row(number, line, names) for number, line in block if line.strip()]
            present = [column for column in _TYPES if any(column in row for row in rows)]
            seen.update(present)
            arrays = [pa.array([row.get(column) for row in rows], _TYPES[column]) for column in present]
            yield pa.record_batch(arrays, names=present)
    if seen:
        names.require(seen)


READERS: dict[str, Callable[[str, Names], Iterator[pa.RecordBatch]]] = {
    "arrow": read_arrow,
    "csv": read_csv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
}


def decoded(batch: pa.RecordBatch, encodings: dict[str, str]) -> pa.RecordBatch:
    """The batch, with the columns of `encodings` decoded from hex or base64."""
    for column, encoding in encodings.items():
        if encoding != "text" and column in batch.schema.names:
            values = [_bytes(column, encoding, value) for value in batch.column(column).to_pylist()]
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
    present = {column: _plain(batch.column(name)) for column, name in names.of.items() if name in batch.schema.names}
    names.require(present)
    if not {"key", "value"} & present.keys():
        raise ValueError(f"no column {names.of['key']!r} or {names.of['value']!r}")
    return pa.record_batch(list(present.values()), names=list(present))


def _plain(column: pa.Array) -> pa.Array:
    """A view column as plain text or bytes, since pyarrow's `take` does not support views."""
    kinds = {"string_view": pa.string(), "binary_view": pa.binary()}
    return column.cast(kinds[str(column.type)]) if str(column.type) in kinds else column


def _row(number: int, line: str, names: Names) -> dict[str, Any]:
    try:
        found = json.loads(line)
        if not isinstance(found, dict):
            raise ValueError("not a JSON object")
        row = {column: found[name] for column, name in names.of.items() if name in found}
        if not {"key", "value"} & row.keys():
            raise ValueError(f"no field {names.of['key']!r} or {names.of['value']!r}")
        for column in ("key", "value"):
            if column in row:
                row[column] = _content(row[column])
        if "headers" in row:
            row["headers"] = _headers(row["headers"])
        for column in ("timestamp", "offset"):
            _require_int64(names.of.get(column, column), row.get(column))
    except RecursionError:
        raise ValueError(f"line {number}: JSON is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None
    return row


def _require_int64(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is not an integer")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} does not fit 64 bits")


def _csv_headers(text: str | None) -> list[dict[str, Any]]:
    try:
        return _headers(json.loads(text)) if text else []
    except RecursionError:
        raise ValueError("headers: JSON is nested too deeply") from None


def _headers(pairs: Any) -> list[dict[str, Any]]:
    if pairs is None:
        return []
    if not isinstance(pairs, list):
        raise ValueError("headers are not a list")
    return [_header(pair) for pair in pairs]


def _header(pair: Any) -> dict[str, Any]:
    if not isinstance(pair, dict) or not isinstance(pair.get("key"), str):
        raise ValueError('a header must be an object with a string "key"')
    pair["key"].encode()  # raises UnicodeEncodeError for lone surrogates
    return {"key": pair["key"], "value": _content(pair.get("value"))}


def _content(value: Any) -> bytes | None:
    """Bytes from the JSON that `kafkacodec convert` writes."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (ValueError, TypeError) as error:
            raise ValueError(f"base64: {error}") from None
    return json_line(value).encode() if isinstance(value, dict) else json.dumps(value, ensure_ascii=False).encode()
