"""Spark and many partitions of a broker: triggers of a stream that find nothing new, and small partitions."""

from __future__ import annotations

import queue
import tempfile
from collections.abc import Callable, Iterator
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

import kafkacodec as kc
from benchmarks.contest import Contest
from benchmarks.goals import IDLE, SMALL
from benchmarks.spark_time import Clock, Seconds
from tests.integration.kafka_jvm import Broker

__all__ = ["NAMES", "contests"]

NAMES = (IDLE, SMALL)

_QUIET, _SMALL = ("quiet", 800, 1), ("small", 2000, 10)  # topic, partitions, records of each
_TRIGGERS = 20


def contests(spark: SparkSession, broker: Broker, chosen: Callable[[str], bool]) -> Iterator[Contest]:
    """Each topic is made when its contest is next."""
    makers = {IDLE: (_QUIET, _empty_triggers), SMALL: (_SMALL, _small_partitions)}
    for name, (topic, make) in makers.items():
        if chosen(name):
            _fill(broker.server, *topic)
            yield make(spark, broker)


def _fill(server: str, topic: str, partitions: int, records: int) -> None:
    with kc.client.Admin(server) as admin:
        admin.create_topics([kc.client.NewTopic(topic, num_partitions=partitions)])
    with kc.client.Producer(server) as producer:
        for number in range(partitions * records):
            producer.send(topic, b"x" * 100, partition=number % partitions)


def _small_partitions(spark: SparkSession, broker: Broker) -> Contest:
    """Spark's own source is left out: it has a task for each partition, which take minutes."""
    topic, partitions, records = _SMALL
    expected = partitions * records
    options = {"kafka.bootstrap.servers": broker.server, "subscribe": topic}

    def count() -> None:
        found = spark.read.format("kafkabroker").options(**options).load().selectExpr("count(value)").first()[0]
        if found != expected:
            raise SystemExit(f"kafkabroker: {found} records of {expected}")

    return Contest(SMALL, "records", expected, {"kafkabroker": count})


class _Idle(StreamingQueryListener):
    """Notes when triggers find nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.times: queue.SimpleQueue[Seconds] = queue.SimpleQueue()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        self.times.put(self._clock())

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def _empty_triggers(spark: SparkSession, broker: Broker) -> Contest:
    """From one empty trigger to the next, with the pause that Spark makes between them (10 ms)."""
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")
    idle = _Idle(Clock(spark))
    spark.streams.addListener(idle)
    servers = {"kafka.bootstrap.servers": broker.server, "subscribe": _QUIET[0], "startingOffsets": "latest"}
    sources = {
        "kafkabroker": ("kafkabroker", servers),
        "kafkalog": ("kafkalog", {"path": str(broker.logs), "subscribe": _QUIET[0], "endAt": "logEnd"}),
        "Spark's own source": ("kafka", servers),
    }

    def triggers(source: str, options: dict[str, str]) -> Seconds:
        rows = spark.readStream.format(source).options(**options).load()
        with tempfile.TemporaryDirectory() as checkpoint:
            query = rows.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
            try:
                for _ in range(5):  # the first are slower
                    start = idle.times.get(timeout=120)
                for _ in range(_TRIGGERS):
                    end = idle.times.get(timeout=120)
            finally:
                query.stop()
        while not idle.times.empty():
            idle.times.get()
        return end.since(start)

    competitors: dict[str, Callable[[], object]] = {
        name: partial(triggers, source, options) for name, (source, options) in sources.items()
    }
    return Contest(IDLE, "triggers", _TRIGGERS, competitors)
