"""Values as JSON has them, as fastavro takes them: times, decimals and bytes of text, and Avro's JSON of unions.

Source: "JSON Encoding" in the Avro specification, 1.12. There, bytes are text of ISO 8859-1; here they are text of
UTF-8 or ``{"base64": "..."}``, as this package writes them. What fastavro takes by itself, such as datetimes, stays.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from kafkacodec.records._varint import encode_varint
from kafkacodec.values.avro._prepare import Array, Boolean, Float, Map, Optional, Record, Whole
from kafkacodec.values.avro.mismatch import Mismatch

__all__ = ["prepared_by"]

Function = Callable[[Any], Any]
"""From a value to what fastavro takes, the same object if it needs nothing. Raises Mismatch."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:?\d\d)?")
_OF_DAY = re.compile(r"(\d\d):(\d\d)(?::(\d\d))?(?:\.(\d{1,9}))?")
_DIGITS = {"millis": 3, "micros": 6, "nanos": 9}
_UNITS = {3: 1_000, 6: 1_000_000, 9: 1_000_000_000}  # in a second
_BITS = {"int": 32, "long": 64}
_PLAIN = frozenset({"boolean", "int", "long", "float", "double", "string"})
_DURATION = ("months", "days", "milliseconds")

# Types of JSON and of Python that a type has without being prepared.
_OWN: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float,),
    "double": (float,),
    "bytes": (bytes, bytearray),
    "fixed": (bytes, bytearray),
    "string": (str,),
    "enum": (str,),
    "array": (list,),
    "map": (Mapping,),
    "record": (Mapping,),
}


def prepared_by(schema: Any, named: Mapping[str, Any]) -> Function | None:
    """What prepares values of a schema for fastavro; None if they need nothing.

    Args:
        schema: as fastavro parsed it.
        named: its named types by their full names.
    """
    return _Types(named).of(schema)


