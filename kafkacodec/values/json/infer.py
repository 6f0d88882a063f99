"""The types of JSON values that have no schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from kafkacodec.lazy import import_extra
from kafkacodec.values.decoding import DecodedValues, ValueDecoder
from kafkacodec.values.payloads import payloads_of
from kafkacodec.values.schemas import Schema, SchemaKey

__all__ = ["JsonInference", "infer_json"]

MAX_FIELDS = 1_000
"""Objects of more names than this are text: the names are data."""

MAX_DEPTH = 60


def infer_json(columns: Iterable[Any]) -> Schema:
    """A JSON Schema for the values of columns: the types that they have.

    Whole numbers and others are numbers; values of several types, or of more than 1,000 names, are text of JSON. What
    is not JSON is left out.

    Args:
        columns: a list of columns, each as `kafkacodec.values.decode` takes it.

    Raises:
        TypeError: it is one column.
        ImportError: orjson is not installed.
    """
    if (
        hasattr(columns, "__arrow_c_array__")
        or hasattr(columns, "__arrow_c_stream__")
        or isinstance(columns, np.ndarray)
    ):
        raise TypeError(f"infer_json takes a list of columns, such as [column], not one {type(columns).__name__}")
    inference = JsonInference()
    for column in columns:
        if isinstance(column, bytes | str):
            raise TypeError("infer_json takes a list of columns, such as [column], not one column")
        inference.keys(column)
    return inference.schema


class JsonInference:
    """Finds the types of values, then decodes them; replaces a `ValueDecoder`. Arguments as there."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._found = _Shape()
        self._decoder: ValueDecoder | None = None

    @property
    def schema(self) -> Schema:
        """The schema of all values so far."""
        return Schema(json.dumps(self._found.described()), "json")

    def keys(self, column: Any, *, headers: Any = None) -> list[SchemaKey]:
        """Notes the types of a column's values."""
        payloads, nulls = payloads_of(column)
        orjson = import_extra("orjson")
        for row in np.flatnonzero(~nulls).tolist():
            try:
                self._found.add(orjson.loads(payloads.value(row)))
            except ValueError:
                continue
        return []

    def prepare(self, keys: Iterable[SchemaKey]) -> pa.DataType:
        """Fix the type of columns to that of the values so far."""
        self._decoder = ValueDecoder(self.schema, **self._options)
        return self._decoder.prepare([SchemaKey("given", 0)])

    def decode(self, column: Any, *, headers: Any = None) -> DecodedValues:
        """Decode a column, after `prepare`."""
        assert self._decoder is not None
        return self._decoder.decode(column)


class _Shape:
    """The type of the values that were added, in time linear in their size."""

    def __init__(self) -> None:
        self.kind = "null"
        self.fields: dict[str, _Shape] = {}  # of an object by name; the items of an array under ""

    def add(self, value: Any, depth: int = 0) -> None:
        """Widen the type to that of one more value."""
        if value is None or self.kind == "text":
            return
        kind = _kind(value) if depth <= MAX_DEPTH else "text"
        if self.kind != kind:
            self.kind = kind if self.kind == "null" else _WIDER.get((self.kind, kind), "text")
        if self.kind == "array":
            for item in value:
                self._part("").add(item, depth + 1)
        elif self.kind == "object":
            for name, inner in value.items():
                self._part(name).add(inner, depth + 1)
            if len(self.fields) > MAX_FIELDS:
                self.kind, self.fields = "text", {}

    def _part(self, name: str) -> _Shape:
        if name not in self.fields:
            self.fields[name] = _Shape()
        return self.fields[name]

    def described(self) -> dict[str, Any]:
        """The type as JSON Schema."""
        if self.kind == "object" and self.fields:
            return {"type": "object", "properties": {name: part.described() for name, part in self.fields.items()}}
        if self.kind == "array":
            return {"type": "array", "items": self._part("").described()}
        return {} if self.kind in ("text", "object") else {"type": self.kind}


_WIDER = {("integer", "number"): "number", ("number", "integer"): "number"}

_KINDS = {bool: "boolean", str: "string", float: "number", list: "array", dict: "object"}


def _kind(value: Any) -> str:
    if type(value) is int:
        return "integer" if -(2**63) <= value < 2**63 else "number"
    return _KINDS[type(value)]
