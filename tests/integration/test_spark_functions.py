"""DataFrame functions in a real Spark session."""

import struct
import zlib

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
    with pytest.raises(PythonException, match=r"offset \d+: the timestamp 2305843009213693953 ms"):
        kc.spark.decode_batches(raw, "blob", keep=["name"]).count()
    table = kc.spark.decode_batches(raw, "blob", keep=["name"], mode="PERMISSIVE").toArrow()
    assert table.column_names == ["name", "key", "value", "offset", "timestamp", "timestampType", "headers"]
    assert set(table["name"].to_pylist()) <= {sample.name for sample in samples}
    for sample in samples:
        mine = table.filter(pa.compute.equal(table["name"], sample.name))
        assert_same_records(as_decoded(mine), consumer_records([sample]))


def test_only_the_columns_asked_for(raw):
    frame = kc.spark.decode_batches(raw, "blob", columns=["offset"])
    assert frame.columns == ["offset"]
    assert frame.count() == kc.spark.decode_batches(raw, "blob", mode="PERMISSIVE").count()


def test_damaged_blobs(spark, raw, samples):
    good = next(s for s in samples if len(s.expected.records) > 1)
    bad = bytearray(good.data())
    bad[70] ^= 1
    frame = spark.createDataFrame([(bad,), (bytearray(good.data()),)], "value binary").coalesce(1)
    with pytest.raises(PythonException, match="CrcMismatch"):
        kc.spark.decode_batches(frame).count()
    kept = kc.spark.decode_batches(frame, mode="PERMISSIVE").count()
    assert kept >= len(consumer_records([good]))


def test_problems_column(spark):
    good = max(blobs("fetch", "builder", magics={2}), key=lambda s: len(s.expected.batches))
    second = good.expected.batches[1]
    data = {"good": bytearray(good.data()), "damaged": bytearray(good.data()), "noise": bytearray(b"\x7f" * 200)}
    data["damaged"][second["position"] + 70] ^= 1
    frame = spark.createDataFrame(list(data.items()), "name string, value binary").coalesce(1)
    options = {"columns": ["offset"], "keep": ["name"], "mode": "PERMISSIVE"}
    both = kc.spark.decode_batches(frame, problems=True, **options)
    assert both.columns == ["name", "offset", "problems"]
    records = both.where("problems IS NULL").select("name", "offset").collect()
    assert records == kc.spark.decode_batches(frame, **options).collect()

    damage = {row.name: row for row in both.where("problems IS NOT NULL").collect()}
    assert set(damage) == {"damaged", "noise"}
    assert all(row.offset is None for row in damage.values())
    (problem,) = damage["damaged"].problems
    assert problem.position == second["position"]
    assert problem.baseOffset == second["baseOffset"]
    assert problem.message.startswith(f"batch at offset {problem.baseOffset}: the CRC-32C of a batch is wrong")
    lost = {row.offset for row in records if row.name == "good"} - {r.offset for r in records if r.name == "damaged"}
    assert lost == set(range(second["baseOffset"], second["lastOffset"] + 1))
    assert damage["noise"].problems == [(0, 200, None, "unknown magic 127 (byte 16)")]


def test_more_problems_than_a_table_lists(spark):
    """Two blobs of one group, each with 6,000 damaged places between intact messages: each keeps its own."""
    content = bytes(2) + b"\xff" * 8  # format v0 without key and value
    crc = zlib.crc32(content)
    intact, damaged = (bytes(8) + struct.pack(">iI", 14, value) + content for value in (crc, crc ^ 1))
    blobs = [(n, bytearray((damaged + intact) * 6_000)) for n in range(2)]
    frame = spark.createDataFrame(blobs, "n int, value binary").coalesce(1)
    options = {"columns": ["offset"], "keep": ["n"], "mode": "PERMISSIVE", "problems": True}
    rows = kc.spark.decode_batches(frame, **options)
    assert rows.where("problems IS NULL").count() == 12_000
    positions = [(0, range(0, 6_000 * 52, 52)), (1, range(0, 6_000 * 52, 52))]
    found = rows.where("problems IS NOT NULL").select("n", "problems.position").collect()
    assert [(n, list(at)) for n, at in found] == [(n, list(at)) for n, at in positions]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": "nonesuch"}, "column: unknown column 'nonesuch'"),
        ({"column": "name"}, "column: 'name' is string, not binary"),
        ({"column": "blob", "keep": ["x"]}, "keep: unknown column 'x'"),
        ({"column": "blob", "columns": ["topic"]}, "columns: unknown column 'topic'"),
        ({"column": "blob", "columns": []}, "columns: no column given"),
        ({"column": "blob", "mode": "DROP"}, "mode: expected FAILFAST or PERMISSIVE"),
        ({"column": "blob", "problems": True}, "problems: needs mode='PERMISSIVE'"),
        ({"column": "blob", "mode": "PERMISSIVE", "problems": "yes"}, "problems: expected True or False, not 'yes'"),
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
