"""DataFrame functions in a real Spark session."""

import pyarrow as pa
import pytest
from pyspark.errors import PythonException

import kafkacodec as kc
from tests.corpus import assert_same_records, blobs
from tests.spark_columns import as_decoded, consumer_records

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def samples():
    """Record sets from real fetch responses, most of which end in a partial batch."""
    return blobs("fetch", "builder", magics={0, 1, 2})


@pytest.fixture(scope="module")
def raw(spark, samples):
    rows = [(sample.name, bytearray(sample.data())) for sample in samples]
    return spark.createDataFrame([*rows, ("null", None), ("empty", bytearray())], "name string, blob binary")


def test_every_blob_gives_its_records(raw, samples):
    table = kc.spark.decode_batches(raw, "blob", keep=["name"]).toArrow()
    assert table.column_names == ["name", "key", "value", "offset", "timestamp", "timestampType", "headers"]
    assert set(table["name"].to_pylist()) <= {sample.name for sample in samples}
    for sample in samples:
        mine = table.filter(pa.compute.equal(table["name"], sample.name))
        assert_same_records(as_decoded(mine), consumer_records([sample]))


def test_only_the_columns_asked_for(raw):
    frame = kc.spark.decode_batches(raw, "blob", columns=["offset"])
    assert frame.columns == ["offset"]
    assert frame.count() == kc.spark.decode_batches(raw, "blob").count()


def test_damaged_blobs(spark, raw, samples):
    good = next(s for s in samples if len(s.expected.records) > 1)
    bad = bytearray(good.data())
    bad[70] ^= 1
    frame = spark.createDataFrame([(bad,), (bytearray(good.data()),)], "value binary").coalesce(1)
    with pytest.raises(PythonException, match="CrcMismatch"):
        kc.spark.decode_batches(frame).count()
    kept = kc.spark.decode_batches(frame, mode="PERMISSIVE").count()
    assert kept >= len(consumer_records([good]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": "nonesuch"}, "column: unknown column 'nonesuch'"),
        ({"column": "name"}, "column: 'name' is string, not binary"),
        ({"column": "blob", "keep": ["x"]}, "keep: unknown column 'x'"),
        ({"column": "blob", "columns": ["topic"]}, "columns: unknown column 'topic'"),
        ({"column": "blob", "columns": []}, "columns: no column given"),
        ({"column": "blob", "mode": "DROP"}, "mode: expected FAILFAST or PERMISSIVE"),
    ],
)
def test_wrong_arguments(raw, arguments, message):
    with pytest.raises(kc.spark.OptionError, match=message):
        kc.spark.decode_batches(raw, **arguments)


def test_confluent_framing(spark):
    values = [b"\0\0\0\1\2payload of more than twelve bytes", b"\0\0\0\0\7", b"plain", b"", None]
    frame = spark.createDataFrame(
        [(i, None if v is None else bytearray(v)) for i, v in enumerate(values)], "i int, value binary"
    )
    found = frame.select("i", kc.spark.split_confluent("value").alias("s")).select("i", "s.*").orderBy("i").toArrow()
    assert found["schema_id"].to_pylist() == [258, 7, None, None, None]
    assert found["payload"].to_pylist() == [b"payload of more than twelve bytes", b"", b"plain", b"", None]
