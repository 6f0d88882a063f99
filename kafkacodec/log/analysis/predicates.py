"""Limits of places in logs from a predicate of polars: the rows for which it cannot be true.

This reads a predicate in polars' serialized form, which changes between versions. Unknown parts limit nothing: polars
filters rows with the predicate itself in any case.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kafkacodec.datatypes import NamedTuple

__all__ = ["Bounds", "bounds_of", "places_of"]

_SWAPPED = {"Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq", "Eq": "Eq"}
_PER_MILLISECOND = {"Milliseconds": 1, "Microseconds": 1000, "Nanoseconds": 1_000_000}


class Bounds(NamedTuple):
    """Bounds of the rows for which a predicate is true; None is no limit."""

    start_offset: int | None
    end_offset: int | None
    """The offset after the last one."""
    start_timestamp: int | None
    """Milliseconds since 1970, in UTC."""


def bounds_of(predicate: Any) -> Bounds:
    """The bounds of a ``polars.Expr``, or of None."""
    starts: list[int] = []
    ends: list[int] = []
    times: list[int] = []
    for part in _conditions(predicate):
        for column, operator, value in _comparisons(part):
            if column == "timestamp" and operator in ("Gt", "GtEq", "Eq"):
                times += _milliseconds(value)
            elif column == "offset":
                for number in _integers(value):
                    starts += [number + (operator == "Gt")] if operator in ("Gt", "GtEq", "Eq") else []
                    ends += [number + (operator != "Lt")] if operator in ("Lt", "LtEq", "Eq") else []
    return Bounds(max(starts, default=None), min(ends, default=None), max(times, default=None))


def places_of(predicate: Any, places: Sequence[tuple[str | None, int | None]], polars: Any) -> list[bool]:
    """For each topic and partition, whether the predicate can be true for its rows."""
    frame = polars.DataFrame(
        {"topic": [topic for topic, _ in places], "partition": [number for _, number in places]},
        schema={"topic": polars.String, "partition": polars.Int32},
    ).with_row_index("place")
    for part in _conditions(predicate):
        try:
            condition = polars.Expr.deserialize(json.dumps(part).encode(), format="json")
            if {*condition.meta.root_names()} <= {"topic", "partition"}:
                frame = frame.filter(condition)
        except polars.exceptions.PolarsError:
            continue
    chosen = {*frame["place"].to_list()}
    return [place in chosen for place in range(len(places))]


def _conditions(predicate: Any) -> Iterator[Any]:
    """The parts of a predicate that all have to be true, in polars' JSON."""
    if predicate is None:
        return
    try:
        todo = [json.loads(predicate.meta.serialize(format="json"))]
    except Exception:  # Expressions with Python functions, and future versions, have no such form.
        return
    while todo:
        part = todo.pop()
        match part:
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                todo += [left, right]
            case _:
                yield part


def _comparisons(part: Any) -> Iterator[tuple[str, str, Any]]:
    """The comparisons of a column with a literal that a condition is made of: column, operator, literal."""
    match part:
        case {"BinaryExpr": {"left": {"Column": str(column)}, "op": str(operator), "right": {"Literal": value}}}:
            if operator in _SWAPPED:
                yield column, operator, value
        case {"BinaryExpr": {"left": {"Literal": value}, "op": str(operator), "right": {"Column": str(column)}}}:
            if operator in _SWAPPED:
                yield column, _SWAPPED[operator], value
        case {
            "Function": {
                "input": [{"Column": str(column)}, {"Literal": low}, {"Literal": high}],
                "function": {"Boolean": {"IsBetween": {"closed": str(closed)}}},
            }
        }:
            yield column, "GtEq" if closed in ("Both", "Left") else "Gt", low
            yield column, "LtEq" if closed in ("Both", "Right") else "Lt", high


def _integers(literal: Any) -> list[int]:
    """The number of a literal, if it is a whole one."""
    match literal:
        case {"Scalar": {"Int8": value}} | {"Scalar": {"Int16": value}} | {"Scalar": {"Int32": value}}:
            pass
        case {"Scalar": {"Int64": value}} | {"Dyn": {"Int": value}}:
            pass
        case _:
            return []
    return [value] if isinstance(value, int) else []


def _milliseconds(literal: Any) -> list[int]:
    """The time of a literal, if it is one in UTC."""
    match literal:
        case {"Scalar": {"Datetime": [int(value), str(unit), {"inner": "UTC"}]}} if unit in _PER_MILLISECOND:
            return [value // _PER_MILLISECOND[unit]]
        case _:
            return []
