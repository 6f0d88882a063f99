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

from kafkacodec.arguments import suggestion
from kafkacodec.records._varint import encode_varint

__all__ = ["prepared_by"]

Prepare = Callable[[Any], Any]
"""From a value to what fastavro takes. Raises Mismatch."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:?\d\d)?")
_OF_DAY = re.compile(r"(\d\d):(\d\d)(?::(\d\d))?(?:\.(\d{1,9}))?")
_DIGITS = {"millis": 3, "micros": 6, "nanos": 9}
_UNITS = {3: 1_000, 6: 1_000_000, 9: 1_000_000_000}  # in a second
_NO_FLOATS = frozenset({int, str})
_NO_NUMBERS = ("nan", "inf", "-inf")  # which JSON has as text
_DURATION = ("months", "days", "milliseconds")
_TYPE = "-type"  # with which fastavro has the name of a record in the record

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


class Mismatch(ValueError):
    """A value, or a part of it at a path, does not match its type."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason, self.path = reason, list[str]()

    def __str__(self) -> str:
        return f"{'.'.join(reversed(self.path))}: {self.reason}" if self.path else self.reason


def prepared_by(schema: Any, named: Mapping[str, Any]) -> Prepare | None:
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
        self._records: dict[str, Prepare] = {}

    def of(self, schema: Any) -> Prepare | None:
        if isinstance(schema, list):
            return _Union([(self.resolved(part), self.of(part)) for part in schema if part != "null"])
        schema = self.resolved(schema)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.of(kind)
        if kind == "record":
            return self._record(schema)
        if kind == "array":
            return _array(self.of(schema["items"]))
        if kind == "map":
            return _map(self.of(schema["values"]))
        return _leaf(schema)

    def resolved(self, schema: Any) -> dict[str, Any]:
        """A schema in place of a name."""
        if isinstance(schema, str):
            return self._named.get(schema) or {"type": schema}
        found: dict[str, Any] = schema
        return found

    def _record(self, schema: dict[str, Any]) -> Prepare:
        name = schema["name"]
        if name in self._records:
            return self._records[name]
        record = _Record([field["name"] for field in schema["fields"]])
        self._records[name] = record
        for field in schema["fields"]:
            prepare = self.of(field["type"])
            if prepare is not None:
                record.prepare[field["name"]] = prepare
            nullable = "null" in (field["type"] if isinstance(field["type"], list) else [field["type"]])
            if "default" not in field and not nullable:
                record.required.append(field["name"])
        return record


class _Record:
    def __init__(self, names: list[str]) -> None:
        self._names, self._known = names, {*names, _TYPE}
        self.prepare: dict[str, Prepare] = {}
        self.required: list[str] = []

    def __call__(self, value: Any) -> Any:
        if type(value) is not dict and not isinstance(value, Mapping):
            return value
        if not value.keys() <= self._known:
            unknown = next(name for name in value if name not in self._known)
            raise Mismatch(f"unknown field {unknown!r}; {suggestion(str(unknown), self._names, 'fields')}")
        if len(value) < len(self._names):
            missing = next((name for name in self.required if name not in value), None)
            if missing is not None:
                raise Mismatch(f"no field {missing!r}")
        made, name = None, ""
        try:
            for name, prepare in self.prepare.items():
                given = value.get(name)
                found = prepare(given)
                if found is not given:
                    made = dict(value) if made is None else made
                    made[name] = found
        except Mismatch as error:
            error.path.append(name)
            raise
        return value if made is None else made


def _inside(prepare: Prepare, value: Any, name: str) -> Any:
    try:
        return prepare(value)
    except Mismatch as error:
        error.path.append(name)
        raise


class _Union:
    """A union, of the branches but null: a value of JSON is of the first branch that has its type.

    If no branch has, it is of the first one that text, or another form of it, can be made a value of.
    """

    def __init__(self, parts: list[tuple[dict[str, Any], Prepare | None]]) -> None:
        self._parts = [(schema, _branch_name(schema), prepare) for schema, prepare in parts]
        # A value of this type is of the only branch, and needs nothing.
        (own,) = _OWN[parts[0][0]["type"]][:1] if len(parts) == 1 and parts[0][1] is None else (None,)
        self._simple = own if own in (str, int, float) and parts[0][0]["type"] != "enum" else None
        self._by_name: dict[str, int] = {}
        for place, (_, name, _prepare) in enumerate(self._parts):
            self._by_name.setdefault(name.rpartition(".")[2], place)
            self._by_name[name] = place

    def __call__(self, value: Any) -> Any:
        if value is None or type(value) is self._simple:
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


def _array(prepare: Prepare | None) -> Prepare | None:
    if prepare is None:
        return None

    def made(value: Any) -> Any:
        if not isinstance(value, list) or (prepare is _float and _NO_FLOATS.isdisjoint(map(type, value))):
            return value
        try:
            return [prepare(item) for item in value]
        except Mismatch:  # again, with the place
            return [_inside(prepare, item, f"[{number}]") for number, item in enumerate(value)]

    return made


def _map(prepare: Prepare | None) -> Prepare | None:
    if prepare is None:
        return None

    def made(value: Any) -> Any:
        if type(value) is not dict and not isinstance(value, Mapping):
            return value
        if prepare is _float and _NO_FLOATS.isdisjoint(map(type, value.values())):
            return value
        try:
            return {name: prepare(item) for name, item in value.items()}
        except Mismatch:  # again, with the place
            return {name: _inside(prepare, item, str(name)) for name, item in value.items()}

    return made


def _leaf(schema: dict[str, Any]) -> Prepare | None:
    kind, logical = schema["type"], schema.get("logicalType") or ""
    stem, _, unit = logical.rpartition("-")
    if kind == "long" and stem in ("timestamp", "local-timestamp") and unit in _DIGITS:
        return _whole(kind, lambda text: _moment(text, _DIGITS[unit], stem == "timestamp"))
    if (kind, logical) in (("int", "time-millis"), ("long", "time-micros")):
        return _whole(kind, lambda text: _time_of_day(text, _DIGITS[unit]))
    if (kind, logical) == ("int", "date"):
        return _whole(kind, _day)
    if kind in ("int", "long"):
        return _whole(kind)
    if kind == "boolean":
        return _boolean
    if kind in ("float", "double"):
        return _float
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


def _float(value: Any) -> Any:
    return float(value) if type(value) is int or (type(value) is str and value in _NO_NUMBERS) else value


def _whole(kind: str, of_text: Callable[[str], int] | None = None) -> Prepare:
    """Refuses what fastavro would cut: fractions, truth values and numbers of too many bits."""
    bits = 32 if kind == "int" else 64
    most = 1 << (bits - 1)

    def made(value: Any) -> Any:
        if of_text is not None and isinstance(value, str):
            value = of_text(value)
        if isinstance(value, (bool, float, Decimal)):
            raise Mismatch(f"{value!r} is no whole number")
        if isinstance(value, int) and not -most <= value < most:
            raise Mismatch(f"{value} does not fit into {kind}, which has {bits} bits")
        return value

    return made


def _boolean(value: Any) -> Any:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        raise Mismatch(f"{value!r} is neither true nor false")
    return value


def _of_text(made: Callable[[str], Any]) -> Prepare:
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
