"""Small tables of a producer: their rows are gathered in the batches that records of `send` go into."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.client.aio.tables import TableSending
from kafkacodec.client.producing._appending import RowRuns
from kafkacodec.client.producing.few_rows import FewRows, add, rows_of
from kafkacodec.client.producing.outcome import TableOutcome
from kafkacodec.errors import EncodeError
from tests.model_producer import TOO_LARGE, ModelCluster
from tests.patience import SOON


def table(first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table({"key": [b"%d" % (n % 7) for n in numbers], "value": [str(n) for n in numbers]})


def test_rows_are_gathered_in_order_and_each_table_knows_its_own():
    partitions, sizes = 4, [10, 1, 300, 10, 0, 256, 10]  # 300 rows are encoded as a whole
    with kc.broker.serve(topics={"t": partitions}) as broker:
        with kc.client.Producer(broker.bootstrap_servers, linger_ms=50) as producer:
            producer.send("t", b"known").result()
            deliveries: list[tuple[int, int, Any]] = []
            first = 0
            for size in sizes:
                deliveries.append((first, size, producer.send_columns(table(first, size), topic="t")))
                first += size
                deliveries.append((first, 1, producer.send("t", str(first), key=b"%d" % (first % 7))))
                first += 1
            results = [(start, size, delivery.result(SOON)) for start, size, delivery in deliveries]
            batches = producer.metrics()["producer.batches"]
        with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", number) for number in range(partitions)])
            records = [record for record in islice(consumer, first + 1) if record.value != b"known"]
    assert batches < 40
    of_key: dict[bytes, list[int]] = {}
    for record in records:
        of_key.setdefault(record.key, []).append(int(record.value))
    assert {key: sorted(numbers) for key, numbers in of_key.items()} == of_key
    assert sorted(chain.from_iterable(of_key.values())) == list(range(first))
    places = {int(record.value): ("t", record.partition, record.offset) for record in records}
    for start, size, result in results:
        expected = {places[n] for n in range(start, start + size)}
        if isinstance(result, kc.client.RecordMetadata):
            assert {result[:3]} == expected
        else:
            ranges = [(*place, one) for place, found in result.offsets.items() for one in found]
            assert {(name, number, one.first + i) for name, number, one in ranges for i in range(one.rows)} == expected
            assert result.rows == size


def test_a_row_that_is_too_large_is_named():
    model = ModelCluster(1, max_request_size=1000)
    rows = pa.table({"value": [b"a", b"x" * 2000, b"c"]})
    topic = model.queues.topic("t")
    assert topic is not None
    (part,) = few(rows, topic)
    with pytest.raises(EncodeError, match="exceeds its maximum size") as raised:
        add(part, model.queues, RowRuns(TableOutcome()))
    assert raised.value.path == "records[1]"


def test_rows_before_one_that_fails_are_sent():
    model = ModelCluster(1, max_request_size=1000)
    sending = TableSending(model.queues, model.settings, pa.table({"value": [b"a", b"b"]}), "t")
    (part,) = sending.batches()
    part.values.append(b"x" * 2000)
    with pytest.raises(EncodeError):
        sending.queue(part)
    assert sending.has_batches  # so that the driver is woken
    model.finish()
    assert [value for _, _, value in model.logs[0].records] == [b"a", b"b"]


def test_a_batch_that_is_split():
    model = ModelCluster(1)
    topic = model.queues.topic("t")
    assert topic is not None
    outcome = TableOutcome()
    model.forced[0] = [TOO_LARGE]
    model.produce(b"before")
    (part,) = few(pa.table({"value": [b"%d" % n for n in range(10)]}), topic)
    runs = RowRuns(outcome)
    add(part, model.queues, runs)
    runs.tell()
    outcome.finish()
    while model.forced[0]:
        model.poll()
        model.answer(1)
    assert not outcome._known(0)
    model.finish()
    assert outcome._known(0)
    parts = sorted(one for one in outcome.parts if one.end > one.first)
    assert len(parts) > 1
    assert [row for one in parts for row in range(one.first, one.end)] == list(range(10))
    assert {one.offset - one.first for one in parts} == {1}


def few(rows: pa.Table, topic: Any, most: int = 10**6) -> list[FewRows]:
    return rows_of(rows, rows.column_names, topic, most) or []


def test_which_tables_have_few_rows():
    topic = ModelCluster(3).queues.topic("t")
    assert topic is not None
    assert few(table(0, 256), topic)
    assert not few(table(0, 257), topic)
    assert not few(table(0, 0), topic)
    for name, column in (("timestamp", [1]), ("headers", [[]]), ("partition", [0]), ("topic", ["t"])):
        assert not few(table(0, 1).append_column(name, pa.array(column)), topic)
    assert not few(pa.table({"value": [5]}), topic)
    large = pa.table({"value": [b"x" * 5000]})
    assert few(large, topic)
    assert not few(large, topic, 4000)
    topic.limit_batches(3000)
    assert not few(large, topic)


def test_many_partitions_make_many_rows_few():
    """A batch for each partition of each table would have a row or two."""
    topic = ModelCluster(1000).queues.topic("t")
    assert topic is not None
    rows = pa.table({"key": [b"%d" % n for n in range(5000)], "value": [b"x" * 200] * 5000})
    pieces = few(rows, topic)
    assert [value for piece in pieces for value in piece.values] == rows["value"].to_pylist()
    assert [piece.first for piece in pieces] == [0, 2048, 4096]
    assert not few(rows.drop_columns(["key"]), topic)
    assert not few(rows, topic, 100_000)


def test_rows_between_records_of_another_thread():
    """A thread that sends adds to open batches without the lock, so also between the rows of a table."""
    model = ModelCluster(1)
    topic = model.queues.topic("t")
    assert topic is not None
    model.produce(b"before")
    outcome = TableOutcome()
    runs = RowRuns(outcome)
    made = [model.produce(b"%d" % n) for n in range(6)]
    for n in (0, 1, 3, 4, 5):
        runs.add(made[n])
    runs.tell()
    outcome.finish()
    model.finish()
    assert outcome._known(0)
    parts = sorted(one for one in outcome.parts if one.end > one.first)
    assert [(one.first, one.end, one.offset) for one in parts] == [(0, 2, 1), (2, 5, 4)]
