"""Confluent framing: ids and payloads, without a copy of the payloads."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import kafkacodec as kc

KINDS = [pa.binary(), pa.large_binary(), pa.binary_view()]


def framed(number: int, payload: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big", signed=True) + payload


VALUES = [
    framed(1, b""),
    framed(100_000, b"short"),
    None,
    framed(-1, b"exactly 12 b"),
    framed(2**31 - 1, b"thirteen byte"),
    framed(7, b"long " * 100),
    b"\x01 another magic byte",
    b"\0\0\0\0",
    b"",
    framed(8, b"the end"),
]
IDS = [1, 100_000, None, -1, 2**31 - 1, 7, None, None, None, 8]
PAYLOADS = [v if i is None or v is None else v[5:] for i, v in zip(IDS, VALUES, strict=True)]


def split(values: Any) -> tuple[list[int | None], list[bytes | None]]:
    ids, payloads = (pa.array(part) for part in kc.split_confluent(values))
    for part, kind in ((ids, pa.int32()), (payloads, pa.binary_view())):
        part.validate(full=True)
        assert part.type == kind
    return ids.to_pylist(), payloads.to_pylist()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_columns(kind: pa.DataType) -> None:
    column = pa.array([b"cut", *VALUES, b"cut"], kind).slice(1, len(VALUES))
    assert split(column) == (IDS, PAYLOADS)
    assert split(pa.chunked_array([column.slice(0, 5), column.slice(5, 0), column.slice(5)])) == (IDS, PAYLOADS)


def test_lists() -> None:
    assert split(VALUES) == (IDS, PAYLOADS)
    assert split([]) == ([], [])


def test_fixed_size_binary() -> None:
    values = [framed(n, b"0123456789abcdef") for n in range(3)]
    assert split(pa.array(values, pa.binary(21)).slice(1)) == ([1, 2], [b"0123456789abcdef"] * 2)


def test_nulls_only() -> None:
    assert split(pa.nulls(3)) == ([None] * 3, [None] * 3)


def test_payloads_are_not_copied() -> None:
    column = pa.array([framed(5, b"x" * 50) for _ in range(100)])
    payloads = pa.array(kc.split_confluent(column).payloads)
    start = column.buffers()[2].address
    shared = payloads.buffers()[2]
    assert start <= shared.address < start + column.buffers()[2].size


def test_the_values_live_as_long_as_the_payloads() -> None:
    before = pa.total_allocated_bytes()
    payloads = pa.array(kc.split_confluent(pa.array([framed(5, b"x" * 5000)] * 100)).payloads)
    assert pa.total_allocated_bytes() > before
    assert payloads.to_pylist() == [b"x" * 5000] * 100
    del payloads
    assert pa.total_allocated_bytes() == before


def test_polars_takes_the_results() -> None:
    import polars as pl

    ids, payloads = kc.split_confluent(pl.Series(VALUES))
    assert pl.Series(ids).to_list() == IDS
    assert pl.Series(payloads).to_list() == PAYLOADS


@given(st.lists(st.none() | st.binary(max_size=40) | st.binary(max_size=40).map(lambda p: framed(9, p))))
def test_any_values(values: list[bytes | None]) -> None:
    for kind in KINDS:
        ids, payloads = split(pa.array(values, kind))
        for value, number, payload in zip(values, ids, payloads, strict=True):
            assert value == (payload if number is None else framed(number, payload or b""))


def test_refused() -> None:
    with pytest.raises(TypeError, match="dictionary-encoded"):
        kc.split_confluent(pa.array([b"a"]).dictionary_encode())
    with pytest.raises(TypeError, match="neither bytes nor text"):
        kc.split_confluent(pa.array([1]))
    with pytest.raises(kc.EncodeError, match=r"values\[1\]: int"):
        kc.split_confluent([b"", 5])
    with pytest.raises(TypeError, match="no Arrow interface"):
        kc.split_confluent(5)
