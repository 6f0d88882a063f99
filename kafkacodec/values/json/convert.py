"""JSON values one by one, by orjson, as pyarrow takes them for their types.

orjson makes doubles of integers that exceed 64 bits, and of all numbers with a point or exponent. Where digits could be
lost that a column has, the value is read again by the standard library, which keeps them.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from kafkacodec.values.json.schema import JsonType

__all__ = ["converted"]

_EXACT = 2.0**53
"""Doubles below this are integers if they are whole."""

# A double of 17 digits or more before its point, as orjson writes it, or the same in a string.
_LARGE = re.compile(rb"[0-9]e\+?[0-9]{2}")


class _Inexact(Exception):
    """A double may not be the number that the value has."""


class _Number(float):
    """A double with its digits."""

    def __new__(cls, digits: str) -> _Number:
        made = super().__new__(cls, digits)
        made.digits = digits
        return made

    digits: str


def converted(data: bytes, kind: JsonType) -> Any:
    """The value as pyarrow takes it for the type.

    Raises:
        ValueError: it is not JSON (orjson.JSONDecodeError), or of another type.
    """
    import orjson

    value = orjson.loads(data)
    try:
        return _converted(value, kind, "")
    except _Inexact:
        pass
    try:
        return _converted(json.loads(data, parse_float=_Number), kind, "")
    except RecursionError:
        raise ValueError("the value is nested too deeply for its numbers") from None


def _converted(value: Any, kind: JsonType, path: str) -> Any:
    """The value as pyarrow takes it for the type.

    Raises:
        ValueError: it is of another type.
    """
    if value is None:
        return None if kind.kind != "text" else "null"
    convert = _CONVERSIONS.get(kind.kind)
    if convert is not None:
        return convert(value, path)
    if kind.kind == "list" and isinstance(value, list):
        return [_converted(item, kind.fields[0][1], f"{path}[]") for item in value]
    if kind.kind == "map" and isinstance(value, dict):
        return [(key, _converted(item, kind.fields[0][1], f"{path}{{}}")) for key, item in value.items()]
    if kind.kind == "struct" and isinstance(value, dict):
        return {
            name: _converted(value.get(name), part, f"{path}.{name}") for name, part in kind.fields if name in value
        }
    raise _unexpected(value, {"struct": "object", "map": "object", "list": "array"}[kind.kind], path)


def _place(path: str) -> str:
    return f"field {path.lstrip('.')}: " if path else ""


def _unexpected(value: Any, wanted: str, path: str) -> ValueError:
    return ValueError(f"{_place(path)}expected {wanted}, not {_NAMES.get(type(value), 'null')}")


_NAMES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    _Number: "number",
}


def _string(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _unexpected(value, "string", path)
    return value


def _boolean(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise _unexpected(value, "boolean", path)
    return value


def _integer(value: Any, path: str) -> int:
    if isinstance(value, float):
        value = _whole(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unexpected(value, "integer", path)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{_place(path)}a number exceeds an integer of 64 bits")
    return value


def _whole(value: float) -> float:
    """The integer that a double stands for; the double if it stands for none."""
    if isinstance(value, _Number):
        exact = Decimal(value.digits)
        return int(exact) if exact == exact.to_integral_value() else value
    if abs(value) >= _EXACT:
        raise _Inexact
    return int(value) if value.is_integer() else value


def _number(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _unexpected(value, "number", path)
    return float(value)


def _text(value: Any, path: str) -> str:
    import orjson

    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:  # it takes neither larger integers nor numbers with digits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if _LARGE.search(text) and _has_large(value):
        raise _Inexact
    return text.decode()


def _has_large(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_large, value.values()))
    if isinstance(value, list):
        return any(map(_has_large, value))
    return type(value) is float and abs(value) >= _EXACT


def _nothing(value: Any, path: str) -> None:
    raise _unexpected(value, "null", path)


_CONVERSIONS: dict[str, Any] = {
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "text": _text,
    "null": _nothing,
}
