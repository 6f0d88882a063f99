"""The functions in Spark's SQL, on record sets of real brokers and with what Kafka's own code gives."""

import re
from pathlib import Path

import pytest

import kafkacodec as kc
from tests.corpus import blobs

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "spark-sql.md"
# From UtilsTest.testMurmur2 of Kafka.
MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"abc": 479470107,
}
FRAMES = {
    b"\0\0\0\1\2payload of more than twelve bytes": (258, b"payload of more than twelve bytes"),
    b"\0\0\0\0\7": (7, b""),
    b"\0\xff\xff\xff\xfex": (-2, b"x"),
    b"\0\x80\0\0\0x": (-(2**31), b"x"),
    b"\0\0\0\0": (None, b"\0\0\0\0"),
    b"plain value": (None, b"plain value"),
    b"": (None, b""),
    None: (None, None),
}


@pytest.fixture(scope="module")
def samples():
    return {sample.name: sample for sample in blobs("fetch", "builder", magics={0, 1, 2})}


@pytest.fixture(scope="module")
def sql(spark, samples):
    kc.spark.register_functions(spark)
    rows = [(name, bytearray(sample.data())) for name, sample in samples.items()]
    spark.createDataFrame(
        [*rows, ("null", None), ("empty", bytearray())], "name string, blob binary"
    ).createOrReplaceTempView("raw")
    return spark.sql


def table(spark, values):
    return spark.createDataFrame([(None if v is None else bytearray(v),) for v in values], "value binary")


def test_confluent_framing_in_both_languages(spark, sql):
    table(spark, FRAMES).createOrReplaceTempView("framed")
    in_sql = sql("SELECT value, split_confluent(value) AS s FROM framed")
    in_python = spark.table("framed").select("value", kc.spark.split_confluent("value").alias("s"))
    for frame in (in_sql, in_python):
        found = {row["value"]: (row["schema_id"], row["payload"]) for row in frame.select("value", "s.*").collect()}
        assert {None if k is None else bytes(k): v for k, v in found.items()} == FRAMES
        assert frame.schema["s"].dataType.simpleString() == "struct<schema_id:int,payload:binary>"
        assert "Python" not in frame._jdf.queryExecution().executedPlan().toString()


def test_partitions(spark, sql):
    table(spark, [*MURMUR2, None]).createOrReplaceTempView("keys")
    found = sql("SELECT value, kafka_partition(value, 7) AS a, kafka_partition(value, 12) AS b FROM keys").collect()
    for value, *partitions in found:
        expected = [None, None] if value is None else [(MURMUR2[bytes(value)] & 0x7FFFFFFF) % n for n in (7, 12)]
        assert partitions == expected
    with pytest.raises(kc.spark.OptionError, match="num_partitions: 0 is not a positive number"):
        kc.spark.kafka_partition("value", 0)


def test_headers_and_checksums(spark, sql, samples):
    # Some times are beyond what Python's datetime can hold.
    fields = "h.position, h.size_in_bytes, h.magic"
    rows = sql(f"SELECT name, {fields}, ok FROM (SELECT name, batch_headers(blob) h, crc_ok(blob) ok FROM raw)")
    rows = rows.collect()
    assert len(rows) == len(samples) + 2
    for name, *headers, right in rows:
        if name in samples:
            batches = samples[name].expected.batches
            assert list(zip(*headers, strict=True)) == [(b["position"], b["sizeInBytes"], b["magic"]) for b in batches]
        assert right is (True if headers[0] else None)
    good = max(samples.values(), key=lambda sample: len(sample.expected.batches)).data()
    damaged = bytearray(good)
    damaged[70] ^= 1
    frame = table(spark, [bytes(damaged), b"\x7f" * 200])
    assert [row[0] for row in frame.select(kc.spark.crc_ok("value")).collect()] == [False, False]


def test_records_as_a_table(sql, samples):
    found = sql("SELECT offset, value FROM kafka_records(TABLE(SELECT blob FROM raw))").collect()
    assert len(found) == sum(not r.is_control for s in samples.values() for r in s.expected.records)
    with pytest.raises(Exception, match="kafka_records: the table must have one binary column, not name string"):
        sql("SELECT * FROM kafka_records(TABLE(SELECT name FROM raw))").collect()


def test_examples_of_the_page(spark):
    for code in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        exec(code, {"spark": spark, "kc": kc})
