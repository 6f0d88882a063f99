"""Data frames written to a real broker by Spark, read by Java's consumer: batches and streams."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import kafkacodec as kc
from tests.integration import kafka_jvm

pytestmark = [pytest.mark.spark, pytest.mark.java]

START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=12)  # younger than what brokers delete
SCHEMA = (
    "topic string, partition int, key binary, value binary, headers array<struct<key:string,value:binary>>, "
    "timestamp timestamp"
)
ROWS = [
    (
        "abc"[n % 3],
        n % 4 if n % 5 else None,
        b"k%d" % n if n % 7 else None,
        b"v%d" % n if n % 11 else None,
        [("h", b"%d" % n), ("h", None)] if n % 2 else None,
        START + timedelta(seconds=n),
    )
    for n in range(4000)
]


@pytest.fixture(scope="module")
def server(plain_broker: kafka_jvm.Broker, spark: Any) -> str:
    kc.spark.register(spark)
    return plain_broker.server


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, SCHEMA).repartition(3)


def create(server: str, *topics: str) -> None:
    for topic in topics:
        kafka_jvm.create_topic(server, topic, 4)


def records(server: str, topic: str) -> list[kafka_jvm.JavaRecord]:
    return kafka_jvm.records(kafka_jvm.tool("consume", server, topic, 4, "read_committed"))


def contents(rows: list[kafka_jvm.JavaRecord]) -> Counter[Any]:
    return Counter((row.key, row.value, tuple(row.headers)) for row in rows)


def expected(*topics: str) -> Counter[Any]:
    return Counter((key, value, tuple(headers or ())) for topic, _, key, value, headers, _ in ROWS if topic in topics)


def test_topics_and_partitions_by_columns(frame: Any, server: str) -> None:
    create(server, "a", "b", "c")
    frame.write.format("kafkabroker").mode("append").option("kafka.bootstrap.servers", server).save()
    for topic in "abc":
        found = records(server, topic)
        assert contents(found) == expected(topic)
        places = {value: place for _, place, _, value, _, _ in ROWS if place is not None}
        assert all(places.get(row.value, row.source) == row.source for row in found if row.value is not None)
        assert min(row.timestamp for row in found) > 1_600_000_000_000


@pytest.mark.parametrize("transactional", [False, True])
def test_one_topic_by_option(frame: Any, server: str, transactional: bool) -> None:
    topic = f"all-{transactional}"
    create(server, topic)
    options = {"kafka.bootstrap.servers": server, "topic": topic, "includeTimestamp": True}
    if transactional:
        options["transactionalIdPrefix"] = "job"
    frame.write.format("kafkabroker").mode("append").options(**options).save()
    found = records(server, topic)
    assert contents(found) == expected("a", "b", "c")
    times = {value: int(time.timestamp()) * 1000 for _, _, _, value, _, time in ROWS}
    assert all(row.timestamp == times[row.value] for row in found if row.value is not None)


@pytest.mark.parametrize("transactional", [False, True])
def test_a_stream(spark: Any, frame: Any, server: str, tmp_path: Any, transactional: bool) -> None:
    """Micro-batches of files; the query is started again once more files are there."""
    topic = f"stream-{transactional}"
    create(server, topic)
    options = {"kafka.bootstrap.servers": server, "topic": topic}
    if transactional:
        options["transactionalIdPrefix"] = topic

    def run() -> int:
        source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(tmp_path / "files"))
        query = (
            source.writeStream.format("kafkabroker")
            .options(**options)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        assert query.exception() is None
        return len([progress for progress in query.recentProgress if progress.numInputRows])

    frame.where("topic = 'a'").write.parquet(str(tmp_path / "files"))
    assert run() == 2
    frame.where("topic = 'b'").write.mode("append").parquet(str(tmp_path / "files"))
    assert run() == 2
    assert contents(records(server, topic)) == expected("a", "b")
    if transactional:
        with kc.client.Admin(server) as admin:
            ((_, decision),) = admin.list_group_offsets(topic).items()
        assert decision.offset == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "no such topic!"}, "topic: "),
        ({"tpoic": "x"}, "tpoic: unknown option; did you mean topic?"),
        ({"kafka.acks": "0"}, "kafka.acks: only all is possible"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers: missing"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "127.0.0.1:1: no broker can be connected to: 127.0.0.1:1: "),
    ],
)
def test_options_are_refused_in_one_sentence(frame: Any, server: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception) as raised:
        frame.write.format("kafkabroker").mode("append").options(
            **{"kafka.bootstrap.servers": server, **options}
        ).save()
    assert message in str(raised.value)
    assert "Traceback" not in str(raised.value)


def test_rows_that_cannot_be_sent(spark: Any, server: str) -> None:
    create(server, "four")
    writer = {"kafka.bootstrap.servers": server}
    for rows, message in [
        ("SELECT CAST(NULL AS string) AS topic, 'v' AS value", "a row has no topic"),
        ("SELECT 'four' AS topic, 99 AS `partition`, 'v' AS value", "topic 'four' has no partition 99"),
    ]:
        with pytest.raises(Exception) as raised:
            spark.sql(rows).write.format("kafkabroker").mode("append").options(**writer).save()
        assert message in str(raised.value)
        assert "Traceback" not in str(raised.value)
