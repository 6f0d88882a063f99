"""The format `kafkalog` in a real Spark session."""

import base64

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException

import kafkacodec as kc
from tests.corpus import ROOT, assert_same_records
from tests.dialect_vectors import ROOT as DIALECTS, rows
from tests.spark_columns import as_decoded, consumer_records, partition_directories

pytestmark = pytest.mark.spark

LOGS = ROOT / "logs" / "kraft-4.1.0"
PARTITIONS = partition_directories(magics={0, 1, 2})
DIRECTORIES = sorted({path.parent for path in PARTITIONS})
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def load(spark, path, **options):
    return spark.read.format("kafkalog").options(**options).load(str(path))


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_golden_segments(spark, directory):
    """Many tasks: the order of records in a partition is kept."""
    wanted = {path: samples for path, samples in PARTITIONS.items() if path.parent == directory}
    reader = spark.read.format("kafkalog").options(
        includeHeaders=True, maxPartitionBytes=100_000, subscribePattern=".*"
    )
    table = reader.load([str(path) for path in wanted]).toArrow()
    for path, samples in wanted.items():
        topic, _, partition = path.name.rpartition("-")
        mine = pa.compute.and_(
            pa.compute.equal(table["topic"], topic), pa.compute.equal(table["partition"], int(partition))
        )
        assert_same_records(as_decoded(table.filter(mine)), consumer_records(samples))


def test_segments_of_kafka_07(spark):
    """Uncompressed segments, compared with what 0.7.2 itself reads."""
    entries = [
        e for e in rows("kafka07/segments/index") if e["file"].startswith("segments/broker-0/") and not e["error"]
    ]
    plain = [e for e in entries if e["entries"] and all(m["codec"] == "none" for m in e["entries"])]
    assert len(plain) > 3
    table = load(
        spark, DIALECTS / "kafka07" / "segments" / "broker-0", columns="topic,partition,offset,value"
    ).toArrow()
    found = {(r["topic"], r["partition"], r["offset"]): r["value"] for r in table.to_pylist()}
    for entry in plain:
        for message in entry["entries"]:
            value = found[entry["topic"], entry["partition"], message["offset"]]
            assert value == base64.b64decode(message["payload"])


def test_schema_is_that_of_sparks_kafka_source(spark):
    assert load(spark, LOGS).schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    headers = load(spark, LOGS, INCLUDEHEADERS="true").schema["headers"].dataType
    assert headers.simpleString() == "array<struct<key:string,value:binary>>"


def test_found_without_being_registered(spark):
    spark.newSession().read.format("kafkalog").load(str(LOGS / "none-0")).count()


def test_columns_by_option_and_by_schema(spark):
    by_option = load(spark, LOGS / "none-0", columns="offset,value")
    assert by_option.columns == ["offset", "value"]
    by_schema = spark.read.format("kafkalog").schema("offset long, value binary").load(str(LOGS / "none-0"))
    assert by_schema.collect() == by_option.collect()


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"subscrib": "none"}, None, "subscrib: unknown option"),
        ({"subscribe": "none", "assign": "{}"}, None, "assign: contradicts subscribe"),
        ({"startingOffsets": "latest"}, None, "startingOffsets: 'latest' would read nothing"),
        ({"subscribe": "nonesuch"}, None, "subscribe: no segments of nonesuch"),
        ({"columns": "x"}, None, "columns: unknown column 'x'"),
        ({}, "value string", "schema: column 'value' must be binary and nullable, not string"),
        ({}, "offset long not null", "schema: column 'offset' must be bigint and nullable, not bigint not null"),
        ({}, "payload binary", "schema: unknown column 'payload'"),
    ],
)
def test_errors_name_the_option(spark, options, schema, message):
    reader = spark.read.format("kafkalog").options(**options)
    with pytest.raises(AnalysisException) as raised:
        (reader.schema(schema) if schema else reader).load(str(LOGS)).count()
    assert message in str(raised.value)


def test_several_paths(spark):
    paths = [str(LOGS / "none-0"), str(LOGS / "gzip-0")]
    listed = spark.read.format("kafkalog").load(paths).count()
    assert listed == load(spark, ",".join(paths)).count() == sum(load(spark, path).count() for path in paths)


def test_damage(spark, tmp_path):
    source = sorted((LOGS / "none-0").glob("*.log"))[0]
    data = bytearray(source.read_bytes())
    headers = kc.scan(data)
    data[int(headers["position"][1]) + 70] ^= 1
    (tmp_path / "none-0").mkdir()
    (tmp_path / "none-0" / source.name).write_bytes(data)
    with pytest.raises(PythonException, match="CrcMismatch"):
        load(spark, tmp_path).count()
    assert load(spark, tmp_path, mode="permissive").count() == headers["count"].sum() - headers["count"][1]


def test_splits_group_and_aggregate(spark):
    frame = load(spark, LOGS, maxPartitionBytes=50_000)
    assert frame.rdd.getNumPartitions() > 5
    counts = {
        (row["topic"], row["partition"]): row["count"] for row in frame.groupBy("topic", "partition").count().collect()
    }
    expected = {}
    for path, samples in PARTITIONS.items():
        if path.parent == LOGS and consumer_records(samples):
            topic, _, partition = path.name.rpartition("-")
            expected[topic, int(partition)] = len(consumer_records(samples))
    assert counts == expected


@pytest.fixture(params=["false", "true"])
def pushdown(spark, request):
    spark.conf.set(PUSHDOWN, request.param)
    yield request.param == "true"
    spark.conf.unset(PUSHDOWN)


@pytest.mark.parametrize(
    "condition",
    [
        "topic = 'none' AND offset >= 20 AND offset < 40",
        "topic IN ('none', 'gzip', 'nonesuch') AND partition = 0",
        "topic = 'partitions' AND partition <=> 2",
        "topic LIKE 'tiny%' AND NOT offset = 3",
        "timestamp > timestamp'2020-01-01' AND timestamp < timestamp'2040-01-01' AND topic = 'none'",
        "timestamp >= timestamp'2040-01-01'",
        "topic = 'none' AND offset IN (3, 5, 1000000)",
        "partition IS NULL OR offset = 7",
    ],
)
def test_filters_give_the_same_rows_in_every_session(spark, pushdown, condition):
    frame = load(spark, LOGS, columns="topic,partition,offset,timestamp")
    filtered = frame.where(condition)
    spark.conf.set(PUSHDOWN, "false")
    everything = frame.localCheckpoint()
    spark.conf.set(PUSHDOWN, str(pushdown).lower())
    expected = sorted(everything.where(condition).collect(), key=str)
    assert sorted(filtered.collect(), key=str) == expected


def test_filters_leave_out_segments(spark, tmp_path):
    """A segment that the filter excludes is not opened."""
    (tmp_path / "good-0").mkdir()
    (tmp_path / "bad-0").mkdir()
    source = sorted((LOGS / "none-0").glob("*.log"))[0]
    (tmp_path / "good-0" / source.name).write_bytes(source.read_bytes())
    (tmp_path / "bad-0" / source.name).write_bytes(b"damaged" * 1000)
    spark.conf.set(PUSHDOWN, "true")
    try:
        assert load(spark, tmp_path).where("topic = 'good'").count() == len(kc.decode(source.read_bytes()))
    finally:
        spark.conf.unset(PUSHDOWN)
