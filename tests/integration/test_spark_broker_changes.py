"""Topics that change under one Spark session: what its workers keep between tasks is older than the cluster."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

import kafkacodec as kc
from kafkacodec.spark.live.producing import send
from kafkacodec.spark.live.read_options import parse_broker_options
from kafkacodec.spark.live.streaming import BrokerStreamReader
from kafkacodec.spark.live.write_options import parse_sink_options
from tests.integration.kafka_jvm import Broker
from tests.patience import LATE

pytestmark = [pytest.mark.spark, pytest.mark.java]


@pytest.fixture(scope="module")
def server(plain_broker: Broker, spark: Any) -> str:
    kc.spark.register(spark)
    return plain_broker.server


@pytest.fixture
def topic(server: str) -> str:
    """A new topic with two partitions and 300 records."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    create(server, name)
    fill(server, name, 300, "old")
    return name


def create(server: str, name: str, partitions: int = 2) -> None:
    with kc.client.Admin(server) as admin:
        admin.create_topics([kc.client.NewTopic(name, num_partitions=partitions)])


def fill(server: str, name: str, count: int, word: str) -> None:
    with kc.client.Producer(server) as producer:
        for n in range(count):
            producer.send(name, f"{word} {n}", partition=n % 2)


def make_again(server: str, name: str, partitions: int = 2) -> None:
    """Delete a topic, and create another one with its name."""
    with kc.client.Admin(server) as admin:
        admin.delete_topics(name)
        while name in admin.list_topics():
            time.sleep(0.02)
    create(server, name, partitions)


def read(spark: Any, server: str, name: str, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": server, "subscribe": name, "kafkaConsumer.pollTimeoutMs": "20000", **options}
    return spark.read.format("kafkabroker").options(**given).load().selectExpr("string(value) AS value")


def words(frame: Any) -> set[str]:
    found = [row["value"] for row in frame.collect()]
    assert len(found) == len(set(found))
    return set(found)


def expected(word: str, count: int, first: int = 0) -> set[str]:
    return {f"{word} {n}" for n in range(first, count)}


def run(spark: Any, server: str, name: str, place: Any, **options: str) -> list[str]:
    """What a query that reads what is there delivers; it goes on where the one before with this place ended."""
    found: list[str] = []

    def take(batch: Any, _: int) -> None:
        found.extend(row["value"] for row in batch.selectExpr("string(value) AS value").collect())

    given = {"kafka.bootstrap.servers": server, "subscribe": name, "startingOffsets": "earliest", **options}
    writer = spark.readStream.format("kafkabroker").options(**given).load().writeStream.foreachBatch(take)
    query = writer.option("checkpointLocation", str(place)).trigger(availableNow=True).start()
    query.awaitTermination(120)
    return found


# Reading


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_topic_that_was_made_again_is_read(spark: Any, server: str, topic: str, strict: str) -> None:
    before = read(spark, server, topic, failOnDataLoss=strict)
    assert words(before) == expected("old", 300)
    make_again(server, topic)
    fill(server, topic, 150, "new")
    assert words(read(spark, server, topic, failOnDataLoss=strict)) == expected("new", 150)
    if strict == "true":
        with pytest.raises(Exception, match=r"MissingOffsets: .* was deleted and made again after .* planned"):
            before.collect()  # its ranges were planned when there was another topic
    else:
        assert words(before) == expected("new", 150)


def test_a_stream_of_a_topic_that_was_made_again(spark: Any, server: str, topic: str, tmp_path: Any) -> None:
    assert {*run(spark, server, topic, tmp_path)} == expected("old", 300)
    make_again(server, topic)
    fill(server, topic, 150, "new")
    for _ in range(2):  # it fails until someone has decided
        with pytest.raises(Exception, match=r"failOnDataLoss: .*-0: it was read up to offset 150, and ends at 75"):
            run(spark, server, topic, tmp_path)
    assert sorted(run(spark, server, topic, tmp_path, failOnDataLoss="false")) == sorted(expected("new", 150))
    fill(server, topic, 20, "more")
    assert sorted(run(spark, server, topic, tmp_path)) == sorted(expected("more", 20))


def test_a_topic_is_made_again_under_a_running_stream(spark: Any, server: str, topic: str, tmp_path: Any) -> None:
    """The new one has more records than were read of the old one."""
    found: list[str] = []

    def take(batch: Any, _: int) -> None:
        found.extend(row["value"] for row in batch.selectExpr("string(value) AS value").collect())

    given = {"kafka.bootstrap.servers": server, "subscribePattern": f"^{topic}$", "startingOffsets": "earliest"}
    reader = spark.readStream.format("kafkabroker").options(**given, failOnDataLoss="false").load()
    writer = reader.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime="1 second").start()
    try:
        until(query, lambda: len(found) == 300)
        make_again(server, topic)
        fill(server, topic, 400, "new")
        until(query, lambda: len(found) >= 700)
    finally:
        query.stop()
    assert sorted(found) == sorted(expected("old", 300) | expected("new", 400))


