"""A SQL query of a log directory in a Spark session of its own: a part of ``kafkacodec demo``."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from kafkacodec.datatypes import NamedTuple
from kafkacodec.spark.sessions.own_session import in_own_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Result", "run"]


class Result(NamedTuple):
    """The columns and rows of a query, and the seconds that Spark took to start and to run it."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    seconds_to_start: float
    seconds: float


def run(path: str | os.PathLike[str], topic: str, query: str, *, master: str = "local[2]") -> Result:
    """Start Spark, run a query over the records of a topic, and stop Spark.

    Args:
        path: a log directory.
        topic: the topic, which is also the name of the view.
        query: in SQL.
        master: Spark's master.

    Raises:
        NoUsableJava: no supported JVM was found.
        KafkaCodecError: Spark fails for another reason, or is not installed.
    """
    begin = time.perf_counter()

    def ask(spark: SparkSession) -> Result:
        started = time.perf_counter()
        options = spark.read.format("kafkalog").option("subscribe", topic)
        options.load(os.fspath(path)).createOrReplaceTempView(topic)
        found = spark.sql(query)
        rows = [tuple(row) for row in found.collect()]
        return Result(found.columns, rows, started - begin, time.perf_counter() - started)

    settings = {"spark.sql.shuffle.partitions": "1"}  # few rows: each partition is a task
    return in_own_session(ask, settings, master=master, app_name="kafkacodec demo", quick_start=True)
