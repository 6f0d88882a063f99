"""Record batches with typed keys and values in place of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa

from kafkacodec.errors import DecodeError, SchemaError
from kafkacodec.values.decoding import ValueDecoder
from kafkacodec.values.framing import Part
from kafkacodec.values.json.infer import JsonInference
from kafkacodec.values.schemas import SchemaKey

if TYPE_CHECKING:
    from kafkacodec.records.columns import RecordColumns

__all__ = ["RecordValues", "before_error", "placed", "row_of"]

T = TypeVar("T")

_ROW = re.compile(r"values\[(\d+)\]")


class RecordValues:
    """Replaces the columns ``key`` and ``value`` of records by typed ones.

    After the columns of the records come, for each replaced one, ``value_schema_id`` (int64) and ``value_error``
    (string, why a value is null that was not), or the same with ``key``.

    Args:
        decoders: the decoder of ``key``, of ``value`` or of both, made with that `part`; a `JsonInference` for JSON
            without a schema.

    Attributes:
        num_errors (int): the values that became null.
        bad_row (int | None): the row of the batch whose key or value `decoded` has raised an error for; None if it
            raised none, or one about no single row.
    """

    def __init__(self, decoders: Mapping[Part, ValueDecoder | JsonInference]) -> None:
        self._decoders = decoders
        self._keys: dict[Part, set[SchemaKey]] = {part: set() for part in decoders}
        self._types: dict[Part, pa.DataType] = {}
        self.num_errors = 0
        self.bad_row: int | None = None

    def look(self, batch: pa.RecordBatch) -> None:
        """Notes the schemas of a batch, for `fix`."""
        for part, decoder in self._decoders.items():
            self._keys[part].update(decoder.keys(batch.column(part), headers=_headers(batch)))

    def fix(self, schema: pa.Schema) -> pa.Schema:
        """The columns of typed batches, for records of this schema and all schemas that `look` has seen."""
        for part, decoder in self._decoders.items():
            self._types[part] = decoder.prepare(sorted(self._keys[part], key=str))
            schema = schema.set(schema.get_field_index(part), pa.field(part, self._types[part]))
            schema = schema.append(pa.field(f"{part}_schema_id", pa.int64()))
            schema = schema.append(pa.field(f"{part}_error", pa.string()))
        return schema

    def typed(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterable[pa.RecordBatch]:
        """The batches with the columns that `fix` returned.

        Raises:
            DecodeError, SchemaError, RegistryError: as `kafkacodec.values.decode` does.
        """
        for batch in batches:
            found = self.decoded(batch)
            yield pa.record_batch([found.column(name) for name in schema.names], schema=schema)

    def decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with typed columns, of the types that its own schemas have unless those of decoders are fixed.

        Raises as `typed` does.
        """
        self.bad_row = None
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for part, decoder in self._decoders.items():
            try:
                decoded = decoder.decode(batch.column(part), headers=_headers(batch))
            except (DecodeError, SchemaError) as error:
                self.bad_row = row_of(error)
                error.path = placed(error.path or "", batch, part)
                raise
            self.num_errors += decoded.num_errors
            columns[part] = _one(decoded.values)
            columns[f"{part}_schema_id"] = _one(decoded.schema_ids)
            columns[f"{part}_error"] = _one(decoded.errors)
        return pa.record_batch(columns)


class _Decoding(Protocol):
    bad_row: int | None


def before_error(
    table: RecordColumns, decode: Callable[[RecordColumns], T], decoding: _Decoding
) -> tuple[T, int, DecodeError | SchemaError | None]:
    """What is decoded of the rows before the first invalid key or value, their number, and the error, if there is one.

    Args:
        table: of records.
        decode: raises the error of a row of a table, and sets the `bad_row` of `decoding`.
        decoding: whose `bad_row` is None after an error that is about no single row.

    Raises an error that no row comes before, or that is about no single row.
    """
    found: DecodeError | SchemaError | None = None
    while True:
        try:
            return decode(table), len(table), found
        except (DecodeError, SchemaError) as error:
            if not decoding.bad_row:
                raise
            found, table = error.with_traceback(None), table[: decoding.bad_row]


def row_of(error: DecodeError | SchemaError) -> int | None:
    """The row of a column that an error of a decoder is about; None if it is about no single one."""
    match = _ROW.match(error.path or "")
    return None if match is None else int(match[1])


def placed(path: str, batch: pa.RecordBatch, part: str) -> str:
    """The path of an error with the record's place instead of its row."""
    match = _ROW.match(path)
    if match is None or "offset" not in batch.schema.names:
        return path
    row = int(match[1])
    place = f"offset {batch.column('offset')[row]}: {part}{path[match.end() :]}"
    if not {"topic", "partition"} <= set(batch.schema.names):
        return place
    return f"{batch.column('topic')[row]}-{batch.column('partition')[row]}: {place}"


def _headers(batch: pa.RecordBatch) -> pa.Array | None:
    return batch.column("headers") if "headers" in batch.schema.names else None


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