def until(query: Any, reached: Any) -> None:
    end = time.monotonic() + LATE
    while not reached():
        assert query.isActive, query.exception()
        assert time.monotonic() < end
        time.sleep(0.05)


# Writing


def write(frame: Any, server: str, **options: str) -> None:
    given = {
        "kafka.bootstrap.servers": server,
        "kafka.delivery.timeout.ms": "40000",
        "kafka.request.timeout.ms": "9000",
    }
    frame.write.format("kafkabroker").mode("append").options(**{**given, **options}).save()


def rows(spark: Any, word: str, places: str, count: int = 300) -> Any:
    """Values that are divided among partitions; `places` is an expression of the row's number."""
    columns = (f"concat('{word} ', id) AS value", "string(id) AS key", f"int({places}) AS partition")
    return spark.range(0, count, 1, 2).selectExpr(*columns)


def stored(server: str, name: str, partitions: int) -> list[str]:
    """The values that consumers of what was committed get; nothing is open."""
    keys = [(name, n) for n in range(partitions)]
    with kc.client.Consumer(
        bootstrap_servers=server, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        ends = consumer.end_offsets(keys)
        with kc.client.Admin(server) as admin:
            logs = admin.list_offsets(dict.fromkeys(keys, "latest"))
        assert {key: logs[key].offset for key in keys} == ends, "a transaction is open"
        consumer.assign_ranges({key: (0, end) for key, end in ends.items() if end})
        return [record.value.decode() for record in consumer] if any(ends.values()) else []


def test_partitions_are_added_to_a_topic_between_two_jobs(spark: Any, server: str) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    create(server, name)
    write(rows(spark, "a", "id % 2"), server, topic=name)
    with kc.client.Admin(server) as admin:
        admin.create_partitions({name: 3})
    write(rows(spark, "b", "id % 3"), server, topic=name)
    assert sorted(stored(server, name, 3)) == sorted(expected("a", 300) | expected("b", 300))


def test_a_topic_is_made_again_with_fewer_partitions_between_two_jobs(spark: Any, server: str) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    create(server, name, 5)
    write(rows(spark, "a", "null"), server, topic=name)
    make_again(server, name, 2)
    write(rows(spark, "b", "null"), server, topic=name)
    assert sorted(stored(server, name, 2)) == sorted(expected("b", 300))
    with pytest.raises(Exception, match="has no partition 2"):
        write(rows(spark, "c", "id % 5").coalesce(1), server, topic=name)
    assert len(stored(server, name, 2)) == 300  # nothing was sent of what is refused


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("where", ["option", "column"])
def test_a_topic_that_does_not_exist(spark: Any, server: str, where: str, transactional: bool) -> None:
    options = {"topic": "nowhere"} if where == "option" else {}
    if transactional:
        options["transactionalIdPrefix"] = f"p-{uuid.uuid4().hex[:8]}"
    with pytest.raises(Exception, match="topic: the cluster does not have 'nowhere' and does not create it"):
        write(rows(spark, "a", "null").selectExpr("*", "'nowhere' AS topic"), server, **options)
    assert ongoing(server, "p-") == []


# Transactions


def left_open(server: str, name: str, prefix: str, tasks: int) -> None:
    """What the tasks of a job leave whose driver is killed before it decides."""
    from kafkacodec.spark.live.producing import send_in_transaction
    from kafkacodec.spark.live.write_options import parse_sink_options
    from tests.unit.test_spark_writing import schema_of

    given = {"kafka.bootstrap.servers": server, "transactionalIdPrefix": prefix, "topic": name}
    options = parse_sink_options(given, schema_of("value string"))
    for task in range(tasks):
        send_in_transaction(iter([pa.record_batch({"value": [f"killed {task}"]})]), options, task)
    assert len(ongoing(server, prefix)) == tasks


def ongoing(server: str, prefix: str) -> list[str]:
    with kc.client.Admin(server) as admin:
        listed = admin.list_transactions(states=["Ongoing"])
    return [name for name in listed if name.startswith(prefix)]


def test_a_stream_goes_on_with_fewer_tasks_after_it_was_killed(spark: Any, server: str, tmp_path: Any) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    create(server, name)
    left_open(server, name, name, 6)
    spark.range(0, 50, 1, 1).selectExpr("concat('a ', id) AS value").write.parquet(str(tmp_path / "files"))
    source = spark.readStream.schema("value string").parquet(str(tmp_path / "files"))
    writer = source.writeStream.format("kafkabroker").option("checkpointLocation", str(tmp_path / "checkpoint"))
    given = {"kafka.bootstrap.servers": server, "transactionalIdPrefix": name, "topic": name}
    query = writer.options(**given).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert ongoing(server, name) == []
    assert sorted(stored(server, name, 2)) == sorted(expected("a", 50))


def test_a_batch_leaves_nothing_open_of_one_that_was_killed(spark: Any, server: str) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    create(server, name)
    left_open(server, name, name, 6)
    write(rows(spark, "a", "null").coalesce(1), server, topic=name, transactionalIdPrefix=name)
    assert ongoing(server, name) == []
    assert sorted(stored(server, name, 2)) == sorted(expected("a", 300))


def test_a_batch_of_which_one_task_fails_leaves_nothing_open(spark: Any, server: str) -> None:
    """The other one is sending, slowly, when Spark ends its process."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    create(server, name)
    with kc.client.Admin(server) as admin:
        admin.alter_client_quotas({(("client-id", name),): {"producer_byte_rate": 20_000}})

    def work(batches: Any) -> Any:
        (first,) = next(iter(batches)).column("id").to_pylist()
        end = time.monotonic() + 60
        while first == 0:
            if ongoing(server, name) or time.monotonic() > end:
                raise ZeroDivisionError("the task that fails")
            time.sleep(0.1)
        yield pa.record_batch({"value": [f"a {n}" for n in range(50_000)]})

    frame = spark.range(0, 2, 1, 2).mapInArrow(work, "value string")
    options = {"topic": name, "transactionalIdPrefix": name, "kafka.batch.size": "1000"}
    with pytest.raises(Exception, match="the task that fails"):
        write(frame, server, **options, **{"kafka.client.id": name})
    assert ongoing(server, name) == []
    assert stored(server, name, 2) == []
    write(rows(spark, "b", "null"), server, **options)
    assert sorted(stored(server, name, 2)) == sorted(expected("b", 300))


# Values


@pytest.mark.parametrize("kind", ["kafkabroker", "kafkalog"])
def test_the_time_that_means_none_is_refused(spark: Any, server: str, tmp_path: Any, kind: str) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    create(server, name)
    frame = spark.sql("SELECT 'a' AS value, timestamp_millis(-1) AS timestamp")
    options = {"topic": name}
    if kind == "kafkabroker":
        options |= {"kafka.bootstrap.servers": server, "includeTimestamp": "true"}
    writer = frame.write.format(kind).mode("append").options(**options)
    with pytest.raises(Exception, match=r"1969-12-31 23:59:59.999 is the mark for no timestamp"):
        writer.save(str(tmp_path / "logs") if kind == "kafkalog" else None)
    assert stored(server, name, 2) == []


# Without Spark: what it calls


def stream_reader(server: str, name: str, **options: str) -> BrokerStreamReader:
    given = {"kafka.bootstrap.servers": server, "subscribe": name, "startingOffsets": "earliest", **options}
    return BrokerStreamReader(parse_broker_options(given, streaming=True), ("value",))


def values(batches: Iterator[Any]) -> set[str]:
    return {row["value"].decode() for batch in batches for row in batch.to_pylist()}


def test_a_topic_that_grew_past_the_offset_of_an_earlier_one(server: str, topic: str) -> None:
    """It is known by its id, and the checkpoint says so until someone has decided."""
    strict, lenient = stream_reader(server, topic), stream_reader(server, topic, failOnDataLoss="false")
    limit = strict.getDefaultReadLimit()
    end = strict.latestOffset(strict.initialOffset(), limit)
    assert end == lenient.latestOffset(lenient.initialOffset(), limit)
    assert values(strict.read(strict.partitions(strict.initialOffset(), end)[0])) < expected("old", 300)
    make_again(server, topic)
    fill(server, topic, 400, "new")
    marked = {"offset": 200, "from": 0, "earlier": 150}
    later = strict.latestOffset(end, limit)
    assert later == lenient.latestOffset(end, limit) == {topic: {"0": marked, "1": marked}}
    for reader in (strict, stream_reader(server, topic)):  # the same query, and one that was started again
        with pytest.raises(kc.spark.OptionError, match=r"-0: it was read up to offset 150 before the topic was made"):
            reader.partitions(end, later)
    tasks = lenient.partitions(end, later)
    assert set().union(*(values(lenient.read(task)) for task in tasks)) == expected("new", 400)
    assert lenient.latestOffset(later, limit) == later
    assert [task.value for task in lenient.partitions(later, later)] == [()]
    fill(server, topic, 20, "more")
    assert lenient.latestOffset(later, limit) == {topic: {"0": 210, "1": 210}}


def test_a_topic_that_is_made_again_while_tasks_are_planned(server: str, topic: str, caplog: Any) -> None:
    """A stream reads all of it in the next micro-batch, so a task of this one reads nothing."""
    reader = stream_reader(server, topic, failOnDataLoss="false")
    limit = reader.getDefaultReadLimit()
    start = reader.initialOffset()
    end = reader.latestOffset(start, limit)
    planned = reader.partitions(start, end)
    make_again(server, topic)
    fill(server, topic, 400, "new")
    assert [values(reader.read(task)) for task in planned + reader.partitions(start, end)] == [set()] * 4
    assert f"{topic}-0: the topic was deleted and made again after offsets 0 to 149 were planned" in caplog.text
    again = reader.latestOffset(end, limit)
    assert set().union(*(values(reader.read(task)) for task in reader.partitions(end, again))) == expected("new", 400)


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_topic_that_is_deleted_after_planning(server: str, topic: str, caplog: Any, strict: str) -> None:
    """Brokers say so: a task does not wait for as long as for brokers that do not answer, a minute."""
    reader = stream_reader(server, topic, failOnDataLoss=strict)
    start = reader.initialOffset()
    (task, _) = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    with kc.client.Admin(server) as admin:
        admin.delete_topics(topic)
    said, begun = f"{topic}-0: the topic was deleted after offsets 0 to 149 were planned to be read", time.monotonic()
    if strict == "true":
        with pytest.raises(kc.MissingOffsets, match=said):
            values(reader.read(task))
    else:
        assert values(reader.read(task)) == set()
        assert said in caplog.text
    assert time.monotonic() - begun < 45


def test_a_topic_that_is_deleted_while_it_is_read(server: str, topic: str) -> None:
    """What is already fetched is given; then the task does not wait for `kafkaConsumer.pollTimeoutMs`, two minutes."""
    fill(server, topic, 40_000, "x" * 1000)  # 20 MB in each partition
    limits = {"kafka.prefetch.bytes": "1000000", "kafka.max.partition.fetch.bytes": "250000"}
    reader = stream_reader(server, topic, **limits)
    start = reader.initialOffset()
    (task, _) = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    batches = iter(reader.read(task))
    next(batches)
    with kc.client.Admin(server) as admin:
        admin.delete_topics(topic)
    begun = time.monotonic()
    with pytest.raises(kc.MissingOffsets, match=rf"{topic}-0: the topic was deleted after offsets \d+ to 20149 were"):
        values(batches)
    assert time.monotonic() - begun < 90


def test_a_topic_that_is_deleted_while_it_is_written(server: str, topic: str) -> None:
    """The task says so; the producer would wait for two minutes whether it comes back."""
    options = {"kafka.bootstrap.servers": server, "topic": topic, "kafka.linger.ms": "0"}
    parsed = parse_sink_options(options, StructType([StructField("value", StringType())]))

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": ["first"]})
        with kc.client.Admin(server) as admin:
            admin.delete_topics(topic)
        yield pa.record_batch({"value": ["second"] * 100})

    begun = time.monotonic()
    with pytest.raises(kc.spark.OptionError, match=f"topic: the cluster does not have '{topic}'"):
        send(rows(), parsed, 0)
    assert time.monotonic() - begun < 90
