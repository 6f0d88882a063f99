"""The job of ``kafkacodec demo``: convert a directory of Kafka's log segments to Parquet and summarize it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log import Partition, discover
from kafkacodec.spark.jvm import session

__all__ = ["Result", "Summary", "run"]

T = TypeVar("T")


class Summary(NamedTuple):
    """A partition's number of records, bytes of keys and values, first and last offset, newest timestamp in ms."""

    topic: str | None
    partition: int | None
    records: int
    size_in_bytes: int
    first_offset: int
    last_offset: int
    newest: int | None


class Result(NamedTuple):
    """A summary of the partitions, and the seconds to start Spark, to read and write, and to decode without Spark."""

    partitions: list[Summary]
    size_in_bytes: int
    seconds_to_start: float
    seconds: float
    seconds_alone: float


def run(source_dir: str | os.PathLike[str], out_dir: str | os.PathLike[str], *, master: str = "local[2]") -> Result:
    """Read all segments under a directory with Spark, write them as Parquet, and stop Spark.

    Args:
        source_dir: a broker's data directory or a partition directory.
        out_dir: the directory for the Parquet files; existing Parquet files are replaced.
        master: Spark's master.

    Raises:
        NoUsableJava: no supported JVM was found.
        DecodeError: a segment is damaged.
        KafkaCodecError: Spark fails for another reason, or `out_dir` has files other than Parquet.
        OSError: no segments were found, or they cannot be read.
    """
    source, out = Path(source_dir), Path(out_dir)
    partitions = discover([source])
    _check_output(out)
    to_start, seconds = _in_spark(partial(_copy, source, out, partitions, master))
    size = sum(partition.size_in_bytes for partition in partitions)
    return Result(_summary(out), size, to_start, seconds, _seconds_to_decode(partitions))


def _check_output(out: Path) -> None:
    """Raise KafkaCodecError if other files would be lost: writing replaces the directory."""
    if out.exists() and not out.is_dir():
        raise KafkaCodecError(f"{out} is not a directory; choose another output")
    others = [path for path in out.rglob("*") if path.is_file() and path.name != "_SUCCESS"] if out.exists() else []
    if any(".parquet" not in path.name and not path.name.endswith(".crc") for path in others):
        raise KafkaCodecError(f"{out} has files other than Parquet, which would be lost; choose another output")


def _in_spark(job: Callable[[], T]) -> T:
    """Run the job in a thread, and kill its JVM at the end in any case.

    In the main thread, an interrupt could break off the start of the JVM, which would then keep running.
    """
    from pyspark import SparkContext

    ours = SparkContext._gateway is None
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(job)
        try:
            return future.result()
        except KeyboardInterrupt:
            logging.disable(logging.CRITICAL)  # py4j would log the interrupted call
            raise
        finally:
            while SparkContext._gateway is None and not future.done():
                time.sleep(0.05)
            if ours and SparkContext._gateway is not None:
                SparkContext._gateway.proc.kill()


def _copy(source: Path, out: Path, partitions: Sequence[Partition], master: str) -> tuple[float, float]:
    """Seconds that Spark takes to start, and to read and write."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    begin = time.perf_counter()
    spark = session(master=master, app_name="kafkacodec demo", quick_start=True)
    started = time.perf_counter()
    spark.sparkContext.setLogLevel("OFF")  # errors are raised
    try:
        records = spark.read.format("kafkalog").option("includeHeaders", True).load(str(source))
        records.write.mode("overwrite").parquet(str(out))
        written = time.perf_counter()
        spark.stop()
    except (PySparkException, Py4JError) as error:
        _decode(partitions)  # raises DecodeError if the cause is damage
        raise KafkaCodecError(f"Spark failed: {str(error).strip().splitlines()[-1]}") from None
    return started - begin, written - started


def _decode(partitions: Sequence[Partition]) -> None:
    for partition in partitions:
        for _ in partition.read():
            pass


def _seconds_to_decode(partitions: Sequence[Partition]) -> float:
    """Seconds to decode all columns of all records on one core, without Spark; the best of three."""
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        _decode(partitions)
        best = min(best, time.perf_counter() - begin)
    return best


def _summary(out: Path) -> list[Summary]:
    """A row per partition, from the Parquet files."""
    table = pq.read_table(out, columns=["topic", "partition", "offset", "timestamp", "key", "value"])
    lengths = [pc.fill_null(pc.binary_length(table[name]), 0) for name in ("key", "value")]
    times = pc.divide(pc.cast(pc.cast(table["timestamp"], pa.timestamp("us", "UTC")), "int64"), 1000)
    table = table.select(["topic", "partition", "offset"]).append_column("newest", times)
    table = table.append_column("bytes", pc.cast(pc.add(*lengths), "int64"))
    wanted = [("offset", "count"), ("bytes", "sum"), ("offset", "min"), ("offset", "max"), ("newest", "max")]
    grouped = (
        table.group_by(["topic", "partition"])
        .aggregate(wanted)
        .sort_by([("topic", "ascending"), ("partition", "ascending")])
    )
    names = ("topic", "partition", *("_".join(parts) for parts in wanted))
    return [Summary(*(row[name] for name in names)) for row in grouped.to_pylist()]
