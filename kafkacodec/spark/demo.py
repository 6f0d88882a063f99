"""A SQL query of a log directory in a Spark session of its own: a part of ``kafkacodec demo``."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from kafkacodec.errors import KafkaCodecError
from kafkacodec.spark.jvm import session

__all__ = ["Result", "run"]

T = TypeVar("T")


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
    return _in_spark(partial(_query, os.fspath(path), topic, query, master))


def _query(path: str, topic: str, query: str, master: str) -> Result:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    begin = time.perf_counter()
    settings = {"spark.sql.shuffle.partitions": "1"}  # few rows: each partition is a task
    spark = session(settings, master=master, app_name="kafkacodec demo", quick_start=True)
    started = time.perf_counter()
    spark.sparkContext.setLogLevel("OFF")  # errors are raised
    try:
        spark.read.format("kafkalog").option("subscribe", topic).load(path).createOrReplaceTempView(topic)
        found = spark.sql(query)
        rows = [tuple(row) for row in found.collect()]
        done = time.perf_counter()
        spark.stop()
    except (PySparkException, Py4JError) as error:
        raise KafkaCodecError(f"Spark failed: {str(error).strip().splitlines()[-1]}") from None
    return Result(found.columns, rows, started - begin, done - started)


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
            with _uninterrupted():
                while SparkContext._gateway is None and not future.done():
                    time.sleep(0.05)
                if ours and SparkContext._gateway is not None:
                    SparkContext._gateway.proc.kill()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore further interrupts while the JVM is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
