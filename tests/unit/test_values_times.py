"""Times that few calendars have: as text, and in Spark, whose times have microseconds."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.records._varint import encode_varint
from kafkacodec.values.times import rows_beyond_microseconds, time_texts

MOST, LEAST = 2**63 - 1, -(2**63)

# The days and times are those of Java's LocalDateTime for the same numbers.
TEXTS = [
    (pa.timestamp("s"), 0, "1970-01-01 00:00:00"),
    (pa.timestamp("ms", "UTC"), -1, "1969-12-31 23:59:59.999Z"),
    (pa.timestamp("ms", "UTC"), MOST, "292278994-08-17 07:12:55.807Z"),
    (pa.timestamp("ms"), LEAST, "-292275055-05-16 16:47:04.192"),
    (pa.timestamp("us", "UTC"), MOST, "294247-01-10 04:00:54.775807Z"),
    (pa.timestamp("us"), LEAST, "-290308-12-21 19:59:05.224192"),
    (pa.timestamp("ns", "UTC"), MOST, "2262-04-11 23:47:16.854775807Z"),
    (pa.timestamp("ns"), LEAST, "1677-09-21 00:12:43.145224192"),
    (pa.date32(), 0, "1970-01-01"),
    (pa.date32(), 2**31 - 1, "5881580-07-11"),
    (pa.date32(), -(2**31), "-5877641-06-23"),
]


@pytest.mark.parametrize(("kind", "number", "text"), TEXTS)
def test_texts(kind, number, text):
    column = pa.array([0, None, number], pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    assert time_texts(column).to_pylist()[1:] == [None, text]
    assert time_texts(column[:0]).to_pylist() == []


def test_rows_beyond_microseconds():
    kind = pa.timestamp("ms", "UTC")
    far, near = MOST // 1000 + 1, MOST // 1000
    times = pa.array([near, far, None, -near, -far - 1], pa.int64()).cast(kind)
    assert rows_beyond_microseconds(times).tolist() == [False, True, False, False, True]
    assert not rows_beyond_microseconds(times.cast(pa.int64()).cast(pa.timestamp("us"))).any()
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3, 5]), times)
    assert rows_beyond_microseconds(lists).tolist() == [False, False, True, True]
    assert rows_beyond_microseconds(lists[2:]).tolist() == [True, True]
    maps = pa.MapArray.from_arrays([0, 2, 5], pa.array(list("abcde")), times)
    structs = pa.StructArray.from_arrays([pa.array([1, 2]), maps], ["a", "b"])
    assert rows_beyond_microseconds(structs).tolist() == [True, True]
    assert rows_beyond_microseconds(structs.filter(pa.array([False, False]))).tolist() == []


def test_spark_has_an_error_for_times_that_it_cannot_hold():
    from kafkacodec.spark.sql.values import column_decoder

    schema = kc.values.Schema(json.dumps({"type": "long", "logicalType": "timestamp-millis"}))
    values = pa.array([encode_varint(number) for number in (1, 9223372036854775, 9223372036854776, LEAST)] + [b"\x80"])
    found = column_decoder(schema, on_error="null")(values)
    assert found.field("value").type == pa.timestamp("us", "UTC")
    assert found.field("value").cast(pa.int64()).to_pylist() == [1000, 9223372036854775000, None, None, None]
    reason = "a timestamp exceeds 64 bits of microseconds"
    assert found.field("error").to_pylist()[:4] == [None, None, reason, reason]
    assert "ends inside a number" in found.field("error")[4].as_py()
    with pytest.raises(kc.DecodeError, match=rf"values\[2\]: {reason}"):
        column_decoder(schema)(values[:3])
