"""The tasks of `kafkabroker`: short ranges of many partitions share them; none is lost when offsets go meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

import kafkacodec as kc
from kafkacodec.errors import LimitExceeded, MissingOffsets
from kafkacodec.spark.live import connections
from kafkacodec.spark.live.offsets import Ids
from kafkacodec.spark.live.planning import Task, plan_batch, tasks_of
from kafkacodec.spark.live.read_options import BrokerReadOptions, parse_broker_options
from kafkacodec.spark.live.reading import read_task
from kafkacodec.spark.reading.planning import Pruning

PARTITIONS, EACH = 100, 20
ANY_TIME: Final = {"log.message.timestamp.after.max.ms": (1 << 63) - 1}


def options(server: str = "localhost:9092", **more: str) -> BrokerReadOptions:
    return parse_broker_options({"kafka.bootstrap.servers": server, "subscribe": "many", **more}, streaming=False)


def planned(sizes: list[int], **more: str) -> list[Task]:
    spans = {("many", number): (5, 5 + size) for number, size in enumerate(sizes)}
    ids: Ids = dict.fromkeys(spans)
    tasks = tasks_of(spans, options(**more), ids)
    read = sorted((part.partition, part.start, part.end) for task in tasks for part in task)
    offsets = [(number, offset) for number, start, end in read for offset in range(start, end)]
    assert offsets == [(number, offset) for number, size in enumerate(sizes) for offset in range(5, 5 + size)]
    return tasks


def test_few_partitions_have_a_task_each() -> None:
    assert [len(task) for task in planned([10, 0, 10, 400])] == [1, 1, 1]
    assert len(planned([10] * 64)) == 64


def test_neighbours_of_many_partitions_share_tasks() -> None:
    assert [len(task) for task in planned([10] * 2000)] == [1000, 1000]
    assert [len(task) for task in planned([1000] * 200)] == [10] * 20
    assert [len(task) for task in planned([60_000, *[100] * 100, 60_000])] == [1, 100, 1]
    assert [len(task) for task in planned([49_000] * 70)] == [1] * 70


def test_options_that_ask_for_more_tasks() -> None:
    assert len(planned([10] * 200, minPartitions="50")) == 50
    assert len(planned([10] * 200, minPartitions="300")) >= 300
    assert [len(task) for task in planned([10] * 200, maxRecordsPerPartition="40")] == [4] * 50


@pytest.fixture
def broker() -> Iterator[kc.broker.Broker]:
    with kc.broker.serve(topics={"many": PARTITIONS}, config=ANY_TIME) as broker:
        fill(broker)
        yield broker
        connections.close_all()


def fill(broker: kc.broker.Broker) -> None:
    with kc.client.Producer(broker.bootstrap_servers) as producer:
        for n in range(PARTITIONS * EACH):
            producer.send("many", b"%d" % n, partition=n % PARTITIONS, timestamp=1_000_000 + n)


def read(
    broker: kc.broker.Broker, task: Task, columns: tuple[str, ...] = ("offset", "value"), **more: str
) -> list[Any]:
    batches = read_task(task, columns, options(broker.bootstrap_servers, **more))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def only_task(broker: kc.broker.Broker) -> Task:
    (task,) = plan_batch(options(broker.bootstrap_servers), Pruning())
    assert len(task) == PARTITIONS
    return task


def test_a_shared_task_reads_all_of_its_ranges(broker: kc.broker.Broker) -> None:
    found = read(broker, only_task(broker))
    assert sorted(found) == sorted((n // PARTITIONS, b"%d" % n) for n in range(PARTITIONS * EACH))
    for number in range(PARTITIONS):
        assert [offset for offset, value in found if int(value) % PARTITIONS == number] == list(range(EACH))


def test_records_that_are_deleted_after_planning(broker: kc.broker.Broker) -> None:
    task = only_task(broker)
    with kc.client.Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({("many", 7): 12})
    with pytest.raises(MissingOffsets, match=r"^many-7: offsets 0 to 11 can no longer be read"):
        read(broker, task)
    values = sorted(int(value) for _, value in read(broker, task, failOnDataLoss="false"))
    assert values == [n for n in range(PARTITIONS * EACH) if n % PARTITIONS != 7 or n // PARTITIONS >= 12]


def test_a_topic_that_is_made_again_after_planning(broker: kc.broker.Broker) -> None:
    task = only_task(broker)
    with kc.client.Admin(broker.bootstrap_servers) as admin:
        admin.delete_topics(["many"])
        admin.create_topics({"many": PARTITIONS})
    fill(broker)
    with pytest.raises(MissingOffsets, match="was deleted and made again"):
        read(broker, task)


def test_a_time_that_spark_cannot_hold_names_its_partition(broker: kc.broker.Broker) -> None:
    with kc.client.Producer(broker.bootstrap_servers) as producer:
        producer.send("many", b"late", partition=3, timestamp=(1 << 63) - 1).result()
    with pytest.raises(LimitExceeded, match=rf"^many-3: offset {EACH}: the timestamp 9223372036854775807 ms"):
        read(broker, only_task(broker), ("value", "timestamp"))
