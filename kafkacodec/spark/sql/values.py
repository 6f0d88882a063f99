"""Keys and values in Avro, Protobuf and JSON as typed columns of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.errors import DecodeError, LimitExceeded, SchemaError
from kafkacodec.signatures import suggests_options
from kafkacodec.spark.environment.versions import require_spark
from kafkacodec.spark.errors import OptionError, without_traceback
from kafkacodec.spark.sql.checks import require_bytes
from kafkacodec.values import Schema, SchemaDirectory, SchemaKey, ValueDecoder
from kafkacodec.values.decoding import OnValueError
from kafkacodec.values.framing import Framing, Part
from kafkacodec.values.schemas import Format
from kafkacodec.values.sources import source_of
from kafkacodec.values.times import rows_beyond_microseconds
from kafkacodec.values.unify import conformed

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

__all__ = ["ColumnDecoder", "column_decoder", "decode_values"]

_GO_ON = "on_error='null' reads such values as null, with the reason"


@suggests_options
def decode_values(
    column: Column | str,
    schemas: Any,
    *,
    reader_schema: Schema | str | None = None,
    ids: Iterable[int | UUID] | None = None,
    format: Format | None = None,
    framing: Framing | None = None,
    headers: Column | str | None = None,
    part: Part = "value",
    on_error: OnValueError = "raise",
) -> Column:
    """Decode a binary column to a struct of ``value`` (typed), ``schema_id`` (bigint) and ``error`` (string).

    Spark needs the type before it reads. It is the type of `reader_schema`, of all schemas in `ids`, or of the one
    `Schema` that all values have. A directory is read on the driver and shipped with the query; driver and executors
    both send requests to a registry. Needs Spark 4.1.

    Args:
        column: the keys or values.
        schemas: as in `kafkacodec.values.decode`.
        reader_schema: the schema of the result.
        ids: numbers, GUIDs or UUIDs of the schemas that values may have; other schemas are errors of their rows.
        format: the format of schemas that are given as text, and the only one of values.
        framing: as in `kafkacodec.values.decode`.
        headers: the column ``headers`` of the format ``kafkalog`` or of Spark's Kafka source, for framings in headers.
        part: ``value`` or ``key``, for the names of headers.
        on_error: ``raise`` fails the job at a value that cannot be decoded; ``null`` gives the reason in ``error``.

    Types that Spark lacks: timestamps have microseconds (more digits are cut off; one that 64 bits cannot hold is an
    error of its row), times and decimals of more than 38
    digits are strings, uint64 is decimal(20, 0), uint32 bigint, fixed is binary, a duration of Protobuf an interval.

    Raises:
        KafkaCodecError: Spark is older, or a schema cannot be used (`SchemaError`).
        OptionError: neither `reader_schema` nor `ids` is given, and `schemas` is not one `Schema`.
        ValueError, TypeError: an argument is wrong.
    """
    require_spark("kafkacodec.spark.decode_values", (4, 1))
    from pyspark.sql.functions import arrow_udf

    decode = column_decoder(
        schemas,
        reader_schema=reader_schema,
        ids=ids,
        format=format,
        framing=framing,
        part=part,
        on_error=on_error,
    )

    def without_headers(values: pa.Array) -> pa.Array:
        return decode(values)

    def with_headers(values: pa.Array, headers: pa.Array) -> pa.Array:
        return decode(values, headers)

    for function in (without_headers, with_headers):
        function.__name__ = "decode_values"  # Spark calls the column so
    if headers is None:
        return arrow_udf(without_headers, decode.spark_type)(column)
    return arrow_udf(with_headers, decode.spark_type)(column, headers)


def column_decoder(
    schemas: Any,
    *,
    reader_schema: Schema | str | None = None,
    ids: Iterable[int | UUID] | None = None,
    format: Format | None = None,
    framing: Framing | None = None,
    part: Part = "value",
    on_error: OnValueError = "raise",
) -> ColumnDecoder:
    """The decoder of the tasks' columns. Arguments and exceptions as in `decode_values`."""
    source = schemas if isinstance(schemas, Schema) else _shipped(source_of(schemas, format or "avro"))
    options: dict[str, Any] = {
        "format": format,
        "reader_schema": reader_schema,
        "framing": framing,
        "part": part,
        "on_error": on_error,
    }
    keys = _keys(schemas, reader_schema, ids)
    return ColumnDecoder(source, options, keys, ValueDecoder(source, **options).prepare(keys))


