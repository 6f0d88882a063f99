"""The source `kafkabroker` beside Spark's own Kafka source, on the same topics of a real broker."""

import json
import time

import pyarrow as pa
import pytest
from pyspark.sql.functions import spark_partition_id

import kafkacodec as kc
from kafkacodec.errors import MissingOffsets
from kafkacodec.spark.errors import LostOffsets
from kafkacodec.spark.live.planning import OffsetRange, as_json, from_json
from kafkacodec.spark.live.read_options import parse_broker_options
from kafkacodec.spark.live.reading import read_task
from kafkacodec.spark.live.streaming import BrokerStreamReader
from tests.integration.secure_kafka import PASSWORDS, SecureBroker
from tests.integration.spark_connector import add_connector

pytestmark = [pytest.mark.spark, pytest.mark.java]

NOON = 1_700_000_000_000
RECORDS = 600
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    broker = SecureBroker(tmp_path_factory.mktemp("broker"))
    broker.start()
    fill(broker.server)
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def session(spark):
    add_connector(spark)
    return spark


def fill(server):
    """Topics with nulls, headers, times; transactions, one of them aborted; and one with deleted records."""
    with kc.client.Admin(server) as admin:
        for name, partitions in {"orders": 3, "cut": 3, "grown": 3, "orders.old": 1, "moved": 1}.items():
            keep = {"retention.ms": "-1"}  # the records are of 2023
            admin.create_topics([kc.client.NewTopic(name, num_partitions=partitions, configs=keep)])
    with kc.client.Producer(server, batch_size=2000) as producer:
        for n in range(RECORDS):
            producer.send(
                "orders" if n % 7 else "orders.old",
                None if n % 11 == 0 else b"value %d" % n,
                key=None if n % 5 == 0 else b"key %d" % n,
                partition=n % 3 if n % 7 else 0,
                timestamp=NOON + 1000 * n,
                headers=[("a", b"1"), ("ü", None)] if n % 4 == 0 else (),
            )
            producer.send("cut", b"%d" % n, partition=n % 3)
    for n in range(4):
        with kc.client.Producer(server, transactional_id="mover") as producer:
            try:
                with producer.transaction():
                    for i in range(20):
                        producer.send("moved", b"%d %d" % (n, i))
                    producer.flush()
                    if n % 2:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                pass
    with kc.client.Admin(server) as admin:
        admin.delete_records({("cut", 0): 50, ("cut", 1): 60})


def of(*numbers, topic="orders"):
    return json.dumps({topic: {str(n): value for n, value in enumerate(numbers)}})


BATCHES = {
    "a topic": {"subscribe": "orders"},
    "topics": {"subscribe": "orders,orders.old", "includeHeaders": "true"},
    "pattern": {"subscribePattern": "orders.*"},
    "pattern of a part": {"subscribePattern": "rder"},
    "pattern with anchors": {"subscribePattern": "^orders$|^moved"},
    "partitions": {"assign": '{"orders": [2, 0]}'},
    "offsets": {"subscribe": "orders", "startingOffsets": of(7, -2, 100), "endingOffsets": of(90, 50, -1)},
    "from a time": {"subscribe": "orders", "startingTimestamp": str(NOON + 100_500)},
    "up to a time": {"subscribe": "orders", "endingTimestamp": str(NOON + 300_000)},
    "times": {
        "subscribe": "orders",
        "startingOffsetsByTimestamp": of(NOON, NOON + 10_001, NOON + 20_000),
        "endingOffsetsByTimestamp": of(NOON + 400_000, NOON + 900_000_000, NOON + 30_000),
    },
    "no record so late": {
        "subscribe": "orders",
        "startingTimestamp": str(NOON + 10**9),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "smaller tasks": {"subscribe": "orders", "maxRecordsPerPartition": "50"},
    "more tasks": {"subscribe": "orders", "minPartitions": "8"},
    "both": {"subscribe": "orders", "minPartitions": "9", "maxRecordsPerPartition": "100"},
    "all transactions": {"subscribe": "moved"},
    "committed transactions": {"subscribe": "moved", "kafka.isolation.level": "read_committed"},
    "deleted records": {"subscribe": "cut"},
    "a start that was deleted": {
        "subscribe": "cut",
        "startingOffsets": of(0, 70, 5, topic="cut"),
        "failOnDataLoss": "false",
        "kafkaConsumer.pollTimeoutMs": "3000",
    },
}


@pytest.mark.parametrize("options", BATCHES.values(), ids=BATCHES.keys())
def test_batches(session, broker, options):
    ours, theirs = (load(session.read, name, broker, options) for name in ("kafkabroker", "kafka"))
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)
    if "maxRecordsPerPartition" in options:  # Spark's own batches ignore it
        most = int(options["maxRecordsPerPartition"])
        counts = ours.groupBy("partition", spark_partition_id()).count().toArrow()["count"].to_pylist()
        assert max(counts) <= most
        assert len(counts) > 3
    elif "minPartitions" in options:
        assert ours.rdd.getNumPartitions() == theirs.rdd.getNumPartitions()


