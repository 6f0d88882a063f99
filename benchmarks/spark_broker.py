"""Reading a topic with Spark: from a broker, from its files, and by Spark's own Kafka source."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import kafkacodec as kc
from benchmarks import ready_made, spark_many
from benchmarks.contest import Contest
from benchmarks.goals import BROKER, OWN_TUNED
from tests.integration.kafka_jvm import Broker
from tests.integration.spark_connector import add_connector

__all__ = ["check_total", "contests"]

TOPIC = "bench"
PARTITIONS = 4
RECORDS = 3_000_000
VALUE_BYTES = 100
_ROWS = 500_000

# Large fetches, for the least work per record.
TUNED = {
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.max.poll.records": "20000",
}
PARQUET = f"{BROKER}, to Parquet"
OWN = "Spark's own source"


@contextmanager
def contests(
    spark: SparkSession, directory: Path, chosen: Callable[[str], bool], share: int
) -> Iterator[Iterator[Contest]]:
    """The chosen contests. The broker runs as long as the block, and `kafkalog` reads the files that it has."""
    if not any(map(chosen, (BROKER, PARQUET, *spark_many.NAMES))):
        yield iter(())
        return
    add_connector(spark)
    directory.mkdir()
    broker = Broker(directory)
    broker.start()
    try:
        yield chain(_of_one_topic(spark, broker, chosen, RECORDS // share), spark_many.contests(spark, broker, chosen))
    finally:
        broker.kill()


def _of_one_topic(
    spark: SparkSession, broker: Broker, chosen: Callable[[str], bool], records: int
) -> Iterator[Contest]:
    makers = {BROKER: reading, PARQUET: exporting}
    wanted = {name: make for name, make in makers.items() if chosen(name)}
    if wanted:
        fill(broker.server, records)
    for name, make in wanted.items():
        yield Contest(name, "records", records, make(spark, broker, records))


def reading(spark: SparkSession, broker: Broker, records: int) -> dict[str, Callable[[], object]]:
    """The lengths of all values, summed by Spark."""
    servers = {"kafka.bootstrap.servers": broker.server, "subscribe": TOPIC}
    sources = {
        "kafkalog": ("kafkalog", files(broker)),
        "kafkalog, only values": ("kafkalog", files(broker) | {"columns": "value"}),
        "kafkabroker": ("kafkabroker", servers),
        "kafkabroker, only values": ("kafkabroker", servers | {"columns": "value"}),
        OWN: ("kafka", servers),
        OWN_TUNED: ("kafka", servers | TUNED),
    }
    frames = {name: spark.read.format(source).options(**options).load() for name, (source, options) in sources.items()}
    frames[ready_made.NAME] = ready_made.rows(spark, PARTITIONS, records // PARTITIONS)
    return {name: partial(check_total, name, rows, records * VALUE_BYTES) for name, rows in frames.items()}


def files(broker: Broker) -> dict[str, str]:
    """Options for the files that a running broker has, up to the last record."""
    return {"path": str(broker.logs), "subscribe": TOPIC, "endAt": "logEnd"}


def exporting(spark: SparkSession, broker: Broker, records: int) -> dict[str, Callable[[], object]]:
    """All columns to Parquet files, from the broker's files and, by Spark, from the broker."""
    servers = {"kafka.bootstrap.servers": broker.server, "subscribe": TOPIC}
    rows = spark.read.format("kafka").options(**servers, **TUNED).load()

    def by_spark(target: str) -> None:
        rows.write.option("compression", "zstd").parquet(target)

    def by_tasks(target: str) -> None:
        kc.spark.export(spark, files(broker), target)

    def written(write_to: Callable[[str], None]) -> None:
        with tempfile.TemporaryDirectory() as place:
            target = os.path.join(place, "records")
            write_to(target)
            found = sum(pq.read_metadata(path).num_rows for path in Path(target).rglob("*.parquet"))
        if found != records:
            raise SystemExit(f"{found} records were written, not {records}")

    writers = {"kafkacodec.spark.export": by_tasks, "Spark's own source, df.write.parquet": by_spark}
    competitors: dict[str, Callable[[], object]] = {name: partial(written, writer) for name, writer in writers.items()}
    return competitors


def fill(server: str, records: int) -> None:
    """Write the records, of which all have a key."""
    with kc.client.Admin(server) as admin:
        admin.create_topics([kc.client.NewTopic(TOPIC, num_partitions=PARTITIONS)])
    table = pa.table(
        {
            "key": pa.array([b"key-%06d" % n for n in range(_ROWS)], pa.binary()),
            "value": pa.array([os.urandom(VALUE_BYTES // 2).hex().encode() for _ in range(_ROWS)], pa.binary()),
            "partition": pa.array([n % PARTITIONS for n in range(_ROWS)], pa.int32()),
        }
    )
    with kc.client.Producer(server, batch_size=256 << 10) as producer:
        for begin in range(0, records, _ROWS):
            producer.send_columns(table.slice(0, records - begin), topic=TOPIC).result(120)


def check_total(name: str, rows: DataFrame, expected: int) -> None:
    """Have Spark sum up the lengths of values."""
    found = rows.selectExpr("sum(length(value))").first()[0]
    if found != expected:
        raise SystemExit(f"{name}: the values have {found} bytes, not {expected}")
