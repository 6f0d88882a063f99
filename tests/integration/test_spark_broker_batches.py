"""Micro-batches that are written to a real broker in transactions, by drivers that are killed: each record once.

What Spark's tasks and driver call, in processes of its own, without Spark.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.spark.live import micro_batches
from kafkacodec.spark.live.micro_batches import MicroBatch
from kafkacodec.spark.live.producing import Sent, send_in_transaction
from kafkacodec.spark.live.write_options import SinkOptions, parse_sink_options
from tests.integration.kafka_jvm import Broker
from tests.integration.test_spark_kills import ended, in_a_child
from tests.unit.test_spark_writing import schema_of

pytestmark = [pytest.mark.spark, pytest.mark.java]

TASKS, ROWS = 3, 20
QUERY = "c8a5e5a0-0b5a-4b0e-9d0c-0d6b5a0c1e7f"  # of the micro-batches
SCHEMA = schema_of("topic string, partition int, value binary")


@pytest.fixture(scope="module")
def server(plain_broker: Broker) -> str:
    return plain_broker.server


@pytest.fixture
def options(server: str) -> SinkOptions:
    """Of a sink for a new topic with four partitions."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    with kc.client.Admin(server) as admin:
        admin.create_topics([kc.client.NewTopic(name, num_partitions=4)])
    given = {"kafka.bootstrap.servers": server, "transactionalIdPrefix": name, "topic": name}
    return parse_sink_options(given, SCHEMA, streaming=True)


def values(number: int) -> list[bytes]:
    return [b"%d-%d" % (number, n) for n in range(TASKS * ROWS)]


def run(options: SinkOptions, number: int, tasks: int = TASKS) -> list[Sent]:
    """The tasks of a micro-batch; each partition gets records of several."""
    sent = []
    for task in range(tasks):
        if micro_batches.is_decided(options, MicroBatch(QUERY, number)):
            sent.append(Sent(task, 0, None, QUERY, repeated=True))
            continue
        own = values(number)[task * ROWS : (task + 1) * ROWS]
        places = pa.array([n % 4 if n % 5 else None for n in range(ROWS)], pa.int32())
        batch = pa.record_batch({"topic": pa.nulls(ROWS, pa.string()), "partition": places, "value": pa.array(own)})
        sent.append(send_in_transaction(iter([batch, batch.slice(0, 0)]), options, task))
    return sent


def whole(options: SinkOptions, number: int) -> None:
    micro_batches.commit(options, run(options, number), MicroBatch(QUERY, number))


