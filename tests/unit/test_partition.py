"""Partitions of keys, compared with the values of Kafka's tests and client."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2

import kafkacodec as kc

# From Kafka's UtilsTest.testMurmur2.
KAFKAS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
KEYS = [b"x" * (i % 23) + b"%d" % (i * 7919) for i in range(1000)]


def expected(keys: list[bytes], partitions: int) -> list[int]:
    return [(aiokafka_murmur2(k) & 0x7FFFFFFF) % partitions for k in keys]


@pytest.mark.parametrize(("key", "number"), KAFKAS.items(), ids=repr)
def test_murmur2_is_kafkas(key: bytes, number: int) -> None:
    assert kc.murmur2(key) == number
    assert kc.murmur2(key.decode()) == number
    assert kc.murmur2(memoryview(key)) == number


def test_murmur2_of_every_length_and_high_bytes() -> None:
    for key in (bytes(range(200, 200 + n)) for n in range(20)):
        assert kc.murmur2(key) & 0xFFFFFFFF == aiokafka_murmur2(key) & 0xFFFFFFFF


@pytest.mark.parametrize("partitions", [1, 2, 12, 1000, 2**31 - 1])
@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.dictionary(pa.int16(), pa.binary())],
    ids=str,
)
def test_columns(kind: pa.DataType, partitions: int) -> None:
    column = pa.array([b"", *KEYS, b"cut"]).cast(kind)
    result = kc.partition(column.slice(1, 1000), partitions)
    assert result.dtype == np.int32
    assert result.tolist() == expected(KEYS, partitions)
    chunked = pa.chunked_array([column.slice(1, 300), column.slice(301, 0), column.slice(301, 700)])
    assert kc.partition(chunked, partitions).tolist() == result.tolist()


@pytest.mark.parametrize("number", [pa.int8(), pa.int32(), pa.int64(), pa.uint16()])
def test_dictionaries_are_partitioned_by_their_words(number: pa.DataType) -> None:
    keys = pa.array([b"b", b"a", b"b", b"c"])
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, 2], number), pa.array([b"a", b"b", b"c"]))
    assert kc.partition(column, 7).tolist() == kc.partition(keys, 7).tolist()


def test_lists_and_polars() -> None:
    import polars as pl

    assert kc.partition(KEYS, 7).tolist() == expected(KEYS, 7)
    assert kc.partition(["ü", b"x"], 7).tolist() == expected(["ü".encode(), b"x"], 7)
    assert kc.partition(pl.Series(KEYS), 7).tolist() == expected(KEYS, 7)
    assert kc.partition([], 7).tolist() == []


@pytest.mark.parametrize(("kind", "width"), [(pa.int64(), 8), (pa.int32(), 4)], ids=str)
def test_integers_as_kafkas_serializers_write_them(kind: pa.DataType, width: int) -> None:
    numbers = [0, 1, -1, 2**31 - 1, -(2**31), *range(1000, 2000)]
    keys = [n.to_bytes(width, "big", signed=True) for n in numbers]
    assert kc.partition(pa.array(numbers, kind), 12).tolist() == expected(keys, 12)
    with pytest.raises(kc.EncodeError, match=r"keys\[1\]"):
        kc.partition(pa.array([1, None], kind), 12)


class TestNullKeys:
    KEYS = pa.array([None, b"a", None, None, b"b", None])

    def test_are_refused(self) -> None:
        with pytest.raises(kc.EncodeError, match=r"keys\[0\]: null key"):
            kc.partition(self.KEYS, 3)

    def test_are_dealt_out_in_turn(self) -> None:
        a, b = expected([b"a", b"b"], 3)
        assert kc.partition(self.KEYS, 3, null_keys="round_robin").tolist() == [0, a, 1, 2, b, 0]

    def test_go_on_where_the_last_column_ended(self) -> None:
        nulls = pa.nulls(2, pa.binary())
        parts = [kc.partition(nulls, 3, null_keys="round_robin", first_partition=2 * n % 3) for n in range(3)]
        assert [part.tolist() for part in parts] == [[0, 1], [2, 0], [1, 2]]

    def test_are_drawn(self) -> None:
        many = pa.nulls(10_000, pa.binary())
        drawn = kc.partition(many, 4, null_keys="random", seed=1)
        assert drawn.tolist() == kc.partition(many, 4, null_keys="random", seed=1).tolist()
        assert np.bincount(drawn).min() > 2000
        assert kc.partition(pa.nulls(3), 1, null_keys="random").tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("keys", "options", "error", "words"),
    [
        ([b"a"], {"num_partitions": 0}, ValueError, "num_partitions"),
        ([b"a"], {"num_partitions": 2**31}, ValueError, "num_partitions"),
        ([b"a"], {"num_partitions": 1.0}, TypeError, "num_partitions"),
        ([b"a"], {"num_partitions": 3, "null_keys": "sticky"}, ValueError, "null_keys"),
        ([None], {"num_partitions": 3, "first_partition": 3}, ValueError, "first_partition"),
        ([None], {"num_partitions": 3, "first_partition": -1}, ValueError, "first_partition"),
        ([b"a", 5], {"num_partitions": 3}, kc.EncodeError, r"keys\[1\]: int is not bytes"),
        (pa.array([1.5]), {"num_partitions": 3}, TypeError, "neither bytes nor text"),
    ],
)
def test_refused(keys: Any, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        kc.partition(keys, **options)
    assert type(caught.value) is error


def test_no_column() -> None:
    with pytest.raises(TypeError, match="no Arrow interface"):
        kc.partition(5, 3)
