"""Spark on two cores: sums over segments, exports to Parquet, and writing segments with `kafkalog`.

Sums and writing are compared with trivial data sources: one yields ready-made Arrow batches, others discard their
input, or write as many bytes. They show the time that Spark, and the disk, need for as many rows of the same shape.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import kafkacodec as kc
from benchmarks import ready_made, spark_broker
from benchmarks.cases import Case, record_set
from benchmarks.contest import Contest, Measured
from benchmarks.spark_broker import check_total
from benchmarks.spark_sinks import ThrownAway, WrittenAlone
from benchmarks.spark_time import Clock, measure

ROOT = Path(__file__).parent.parent
PARTITIONS = 4
CASE = Case("Spark", total_bytes=120_000_000)  # a million records, in each partition
SUM, STREAM = "Spark, sum of value lengths", "Spark, stream"
FILES, WRITE = "Spark, segments to Parquet", "Spark, write"


def run(rounds: int, note: Callable[[str], None], chosen: Callable[[str], bool], share: int = 1) -> dict[str, Measured]:
    """The rates of the chosen contests, by the clock and by processor time, with 1 / `share` of the records."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    conf = {"spark.driver.memory": "2g"}  # holds the rows to write
    spark = kc.spark.session(conf, master="local[2]", app_name="kafkacodec benchmarks")
    results: dict[str, Measured] = {}
    try:
        clock = Clock(spark)
        with tempfile.TemporaryDirectory() as directory:
            for contest in contests(spark, Path(directory), chosen, share):
                results |= measure(contest, rounds, clock)
                note(contest.name)
    finally:
        spark.stop()
    return results


def contests(spark: SparkSession, directory: Path, chosen: Callable[[str], bool], share: int) -> Iterator[Contest]:
    """The contests, with segments and a broker that exist while they run."""
    case = replace(CASE, total_bytes=CASE.total_bytes // share)
    makers = {SUM: summing, STREAM: streaming, FILES: exporting, WRITE: writing}
    wanted = [make for name, make in makers.items() if chosen(name)]
    if wanted:
        write(directory / "segments", case)
    for make in wanted:
        yield make(spark, str(directory / "segments"), case)
    with spark_broker.contests(spark, directory / "broker", chosen, share) as found:
        yield from found


def write(directory: Path, case: Case) -> None:
    data = record_set(case)
    for partition in range(PARTITIONS):
        place = directory / f"bench-{partition}"
        place.mkdir(parents=True)
        (place / "00000000000000000000.log").write_bytes(data)


def summing(spark: SparkSession, directory: str, case: Case) -> Contest:
    segments = spark.read.format("kafkalog").load(directory)
    frames = {"kafkalog": segments, ready_made.NAME: ready_made.rows(spark, PARTITIONS, case.num_records)}
    expected = PARTITIONS * case.num_records * case.value_bytes
    competitors: dict[str, Callable[[], object]] = {
        name: partial(check_total, name, rows, expected) for name, rows in frames.items()
    }
    return Contest(SUM, "records", PARTITIONS * case.num_records, competitors)


def streaming(spark: SparkSession, directory: str, case: Case) -> Contest:
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

    spark.dataSource.register(ready_made.ReadyMade)
    expected = PARTITIONS * case.num_records
    names = {"kafkalog": "kafkalog", ready_made.NAME: "readymade"}
    given: dict[str, dict[str, str]] = {
        "kafkalog": {},
        "readymade": ready_made.options(PARTITIONS, case.num_records),
    }
    competitors: dict[str, Callable[[], object]] = {name: partial(streamed, source) for name, source in names.items()}
    return Contest(STREAM, "records", expected, competitors)


def exporting(spark: SparkSession, directory: str, case: Case) -> Contest:
    """All columns of the segments to Parquet files, by Spark's writer and by the tasks themselves."""
    segments = spark.read.format("kafkalog").load(directory)
    expected = PARTITIONS * case.num_records

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
    return Contest(FILES, "records", expected, competitors)


def writing(spark: SparkSession, directory: str, case: Case) -> Contest:
    """Write rows that Spark holds in memory to new log directories, which are removed at the end."""
    spark.dataSource.register(ThrownAway)
    spark.dataSource.register(WrittenAlone)
    ready = ready_made.rows(spark, PARTITIONS, case.num_records)
    rows = ready.select("key", "value", "timestamp").cache()
    expected = PARTITIONS * case.num_records
    competitors: dict[str, Callable[[], object]] = {
        "batches thrown away": partial(throw_away, rows),
        "the bytes alone": partial(write_bytes, rows, expected, len(record_set(case)) // case.num_records, directory),
    }
    for codec in ("none", "lz4"):
        competitors[f"kafkalog, {codec}"] = partial(write_segments, rows, codec, expected, directory)
    return Contest(WRITE, "records", expected, competitors)


def throw_away(rows: DataFrame) -> None:
    rows.write.format("thrownaway").mode("append").save()


def write_bytes(rows: DataFrame, expected: int, record_bytes: int, directory: str) -> None:
    target = tempfile.mkdtemp(dir=directory)
    rows.write.format("writtenalone").mode("append").options(path=target, record_bytes=record_bytes).save()
    found = sum(path.stat().st_size for path in Path(target).iterdir())
    if found != record_bytes * expected:
        raise SystemExit(f"{found} bytes were written, not {record_bytes} for each of {expected} records")


def write_segments(rows: DataFrame, codec: str, expected: int, directory: str) -> None:
    target = tempfile.mkdtemp(dir=directory)
    options = {"topic": "bench", "numPartitions": PARTITIONS, "codec": codec}
    rows.write.format("kafkalog").mode("append").options(**options).save(target)
    found = sum(partition.end_offset() for partition in kc.log.LogDirectory(target).partitions("bench"))
    if found != expected:
        raise SystemExit(f"{found} records were written, not {expected}")