STREAMS = {
    "little by little": {
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "300",
        "includeHeaders": "true",
    },
    "offsets": {"assign": '{"orders": [0, 1, 2]}', "startingOffsets": of(7, -2, -1)},
    "from a time": {"subscribePattern": "orders.*", "startingTimestamp": str(NOON + 100_500)},
    "committed transactions": {
        "subscribe": "moved",
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
    },
    "nothing new": {"subscribe": "orders"},
}


@pytest.mark.parametrize("options", STREAMS.values(), ids=STREAMS.keys())
def test_streams(session, broker, options, tmp_path):
    found = [streamed(session, name, broker, options, tmp_path) for name in ("kafkabroker", "kafka")]
    assert found[0] == found[1]


def streamed(session, name, broker, options, directory):
    """The rows of a query that reads what is there, and its first and last offsets as the checkpoint has them."""
    place = directory / name
    stream = load(session.readStream, name, broker, options)
    writer = stream.writeStream.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    query = writer.format("parquet").start(str(place / "out"))
    assert query.awaitTermination(60)
    names = sorted((place / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    offsets = [json.loads(path.read_text().splitlines()[-1]) for path in names]
    written = session.read.schema(stream.schema).parquet(str(place / "out"))
    if len(offsets) == 1 and name == "kafkabroker":  # ours also has where the query started
        offsets = [as_json(from_json(offsets[0])[0])]
    return rows(written), len(offsets), offsets[-1]


def load(reader, name, broker, options):
    given = {"kafka.bootstrap.servers": broker.server, **options}
    return reader.format(name).options(**given).load()


def rows(frame):
    return frame.toArrow().sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])


# What Spark's own source does not have


def test_columns(session, broker):
    frame = load(session.read, "kafkabroker", broker, {"subscribe": "orders", "columns": "value,partition"})
    whole = load(session.read, "kafkabroker", broker, {"subscribe": "orders"}).select("value", "partition")
    assert frame.columns == ["value", "partition"]
    order = [("partition", "ascending"), ("value", "ascending")]
    assert frame.toArrow().sort_by(order) == whole.toArrow().sort_by(order)


def test_filters_are_pushed_down(session, broker):
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = load(session.read, "kafkabroker", broker, {"subscribe": "orders"})
        kept = frame.filter(f"partition = 1 AND timestamp >= timestamp_millis({NOON + 300_000}) AND offset < 150")
        found = rows(kept)
        assert kept.rdd.getNumPartitions() == 1
    finally:
        session.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    whole = rows(frame).to_pylist()
    limit = pa.scalar(1000 * (NOON + 300_000), pa.timestamp("us", "UTC")).as_py()
    expected = [r for r in whole if r["partition"] == 1 and r["timestamp"] >= limit and r["offset"] < 150]
    assert found.to_pylist() == expected != []


def test_filters_before_1970(session, broker):
    """To brokers, negative times mean the end, the beginning and others; to a filter, they are times."""
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = load(session.read, "kafkabroker", broker, {"subscribe": "orders"})
        counts = {frame.filter(f"timestamp >= timestamp_millis({-n})").count() for n in range(1, 7)}
        assert counts == {frame.count()} != {0}
    finally:
        session.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_tls_and_sasl(session, broker):
    user, password = "alice", PASSWORDS["alice"]
    secured = {
        "kafka.bootstrap.servers": broker.at("SASLTLS"),
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{user}" password="{password}";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(broker.authority.certificate),
        "subscribe": "orders",
    }
    ours, theirs = (load(session.read, name, broker, secured) for name in ("kafkabroker", "kafka"))
    assert rows(ours) == rows(theirs)
    wrong = {**secured, "kafka.sasl.jaas.config": secured["kafka.sasl.jaas.config"].replace(password, "guessed")}
    with pytest.raises(
        Exception, match=r"BrokerUnavailable: kafka.bootstrap.servers: .* refused the authent"
    ) as caught:
        load(session.read, "kafkabroker", broker, wrong).count()
    assert "guessed" not in str(caught.value)


