"""Small tables of a producer: their rows are gathered in the batches that records of `send` go into."""

from __future__ import annotations

import threading
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.client.producing._appending import FewRows
from kafkacodec.client.producing._row_cells import parts_of
from kafkacodec.errors import ClientClosed, EncodeError
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


def rows_of(model: ModelCluster, data: Any, **more: Any) -> FewRows:
    parts = parts_of(data)
    assert parts is not None
    return FewRows(model.queues, "t", parts, **more)


def add(model: ModelCluster, rows: FewRows) -> Any:
    """All rows, as producers add them."""
    topic = model.queues.topic("t")
    assert topic is not None
    while not rows.add():
        key, value = rows.pair()
        try:
            made, _ = model.queues.append(topic, rows.partition, key, value, rows.headers, 5)
        except EncodeError as error:
            raise rows.located(error) from None
        rows.took(made)
    return rows.finish()


def test_a_row_that_is_too_large_is_named_and_those_before_it_are_sent():
    model = ModelCluster(1, max_request_size=1000)
    with pytest.raises(EncodeError, match="exceeds its maximum size") as raised:
        add(model, rows_of(model, pa.table({"value": [b"a", b"b", b"x" * 2000, b"c"]})))
    assert raised.value.path == "records[2]"
    model.finish()
    assert [value for _, _, value in model.logs[0].records] == [b"a", b"b"]


@pytest.mark.parametrize("watched", [False, True])
def test_a_batch_that_is_split(watched):
    model = ModelCluster(1)
    model.forced[0] = [TOO_LARGE]
    model.produce(b"before")
    delivery = add(model, rows_of(model, pa.table({"value": [b"%d" % n for n in range(10)]})))
    told: list[Any] = []
    if watched:
        delivery.add_done_callback(told.append)
    while model.forced[0]:
        model.poll()
        model.answer(1)
    assert not delivery.done()
    assert delivery.error is None
    assert not told
    model.finish()
    assert told == [delivery] * watched
    assert delivery.done()
    ranges = delivery.result(0).offsets[("t", 0)]
    assert len(ranges) > 1
    assert [offset for one in ranges for offset in range(one.first, one.first + one.rows)] == [*range(1, 11)]


def test_rows_that_fail():
    model = ModelCluster(2)
    made = [add(model, rows_of(model, table(0, 10))) for _ in range(2)]
    made[0].add_done_callback(lambda delivery: told.append(delivery.error))
    told: list[Any] = []
    model.sender.discard(ClientClosed("discarded"))
    for delivery in made:
        assert delivery.done()
        assert isinstance(delivery.error, ClientClosed)
        with pytest.raises(ClientClosed, match="discarded"):
            delivery.result(0)
    assert [type(error) for error in told] == [ClientClosed]


def test_a_failure_is_told_before_the_other_rows_are_known():
    model = ModelCluster(2)
    rows = pa.table({"key": [b"%d" % n for n in range(20)], "value": ["v"] * 20})
    delivery = add(model, rows_of(model, rows))
    first, second = (queue.open for queue in model.queues.topics["t"].in_order)
    second.resolve(-1, -1, ClientClosed("one of two"))
    assert not delivery.done()
    assert isinstance(delivery.error, ClientClosed)
    assert repr(delivery) == f"<TableDelivery: {second.count} rows known, pending>"
    first.resolve(0, -1, None)
    assert delivery.done()


@pytest.mark.parametrize("known_before", [False, True])
def test_a_thread_that_waits_for_rows_of_two_batches(known_before):
    model = ModelCluster(2)
    rows = pa.table({"key": [b"%d" % n for n in range(20)], "value": ["v"] * 20})
    delivery = add(model, rows_of(model, rows))
    first, second = (queue.open for queue in model.queues.topics["t"].in_order)
    if known_before:
        first.resolve(7, -1, None)
        assert not delivery.done()
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(delivery.result(SOON)))
    waiting.start()
    while not delivery._outcome.waiters:
        threading.Event().wait(0.001)
    if not known_before:
        first.resolve(7, -1, None)
    assert not got
    second.resolve(40, -1, None)
    waiting.join(SOON)
    assert got[0].rows == 20
    assert got[0].offsets == {("t", 0): [(7, first.count)], ("t", 1): [(40, second.count)]}


