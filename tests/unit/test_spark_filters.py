"""What remains to be read after the filters that Spark pushes down."""

from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from kafkacodec.spark.reading.filters import prune
from kafkacodec.spark.reading.planning import Pruning

NOON = datetime(2023, 11, 14, 22, 13, 20, 123999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], {}),
        ([EqualTo(("topic",), "a")], {"topics": frozenset("a")}),
        ([In(("topic",), ("a", "b")), In(("topic",), ("b", "c"))], {"topics": frozenset("b")}),
        ([EqualNullSafe(("partition",), 3)], {"partitions": frozenset([3])}),
        ([EqualNullSafe(("partition",), None)], {}),
        ([GreaterThan(("offset",), 5)], {"start_offset": 6}),
        ([GreaterThanOrEqual(("offset",), 5), LessThan(("offset",), 9)], {"start_offset": 5, "end_offset": 9}),
        ([LessThanOrEqual(("offset",), 9), LessThan(("offset",), 20)], {"end_offset": 10}),
        ([In(("offset",), (7, None, 3))], {"start_offset": 3, "end_offset": 8}),
        ([EqualTo(("offset",), 7)], {"start_offset": 7, "end_offset": 8}),
        ([GreaterThan(("offset",), -5)], {}),
        ([GreaterThan(("timestamp",), NOON)], {"start_timestamp": 1700000000123}),
        ([EqualTo(("timestamp",), NOON)], {"start_timestamp": 1700000000123}),
        ([LessThan(("timestamp",), NOON)], {}),
        ([GreaterThan(("timestamp",), NOON.replace(tzinfo=None))], {}),
        ([IsNotNull(("topic",)), Not(EqualTo(("topic",), "a")), StringStartsWith(("topic",), "a")], {}),
        ([EqualTo(("headers", "key"), "a"), EqualTo(("value",), b"x")], {}),
    ],
)
def test_prune(filters, expected):
    assert prune(filters) == Pruning(**expected)
