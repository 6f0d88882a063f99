"""Spark on two cores: sums over segments, exports to Parquet, and writing segments with `kafkalog`.

Sums and writing are compared with trivial data sources: one yields ready-made Arrow batches, the other discards its
input. They show the time that Spark itself needs for as many rows of the same shape.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import kafkacodec as kc
from benchmarks import ready_made, spark_broker
from benchmarks.cases import Case, record_set
from benchmarks.contest import Contest

ROOT = Path(__file__).parent.parent
PARTITIONS = 4
CASE = Case("Spark", total_bytes=120_000_000)  # a million records, in each partition


class ThrownAway(DataSource):
    """A destination that discards its input."""

    @classmethod
    def name(cls) -> str:
        return "thrownaway"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return ThrownAwayWriter()


class ThrownAwayWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def contests() -> Iterator[Contest]:
    """The contests, with a session and segments that exist while they run."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    conf = {"spark.driver.memory": "2g"}  # holds the rows to write
    spark = kc.spark.session(conf, master="local[2]", app_name="kafkacodec benchmarks")
    try:
        with tempfile.TemporaryDirectory() as directory:
            write(Path(directory))
            yield contest(spark, directory)
            yield streaming_contest(spark, directory)
            yield exporting_contest(spark, directory)
            yield writing_contest(spark, directory)
            with spark_broker.contests(spark, Path(directory) / "broker") as found:
                yield from found
    finally:
        spark.stop()


def write(directory: Path) -> None:
    data = record_set(CASE)
    for partition in range(PARTITIONS):
        place = directory / f"bench-{partition}"
        place.mkdir()
        (place / "00000000000000000000.log").write_bytes(data)


def contest(spark: SparkSession, directory: str) -> Contest:
    kc.spark.register(spark)
    segments = spark.read.format("kafkalog").load(directory)
    work = {"kafkalog": segments, ready_made.NAME: ready_made.rows(spark, PARTITIONS, CASE.num_records)}
    expected = PARTITIONS * CASE.num_records * CASE.value_bytes
    for name, rows in work.items():
        if (found := total(rows)) != expected:
            raise SystemExit(f"{name} sums to {found}, not {expected}")
    competitors: dict[str, Callable[[], object]] = {name: partial(total, rows) for name, rows in work.items()}
    return Contest("Spark, sum of value lengths", "records", PARTITIONS * CASE.num_records, competitors)


def streaming_contest(spark: SparkSession, directory: str) -> Contest:
    """All columns of all rows in one micro-batch of a query that ends after it, to a sink that discards them."""

    def streamed(source: str) -> None:
        rows = spark.readStream.format(source).options(**given[source]).load(directory)
        with tempfile.TemporaryDirectory() as checkpoint:
            started = (
                rows.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True)
            )
            query = started.start()
            query.awaitTermination()
        if (found := sum(progress["numInputRows"] for progress in query.recentProgress)) != expected:
            raise SystemExit(f"{source}: the query had {found} rows, not {expected}")

    expected = PARTITIONS * CASE.num_records
    names = {"kafkalog": "kafkalog", ready_made.NAME: "readymade"}
    given = {"kafkalog": {}, "readymade": ready_made.options(PARTITIONS, CASE.num_records)}
    competitors: dict[str, Callable[[], object]] = {name: partial(streamed, source) for name, source in names.items()}
    return Contest("Spark, stream", "records", expected, competitors)


def exporting_contest(spark: SparkSession, directory: str) -> Contest:
    """All columns of the segments to Parquet files, by Spark's writer and by the tasks themselves."""
    segments = spark.read.format("kafkalog").load(directory)
    expected = PARTITIONS * CASE.num_records

    def by_spark(target: str) -> int:
        segments.write.option("compression", "zstd").parquet(target)
        return sum(pq.read_metadata(path).num_rows for path in Path(target).glob("*.parquet"))

    def by_tasks(target: str) -> int:
        return kc.spark.export(spark, directory, target).rows

    def written(write_to: Callable[[str], int]) -> None:
        with tempfile.TemporaryDirectory() as place:
            if (found := write_to(os.path.join(place, "records"))) != expected:
                raise SystemExit(f"{found} records were written, not {expected}")

    writers = {"kafkacodec.spark.export": by_tasks, "kafkalog, df.write.parquet": by_spark}
    competitors: dict[str, Callable[[], object]] = {name: partial(written, writer) for name, writer in writers.items()}
    for work in competitors.values():  # warms up the JVM
        work()
    return Contest("Spark, segments to Parquet", "records", expected, competitors)


def writing_contest(spark: SparkSession, directory: str) -> Contest:
    """Write rows that Spark holds in memory to new log directories, which are removed at the end."""
    spark.dataSource.register(ThrownAway)
    ready = ready_made.rows(spark, PARTITIONS, CASE.num_records)
    rows = ready.select("key", "value", "timestamp").cache()
    expected = PARTITIONS * CASE.num_records
    competitors: dict[str, Callable[[], object]] = {"batches thrown away": partial(throw_away, rows)}
    for codec in ("none", "lz4"):
        competitors[f"kafkalog, {codec}"] = partial(write_segments, rows, codec, expected, directory)
    for work in competitors.values():  # warms up the JVM
        work()
    return Contest("Spark, write", "records", expected, competitors)


def throw_away(rows: DataFrame) -> None:
    rows.write.format("thrownaway").mode("append").save()


def write_segments(rows: DataFrame, codec: str, expected: int, directory: str) -> None:
    target = tempfile.mkdtemp(dir=directory)
    options = {"topic": "bench", "numPartitions": PARTITIONS, "codec": codec}
    rows.write.format("kafkalog").mode("append").options(**options).save(target)
    found = sum(partition.end_offset() for partition in kc.log.LogDirectory(target).partitions("bench"))
    if found != expected:
        raise SystemExit(f"{found} records were written, not {expected}")


def total(rows: DataFrame) -> int:
    return int(rows.selectExpr("sum(length(value))").first()[0])