class _Types:
    """The functions of types; that of a record is made once, since a record may contain itself."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._records: dict[str, Record] = {}

    def of(self, schema: Any) -> Function | None:
        if isinstance(schema, list):
            return self._union(schema)
        schema = self.resolved(schema)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.of(kind)
        if kind == "record":
            return self._record(schema)
        if kind == "array":
            items = self.of(schema["items"])
            return items and Array(items)
        if kind == "map":
            values = self.of(schema["values"])
            return values and Map(values)
        return _leaf(schema)

    def resolved(self, schema: Any) -> dict[str, Any]:
        """A schema in place of a name."""
        if isinstance(schema, str):
            return self._named.get(schema) or {"type": schema}
        found: dict[str, Any] = schema
        return found

    def _record(self, schema: dict[str, Any]) -> Record:
        name = schema["name"]
        if name in self._records:
            return self._records[name]
        record = self._records[name] = Record(field["name"] for field in schema["fields"])
        for field in schema["fields"]:
            nullable = "null" in (field["type"] if isinstance(field["type"], list) else [field["type"]])
            record.add(field["name"], self.of(field["type"]), "default" not in field and not nullable)
        return record

    def _union(self, branches: list[Any]) -> Function:
        parts = [(self.resolved(branch), self.of(branch)) for branch in branches if branch != "null"]
        union = _Union(parts)
        if len(parts) == 1:
            schema, only = parts[0]
            if schema["type"] in _PLAIN:
                return Optional(_OWN[schema["type"]][0], only, union)
        return union


def _inside(prepare: Function, value: Any, name: str) -> Any:
    try:
        return prepare(value)
    except Mismatch as error:
        error.path.append(name)
        raise


class _Union:
    """A union, of the branches but null: a value of JSON is of the first branch that has its type.

    If no branch has, it is of the first one that text, or another form of it, can be made a value of.
    """

    def __init__(self, parts: list[tuple[dict[str, Any], Function | None]]) -> None:
        self._parts = [(schema, _branch_name(schema), prepare) for schema, prepare in parts]
        self._by_name: dict[str, int] = {}
        for place, (_, name, _prepare) in enumerate(self._parts):
            self._by_name.setdefault(name.rpartition(".")[2], place)
            self._by_name[name] = place

    def __call__(self, value: Any) -> Any:
        if value is None:
            return value
        if isinstance(value, tuple):
            known = len(value) == 2 and isinstance(value[0], str) and value[0] in self._by_name
            return self._of_branch(*value) if known else value
        reason: Mismatch | None = None
        if isinstance(value, dict):
            try:
                found = self._named(value)
                if found is not None:
                    return found
            except Mismatch as error:
                reason = error
        for schema, name, prepare in self._parts:
            if isinstance(value, _OWN[schema["type"]]) and _has(schema, value):
                try:
                    return value if prepare is None else (name, prepare(value))
                except Mismatch as error:
                    reason = reason or error
        for _, name, prepare in self._parts:
            if prepare is None:
                continue
            try:
                made = prepare(value)
            except Mismatch as error:
                reason = reason or error
                continue
            if made is not value:
                return name, made
        if reason is not None:
            raise reason
        return value  # fastavro takes it, or says why not

    def _named(self, value: dict[Any, Any]) -> Any:
        """A value with the name of its branch: ``{"string": "a"}``; others may be there as null."""
        given = (
            [name for name, part in value.items() if part is not None] if value.keys() <= self._by_name.keys() else ()
        )
        return self._of_branch(given[0], value[given[0]]) if len(given) == 1 else None

    def _of_branch(self, named: str, value: Any) -> tuple[str, Any]:
        schema, name, prepare = self._parts[self._by_name[named]]
        if schema["type"] in ("map", "record") and not isinstance(value, Mapping):
            raise Mismatch(f"not a value of {named}")
        return name, value if prepare is None else _inside(prepare, value, named)


def _branch_name(schema: dict[str, Any]) -> str:
    name: str = schema.get("name", schema["type"])
    return name


def _has(schema: dict[str, Any], value: Any) -> bool:
    kind = schema["type"]
    if isinstance(value, bool):
        return bool(kind == "boolean")
    if kind == "int":
        return bool(-(1 << 31) <= value < 1 << 31)
    return value in schema["symbols"] if kind == "enum" else True


def _leaf(schema: dict[str, Any]) -> Function | None:
    kind, logical = schema["type"], schema.get("logicalType") or ""
    stem, _, unit = logical.rpartition("-")
    if kind == "long" and stem in ("timestamp", "local-timestamp") and unit in _DIGITS:
        zoned = stem == "timestamp"
        return Whole(64, lambda text: _moment(text, _DIGITS[unit], zoned), _in_utc if zoned else None)
    if (kind, logical) in (("int", "time-millis"), ("long", "time-micros")):
        return Whole(_BITS[kind], lambda text: _time_of_day(text, _DIGITS[unit]))
    if (kind, logical) == ("int", "date"):
        return Whole(32, _day)
    if kind in _BITS:
        return Whole(_BITS[kind])
    if kind == "boolean":
        return Boolean()
    if kind in ("float", "double"):
        return Float()
    if kind not in ("bytes", "fixed"):
        return None
    if logical == "decimal":
        return _decimal
    if (kind, logical) == ("bytes", "big-decimal"):
        return _of_text(_big_decimal)
    if (kind, logical, schema.get("size")) == ("fixed", "uuid", 16):
        return _of_text(_uuid)
    if (kind, logical, schema.get("size")) == ("fixed", "duration", 12):
        return _duration
    return _bytes


def _of_text(made: Callable[[str], Any]) -> Function:
    return lambda value: made(value) if isinstance(value, str) else value


def _bytes(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise Mismatch("the text is not Unicode") from None
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise Mismatch(f"{str(value['base64'])[:40]!r} is not base64") from None
    return value


def _moment(text: str, digits: int, zoned: bool) -> int:
    match = _TIME.fullmatch(text)
    if match is None or (match[4] and not zoned):
        example = f"2025-01-31T12:00:00{'Z' * zoned}"
        raise Mismatch(f"{text[:40]!r} is not a date and time such as {example}")
    try:
        found = datetime.fromisoformat(f"{match[1]}T{match[2]}{(match[4] or 'Z').upper()}")
    except ValueError as error:
        raise Mismatch(f"{text[:40]!r}: {error}") from None
    seconds = (found - _EPOCH).days * 86_400 + (found - _EPOCH).seconds
    return seconds * _UNITS[digits] + _fraction(match[3], digits, text)


def _in_utc(value: Any) -> Any:
    """A datetime without a time zone is in UTC, as elsewhere here; fastavro takes it for the machine's time."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _time_of_day(text: str, digits: int) -> int:
    match = _OF_DAY.fullmatch(text)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3]) if match else (24, 0, 0)
    if match is None or hours > 23 or minutes > 59 or seconds > 59:
        raise Mismatch(f"{text[:40]!r} is not a time of day such as 12:00:00")
    return (hours * 3600 + minutes * 60 + seconds) * _UNITS[digits] + _fraction(match[4], digits, text)


def _fraction(given: str | None, digits: int, text: str) -> int:
    given = (given or "").rstrip("0")
    if len(given) > digits:
        raise Mismatch(f"{text[:40]!r} has more than {digits} digits of a second")
    return int(given.ljust(digits, "0"))


def _day(text: str) -> int:
    try:
        return (date.fromisoformat(text) - _EPOCH.date()).days
    except ValueError:
        raise Mismatch(f"{text[:40]!r} is not a date such as 2025-01-31") from None


def _number(value: Any) -> Decimal:
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        raise Mismatch(f"{str(value)[:40]!r} is not a number") from None
    if not found.is_finite():
        raise Mismatch(f"{str(value)[:40]!r} is not a number")
    return found


def _decimal(value: Any) -> Any:
    if isinstance(value, Decimal) and not value.is_finite():
        raise Mismatch(f"{value} is not a number")
    return _number(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else value


def _big_decimal(text: str) -> bytes:
    sign, digits, exponent = _number(text).as_tuple()
    assert isinstance(exponent, int)  # it is finite
    number = (-1 if sign else 1) * int("".join(map(str, digits)))
    data = number.to_bytes(number.bit_length() // 8 + 1, signed=True)
    return encode_varint(len(data)) + data + encode_varint(-exponent)


def _uuid(text: str) -> bytes:
    try:
        return uuid.UUID(text).bytes
    except ValueError:
        raise Mismatch(f"{text[:40]!r} is not a UUID") from None


def _duration(value: Any) -> Any:
    if not isinstance(value, dict):
        return _bytes(value)
    if value.keys() == {"base64"}:
        return _bytes(value)
    try:
        return struct.pack("<3I", *(value[name] for name in _DURATION))
    except (KeyError, struct.error):
        raise Mismatch("a duration is an object of months, days and milliseconds") from None