def are_few(model: ModelCluster, rows: pa.Table) -> bool:
    topic, parts = model.queues.topic("t"), parts_of(rows)
    assert topic is not None
    return parts is not None and model.queues.are_few(topic, parts)


def test_which_tables_have_few_rows():
    model = ModelCluster(3)
    assert are_few(model, table(0, 256))
    assert not are_few(model, table(0, 257))
    assert not are_few(model, table(0, 0))
    for name, column in (("timestamp", [1]), ("headers", [[]]), ("partition", [0]), ("topic", ["t"])):
        assert not are_few(model, table(0, 1).append_column(name, pa.array(column)))
    assert not are_few(model, pa.table({"value": [5]}))
    large = pa.table({"value": [b"x" * 5000]})
    assert are_few(model, large)
    assert not are_few(ModelCluster(3, max_request_size=9000), large)
    topic = model.queues.topic("t")
    assert topic is not None
    topic.limit_batches(3000)
    assert not are_few(model, large)


def test_many_partitions_make_many_rows_few():
    """A batch for each partition of each table would have a row or two."""
    rows = pa.table({"key": [b"%d" % n for n in range(5000)], "value": [b"x" * 200] * 5000})
    model = ModelCluster(1000)
    assert are_few(model, rows)
    assert not are_few(model, rows.drop_columns(["key"]))
    # A key has up to four bytes. A batch's header and a request have 161.
    assert are_few(ModelCluster(1000, max_request_size=2 * 204 + 161), rows)
    assert not are_few(ModelCluster(1000, max_request_size=2 * 203 + 161), rows)


def test_a_misspelt_column_is_an_error_and_offsets_are_left_out():
    with kc.broker.serve(topics={"t": 1}) as broker, kc.client.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"known").result()
        for rows in (1, 300):
            for right, wrong in (("key", "ky"), ("value", "Value")):
                given = table(0, rows).rename_columns([wrong if name == right else name for name in ("key", "value")])
                with pytest.raises(EncodeError, match=f"^records.{wrong}: unknown column; did you mean '{right}'"):
                    producer.send_columns(given, topic="t")
            numbered = table(0, rows).append_column("offset", pa.array(range(rows)))
            assert producer.send_columns(numbered, topic="t").result(SOON).rows == rows
        with pytest.raises(EncodeError, match=r"^records.timestmap: unknown column; did you mean 'timestamp'\?$"):
            producer.send_columns(table(0, 1).append_column("timestmap", pa.array([1])), topic="t")


def test_rows_in_several_parts_are_counted_through():
    model = ModelCluster(1, max_request_size=1000)
    rows = pa.concat_tables([table(0, 3), table(3, 4), pa.table({"key": [b"k"], "value": ["x" * 2000]})])
    with pytest.raises(EncodeError) as raised:
        add(model, rows_of(model, rows))
    assert raised.value.path == "records[7]"
    assert add(model, rows_of(model, rows.slice(0, 7))).done() is False
    model.finish()
    assert [value for _, _, value in model.logs[0].records] == [b"%d" % n for n in (*range(7), *range(7))]


def test_parts_without_rows():
    model = ModelCluster(1)
    assert add(model, rows_of(model, pa.record_batch({"value": pa.array([], pa.binary())}))).result(0).rows == 0
    parts = [part for rows in (table(0, 0), table(0, 2), table(0, 0)) for part in parts_of(rows.combine_chunks()) or []]
    assert add(model, FewRows(model.queues, "t", parts)).done() is False
    model.finish()
    assert len(model.logs[0].records) == 2


def test_rows_wait_for_memory():
    """From where it is used up they are added one by one, by what waits."""
    model = ModelCluster(1, buffer_memory=2000)
    model.produce(b"open")
    rows = rows_of(model, pa.record_batch({"value": [b"x" * 100] * 50}))
    assert not rows.add()
    assert model.queues.full
    assert not rows.add()
    assert model.queues.bytes < 2200


def test_the_encoder_of_tables_takes_what_has_more_than_a_key_and_a_value():
    assert parts_of(pa.table({"value": ["a"], "offset": [5]})) is not None  # offsets are not sent
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
        assert parts_of(other) is None


