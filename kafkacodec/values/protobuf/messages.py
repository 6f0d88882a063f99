"""Columns from any Protobuf values, by protobuf's own library, which knows all rules but makes objects of messages.

Columns are made field by field of all messages at once. A message is taken as what its `ListFields` says, since its
attributes may have any names, also those of its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kafkacodec.values.protobuf.types import ProtoField, ProtoMessage, arrow_type, field_type, item_type

__all__ = ["COST", "ProtoMessages"]

COST = 512
"""Bytes of memory for two bytes of a value, the shortest message in another one, besides its columns."""

_ZEROS = {"string": "", "bytes": b"", "bool": False, "double": 0.0, "float": 0.0}

Rows = Sequence[int]


class ProtoMessages:
    """Decodes values of one message type, whatever they have."""

    def __init__(self, message: ProtoMessage, descriptor: Any) -> None:
        from google.protobuf.empty_pb2 import Empty
        from google.protobuf.message_factory import GetMessageClass

        self._message = message
        self._class = GetMessageClass(descriptor)
        self._parse, self._list_fields = Empty.MergeFromString, Empty.ListFields  # of the base of all messages

    def read(self, values: Sequence[bytes]) -> tuple[pa.Array, list[int], dict[int, str]]:
        """The messages as a struct column, the numbers of their values, and what is wrong with the others."""
        problems: dict[int, str] = {}
        messages: list[Any] = []
        rows: list[int] = []
        for row, value in enumerate(values):
            message = self._class()
            try:
                self._parse(message, value)
            except Exception as refusal:  # DecodeError of protobuf
                problems[row] = str(refusal)
            else:
                messages.append(message)
                rows.append(row)
        columns = _Columns(self._list_fields)
        column = columns.messages(self._message, messages, rows)
        problems |= columns.problems
        good = [place for place, row in enumerate(rows) if row not in columns.problems]
        return column.take(pa.array(good, pa.int64())), [rows[place] for place in good], problems


class _Columns:
    """Makes columns of messages. With each value goes the number of the row that it is in, for `problems`."""

    def __init__(self, list_fields: Callable[[Any], Sequence[tuple[Any, Any]]]) -> None:
        self._list_fields = list_fields
        self.problems: dict[int, str] = {}

    def messages(self, kind: ProtoMessage, messages: Sequence[Any], rows: Rows) -> pa.Array:
        """A struct column of messages, some of which may be None."""
        found = [None if message is None else self._fields(message) for message in messages]
        mask = pa.array([message is None for message in messages], pa.bool_())
        if not kind.fields:
            return pa.array([None if message is None else {} for message in messages], arrow_type(kind))
        return pa.StructArray.from_arrays(
            [self._field(f, found, rows) for f in kind.fields], fields=list(arrow_type(kind)), mask=mask
        )

    def _fields(self, message: Any) -> Mapping[int, Any]:
        return {field.number: value for field, value in self._list_fields(message)}

    def _field(self, field: ProtoField, found: Sequence[Mapping[int, Any] | None], rows: Rows) -> pa.Array:
        unset: Any = None if field.is_nullable else () if field.is_repeated else _ZEROS.get(field.kind, 0)
        values = [unset if fields is None else fields.get(field.number, unset) for fields in found]
        if not field.is_repeated:
            return self._items(field, values, rows)
        if field.kind == "map":
            values = [self._pairs(field, value, row) for value, row in zip(values, rows, strict=True)]
        sizes = [len(value) for value in values]
        offsets = pa.array(np.cumsum([0, *sizes]), pa.int32())
        items, owners = [item for value in values for item in value], np.repeat(rows, sizes).tolist()
        if field.kind != "map":
            return pa.ListArray.from_arrays(offsets, self._items(field, items, owners), type=field_type(field))
        assert field.message is not None
        key, value = field.message.fields
        columns = [self._items(part, [pair[i] for pair in items], owners) for i, part in enumerate((key, value))]
        return pa.MapArray.from_arrays(offsets, *columns, type=field_type(field))

    def _pairs(self, field: ProtoField, value: Any, row: int) -> list[tuple[Any, Any]]:
        """The pairs of a map, in the order of their keys: protobuf has none."""
        assert field.message is not None
        kind = field.message.fields[0].kind
        keys = list(value)
        if kind == "string" and any(isinstance(key, bytes) for key in keys):
            self._refuse(field, row, "a key is not UTF-8")
            return []
        return [(key, value[key]) for key in sorted(keys)]

    def _items(self, field: ProtoField, values: Sequence[Any], rows: Rows) -> pa.Array:
        """A column of single values."""
        kind = item_type(field)
        if field.enum is not None:
            names = field.enum.names
            return pa.array([None if v is None else names.get(v) or str(v) for v in values], kind)
        if field.kind == "string":
            return pa.array([self._text(field, *each) for each in zip(values, rows, strict=True)], kind)
        if field.message is None:
            return pa.array(values, kind)
        if field.message.form == "wrapper":
            inner = field.message.fields[0]
            unset = _ZEROS.get(inner.kind, 0)
            return self._items(inner, [None if v is None else self._fields(v).get(1, unset) for v in values], rows)
        if field.message.form:
            return pa.array([self._time(field, *each) for each in zip(values, rows, strict=True)], kind)
        return self.messages(field.message, values, rows)

    def _text(self, field: ProtoField, value: Any, row: int) -> str | None:
        if isinstance(value, bytes):  # what protobuf gives for text that is not UTF-8, which proto2 allows
            self._refuse(field, row, "a string is not UTF-8")
            return None
        return value  # type: ignore[no-any-return]

    def _time(self, field: ProtoField, value: Any, row: int) -> int | None:
        if value is None:
            return None
        assert field.message is not None
        found = self._fields(value)
        time = int(found.get(1, 0)) * 1_000_000_000 + int(found.get(2, 0))
        if not -(2**63) <= time < 2**63:
            self._refuse(field, row, f"a {field.message.form} exceeds 64 bits of nanoseconds")
            return None
        return time

    def _refuse(self, field: ProtoField, row: int, reason: str) -> None:
        self.problems.setdefault(row, f"field {field.name}: {reason}")
