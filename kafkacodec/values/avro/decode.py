"""Columns from Avro values of one schema: check the bytes, then decode those that are values of the schema."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kafkacodec.errors import SchemaError
from kafkacodec.values.avro._check import Checker
from kafkacodec.values.avro.library import AvroLibrary, empty_column, readable
from kafkacodec.values.avro.logical import MAX_BIG_DECIMAL_BYTES
from kafkacodec.values.avro.schema import AvroType
from kafkacodec.values.avro.types import arrow_type, branch_names, column_maker
from kafkacodec.values.columns import Decoded, spread
from kafkacodec.values.payloads import Joined, Payloads

__all__ = ["AvroDecoder"]

Fault = tuple[str, int, int, int, int]
"""What the checker found: what is wrong, the position in the data, the node, the actual and the expected number."""

_NODE = np.dtype([("kind", "i4"), ("first", "i4"), ("count", "i4"), ("limit", "i4"), ("width", "i8"), ("least", "i8")])

# The kinds of csrc/values/kc_avro.h.
_NOTHING, _FIXED = 0, 6
_KINDS = {
    "boolean": 1,
    "int": 2,
    "long": 3,
    "bytes": 4,
    "string": 5,
    "float": _FIXED,
    "double": _FIXED,
    "fixed": _FIXED,
    "enum": 7,
    "record": 8,
    "array": 9,
    "map": 10,
    "union": 11,
}
_LOGICAL_KINDS = {
    ("bytes", "decimal"): 12,
    ("fixed", "decimal"): 13,
    ("bytes", "big-decimal"): 14,
    ("int", "time-millis"): 15,
    ("long", "time-micros"): 16,
}

EMPTY_ITEM_BYTES = 1024
"""What an item without bytes counts: no bytes limit their number, and they are decoded one by one."""

FEW_ROWS, FEW_BYTES = 32, 2048
"""Values up to which reading them one by one takes less time than the library's start, which parses its schema."""

_SIZES = {"float": 4, "double": 8}

# Bytes of a value in a column; of lists, text and bytes the offset.
_WIDTHS = {"null": 1, "boolean": 1, "int": 4, "long": 8, "float": 4, "double": 8}