def test_a_row_that_does_not_exist():
    (cells,) = parts_of(pa.record_batch({"value": ["a", None]})) or []
    assert [cells.pair(row) for row in range(2)] == [(None, b"a"), (None, None)]
    for row in (-1, 2):
        with pytest.raises(IndexError, match="the table has 2 rows"):
            cells.pair(row)


def test_rows_with_the_same_headers_and_partition():
    """As `produce` sends lines: the same as `send` with these arguments, however many rows there are."""
    model = ModelCluster(3)
    count = 5000
    data = pa.record_batch({"key": [b"%d" % n for n in range(count)], "value": [b"v%d" % n for n in range(count)]})
    delivery = add(model, rows_of(model, data, partition=2, headers=iter([("h", b"1")])))
    model.finish()
    assert [value for _, _, value in model.logs[2].records] == data["value"].to_pylist()
    assert delivery.done()
    assert delivery.result().rows == count
    with pytest.raises(EncodeError, match="has no partition 7") as raised:
        add(model, rows_of(model, data, partition=7))
    assert raised.value.path == "records[0].partition"
    with pytest.raises(EncodeError, match="headers must be pairs"):
        rows_of(model, data, headers=5)


def test_a_partitioner_of_the_application_chooses_for_rows_too():
    asked = []

    def last(key: bytes | None, every: Any, available: Any) -> int:
        asked.append(key)
        return int(every[-1])

    model = ModelCluster(3, partitioner=last)
    data = pa.record_batch({"key": [b"%d" % n for n in range(20)], "value": [b"v%d" % n for n in range(20)]})
    add(model, rows_of(model, data))
    model.finish()
    assert asked == data["key"].to_pylist()
    assert [value for _, _, value in model.logs[2].records] == data["value"].to_pylist()


def test_rows_between_records_of_another_thread():
    """A thread that sends adds to open batches without the lock, so also between the rows of a table."""
    model = ModelCluster(1)
    model.produce(b"before")
    rows = rows_of(model, pa.record_batch({"value": ["v"] * 5}))
    made = [model.produce(b"%d" % n) for n in range(6)]
    for n in (0, 1, 3, 4, 5):
        rows.took(made[n])
    delivery = rows.finish()
    model.finish()
    assert delivery.result(0).offsets == {("t", 0): [(1, 2), (4, 3)]}


def test_rows_of_two_tables_in_turns():
    model = ModelCluster(1)
    both = [rows_of(model, pa.record_batch({"value": ["v"] * 2})) for _ in range(2)]
    for rows in (*both, *both):
        rows.took(model.produce(b"v"))
    first, second = (rows.finish() for rows in both)
    model.finish()
    assert first.result(0).offsets == {("t", 0): [(0, 1), (2, 1)]}
    assert second.result(0).offsets == {("t", 0): [(1, 1), (3, 1)]}


@pytest.mark.parametrize("transactional", [False, True])
def test_tables_of_many_batches_come_in_order(transactional):
    """Also in a transaction, where they are added under a lock."""
    options: Any = {"transactional_id": "x"} if transactional else {}
    with kc.broker.serve(topics={"t": 1}) as broker:
        with kc.client.Producer(broker.bootstrap_servers, linger_ms=50, batch_size=200, **options) as producer:
            if transactional:
                producer.begin_transaction()
            made = [producer.send_columns(table(10 * n, 10), topic="t") for n in range(50)]
            if transactional:
                producer.commit_transaction()
            offsets = [delivery.result(SOON).offsets[("t", 0)] for delivery in made]
        assert [value.decode() for value in broker.records("t")["value"].tolist()] == [str(n) for n in range(500)]
    assert [one.first for found in offsets for one in found] == sorted(one.first for found in offsets for one in found)


async def test_tables_of_many_batches_from_a_coroutine():
    with kc.broker.serve(topics={"t": 1}) as broker:
        async with kc.client.aio.Producer(broker.bootstrap_servers, linger_ms=50, batch_size=200) as producer:
            made = [await producer.send_columns(table(10 * n, 10), topic="t") for n in range(50)]
            assert sum([(await delivery).rows for delivery in made]) == 500
            with pytest.raises(EncodeError) as raised:
                await producer.send_columns(pa.table({"value": ["a", "x" * 2_000_000]}), topic="t")
            assert raised.value.path == "records[1]"
        values = broker.records("t")["value"].tolist()
        assert [int(value) for value in values[:500]] == [*range(500)]
