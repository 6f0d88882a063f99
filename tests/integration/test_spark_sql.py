"""The functions and the views in Spark's SQL, on files of real brokers and with what Kafka's own code gives."""

import base64
import json
import re
import shutil
from pathlib import Path

import pytest

import kafkacodec as kc
from tests.corpus import ROOT, Digest, blobs, segments
from tests.dialect_vectors import ROOT as DIALECTS
from tests.protocol_vectors import bodies, plain_json, without_absent
from tests.spark_columns import has_far_times

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "spark-sql.md"
# From UtilsTest.testMurmur2 of Kafka.
LOGS = ROOT / "logs" / "kraft-4.1.0"
KAFKA07 = DIALECTS / "kafka07" / "segments" / "broker-0"
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
    found = blobs("fetch", "builder", magics={0, 1, 2})
    return {sample.name: sample for sample in found if not has_far_times(sample)}


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
            whole = sum(batch["sizeInBytes"] for batch in batches) == len(samples[name].data())
            assert right is (True if whole else None)
        else:
            assert right is None
    good = max(samples.values(), key=lambda sample: len(sample.expected.batches)).data()
    damaged = bytearray(good)
    damaged[70] ^= 1
    long = bytearray(good)
    last = max(samples.values(), key=lambda sample: len(sample.expected.batches)).expected.batches[-1]["position"]
    long[last + 8 : last + 12] = (1_000_000).to_bytes(4, "big")  # nothing is known of what follows
    frame = table(spark, [bytes(damaged), b"\x7f" * 200, bytes(long), good[:-1], good])
    assert [row[0] for row in frame.select(kc.spark.crc_ok("value")).collect()] == [False, False, None, None, True]


def test_records_as_an_array(spark, sql, samples):
    # Some times are beyond what Python's datetime can hold.
    wanted = "transform(decode_records(blob), r -> struct(r.offset, r.key, r.value))"
    rows = sql(f"SELECT name, {wanted} AS records FROM raw").collect()
    assert len(rows) == len(samples) + 2
    for name, records in rows:
        if name in samples:
            expected = [record for record in samples[name].expected.records if not record.is_control]
            for found, model in zip(records, expected, strict=True):
                assert (found.offset, found.key) == (model.offset, model.key)
                assert found.value == model.value or isinstance(model.value, Digest)
        else:
            assert not records
    blob = kc.encode([kc.Record(7, 1000, 0, b"k", b"v", (("h", b"1"),))])
    frame = table(spark, [bytes(blob), None, b""]).select(kc.spark.decode_records("value").alias("records"))
    first, second, third = (row.records for row in frame.collect())
    assert [(r.offset, r.key, r.value, r.headers[0].key, r.headers[0].value) for r in first] == [
        (7, b"k", b"v", "h", b"1")
    ]
    assert (second, third) == (None, [])


def test_messages(spark, sql):
    """Bodies that Kafka's serializers wrote, with the content that they say."""
    chosen = [v for api in ("Metadata", "Fetch", "OffsetCommit", "CreateTopics") for v in bodies("response")[api][:6]]
    rows = [(n, bytearray.fromhex(v["hex"]), v["api"] + "Response", v["version"]) for n, v in enumerate(chosen)]
    frame = spark.createDataFrame(
        [*rows, (-1, None, "FetchResponse", 4)], "n int, body binary, name string, version int"
    )
    frame.createOrReplaceTempView("bodies")
    found = dict(sql("SELECT n, decode_message(body, name, version) FROM bodies").collect())
    assert found.pop(-1) is None
    for n, vector in enumerate(chosen):
        ours = getattr(kc.messages, rows[n][2]).decode(rows[n][1], vector["version"]).to_dict()
        expected = json.dumps(plain_json(vector["json"], ours), default=as_text)
        assert without_absent(json.loads(found[n]), vector["json"]) == json.loads(expected)
    with pytest.raises(kc.spark.OptionError, match="name: 'MetadataRespons' is no message; did you mean 'MetadataRe"):
        kc.spark.decode_message("body", "MetadataRespons", 1)
    with pytest.raises(kc.spark.OptionError, match=r"version: FetchResponse has the versions [0-9]+ to [0-9]+, not 99"):
        kc.spark.decode_message("body", "FetchResponse", 99)


