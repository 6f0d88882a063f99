"""Columns from checked Avro values, by arrow-avro.

arrow-avro decodes files. The values of a call become one file in memory, of one block. Its Python binding is private to
the package polars-avro, whose public functions return polars columns, which have neither maps nor unions; the only
place that uses it is `_batches`.

It decodes all types but recursive ones. It does not decode what has no bytes (null, and records and fixed values
without any) except as a branch of a union, nor unions of more than 127 branches, nor decimals of more than 32 bytes;
`readable` says so. Names of types are replaced by numbers, and logical types are removed that columns have as text or
structs: UUIDs, durations, big decimals.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from kafkacodec.records._varint import encode_varint
from kafkacodec.values.avro.logical import from_stored
from kafkacodec.values.avro.schema import AvroType
from kafkacodec.values.avro.types import arrow_type, branch_names
from kafkacodec.values.contained import contained
from kafkacodec.values.payloads import Joined

__all__ = ["AvroLibrary", "readable"]

MAX_BRANCHES = 127

_SYNC = bytes(16)


def readable(kind: AvroType) -> bool:
    """Whether the library decodes columns of the type. A type without bytes may be a field of a record."""
    if kind.is_empty:
        return False
    if kind.kind == "record":
        return all(readable(part) for part in kind.parts if not part.is_empty)
    if kind.logical == "decimal" and kind.size > 32:
        return False
    if kind.kind == "union":
        parts = [part for part in kind.parts if part.kind != "null"]
        return len(kind.parts) <= MAX_BRANCHES and bool(parts) and all(map(readable, parts))
    return all(map(readable, kind.parts))


class AvroLibrary:
    """Decodes checked values of one type, for which `readable` is true."""

    def __init__(self, kind: AvroType) -> None:
        self._kind = kind
        record = {"type": "record", "name": "Row", "fields": [{"name": "value", "type": _Spelling().of(kind)}]}
        self._schema = json.dumps(record).encode()

    def decode(self, joined: Joined) -> pa.Array:
        """The values as a column of `arrow_type`."""
        target = arrow_type(self._kind)
        with contained("arrow-avro"):
            batches = list(_batches(self._file(joined), len(joined.ends)))
        parts = [_shaped(batch.column(0), self._kind, target) for batch in batches]
        column = pa.concat_arrays(parts) if parts else pa.array([], target)
        if len(column) != len(joined.ends):
            raise ValueError(f"arrow-avro found {len(column)} values, not {len(joined.ends)}")
        return column

    def _file(self, joined: Joined) -> bytes:
        """An object container file. Source: "Object Container Files" in the specification."""
        meta = {b"avro.schema": self._schema, b"avro.codec": b"null"}
        pairs = b"".join(_bytes(key) + _bytes(value) for key, value in meta.items())
        header = b"Obj\x01" + encode_varint(len(meta)) + pairs + b"\x00" + _SYNC
        block = encode_varint(len(joined.ends)) + encode_varint(len(joined.data))
        return b"".join((header, block, joined.data.data, _SYNC))


def _bytes(value: bytes) -> bytes:
    return encode_varint(len(value)) + value


def _batches(data: bytes, rows: int) -> Iterator[pa.RecordBatch]:
    """The record batches of a file in memory."""
    from polars_avro._avro_rs import AvroSource

    @contextmanager
    def opened() -> Iterator[io.BytesIO]:
        yield io.BytesIO(data)

    if rows:
        for batch in AvroSource([opened], False, False).batch_iter(rows, None):
            yield pa.record_batch(batch)


class _Spelling:
    """A type as JSON for the library, with a new name wherever a named type is used, and without empty fields."""

    def __init__(self) -> None:
        self._names = 0

    def of(self, kind: AvroType) -> Any:
        if kind.kind == "union":
            return [self.of(part) for part in kind.parts]
        if kind.kind == "array":
            return {"type": "array", "items": self.of(kind.parts[0])}
        if kind.kind == "map":
            return {"type": "map", "values": self.of(kind.parts[0])}
        spelt: dict[str, Any] = {"type": kind.kind, **_attributes(kind)}
        if kind.name:
            self._names += 1
            spelt["name"] = f"T{self._names}"
        if kind.kind == "record":
            fields = [f for f in kind.fields if not f.type.is_empty]
            spelt["fields"] = [{"name": f"f{i}", "type": self.of(f.type)} for i, f in enumerate(fields)]
        return spelt if len(spelt) > 1 else kind.kind  # the library knows null only as text


def _attributes(kind: AvroType) -> dict[str, Any]:
    if kind.kind == "enum":
        return {"symbols": [f"s{i}" for i in range(len(kind.symbols))]}
    found: dict[str, Any] = {"size": kind.size} if kind.kind == "fixed" else {}
    if kind.logical == "decimal":
        found |= {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    elif kind.logical not in (None, "uuid", "duration", "big-decimal"):
        found["logicalType"] = kind.logical
    return found


def _shaped(column: pa.Array, kind: AvroType, target: pa.DataType) -> pa.Array:
    """The library's column as one of `arrow_type`."""
    inner = kind.nullable
    if inner is not None:
        return _shaped(column, inner, target)
    if kind.kind == "record":
        return _record(column, kind, target)
    if kind.kind == "union":
        return _union(column, kind, target)
    if kind.kind == "array":
        items = _shaped(column.values, kind.parts[0], target.value_type)
        return pa.ListArray.from_arrays(column.offsets, items, type=target, mask=_mask(column))
    if kind.kind == "map":
        items = _shaped(column.items, kind.parts[0], target.item_type)
        return pa.MapArray.from_arrays(column.offsets, column.keys, items, type=target, mask=_mask(column))
    if kind.kind == "enum":
        symbols = pa.array(kind.symbols, pa.string())
        return symbols.take(column.indices)
    return from_stored(column, kind.logical, target)


