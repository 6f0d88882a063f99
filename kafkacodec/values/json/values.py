"""Conversion of JSON values to columns: many at once with Arrow's reader, and one by one with orjson if that fails.

Arrow's reader takes lines. Each value becomes the line ``{"v":VALUE}``; as a line ends with ``}``, no value can reach
into the next one. A value that is not one JSON value makes more lines or other columns, or is an error; the group is
then read one by one, which also says what is wrong. So are groups with NaN or infinity, which JSON lacks but the
reader takes, with numbers that are infinite as doubles, and types that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.errors import SchemaError
from kafkacodec.values.columns import Decoded, Decoder, spread
from kafkacodec.values.json.convert import converted
from kafkacodec.values.json.schema import JsonType, parse_json_schema
from kafkacodec.values.payloads import Joined, Payloads
from kafkacodec.values.plans import Plan, ResolvedSchema
from kafkacodec.values.schemas import SchemaKey
from kafkacodec.values.unify import conformed, unified

__all__ = ["plan_json"]

FRAMED = "it begins with a byte 0, as values do that have the number of a schema"
"""What is said of a value of Confluent's framing where none is expected."""

_HEAD_BYTES = 5  # of that framing

_GROUP_ROWS = 8192

MAX_DEPTH = 200
"""Values that are nested more deeply are read one by one."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)

# Numbers that Arrow's reader takes and JSON lacks, or the same in a string.
_NOT_JSON = re.compile(rb"[:\[,\s]-?(?:NaN|Inf)")


def plan_json(schemas: Mapping[SchemaKey, ResolvedSchema], reader: ResolvedSchema | None) -> Plan:
    """Decoders of the schemas. A reader's schema reads all values."""
    failures: dict[SchemaKey, SchemaError] = {}
    types: dict[SchemaKey, JsonType] = {}
    kind: pa.DataType | None = None
    common = None if reader is None else parse_json_schema(*reader)
    for key in reversed(list(schemas)):
        try:
            types[key] = common or parse_json_schema(*schemas[key])
            kind = types[key].arrow if kind is None else unified(kind, types[key].arrow)
        except SchemaError as error:
            failures[key] = error
            types.pop(key, None)
    decoders: dict[SchemaKey, Decoder] = {key: _JsonDecoder(each, kind) for key, each in types.items()}
    return Plan(common.arrow if common else kind, decoders, failures)


class _JsonDecoder:
    """Decodes values of one schema to columns of the common type."""

    def __init__(self, own: JsonType, kind: pa.DataType) -> None:
        self.type = kind
        self._own = own

    def decode(self, payloads: Payloads, max_bytes: int) -> Decoded:
        """The values; one that is not JSON of the schema's types is null."""
        parts: list[pa.Array] = []
        problems: dict[int, str] = {}
        rows = len(payloads.starts)
        for start in range(0, rows, _GROUP_ROWS):
            group = payloads.take(np.arange(start, min(start + _GROUP_ROWS, rows)))
            decoded = self._group(group, max_bytes)
            parts.append(conformed(decoded.column, self.type))
            problems |= {start + row: reason for row, reason in decoded.problems.items()}
        return Decoded(pa.concat_arrays(parts) if parts else pa.array([], self.type), problems)

    def _group(self, payloads: Payloads, max_bytes: int) -> Decoded:
        if _slots(self._own) * 8 * int(payloads.sizes.sum()) > max(max_bytes, 0):
            return self._one_by_one(payloads, max_bytes)
        joined = payloads.joined()
        column = _by_arrow(joined, self._own) if self._own.is_plain else None
        return self._one_by_one(payloads, max_bytes) if column is None else Decoded(column, {})

    def _one_by_one(self, payloads: Payloads, max_bytes: int) -> Decoded:
        import orjson

        values, good, problems = [], [], {}
        wide = max(max_bytes, 0) // (8 * _slots(self._own))
        for row in range(len(payloads.starts)):
            try:
                if payloads.sizes[row] > wide:
                    raise ValueError(f"the value may need more than {max_bytes} bytes of memory")
                values.append(converted(payloads.value(row), self._own))
                good.append(row)
            except ValueError as error:
                is_json = not isinstance(error, orjson.JSONDecodeError)
                problems[row] = str(error) if is_json else f"not JSON: {_fault(payloads.value(row), error)}"
        column = pa.array(values, self._own.arrow)
        return Decoded(spread(column, np.array(good, np.int64), len(payloads.starts)), problems)


def _fault(value: bytes, error: ValueError) -> str:
    """What is wrong with a value that is not JSON."""
    return FRAMED if value[:1] == b"\0" and len(value) > _HEAD_BYTES else str(error)


def _slots(kind: JsonType) -> int:
    """The columns of a value, with those of nested objects: a short item of a list may have them all."""
    return 1 + sum(_slots(part) for _, part in kind.fields)


# --- many at once -----------------------------------------------------------------------------------------------------


def _by_arrow(joined: Joined, kind: JsonType) -> pa.Array | None:
    """The values by Arrow's reader; None where it must not or does not read them."""
    from pyarrow import json as reader

    data = joined.data.tobytes()
    column = joined.column()
    if b"\n" in data or b"\r" in data:
        column = _on_one_line(column)
        if column is None:
            return None
    if _is_deep(column):
        return None
    try:
        joints = [pa.scalar(text, pa.large_string()) for text in ('{"v":', "}\n", "")]
        lines = pc.binary_join_element_wise(joints[0], column.cast(pa.large_string()), *joints[1:]).buffers()[2]
        if (b"NaN" in data or b"Inf" in data) and _NOT_JSON.search(lines):
            return None
        table = reader.read_json(
            pa.BufferReader(lines),
            read_options=reader.ReadOptions(use_threads=False, block_size=max(len(lines), 1 << 10)),
            parse_options=reader.ParseOptions(
                explicit_schema=pa.schema([("v", kind.arrow)]), unexpected_field_behavior="infer"
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None
    if table.column_names != ["v"] or table.num_rows != len(joined.ends):
        return None
    column = _chosen(pa.concat_arrays(table.column(0).chunks), kind.arrow)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return None if _has_infinity(column) else column


def _on_one_line(column: pa.Array) -> pa.Array | None:
    """The values with blanks for line ends, which JSON has only between its tokens; None if one is not JSON."""
    import orjson

    for value in column.filter(pc.match_substring_regex(column, "[\r\n]")):
        try:
            orjson.loads(value.as_py())
        except ValueError:
            return None
    return pc.replace_substring_regex(column, "[\r\n]", " ")


def _is_deep(column: pa.Array) -> bool:
    """Whether a value is nested so deeply that Arrow's reader, which recurses to infer types, could end the process."""
    brackets = pc.add(pc.count_substring(column, "["), pc.count_substring(column, "{"))
    for value in column.filter(pc.greater(brackets, MAX_DEPTH)):
        plain = np.frombuffer(_STRING.sub(b"", value.as_py()), np.uint8)
        opened = np.isin(plain, (ord("["), ord("{"))).astype(np.int64)
        closed = np.isin(plain, (ord("]"), ord("}"))).astype(np.int64)
        if len(plain) and np.cumsum(opened - closed).max() > MAX_DEPTH:
            return True
    return False


def _has_infinity(column: pa.Array) -> bool:
    if pa.types.is_struct(column.type):
        return any(map(_has_infinity, column.flatten()))
    if pa.types.is_list(column.type):
        return _has_infinity(column.values)
    return pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py() is True


def _chosen(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column without the fields that the schema does not have."""
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    return column if column.type == kind else conformed(column, kind)