def as_text(value):
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def test_records_as_a_table(sql, samples):
    found = sql("SELECT offset, value FROM kafka_records(TABLE(SELECT blob FROM raw))").collect()
    assert len(found) == sum(not r.is_control for s in samples.values() for r in s.expected.records)
    with pytest.raises(Exception, match="kafka_records: the table must have one binary column, not name string"):
        sql("SELECT * FROM kafka_records(TABLE(SELECT name FROM raw))").collect()


def view(spark, name, path=LOGS, **options):
    return spark.read.format("kafkalog").options(view=name, **options).load(str(path))


def test_view_of_batches(spark):
    expected = {
        (str(sample.path), batch["position"]): (batch["sizeInBytes"], batch["baseOffset"], batch["lastOffset"])
        for sample in segments()
        if sample.path.parent.parent == LOGS and sample.path.suffix == ".log"
        for batch in sample.expected.batches
    }
    frame = view(spark, "batches", maxPartitionBytes=1_000_000)
    fields = (
        "file",
        "position",
        "size_in_bytes",
        "base_offset",
        "last_offset",
        "crc_ok",
        "spark_partition_id() AS task",
    )
    rows = frame.selectExpr(*fields).collect()
    assert {tuple(row[:2]): tuple(row[2:5]) for row in rows} == expected
    assert all(row.crc_ok for row in rows)
    assert len({row.task for row in rows}) > 1
    pruned = view(spark, "batches", columns="codec,partition,TOPIC", subscribe="lz4,none")
    assert pruned.columns == ["codec", "partition", "topic"]
    assert pruned.where("topic = 'lz4' AND codec = 'lz4'").count() > 0


def test_view_of_transactions(spark):
    """The aborted ones are those in the transaction indexes that the broker wrote."""
    rows = view(spark, "transactions", subscribePattern="txn.*").collect()
    aborted = {tuple(row[3:4] + row[5:]) for row in rows if row.state == "aborted"}
    names = ("producer_id", "first_offset", "last_offset")
    indexes = [kc.log.read_transaction_index(path).entries for path in LOGS.glob("txn*/*.txnindex")]
    assert aborted == {tuple(entry[list(names)].tolist()) for entries in indexes for entry in entries}
    (left_open,) = [row for row in rows if row.state == "open"]
    assert (left_open.topic, left_open.first_offset, left_open.last_offset) == ("txn-open", 91, None)


def test_views_are_what_the_command_shows(spark, kafkacodec):
    lines = [json.loads(line) for line in kafkacodec("lag", LOGS, "--json")[1].splitlines()]
    lag = view(spark, "lag").selectExpr("group", "topic", "partition", "offset", "end_offset", "lag", "client_id")
    assert [row.asDict() for row in lag.collect()] == [{name: line[name] for name in lag.columns} for line in lines]
    lines = [json.loads(line) for line in kafkacodec("offsets", LOGS, "--json")[1].splitlines()]
    offsets = view(spark, "offsets").select("group", "topic", "partition", "offset", "metadata")
    assert [row.asDict() for row in offsets.collect()] == [
        {name: line[name] for name in offsets.columns} for line in lines
    ]
    state = json.loads(kafkacodec("metadata", LOGS, "--json")[1])
    configs = {
        (f"{row.resource_type}:{row.resource_name}", row.name, row.value) for row in view(spark, "configs").collect()
    }
    assert configs == {(r, name, value) for r, values in state["configs"].items() for name, value in values.items()}
    topics = {row.topic: row.num_partitions for row in view(spark, "topics").collect()}
    assert topics == {name: len(topic["partitions"]) for name, topic in state["topics"].items()}
    groups = view(spark, "groups").selectExpr("group", "kind", "size(members) AS members").collect()
    assert groups == [(g.group, g.kind, len(g.members)) for g in kc.log.read_consumer_groups(LOGS)]


