"""Writing the format `kafkalog` from a real Spark session."""

import pytest
from pyspark.errors import AnalysisException, PythonException

import kafkacodec as kc
from tests.corpus import ROOT

pytestmark = pytest.mark.spark

LOGS = ROOT / "logs" / "kraft-4.1.0"


def written(spark, path):
    return spark.read.format("kafkalog").options(includeHeaders=True).load(str(path))


def test_what_is_read_can_be_written(spark, tmp_path):
    records = written(spark, LOGS).where("topic NOT LIKE '\\_\\_%'").repartition(3)
    for _ in range(2):
        records.write.format("kafkalog").mode("append").option("codec", "zstd").save(str(tmp_path))
    content = ["topic", "partition", "key", "value", "timestamp", "headers"]
    expected = records.select(content).union(records.select(content))
    found = written(spark, tmp_path).select(content)
    assert found.exceptAll(expected).count() == expected.exceptAll(found).count() == 0
    counts = {
        (r["topic"], r["partition"]): r["count"] for r in expected.groupBy("topic", "partition").count().collect()
    }
    directory = kc.log.LogDirectory(tmp_path)
    assert {(p.topic, p.partition): p.end_offset() for p in directory.all_partitions} == counts


def test_rows_of_text_by_key(spark, tmp_path):
    frame = spark.range(1000).selectExpr("string(id % 10) AS key", "string(id) AS value")
    frame.write.format("kafkalog").mode("append").options(topic="numbers", numPartitions=4).save(str(tmp_path))
    rows = written(spark, tmp_path).selectExpr("string(key)", "int(string(value)) AS value", "partition").collect()
    assert sorted(row["value"] for row in rows) == list(range(1000))
    assert all(row["partition"] == kc.partition([row["key"]], 4)[0] for row in rows)


def test_a_failing_task_leaves_nothing_visible(spark, tmp_path):
    frame = spark.range(0, 1000, 1, 4).selectExpr(
        "'t' AS topic", "int(if(id = 999, -1, id % 3)) AS partition", "string(id) AS value"
    )
    with pytest.raises(PythonException, match="negative partition -1"):
        frame.write.format("kafkalog").mode("append").save(str(tmp_path / "out"))
    # A task that Spark has not stopped yet may still write to the staging directory.
    assert not [path for path in (tmp_path / "out").iterdir() if "staging" not in path.name]
    assert not kc.log.LogDirectory(tmp_path / "out").topics


def test_errors_name_the_option(spark, tmp_path):
    frame = spark.range(3).selectExpr("string(id) AS value")
    with pytest.raises(AnalysisException, match="topic: missing") as caught:
        frame.write.format("kafkalog").mode("append").save(str(tmp_path / "out"))
    assert "Traceback" not in str(caught.value)
    with pytest.raises(AnalysisException, match=r"(?i)numpartition: unknown option; did you mean numPartitions"):
        frame.write.format("kafkalog").mode("append").options(topic="t", numPartition=3).save(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_only_appending(spark, tmp_path):  # type: ignore[no-untyped-def]
    with kc.log.LogWriter(tmp_path / "source", "t", 0, sync=False) as writer:
        writer.write([(None, b"value")])
    stream = spark.readStream.format("kafkalog").load(str(tmp_path / "source"))

    def run(frame, **options: str) -> None:  # type: ignore[no-untyped-def]
        mode = options.pop("mode", "append")
        query = frame.writeStream.format("kafkalog").outputMode(mode).options(**options)
        query = query.option("checkpointLocation", str(tmp_path / str(len(list(tmp_path.iterdir())))))
        query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()

    counted = stream.groupBy("value").count().selectExpr("value")
    for frame, options, message in [
        (counted, {"mode": "complete", "topic": "t"}, r"outputMode: kafkalog only appends; use outputMode\('append'\)"),
        (stream.select("value"), {"mode": "update", "topic": "t"}, "kafkalog does not support Update mode"),
        (stream.select("value"), {"topic": "t", "txnVersion": "1"}, "txnVersion: a stream numbers its micro-batches"),
        (stream.select("value"), {}, "topic: missing"),
        (stream.select("value"), {"topic": "t", "colour": "red"}, "colour: unknown option"),
    ]:
        with pytest.raises(Exception, match=message) as caught:
            run(frame, **options)
        assert "Traceback" not in str(caught.value)
    assert not list(tmp_path.glob("out/t-*"))
    for _ in range(2):  # two queries: with the same application, the second one's batch counts as written
        run(stream.select("value"), topic="t", txnAppId="mine")
    assert spark.read.format("kafkalog").load(str(tmp_path / "out")).count() == 1
    run(stream.select("value"), topic="t")
    assert spark.read.format("kafkalog").load(str(tmp_path / "out")).count() == 2
