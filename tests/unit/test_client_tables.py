"""Tables whose rows become batches of their own: their timestamps, the rows that errors name."""

from __future__ import annotations

import time

import pytest

import kafkacodec as kc
from kafkacodec.errors import EncodeError
from tests.patience import SOON
from tests.unit.test_client_producer_faces import unreached

pa = pytest.importorskip("pyarrow")

HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
OTHER_CHUNK = 1 << 17  # rows: the next ones are encoded with another record batch


@pytest.fixture(scope="module")
def kafka():
    with kc.broker.serve(topics={"one": 1, "three": 3}) as kafka:
        yield kafka


@pytest.fixture
def producer(kafka):
    with kc.client.Producer(kafka.bootstrap_servers) as producer:
        yield producer


@pytest.mark.parametrize(
    ("column", "given"),
    [
        (None, [None, None, None]),
        (pa.array([5, None, 7], pa.timestamp("ms")), [5, None, 7]),
        (pa.array([5_999_999, None, 7_000_000], pa.timestamp("ns", "UTC")), [5, None, 7]),
        (pa.array([5, None, 7], pa.int64()), [5, None, 7]),
        (pa.array([None, None, None], pa.timestamp("ms")), [None, None, None]),
    ],
    ids=["without", "ms", "ns", "int64", "nulls"],
)
def test_rows_without_a_timestamp_get_the_current_time(kafka, producer, column, given):
    rows = pa.table({"value": ["a", "b", "c"], "headers": pa.array([[], [], []], HEADERS)})
    if column is not None:
        rows = rows.append_column("timestamp", column)
    before = int(time.time() * 1000)
    (offsets,) = producer.send_columns(rows, topic="one").result(SOON).offsets["one", 0]
    after = int(time.time() * 1000)
    sent = [record for record in kafka.records("one") if record.offset >= offsets.first]
    assert [record.value for record in sent] == [b"a", b"b", b"c"]
    for record, expected in zip(sent, given, strict=True):
        if expected is None:
            assert before <= record.timestamp <= after
        else:
            assert record.timestamp == expected


@pytest.mark.parametrize("wrong", [0, 1, 4, OTHER_CHUNK + 1])
@pytest.mark.parametrize("columns", [(), ("topic",), ("partition",), ("topic", "partition")], ids=str)
def test_an_error_names_the_row_of_the_table(producer, columns, wrong):
    """Wherever topics and partitions have put it among others."""
    count = max(wrong + 1, 6)
    values = pa.array([b"v"] * wrong + [b"x" * 2_000_000] + [b"v"] * (count - wrong - 1))
    rows = pa.table({"value": values, "headers": pa.array([[]] * count, HEADERS)})
    if "topic" in columns:
        rows = rows.append_column("topic", pa.array([("three", "one")[n % 2] for n in range(count)]))
    if "partition" in columns:
        rows = rows.append_column("partition", pa.array([0 if n % 2 else 2 - n % 3 for n in range(count)], pa.int32()))
    with pytest.raises(EncodeError, match=rf"^records\[{wrong}\]: the row takes 20000\d\d bytes"):
        producer.send_columns(rows, topic=None if "topic" in columns else "three")


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_buffer_memory_counts_rows_as_large_as_they_are_before_compression(codec):
    """As much memory as batches compressed by LZ4 keep."""
    rows = pa.table({"value": [bytes(10_000)] * 300})
    with unreached(compression_type=codec, buffer_memory=20_000_000) as producer:
        producer.send_columns(rows, topic="t")
        assert 3_000_000 < producer.metrics()["producer.queue_bytes"] < 3_050_000
        producer.close(0)