def _shipped(source: Any) -> Any:
    """The source as executors can have it: they may not have the files of a directory."""
    return source.loaded() if isinstance(source, SchemaDirectory) else source


def _keys(schemas: Any, reader_schema: object, ids: Iterable[int | UUID] | None) -> list[SchemaKey]:
    if isinstance(schemas, Schema):
        return [SchemaKey("given", 0)]
    if isinstance(ids, int | str | UUID):
        raise TypeError(f"ids: expected a list of numbers or UUIDs, not {ids!r}")
    if ids is not None:
        return [SchemaKey("guid" if isinstance(each, UUID) else "id", each) for each in ids]
    if reader_schema is None:
        raise OptionError("reader_schema: missing; pass it or ids=, so that Spark knows the type of the column")
    return []


class ColumnDecoder:
    """Decodes the batches of a task to structs of ``value``, ``schema_id`` and ``error``; each task makes its decoder.

    Attributes:
        kind (pyarrow.StructType): the type of the result.
    """

    def __init__(self, source: Any, options: dict[str, Any], keys: list[SchemaKey], kind: pa.DataType) -> None:
        self._source, self._options, self._keys = source, options, keys
        self._decoder: ValueDecoder | None = None
        self.kind = pa.struct([("value", _supported(kind)), ("schema_id", pa.int64()), ("error", pa.string())])

    def __reduce__(self) -> tuple[object, ...]:
        return _made, (self._source, self._options, self._keys, self.kind)

    @property
    def spark_type(self) -> DataType:
        """The type of the result."""
        from pyspark.sql.pandas.types import from_arrow_type

        found: DataType = from_arrow_type(self.kind)
        return found

    @without_traceback()
    def __call__(self, values: pa.Array, headers: pa.Array | None = None) -> pa.Array:
        """A struct for each value.

        Raises:
            OptionError: the column has neither bytes nor text.
            DecodeError, SchemaError, RegistryError: as `kafkacodec.values.decode`.
        """
        require_bytes("column", values)
        if self._decoder is None:
            self._decoder = ValueDecoder(self._source, **self._options)
            self._decoder.prepare(self._keys)
        try:
            found = self._decoder.decode(values, headers=headers)
        except (DecodeError, SchemaError) as error:
            if not isinstance(error, LimitExceeded):
                error.advised(_GO_ON)
            raise
        decoded, ids, errors = (_one(column) for column in (found.values, found.schema_ids, found.errors))
        decoded, errors = self._within_range(decoded, errors)
        columns = [conformed(decoded, self.kind.field("value").type), ids, errors]
        return pa.StructArray.from_arrays(columns, fields=list(self.kind))

    def _within_range(self, values: pa.Array, errors: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The columns with errors for values with times that Spark, whose times have microseconds, cannot hold."""
        far = rows_beyond_microseconds(values)
        if not far.any():
            return values, errors
        reason = "a timestamp exceeds 64 bits of microseconds"
        if self._options["on_error"] == "raise":
            raise DecodeError(reason, path=f"values[{int(np.argmax(far))}]").advised(_GO_ON)
        kept = np.arange(len(values))
        return values.take(pa.array(kept, mask=far)), pc.if_else(pa.array(far), reason, errors)


def _made(source: Any, options: dict[str, Any], keys: list[SchemaKey], kind: pa.DataType) -> ColumnDecoder:
    return ColumnDecoder(source, options, keys, kind.field("value").type)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _supported(kind: pa.DataType) -> pa.DataType:
    """The nearest type that Spark has."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _supported(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(_supported(kind.key_type), _supported(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_supported(kind.value_type))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_time(kind) or pa.types.is_null(kind) or pa.types.is_decimal256(kind):
        return pa.string()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return {pa.uint64(): pa.decimal128(20, 0), pa.uint32(): pa.int64()}.get(kind, kind)
