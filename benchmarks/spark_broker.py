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
from tests.integration.kafka_jvm import Broker
from tests.integration.spark_connector import add_connector

__all__ = ["contests", "processor_seconds"]

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
NAME = "Spark, a topic of a broker"
OWN, OWN_TUNED = "Spark's own source", "Spark's own source, tuned"


@contextmanager
def contests(spark: SparkSession, directory: Path) -> Iterator[Iterator[Contest]]:
    """By the clock and by processor time (`processor_seconds`), and to Parquet. The broker runs as long as the block.

    `kafkalog` reads the files that the broker has.
    """
    kc.spark.register(spark)
    add_connector(spark)
    directory.mkdir(exist_ok=True)
    broker = Broker(directory)
    broker.start()
    try:
        fill(broker.server)
        competitors = reading(spark, broker)
        clock = partial(processor_seconds, broker.process)
        read_and_written = [
            Contest(NAME, "records", RECORDS, competitors),
            Contest(f"{NAME}, processor time", "records", RECORDS, competitors, clock),
            Contest(f"{NAME}, to Parquet", "records", RECORDS, exporting(spark, broker)),
        ]
        yield chain(read_and_written, spark_many.contests(spark, broker))
    finally:
        broker.kill()


def reading(spark: SparkSession, broker: Broker) -> dict[str, Callable[[], object]]:
    """Each reads all records once, which warms up the JVM and the workers."""
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
    frames[ready_made.NAME] = ready_made.rows(spark, PARTITIONS, RECORDS // PARTITIONS)
    found: dict[str, Callable[[], object]] = {name: partial(total, rows) for name, rows in frames.items()}
    for work in found.values():
        work()
    return found


def files(broker: Broker) -> dict[str, str]:
    """Options for the files that a running broker has, up to the last record."""
    return {"path": str(broker.logs), "subscribe": TOPIC, "endAt": "logEnd"}


def exporting(spark: SparkSession, broker: Broker) -> dict[str, Callable[[], object]]:
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
        if found != RECORDS:
            raise SystemExit(f"{found} records were written, not {RECORDS}")

    writers = {"kafkacodec.spark.export": by_tasks, "Spark's own source, df.write.parquet": by_spark}
    competitors: dict[str, Callable[[], object]] = {name: partial(written, writer) for name, writer in writers.items()}
    for work in competitors.values():  # warms up the JVM
        work()
    return competitors


def fill(server: str) -> None:
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
        for _ in range(RECORDS // _ROWS):
            producer.send_columns(table, topic=TOPIC).result(120)


def total(rows: DataFrame) -> None:
    found = rows.selectExpr("sum(length(value))").first()[0]
    if found != RECORDS * VALUE_BYTES:
        raise SystemExit(f"the values have {found} bytes, not {RECORDS * VALUE_BYTES}")


def processor_seconds(broker: int) -> float:
    """The processor time of this process and all below it, Spark's JVM and workers, without those of the broker."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            # proc(5): after the name come state and parent; fields 14 to 17 are the times, of ended children too.
            parents[int(entry.name)], ticks[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def below(number: int) -> bool:
        while number not in (os.getpid(), broker, 0):
            number = parents.get(number, 0)
        return number == os.getpid()

    return sum(count for number, count in ticks.items() if below(number)) / os.sysconf("SC_CLK_TCK")
