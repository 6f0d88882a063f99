"""Small tables of a producer: their rows are gathered in the batches that records of `send` go into."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.client.aio.tables import RowSending
from kafkacodec.client.producing._appending import RowRuns
from kafkacodec.client.producing.few_rows import FewRows, add, are_few, cells_of, pieces
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
    sending = RowSending(model.queues, pa.record_batch({"value": [b"a", b"b", b"x" * 2000]}), "t", None, ())
    (part,) = sending.batches()
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
    cells = cells_of(rows)
    return list(pieces(cells, topic)) if cells is not None and are_few(cells, topic, most) else []


def values_of(part: FewRows) -> list[bytes | None]:
    return [part.rows.pair(row)[1] for row in range(part.start, part.end)]


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
    parts = few(rows, topic)
    assert [value for part in parts for value in values_of(part)] == rows["value"].to_pylist()
    assert [(part.start, part.end) for part in parts] == [(0, 2048), (2048, 4096), (4096, 5000)]
    assert not few(rows.drop_columns(["key"]), topic)
    assert few(rows, topic, 204)
    assert not few(rows, topic, 203)  # a key has up to four bytes


def test_rows_in_several_parts_are_counted_through():
    model = ModelCluster(1, max_request_size=1000)
    topic = model.queues.topic("t")
    assert topic is not None
    rows = pa.concat_tables([table(0, 3), table(3, 4), pa.table({"key": [b"k"], "value": ["x" * 2000]})])
    parts = few(rows, topic)
    assert [(part.start, part.end, part.before) for part in parts] == [(0, 3, 0), (0, 4, 3), (0, 1, 7)]
    *before, last = parts
    for part in before:
        add(part, model.queues, RowRuns(TableOutcome()))
    with pytest.raises(EncodeError) as raised:
        add(last, model.queues, RowRuns(TableOutcome()))
    assert raised.value.path == "records[7]"


def test_the_encoder_of_tables_takes_what_has_more_than_a_key_and_a_value():
    assert cells_of(pa.table({"value": ["a"], "offset": [5]})) is not None  # offsets are not sent
    for other in (
        pa.table([["a"], ["b"]], names=["value", "value"]),
        pa.table({"value": pa.array(["a"]).dictionary_encode()}),
        pa.table({"value": pa.array([b"a"], pa.binary(1))}),
        pa.table({"other": ["a"]}),
        pa.table({}),
        pa.concat_tables([table(0, 1)] * 17),
        kc.decode(kc.encode([(b"k", b"v")])),
        pa.table({"value": ["a"]}).to_reader(),
        5,
    ):
        assert cells_of(other) is None


def test_a_row_that_does_not_exist():
    (cells,) = cells_of(pa.record_batch({"value": ["a", None]})) or []
    assert [cells.pair(row) for row in range(2)] == [(None, b"a"), (None, None)]
    for row in (-1, 2):
        with pytest.raises(IndexError, match="the table has 2 rows"):
            cells.pair(row)


def test_rows_with_the_same_headers_and_partition():
    """As `produce` sends lines: the same as `send` with these arguments, however many rows there are."""
    model = ModelCluster(3)
    count = 5000
    data = pa.record_batch({"key": [b"%d" % n for n in range(count)], "value": [b"v%d" % n for n in range(count)]})
    sending = RowSending(model.queues, data, "t", 2, [("h", b"1")])
    assert not sending.missing()
    for part in sending.batches():
        sending.queue(part)
    delivery = sending.finish()
    model.finish()
    assert [value for _, _, value in model.logs[2].records] == data["value"].to_pylist()
    assert delivery.done()
    assert delivery.result().rows == count
    assert RowSending(model.queues, data, "t", 7, ()).missing() == {"t": 7}
    with pytest.raises(TypeError, match="more than a key and a value"):
        RowSending(model.queues, pa.record_batch({"value": ["a"], "timestamp": [1]}), "t", None, ())


def test_a_partitioner_of_the_application_chooses_for_rows_too():
    asked = []

    def last(key: bytes | None, every: Any, available: Any) -> int:
        asked.append(key)
        return int(every[-1])

    model = ModelCluster(3, partitioner=last)
    data = pa.record_batch({"key": [b"%d" % n for n in range(20)], "value": [b"v%d" % n for n in range(20)]})
    sending = RowSending(model.queues, data, "t", None, ())
    for part in sending.batches():
        sending.queue(part)
    model.finish()
    assert asked == data["key"].to_pylist()
    assert [value for _, _, value in model.logs[2].records] == data["value"].to_pylist()


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