def _mask(column: pa.Array) -> pa.Array | None:
    return column.is_null() if column.null_count else None


def _record(column: pa.Array, kind: AvroType, target: pa.DataType) -> pa.Array:
    # The fields of null records hold bytes of no meaning, which `flatten` makes null. It ends the process for unions
    # in records that can be null: null records are left out then until the fields are read.
    if column.null_count and any(part.kind == "union" and part.nullable is None for part in kind.parts):
        present = column.is_valid().to_numpy(zero_copy_only=False)
        places = pa.array(np.cumsum(present) - 1, mask=~present)
        return _record(column.drop_null(), kind, target).take(places)
    found = iter(column.flatten() if column.null_count else [column.field(i) for i in range(column.type.num_fields)])
    children = [
        empty_column(f.type, len(column)) if f.type.is_empty else _shaped(next(found), f.type, child.type)
        for f, child in zip(kind.fields, target, strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(column))


def empty_column(kind: AvroType, rows: int) -> pa.Array:
    """A column of a type without bytes."""
    if kind.kind == "null":
        return pa.nulls(rows)
    if kind.kind == "fixed":
        return pa.array([b""] * rows, pa.binary(0))
    if not kind.fields:
        return pa.array([{}] * rows, pa.struct([]))
    target = arrow_type(kind)
    return pa.StructArray.from_arrays([empty_column(f.type, rows) for f in kind.fields], fields=list(target))


def _union(column: pa.Array, kind: AvroType, target: pa.DataType) -> pa.Array:
    """A dense union as a struct of its branches."""
    codes = column.type_codes.to_numpy(zero_copy_only=False)
    offsets = column.offsets.to_numpy(zero_copy_only=False)
    names = {id(part): name for name, part in branch_names(kind)}
    children, null = [], np.zeros(len(column), bool)
    for i, part in enumerate(kind.parts):
        if part.kind == "null":
            null = codes == i
            continue
        values = _shaped(column.field(i), part, target.field(names[id(part)]).type)
        places = pa.array(np.where(codes == i, offsets, 0), mask=codes != i)
        children.append(values.take(places))
    return pa.StructArray.from_arrays(children, fields=list(target), mask=pa.array(null) if null.any() else None)