def test_where_records_are(spark):
    records = view(spark, "records", LOGS / "lz4-0", columns="offset,_metadata")
    batches = view(spark, "batches", LOGS / "lz4-0")
    same = (
        "_metadata.file = file AND _metadata.batch_position = position AND offset BETWEEN base_offset AND last_offset"
    )
    joined = records.crossJoin(batches).where(same).groupBy("file", "position", "count").count().toDF(*"abcd")
    assert joined.where("c = d").count() == joined.count() == batches.count() > 0
    assert "_metadata" not in view(spark, "records").columns
    with pytest.raises(Exception, match=r"columns: _metadata: .* is of Kafka 0\.6 or 0\.7, which has no batches"):
        view(spark, "records", KAFKA07, columns="offset,_metadata").collect()
    with pytest.raises(Exception, match=r"columns: unknown column '_metadata'; columns are key, .*, headers"):
        spark.read.format("kafkabroker").options(columns="_metadata", subscribe="none").load()


def test_views_of_several_brokers(spark, tmp_path):
    """Replicas are one log for groups and offsets, and each listed for itself where files are."""
    for broker in ("1", "2"):
        for name in ("__consumer_offsets-0", "__consumer_offsets-1", "none-0"):
            shutil.copytree(LOGS / name, tmp_path / broker / name)
    assert view(spark, "offsets", tmp_path).collect() == view(spark, "offsets").collect()
    alone = view(spark, "batches", LOGS / "none-0").count()
    assert view(spark, "batches", tmp_path, subscribe="none").count() == 2 * alone > 0


def test_view_of_problems(spark, tmp_path):
    sample = next(s for s in segments() if s.path.parent == LOGS / "none-0" and s.path.suffix == ".log")
    shutil.copytree(LOGS / "none-0", tmp_path / "none-0")
    batch = sample.expected.batches[1]
    data = bytearray(sample.data())
    data[batch["position"] + 70] ^= 1
    (tmp_path / "none-0" / sample.path.name).write_bytes(data)
    (row,) = view(spark, "problems", tmp_path).where("level = 'error'").collect()
    assert (row.topic, row.partition, row.kind, row.position) == ("none", 0, "damaged", batch["position"])
    assert (row.first_offset, row.end_offset) == (batch["baseOffset"], batch["lastOffset"] + 1)
    assert view(spark, "problems", LOGS, subscribe="none,txn").where("level = 'error'").count() == 0
    assert view(spark, "batches", tmp_path).where("NOT crc_ok").count() == 1


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("record", {}, "view: expected batches, problems, transactions, .* or records, not 'record'"),
        ("groups", {"startingOffsets": "earliest"}, "(?i)startingOffsets: unknown option; options are view, path"),
        ("groups", {"columns": "group,kin"}, "columns: expected group, kind, .* not 'kin'"),
        ("groups", {"path": str(LOGS / "none-0")}, "view: path has no partition of __consumer_offsets"),
        ("topics", {"path": str(LOGS / "none-0")}, "view: path has no __cluster_metadata-0"),
        ("batches", {"subscribe": "nome"}, "subscribe: no segments of nome"),
    ],
)
def test_errors_of_views(spark, name, options, message):
    options = {"path": str(LOGS), **options}
    with pytest.raises(Exception, match=message):
        spark.read.format("kafkalog").options(view=name, **options).load().collect()


def test_schemas_of_views(spark):
    reader = spark.read.format("kafkalog").options(view="groups", path=str(LOGS))
    assert reader.schema("kind string, group string").load().columns == ["kind", "group"]
    with pytest.raises(Exception, match="schema: column 'group' must be string and nullable"):
        reader.schema("group int").load().collect()
    with pytest.raises(Exception, match="view: groups cannot be read as a stream"):
        spark.readStream.format("kafkalog").options(view="groups", path=str(LOGS)).load().writeStream.format(
            "noop"
        ).start().awaitTermination(30)


def test_examples_of_the_page(spark, tmp_path):
    for code in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        # Spark stays in the directory in which it was started.
        exec(code.replace('sample("', f'sample("{tmp_path}/'), {"spark": spark, "kc": kc})
