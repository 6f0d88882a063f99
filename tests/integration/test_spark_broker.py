"""A real broker opens what Spark wrote, a real consumer reads all of it, and a producer appends to it."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

import kafkacodec as kc
from tests.integration import kafka_jvm
from tests.integration.kafka_jvm import random_rows

pytestmark = [pytest.mark.spark, pytest.mark.java]

SCHEMA = "timestamp timestamp, key binary, value binary, headers array<struct<key:string,value:binary>>"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write(spark, rows, broker, **options):
    """Append rows by several tasks."""
    records = [(EPOCH + timedelta(milliseconds=time), key, value, pairs) for _, time, _, key, value, pairs in rows]
    frame = spark.createDataFrame(records, SCHEMA).repartition(3)
    options = {"topic": "orders", "numPartitions": 4, "segmentBytes": 15_000, "batchBytes": 4000, **options}
    frame.write.format("kafkalog").mode("append").options(**options).save(str(broker.logs))


def consumed(broker, isolation="read_uncommitted"):
    return kafka_jvm.records(kafka_jvm.tool("consume", broker.server, "orders", 4, isolation))


def contents(records):
    """Counts of records without topic, partition and offset."""
    return Counter((r.timestamp, r.key, r.value, tuple(r.headers)) for r in records)


def as_rows(rows):
    return Counter((time, key, value, tuple(pairs)) for _, time, _, key, value, pairs in rows)


def test_a_broker_opens_what_spark_wrote(spark, broker):
    kafka_jvm.create_topic(broker.server, "orders", 4)
    broker.stop()
    first, second = random_rows(3000, 11), random_rows(2000, 12)
    write(spark, first, broker, codec="zstd")
    ends = {p.partition: p.end_offset() for p in kc.log.LogDirectory(broker.logs).partitions("orders")}
    write(spark, second, broker, codec="lz4")
    assert all(len(p.segments) > 3 for p in kc.log.LogDirectory(broker.logs).partitions("orders"))
    assert kc.log.LogDirectory(broker.logs).verify().ok
    broker.start()
    read = consumed(broker)
    assert consumed(broker, "read_committed") == read

    assert contents(r for r in read if r.offset < ends[r.source]) == as_rows(first)
    assert contents(r for r in read if r.offset >= ends[r.source]) == as_rows(second)
    for number in range(4):
        offsets = [r.offset for r in read if r.source == number]
        assert offsets == list(range(len(offsets)))
    keyed = [r for r in read if r.key is not None]
    lines = kafka_jvm.tool("partition", 4, text="".join(f"{r.key.hex()}\n" for r in keyed))
    assert [r.source for r in keyed] == [int(line.split()[1]) for line in lines]

    values = [b"later %d" % n for n in range(400)]
    kafka_jvm.tool("produce", broker.server, "orders", 4, text="".join(f"{value.hex()}\n" for value in values))
    later = consumed(broker)
    assert sorted(r.value for r in set_apart(later, read)) == sorted(values)
    broker.stop()
    assert as_spark_reads(spark, broker) == sorted(later)
    broker.start()


def set_apart(records, known):
    """The records whose offsets follow the known ones of their partition."""
    counts = Counter(r.source for r in known)
    return [r for r in records if r.offset >= counts[r.source]]


def as_spark_reads(spark, broker):
    """All records of the topic as JavaRecords, in order."""
    options = {"subscribe": "orders", "includeHeaders": True, "isolationLevel": "read_committed"}
    frame = spark.read.format("kafkalog").options(**options).load(str(broker.logs))
    columns = ["partition", "offset", "unix_millis(timestamp) AS time", "key", "value", "headers"]
    return sorted(
        kafka_jvm.JavaRecord(
            r["partition"], r["offset"], r["time"], _bytes(r["key"]), _bytes(r["value"]),
            [(h["key"], _bytes(h["value"])) for h in r["headers"] or ()],
        )
        for r in frame.selectExpr(*columns).collect()
    )  # fmt: skip


def _bytes(value):
    return None if value is None else bytes(value)
