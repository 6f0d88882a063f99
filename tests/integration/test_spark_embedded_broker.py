"""Spark's own Kafka source and sink, and those of this project, read from and write to the broker in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from tests.integration.spark_connector import add_connector

pytestmark = [pytest.mark.spark, pytest.mark.java]

ROWS = [(b"k%d" % n, b"%d" % n, [("h", b"%d" % n)]) for n in range(200)]
SCHEMA = "key binary, value binary, headers array<struct<key:string,value:binary>>"
FORMATS = ("kafka", "kafkabroker")


@pytest.fixture(scope="module")
def broker(spark: Any) -> Iterator[kc.broker.Broker]:
    add_connector(spark)
    kc.spark.register(spark)
    with kc.broker.serve(topics={f"{kind}-rows": 2 for kind in FORMATS} | {"lines": 2, "copies": 1}) as broker:
        yield broker


def options(broker: kc.broker.Broker, **more: Any) -> dict[str, Any]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, **more}


def values(broker: kc.broker.Broker, topic: str) -> list[int]:
    return sorted(int(record.value or b"") for record in broker.records(topic))


@pytest.mark.parametrize("sink", FORMATS)
def test_each_source_reads_what_each_sink_writes(spark: Any, broker: kc.broker.Broker, sink: str) -> None:
    topic = f"{sink}-rows"
    frame = spark.createDataFrame(ROWS, SCHEMA)
    frame.write.format(sink).mode("append").options(**options(broker, topic=topic, includeHeaders=True)).save()
    assert sorted((record.key, record.value, list(record.headers)) for record in broker.records(topic)) == sorted(ROWS)
    for source in FORMATS:
        reader = spark.read.format(source).options(**options(broker, subscribe=topic, includeHeaders=True))
        found = [(row.key, row.value, [tuple(pair) for pair in row.headers]) for row in reader.load().collect()]
        assert sorted((bytes(k), bytes(v), [(h, bytes(b)) for h, b in hs]) for k, v, hs in found) == sorted(ROWS)


@pytest.mark.parametrize("source", FORMATS)
def test_a_stream_reads_each_record_once(spark: Any, broker: kc.broker.Broker, tmp_path: Path, source: str) -> None:
    """A query fails after some batches; the next one goes on at its checkpoint, also with records of later."""
    topic = f"{source}-rows"
    before = len(broker.records(topic))

    def run(failing: str) -> None:
        lines = spark.readStream.format(source).options(
            **options(broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=50)
        )
        checked = f"if(cast(value as string) = '{failing}', raise_error('stop'), cast(value as string)) as value"
        writer = lines.load().selectExpr(checked).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        writer.start(str(tmp_path / "rows")).awaitTermination()

    with pytest.raises(Exception, match="stop"):
        run("150")
    done = spark.read.parquet(str(tmp_path / "rows")).count()
    assert 0 < done < before
    broker.write(topic, [(None, b"%d" % n) for n in range(1000, 1020)])
    run("none")
    found = [int(row.value) for row in spark.read.parquet(str(tmp_path / "rows")).collect()]
    assert sorted(found) == values(broker, topic)


def test_a_stream_from_topic_to_topic_in_transactions(spark: Any, broker: kc.broker.Broker, tmp_path: Path) -> None:
    """The sink of this project writes each batch in a transaction, whose end its checkpoint knows."""
    for begin in (0, 100):
        broker.write("lines", [(None, b"%d" % n) for n in range(begin, begin + 100)])
        lines = spark.readStream.format("kafka").options(
            **options(broker, subscribe="lines", startingOffsets="earliest", maxOffsetsPerTrigger=40)
        )
        writer = lines.load().select("value").writeStream.format("kafkabroker")
        writer = writer.options(**options(broker, topic="copies", transactionalIdPrefix="copies"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        assert values(broker, "copies") == list(range(begin + 100))