class AvroDecoder:
    """Decodes Avro values of one writer's schema.

    Attributes:
        type (pa.DataType): the type of the columns, `arrow_type` of the schema.
    """

    def __init__(self, kind: AvroType) -> None:
        self.type = arrow_type(kind)
        self._kind = kind
        self._tree = _Tree(kind)
        self._checker = Checker(self._tree.nodes.tobytes())
        self._library = AvroLibrary(kind) if readable(kind) else None
        if self._library is None and not kind.is_empty:
            _ = self._by_rows  # a schema that it refuses is a failure of the plan, not of a value

    def decode(self, payloads: Payloads, max_bytes: int) -> Decoded:
        """The values; one that is not a value of the schema, or needs more memory than the limit, is null."""
        rows = len(payloads.starts)
        joined = payloads.joined()
        problems, long = self._check(joined, max_bytes - rows * self._tree.width)
        if not problems and not long and not self._tree.has_decimals:
            return Decoded(self._read(joined), problems)
        good = np.setdiff1d(np.arange(rows), [*problems, *long]) if problems or long else np.arange(rows)
        column = self._read(joined if len(good) == rows else payloads.take(good).joined())
        if long:
            column = pa.concat_arrays([column, self._by_rows.decode(payloads.take(np.array(long)).joined())])
            good = np.append(good, long)
        column, more = self._checked_decimals(column)
        problems |= {int(good[place]): reason for place, reason in more.items()}
        return Decoded(spread(column, good, rows), problems)

    def _check(self, joined: Joined, budget: int) -> tuple[dict[int, str], list[int]]:
        """What is wrong with rows, and the rows with decimals of more bytes than the library takes."""
        problems: dict[int, str] = {}
        long: list[int] = []
        row, rows = 0, len(joined.ends)
        while row < rows:
            row, budget, fault = self._checker.check(joined.data, joined.ends, row, max(budget, 0))
            if fault is not None:
                if fault[0]:
                    problems[row] = self._tree.reason(fault, joined.start(row))
                else:
                    long.append(row)
                row += 1
        return problems, long

    def _read(self, joined: Joined) -> pa.Array:
        """Checked values: by the library, or value by value where it does not decode them."""
        if self._kind.is_empty:
            return empty_column(self._kind, len(joined.ends))
        if self._library is not None and not self._are_few(joined):
            try:
                return self._library.decode(joined)
            except MemoryError:
                raise
            except Exception:  # or a panic
                pass
        return self._by_rows.decode(joined)

    def _are_few(self, joined: Joined) -> bool:
        """Whether the values are read sooner one by one, and not otherwise: of a map's equal keys one would be left."""
        return len(joined.data) <= FEW_BYTES and len(joined.ends) <= FEW_ROWS and not self._tree.has_maps

    @cached_property
    def _by_rows(self) -> _Rows:
        return _Rows(self._kind)

    def _checked_decimals(self, column: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """The column without decimals of more digits than their precision."""
        if not self._tree.has_decimals:
            return column, {}
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            bad = {
                row: "a decimal has more digits than its precision"
                for row in range(len(column))
                if _invalid(column, row)
            }
            good = np.setdiff1d(np.arange(len(column)), list(bad))
            return spread(column.take(pa.array(good)), good, len(column)), bad
        return column, {}


def _invalid(column: pa.Array, row: int) -> bool:
    try:
        pa.concat_arrays([column.slice(row, 1)]).validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


class _Tree:
    """The nodes of a type for the checker, with the place of each in the schema."""

    def __init__(self, kind: AvroType) -> None:
        kinds, self.places, parents = [kind], [""], [-1]
        rows: list[tuple[int, int, int, int, int, int]] = []
        at = 0
        while at < len(kinds):
            each, place = kinds[at], self.places[at]
            children = _children(each)
            is_item = each.is_empty and parents[at] >= 0 and kinds[parents[at]].kind == "array"
            size = EMPTY_ITEM_BYTES if is_item else width(each)
            rows.append((_number(each), len(kinds), len(children), _limit(each), size, least(each)))
            for name, child in children:
                kinds.append(child)
                self.places.append(f"{place}{name}")
                parents.append(at)
            at += 1
        self.nodes = np.array(rows, _NODE)
        self.width = int(self.nodes[0]["width"])
        self.has_decimals = any(each.logical == "decimal" for each in kinds)
        self.has_maps = any(each.kind == "map" for each in kinds)

    def reason(self, fault: Fault, start: int) -> str:
        """What is wrong, in which field, and at which byte of the value."""
        what, position, node, got, want = fault
        place = self.places[node].lstrip(".")
        text = what.replace("{got}", str(got)).replace("{want}", str(want))
        return f"{f'field {place}: ' if place else ''}{text} (byte {position - start})"


def _children(kind: AvroType) -> list[tuple[str, AvroType]]:
    """The parts that the checker visits, each with its place from the type's."""
    if kind.is_empty:
        return []
    if kind.kind == "record":
        return [(f".{f.name}", f.type) for f in kind.fields if not f.type.is_empty]
    if kind.kind == "union":
        return [("" if kind.nullable else f"<{part.label}>", part) for part in kind.parts]
    return [("[]" if kind.kind == "array" else "{}", part) for part in kind.parts]


def _number(kind: AvroType) -> int:
    if kind.is_empty:
        return _NOTHING
    return _LOGICAL_KINDS.get((kind.kind, kind.logical or "")) or _KINDS[kind.kind]


def _limit(kind: AvroType) -> int:
    if kind.kind == "enum":
        return len(kind.symbols)
    if kind.logical == "big-decimal":
        return MAX_BIG_DECIMAL_BYTES
    return kind.size if kind.kind == "fixed" else _SIZES.get(kind.kind, 0)


def width(kind: AvroType) -> int:
    """Bytes of a value in columns, without what a list, text or bytes have besides their offset."""
    if kind.kind in ("record", "union"):
        return 1 + sum(width(part) for part in kind.parts)
    if kind.logical == "decimal":
        return 16 if kind.precision <= 38 else 32
    if kind.logical == "uuid":
        return 40  # text of 36 bytes and its offset
    return max(1, kind.size) if kind.kind == "fixed" else _WIDTHS.get(kind.kind, 4)


def least(kind: AvroType) -> int:
    """Bytes of the shortest value, at most 2^31."""
    if kind.is_empty:
        return 0
    if kind.kind == "record":
        return min(sum(least(part) for part in kind.parts), 1 << 31)
    if kind.kind == "union":
        return 1 + min(least(part) for part in kind.parts)
    return kind.size if kind.kind == "fixed" else _SIZES.get(kind.kind, 1)


class _Rows:
    """Decodes checked values one by one with fastavro.

    A branch of a union of several is read as a record of one field, which has the same bytes: fastavro then tells which
    it is.
    """

    def __init__(self, kind: AvroType) -> None:
        import fastavro

        self._names = 0
        try:
            self._schema = fastavro.parse_schema(self._spelt(kind))
        except Exception as error:
            raise SchemaError(f"fastavro does not accept the schema: {error}") from error
        self._read = fastavro.schemaless_reader
        self._plain = _plain(kind)
        self._column = column_maker(kind)

    def decode(self, joined: Joined) -> pa.Array:
        """The values as a column of `arrow_type`."""
        read, schema, file = self._read, self._schema, io.BytesIO(joined.data.data)
        values = [read(file, schema, None, return_record_name=True) for _ in range(len(joined.ends))]
        return self._column(values if self._plain is None else list(map(self._plain, values)))

    def _name(self) -> str:
        self._names += 1
        return f"T{self._names}"

    def _spelt(self, kind: AvroType) -> Any:
        if kind.nullable is not None:
            return [self._spelt(part) for part in kind.parts]
        if kind.kind == "union":
            return [self._branch(i, part) for i, part in enumerate(kind.parts)]
        spelt: dict[str, Any] = {"type": kind.kind}
        if kind.name:
            spelt["name"] = self._name()
        if kind.kind == "record":
            spelt["fields"] = [{"name": f"f{i}", "type": self._spelt(f.type)} for i, f in enumerate(kind.fields)]
        elif kind.kind == "enum":
            spelt["symbols"] = [f"s{i}" for i in range(len(kind.symbols))]
        elif kind.kind == "fixed":
            spelt["size"] = kind.size
        elif kind.parts:
            spelt["items" if kind.kind == "array" else "values"] = self._spelt(kind.parts[0])
        return spelt

    def _branch(self, i: int, kind: AvroType) -> Any:
        if kind.kind == "null":
            return "null"
        fields = [{"name": f"b{i}", "type": self._spelt(kind)}]
        return {"type": "record", "name": self._name(), "fields": fields}


Step = Callable[[Any], Any]


def _plain(kind: AvroType) -> Step | None:
    """What makes of fastavro's values those that `column_of` takes; None if they are the same."""
    if kind.kind == "record":
        return _plain_record(kind)
    if kind.kind == "enum":
        symbols = {f"s{i}": symbol for i, symbol in enumerate(kind.symbols)}
        return symbols.__getitem__
    if kind.kind == "union":
        return _plain_union(kind)
    inner = _plain(kind.parts[0]) if kind.parts else None
    if inner is None:
        return None
    if kind.kind == "array":
        return lambda value: list(map(inner, value))
    return lambda value: [(key, inner(item)) for key, item in value.items()]


def _plain_record(kind: AvroType) -> Step:
    names = [(f"f{i}", f.name) for i, f in enumerate(kind.fields)]
    steps = [(f.name, step) for f in kind.fields if (step := _plain(f.type)) is not None]

    def plain(value: Any) -> dict[str, Any]:
        found = {name: value[spelt] for spelt, name in names}
        for name, step in steps:
            found[name] = step(found[name])
        return found

    return plain


def _plain_union(union: AvroType) -> Step | None:
    inner = union.nullable
    if inner is not None:
        step = _plain(inner)
        return None if step is None else lambda value: None if value is None else step(_unnamed(value))
    names = {id(part): name for name, part in branch_names(union)}
    branches = {f"b{i}": (names[id(p)], _plain(p)) for i, p in enumerate(union.parts) if p.kind != "null"}

    def plain(value: Any) -> tuple[str, Any] | None:
        if value is None:
            return None
        ((spelt, item),) = _unnamed(value).items()
        name, step = branches[spelt]
        return name, item if step is None else step(item)

    return plain


def _unnamed(value: Any) -> Any:
    """A branch without the record's name, which fastavro gives only where the union has several records."""
    return value[1] if isinstance(value, tuple) else value