ERRORS = {
    "no servers": ({"kafka.bootstrap.servers": "", "subscribe": "orders"}, "kafka.bootstrap.servers: missing"),
    "unreachable": (
        {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders", "fetchOffset.retryIntervalMs": "50"},
        "kafka.bootstrap.servers: 127.0.0.1:1: no broker can be connected to: 127.0.0.1:1: connection refused",
    ),
    "no topic": ({}, "subscribe: missing; set one of subscribe, subscribePattern and assign"),
    "two ways": ({"subscribe": "a", "assign": '{"a": [0]}'}, "assign: contradicts subscribe"),
    "unknown topic": ({"subscribe": "orders,nowhere"}, "subscribe: nowhere: the cluster does not have this topic"),
    "unknown partition": ({"assign": '{"orders": [0, 7]}'}, "assign: the cluster has no partition orders-7"),
    "misspelt": ({"subscribe": "orders", "failOnDataLos": "x"}, "unknown option; did you mean failOnDataLoss"),
    "not for batches": ({"subscribe": "orders", "maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger: only streams"),
    "latest": ({"subscribe": "orders", "startingOffsets": "latest"}, "'latest' would read nothing"),
    "some partitions": (
        {"subscribe": "orders", "startingOffsets": '{"orders": {"0": 1}}'},
        "startingOffsets: no value for the selected partitions orders-1, orders-2",
    ),
    "start after end": (
        {"subscribe": "orders", "startingOffsets": of(9, 9, 9), "endingOffsets": of(8, 10, 10)},
        "startingOffsets: 9 for orders-0 is after endingOffsets, 8",
    ),
    "deleted": (
        {"subscribe": "cut", "startingOffsets": of(0, 70, 5, topic="cut")},
        "failOnDataLoss: cut-0: offsets 0 to 49 were deleted before they were read; with failOnDataLoss=false",
    ),
    "beyond the end": (
        {"subscribe": "orders", "endingOffsets": of(1, 2, 100_000)},
        "failOnDataLoss: orders-2: offsets [0-9]+ to 99999 are after the end of the partition",
    ),
    "too late": (
        {"subscribe": "orders", "startingTimestamp": str(NOON + 10**9)},
        r"is at or after \d{4}-\d\d-\d\d .* UTC \(\d+ ms\);",
    ),
}


@pytest.mark.parametrize(("options", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_on_the_driver(session, broker, options, message):
    with pytest.raises(Exception, match=message) as caught:
        load(session.read, "kafkabroker", broker, options).rdd.getNumPartitions()
    assert "Traceback" not in str(caught.value)


# Without Spark: what it calls


def reader(broker, **options):
    given = {"kafka.bootstrap.servers": broker.server, "subscribe": "grown", **options}
    return BrokerStreamReader(parse_broker_options(given, streaming=True), ("partition", "offset", "value"))


def ranges(tasks):
    """Without the topics' ids, which are there."""
    found = [part for task in tasks for part in task.value]
    assert all(part.topic_id is not None for part in found)
    return [part[:4] for part in found]


def test_a_stream_starts_at_the_end_and_new_partitions_at_the_beginning(broker):
    stream = reader(broker)
    start = stream.initialOffset()
    new = {"offset": 0, "from": 0}
    assert start == {"grown": {"0": new, "1": new, "2": new}}
    with kc.client.Admin(broker.server) as admin:
        admin.create_partitions({"grown": 4})
    with kc.client.Producer(broker.server) as producer:
        for n in range(40):
            producer.send("grown", b"%d" % n, partition=3 if n < 30 else 0)
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert end == {"grown": {"0": {"offset": 10, "from": 0}, "1": new, "2": new, "3": 30}}
    tasks = stream.partitions(start, end)
    assert ranges(tasks) == [("grown", 0, 0, 10), ("grown", 3, 0, 30)]
    values = [row["value"] for task in tasks for batch in stream.read(task) for row in batch.to_pylist()]
    assert sorted(values, key=int) == [b"%d" % n for n in range(40)]
    assert stream.latestOffset(end, stream.getDefaultReadLimit()) == end
    assert stream.reportLatestOffset() == {"grown": {"0": 10, "1": 0, "2": 0, "3": 30}}


def test_the_first_micro_batch_is_the_same_one_if_it_is_repeated(broker):
    stream = reader(broker, subscribe="orders.old")
    end = stream.latestOffset({"orders.old": {"0": {"offset": 20, "from": 20}}}, stream.getDefaultReadLimit())
    number = end["orders.old"]["0"]["offset"]
    again = reader(broker, subscribe="orders.old", startingOffsets="latest")
    tasks = again.partitions(again.initialOffset(), end)
    assert ranges(tasks) == [("orders.old", 0, 20, number)]


def test_a_stream_waits_for_enough_offsets(broker):
    stream = reader(broker, subscribe="orders.old", minOffsetsPerTrigger="10000", maxTriggerDelay="300ms")
    before = {"orders.old": {"0": 0}}
    end = stream.latestOffset(before, stream.getDefaultReadLimit())  # the first does not wait
    assert end != before
    assert stream.latestOffset(before, stream.getDefaultReadLimit()) == before
    time.sleep(0.4)
    assert stream.latestOffset(before, stream.getDefaultReadLimit()) == end


def test_records_that_are_deleted_between_micro_batches(broker, caplog):
    before, after = {"cut": {"0": 10, "1": 100, "2": 0}}, {"cut": {"0": 200, "1": 200, "2": 0}}
    with pytest.raises(LostOffsets, match=r"^failOnDataLoss: cut-0: offsets 10 to 49 were deleted before"):
        reader(broker, subscribe="cut").partitions(before, after)
    lenient = reader(broker, subscribe="cut", failOnDataLoss="false")
    assert ranges(lenient.partitions(before, after)) == [("cut", 0, 50, 200), ("cut", 1, 100, 200)]
    assert "cut-0: offsets 10 to 49 were deleted" in caplog.text


def test_a_topic_that_was_deleted_or_is_shorter(broker, caplog):
    limit = reader(broker).getDefaultReadLimit()
    with pytest.raises(LostOffsets, match=r"^failOnDataLoss: cut-9: the partition was deleted; with failOnDataLoss"):
        reader(broker, subscribe="cut").latestOffset({"cut": {"0": 60, "9": 5}}, limit)
    with pytest.raises(LostOffsets, match=r"^failOnDataLoss: cut-0: it was read up to offset 900, and ends at 200"):
        reader(broker, subscribe="cut").latestOffset({"cut": {"0": 900}}, limit)
    lenient = reader(broker, subscribe="cut", failOnDataLoss="false")
    end = lenient.latestOffset({"cut": {"0": 900, "1": 200, "2": 200, "9": 5}}, limit)
    assert end == {"cut": {"0": {"offset": 200, "from": 50, "earlier": 900}, "1": 200, "2": 200}}
    assert ranges(lenient.partitions({"cut": {"0": 900, "1": 200, "2": 200}}, end)) == [("cut", 0, 50, 200)]
    assert [task.value for task in lenient.partitions({"cut": {"0": 900, "9": 5}}, {"cut": {"0": 200}})] == [()]
    assert "cut-9: the partition was deleted" in caplog.text


def test_records_that_are_deleted_after_planning(broker, caplog):
    wanted, names = OffsetRange("cut", 1, 30, 100), ("offset",)
    strict, lenient = (
        parse_broker_options(
            {"kafka.bootstrap.servers": broker.server, "subscribe": "cut", "failOnDataLoss": value}, streaming=False
        )
        for value in ("true", "false")
    )
    with pytest.raises(MissingOffsets, match=r"^cut-1: offsets 30 to 59 can no longer be read: .*=false reads"):
        list(read_task((wanted,), names, strict))
    found = [row["offset"] for batch in read_task((wanted,), names, lenient) for row in batch.to_pylist()]
    assert found == list(range(60, 100))
    assert "offsets 30 to 59 can no longer be read" in caplog.text
