"""Any JSON text: columns have what Python's own parser reads, and errors are what it refuses."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from hypothesis import given, settings, strategies as st

import kafkacodec as kc
from tests.examples import examples

SCHEMA = kc.values.Schema(
    json.dumps(
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "number"},
                "c": {"type": "string"},
                "d": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            },
        }
    ),
    "json",
)

NUMBERS = st.sampled_from(
    """
    0 1 -1 1.0 1e2 1.5 -0.0 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
    9007199254740993.0 1e18 1e19 1e30 1e308 1e309 1.7976931348623159e308 01 1. .5 +1 NaN -Infinity 0x1 1_0 1e 5e-324
    """.split()  # noqa: SIM905
)
STRINGS = st.sampled_from(
    [
        '""',
        '"a"',
        '"\\u00e9"',
        '"\\ud83d\\ude00"',
        '"\\ud800"',
        '"\\x"',
        '"\t"',
        '"\\t"',
        '"\n"',
        "'a'",
        '"',
        '"\\u0000"',
    ]
)
SPACES = st.sampled_from(["", "", "", " ", "\n", "\r\n\t", "\f", "/**/"])
NAMES = st.sampled_from(['"a"', '"b"', '"c"', '"d"', '"e"', '"v"', '"\\u0061"', "a", "1"])


def _objects(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.lists(st.tuples(NAMES, SPACES, part), max_size=4)
    return pairs.map(lambda each: "{" + ",".join(f"{name}{space}:{value}" for name, space, value in each) + "}")


TEXTS = st.recursive(
    NUMBERS | STRINGS | st.sampled_from(["null", "true", "false", "None", ""]),
    lambda part: (
        st.builds(lambda items, space: f"[{space}{','.join(items)}]", st.lists(part, max_size=3), SPACES)
        | _objects(part)
    ),
    max_leaves=8,
)


VALUES = st.lists(
    st.one_of(_objects(TEXTS), TEXTS)
    .flatmap(lambda text: SPACES.map(lambda space: space + text + space))
    .map(str.encode)
    | st.binary(max_size=6),
    max_size=6,
)


class Refused(Exception):
    """The value is not JSON, or of another type."""


@settings(max_examples=examples(500))
@given(VALUES)
def test_columns_have_what_python_reads(values: list[bytes]) -> None:
    found = kc.values.decode(values, SCHEMA, on_error="null")
    found.values.validate(full=True)
    for value, row, error in zip(values, found.values.to_pylist(), found.errors.to_pylist(), strict=True):
        try:
            want = _object(_parsed(value), ORDER)
        except Refused:
            assert error is not None, value
            assert row is None, value
        else:
            assert error is None, (value, error)
            assert row == want, value


def _parsed(value: bytes) -> Any:
    def refuse(word: str) -> NoReturn:
        raise Refused

    def integer(digits: str) -> int:
        if math.isinf(float(digits)):
            raise Refused
        return int(digits)

    def whole(found: Any) -> Any:
        json.dumps(found, ensure_ascii=False).encode()  # UnicodeEncodeError for half of a surrogate
        return found

    kinds = {"parse_constant": refuse, "parse_int": integer, "parse_float": _Float}
    try:
        return whole(json.loads(value.decode(), **kinds, object_pairs_hook=lambda pairs: dict(whole(pairs))))
    except ValueError:
        raise Refused from None


class _Float(float):
    def __new__(cls, digits: str) -> _Float:
        from decimal import Decimal

        made = super().__new__(cls, digits)
        if math.isinf(made):
            raise Refused
        made.exact = Decimal(digits)
        return made

    exact: Any


def _integer(value: Any) -> int:
    if isinstance(value, _Float) and value.exact == value.exact.to_integral_value():
        value = int(value.exact)
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise Refused
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Refused
    return float(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise Refused
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Refused
    return [_object(item, {"a": _integer}) for item in value]


ORDER = {"a": _integer, "b": _number, "c": _string, "d": _list}


def _object(value: Any, fields: dict[str, Any]) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Refused
    return {name: None if value.get(name) is None else read(value[name]) for name, read in fields.items()}