def found(server: str, topic: str) -> Counter[bytes]:
    """How often a consumer of what was committed gets each value, up to the ends of the log."""
    consumer = kc.client.Consumer(
        bootstrap_servers=server, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    with consumer:
        consumer.assign([(topic, n) for n in range(4)])
        ends = consumer.end_offsets([(topic, n) for n in range(4)])
        with kc.client.Admin(server) as admin:
            logs = admin.list_offsets({(topic, n): "latest" for n in range(4)})
        assert {n: end for (_, n), end in ends.items()} == {p.partition: o.offset for p, o in logs.items()}, "open"
        found: Counter[str] = Counter()
        while any(consumer.position(*place) < end for place, end in ends.items()):
            for chunk in consumer.columns(timeout=0.1):
                found.update(pa.table(chunk)["value"].to_pylist())
        return found


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before_the_decision(admin: type[kc.client.Admin]) -> None:
    admin.alter_group_offsets = lambda *_, **__: die()  # type: ignore[method-assign]


def after_the_decision(admin: type[kc.client.Admin]) -> None:
    admin.end_transactions = lambda *_, **__: die()  # type: ignore[method-assign]


def after_the_first_transaction(admin: type[kc.client.Admin]) -> None:
    ordinary = admin.end_transactions

    def end(self: kc.client.Admin, prepared: list[Any], **options: Any) -> None:
        ordinary(self, prepared[:1], **options)
        die()

    admin.end_transactions = end  # type: ignore[method-assign, assignment]


def after_all(admin: type[kc.client.Admin]) -> None:
    ordinary = admin.end_transactions

    def end(self: kc.client.Admin, prepared: list[Any], **options: Any) -> None:
        ordinary(self, prepared, **options)
        die()

    admin.end_transactions = end  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("when", [before_the_decision, after_the_decision, after_the_first_transaction, after_all])
def test_a_killed_driver(server: str, options: SinkOptions, when: Callable[[Any], None]) -> None:
    topic = str(options.topic)
    whole(options, 0)

    def killed() -> None:
        sent = run(options, 1)
        when(kc.client.Admin)
        micro_batches.commit(options, sent, MicroBatch(QUERY, 1))

    assert ended(in_a_child(killed)) == -signal.SIGKILL
    for number in (1, 2, 2):  # Spark runs the last one again; its number of tasks may be another
        whole(options, number)
    assert found(server, topic) == Counter(value for number in range(3) for value in values(number))


def test_a_killed_task(server: str, options: SinkOptions) -> None:
    def killed() -> None:
        run(options, 0, tasks=2)
        die()

    assert ended(in_a_child(killed)) == -signal.SIGKILL
    whole(options, 0)
    assert found(server, str(options.topic)) == Counter(values(0))


def test_a_failed_micro_batch_is_aborted(server: str, options: SinkOptions) -> None:
    run(options, 0, tasks=2)
    micro_batches.abort(options, MicroBatch(QUERY, 0))
    assert not found(server, str(options.topic))
    whole(options, 0)
    assert found(server, str(options.topic)) == Counter(values(0))


def test_a_micro_batch_whose_decision_was_not_answered(server: str, options: SinkOptions) -> None:
    """Spark aborts what failed, which does not reach the transactions of a decision that brokers have."""
    sent = run(options, 0)
    ordinary = kc.client.Admin.alter_group_offsets

    def unanswered(*arguments: Any, **given: Any) -> None:
        ordinary(*arguments, **given)
        raise kc.DeadlineExceeded("no answer")

    kc.client.Admin.alter_group_offsets = unanswered  # type: ignore[method-assign, assignment]
    try:
        with pytest.raises(kc.DeadlineExceeded):
            micro_batches.commit(options, sent, MicroBatch(QUERY, 0))
    finally:
        kc.client.Admin.alter_group_offsets = ordinary  # type: ignore[method-assign]
    micro_batches.abort(options, MicroBatch(QUERY, 0))
    whole(options, 0)
    assert found(server, str(options.topic)) == Counter(values(0))


def test_a_prefix_that_belongs_to_something_else(server: str, options: SinkOptions) -> None:
    """A new checkpoint counts from 0 again, an old one goes back: neither may be taken for what was written before."""
    group, topic = str(options.transactional_id_prefix), str(options.topic)
    for number in range(3):
        whole(options, number)
    with pytest.raises(kc.spark.OptionError, match=f"{group!r} belongs to the query {QUERY}, this one is another:"):
        micro_batches.is_decided(options, MicroBatch("another", 0))
    with pytest.raises(kc.spark.OptionError, match=r"micro-batch 1 of .* is to be written, but 2 was written before"):
        micro_batches.is_decided(options, MicroBatch(QUERY, 1))
    with kc.client.Admin(server) as admin:
        admin.delete_groups([group])
        admin.alter_group_offsets(group, {(topic, 1): kc.client.GroupOffset(17)})
    with pytest.raises(kc.spark.OptionError, match=f"the group {group!r} has offsets of consumers; use another prefix"):
        micro_batches.is_decided(options, MicroBatch(QUERY, 3))


def test_a_transaction_that_was_ended_meanwhile(server: str, options: SinkOptions) -> None:
    """Before the decision the micro-batch can be sent again; after it, the loss is told, also by the next run."""
    sent = run(options, 0)
    with kc.client.Admin(server) as admin:
        admin.fence_producers([f"{options.topic}-1"])
        with pytest.raises(kc.KafkaCodecError, match=f"transaction '{options.topic}-1' has ended before"):
            micro_batches.commit(options, sent, MicroBatch(QUERY, 0))
        sent = run(options, 0)
        ordinary = micro_batches._require_open
        micro_batches._require_open = lambda *_: admin.fence_producers([f"{options.topic}-2"])
        try:
            with pytest.raises(kc.KafkaCodecError, match="1 of its transactions ended otherwise"):
                micro_batches.commit(options, sent, MicroBatch(QUERY, 0))
        finally:
            micro_batches._require_open = ordinary
        with pytest.raises(kc.KafkaCodecError, match=f"otherwise.*{options.topic}-2. Consumers.*delete the group"):
            whole(options, 0)
        admin.delete_groups([str(options.topic)])
    whole(options, 0)
    counts = found(server, str(options.topic))
    assert counts.keys() == {*values(0)}
    assert all(counts[value] == 2 for value in values(0)[: 2 * ROWS])
    assert all(counts[value] == 1 for value in values(0)[2 * ROWS :])


def test_an_empty_micro_batch(server: str, options: SinkOptions) -> None:
    micro_batches.commit(options, [send_in_transaction(iter([]), options, 0)], MicroBatch(QUERY, 0))
    micro_batches.commit(options, [], MicroBatch(QUERY, 1))
    assert not found(server, str(options.topic))
