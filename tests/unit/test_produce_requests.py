"""Produce requests from a table: what is in them, what they may hold, and what cannot be one."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import kafkacodec as kc
from kafkacodec import messages, protocol
from tests.examples import examples

IDS = {name: uuid.UUID(int=number) for number, name in enumerate(("a", "b", "orders"), 1)}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def table_of(rows: list[dict[str, Any]], *, full: bool = True) -> pa.Table:
    fields = [("topic", pa.string()), ("partition", pa.int32()), ("key", pa.binary()), ("value", pa.binary())]
    if full:
        fields += [("timestamp", pa.timestamp("ms", "UTC")), ("headers", HEADERS)]
    return pa.Table.from_pylist(rows, pa.schema(fields))


def random_table(count: int, seed: int, *, full: bool = True) -> pa.Table:
    rnd = random.Random(seed)
    rows = []
    for n in range(count):
        row = {
            "topic": rnd.choice(["b", "a", "orders"]),
            "partition": rnd.choice([0, 1, 70_000]),
            "key": None if rnd.random() < 0.2 else b"k%d" % n,
            "value": None if rnd.random() < 0.1 else rnd.randbytes(rnd.randrange(60)),
        }
        if full:
            row["timestamp"] = None if rnd.random() < 0.2 else 1_700_000_000_000 + n
            row["headers"] = [{"key": "h", "value": b"%d" % n}] * rnd.randrange(3)
        rows.append(row)
    return table_of(rows, full=full)


def read_back(packed: protocol.PackedRequest, version: int) -> list[tuple[str, int, list[dict[str, Any]], int]]:
    """Topic, partition, rows and number of batches, from the bytes of the request."""
    frame = protocol.encode_request(packed.request, version, 7)
    _, request = protocol.decode_request(frame)
    assert isinstance(request, messages.ProduceRequest)
    names = {number: name for name, number in IDS.items()}
    found = []
    for topic in request.topic_data:
        name = names[topic.topic_id] if version >= 13 else topic.name
        for part in topic.partition_data:
            records = bytes(part.records)
            found.append((name, part.index, pa.table(kc.decode(records)).to_pylist(), len(kc.scan(records))))
    return found


def comparable(row: dict[str, Any]) -> tuple[Any, ...]:
    headers = [(h["key"], h["value"]) if isinstance(h, dict) else h for h in row.get("headers") or ()]
    return row["key"], row["value"], row.get("timestamp"), headers


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("version", messages.APIS[0].valid_versions)
def test_rows_come_back(version: int, codec: str) -> None:
    if codec == "zstd" and version < 7:
        with pytest.raises(ValueError, match="codec 'zstd' needs version 7"):
            protocol.produce_requests(random_table(1, 1), version, codec=codec)
        return
    table = random_table(500, version, full=version >= 3)
    rows = table.to_pylist()
    seen: dict[tuple[str, int], list[int]] = {}
    for packed in protocol.produce_requests(
        table, version, codec=codec, topic_ids=IDS, max_request_bytes=2500, max_batch_bytes=700
    ):
        assert len(packed.request.encode(version)) <= 2500
        parts = read_back(packed, version)
        assert [(topic, partition) for topic, partition, _, _ in parts] == list(packed.rows)
        for topic, partition, read, batches in parts:
            numbers = packed.rows[topic, partition].tolist()
            assert [comparable(row) for row in read] == [comparable(rows[n]) for n in numbers]
            if version >= 3:
                assert batches == 1
                assert [row["offset"] for row in read] == list(range(len(read)))
            seen.setdefault((topic, partition), []).extend(numbers)
    expected: dict[tuple[str, int], list[int]] = {}
    for n, row in enumerate(rows):
        expected.setdefault((row["topic"], row["partition"]), []).append(n)
    assert seen == expected


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (9, 2), (13, 2)])
def test_the_magic_of_each_version(version: int, magic: int) -> None:
    table = random_table(20, 3, full=False)
    for packed in protocol.produce_requests(table, version, topic_ids=IDS):
        for topic in packed.request.topic_data:
            for part in topic.partition_data:
                assert set(kc.scan(part.records)["magic"].tolist()) == {magic}


def test_order_of_topics_and_partitions() -> None:
    places = [("b", 2), ("a", 1), ("b", 0), ("b", 2)]
    table = table_of([{"topic": t, "partition": p, "value": b"%d" % n} for n, (t, p) in enumerate(places)])
    (packed,) = protocol.produce_requests(table, 9)
    assert {place: rows.tolist() for place, rows in packed.rows.items()} == {
        ("b", 0): [2], ("b", 2): [0, 3], ("a", 1): [1]
    }  # fmt: skip
    assert list(packed.rows) == [("b", 0), ("b", 2), ("a", 1)]
    assert [topic.name for topic in packed.request.topic_data] == ["b", "a"]
    assert (packed.request.acks, packed.request.timeout_ms, packed.request.transactional_id) == (-1, 30_000, None)


def test_a_full_request_does_not_starve_a_partition() -> None:
    """Each request starts with the partition that did not fit into the one before."""
    table = table_of([{"topic": "a", "partition": n % 3, "value": b"x" * 100} for n in range(12)])
    packed = list(protocol.produce_requests(table, 9, max_batch_bytes=200, max_request_bytes=450))
    assert [[partition for _, partition in one.rows] for one in packed] == [[0, 1], [0, 2], [1, 2]] * 2


@settings(deadline=None, max_examples=examples(60))
@given(
    sizes=st.lists(st.integers(0, 300), max_size=40),
    version=st.sampled_from([0, 2, 3, 8, 9, 13]),
    codec=st.sampled_from(["none", "gzip", "lz4", "snappy"]),
    max_request=st.integers(420, 2000),
    max_batch=st.integers(380, 2000),
)
def test_limits(sizes: list[int], version: int, codec: str, max_request: int, max_batch: int) -> None:
    """Random bytes: compression makes batches larger."""
    rnd = random.Random(len(sizes))
    table = table_of(
        [{"topic": "ab"[n % 2], "partition": n % 3, "value": rnd.randbytes(size)} for n, size in enumerate(sizes)],
        full=False,
    )
    count = 0
    for packed in protocol.produce_requests(
        table, version, codec=codec, topic_ids=IDS, max_request_bytes=max_request, max_batch_bytes=max_batch
    ):
        assert len(packed.request.encode(version)) <= max_request
        for topic in packed.request.topic_data:
            assert topic.partition_data
            for part in topic.partition_data:
                assert 0 < len(part.records) <= max_batch
        count += sum(len(rows) for rows in packed.rows.values())
    assert count == len(sizes)


def test_a_record_over_a_limit() -> None:
    rows = [{"topic": "a", "partition": n % 2, "value": b"x" * (600 if n == 5 else 10)} for n in range(8)]
    made = protocol.produce_requests(table_of(rows), 9, max_batch_bytes=300)
    with pytest.raises(kc.EncodeError, match=r"a record takes 67\d bytes in a batch, and max_batch_bytes leaves 300"):
        list(made)
    with pytest.raises(kc.EncodeError, match=r"max_request_bytes leaves 4[0-9][0-9]") as caught:
        list(protocol.produce_requests(table_of(rows), 9, max_request_bytes=500))
    assert caught.value.path == "records[5]"
    # Compressed, it fits.
    packed = list(protocol.produce_requests(table_of(rows), 9, max_batch_bytes=300, codec="gzip"))
    assert sum(len(numbers) for one in packed for numbers in one.rows.values()) == 8


def test_idempotent_and_transactional_producers() -> None:
    table = table_of([{"topic": "a", "partition": n % 2, "value": b"x" * 50} for n in range(20)])
    sequences = {("a", 1): 2**31 - 3}
    made = list(
        protocol.produce_requests(
            table, 9, producer_id=7, producer_epoch=2, sequences=sequences, transactional_id="t", max_batch_bytes=200
        )
    )
    next_of = {0: 0, 1: 2**31 - 3}
    for packed in made:
        assert packed.request.transactional_id == "t"
        for part in packed.request.topic_data[0].partition_data:
            (batch,) = kc.scan(part.records)
            assert (batch.producer_id, batch.producer_epoch, batch.is_transactional) == (7, 2, True)
            assert batch.base_sequence == next_of[part.index]
            next_of[part.index] = (next_of[part.index] + batch.count) % 2**31
    assert next_of == {0: 10, 1: 7}


def test_a_fetched_table_can_be_produced() -> None:
    """Offsets with gaps and columns that producing does not need are ignored."""
    response = messages.FetchResponse
    partition = response.PartitionData(partition_index=4, records=kc.encode([(b"k", b"v")] * 3, base_offset=90))
    topic = response.FetchableTopicResponse(topic="a", partitions=[partition])
    fetched = protocol.fetch_to_columns(response(responses=[topic]), batch_columns=True)
    (packed,) = protocol.produce_requests(fetched, 9)
    ((_, _, rows, _),) = read_back(packed, 9)
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [(n, b"k", b"v") for n in range(3)]


def test_a_misspelt_column_is_an_error() -> None:
    table = pa.table({"topic": ["a"], "partition": [0], "key": ["k"], "vaule": ["v"]})
    with pytest.raises(kc.EncodeError, match=r"records\.vaule: unknown column; did you mean 'value'\?"):
        protocol.produce_requests(table, 9)


def test_columns_of_other_types_and_in_chunks() -> None:
    def part(topics: list[str], partitions: list[int], values: list[str]) -> pa.Table:
        columns = [pa.array(topics).dictionary_encode(), pa.array(partitions, pa.uint8()), pa.array(values)]
        return pa.table(columns, ["topic", "partition", "value"])

    one, two = part(["a", "b"], [1, 0], ["x", "y"]), part(["b", "a"], [0, 1], ["z", "w"])
    (packed,) = protocol.produce_requests(pa.concat_tables([one, two, one.slice(0, 0)]), 3)
    assert {place: rows.tolist() for place, rows in packed.rows.items()} == {("a", 1): [0, 3], ("b", 0): [1, 2]}
    assert [[row["value"] for row in rows] for _, _, rows, _ in read_back(packed, 3)] == [[b"x", b"w"], [b"y", b"z"]]


def test_batches_that_compression_makes_larger() -> None:
    """They are written without it, from chunks of any size."""
    rnd = random.Random(4)
    rows = [{"topic": "a", "partition": n % 2, "value": rnd.randbytes(20)} for n in range(300)]
    pieces = [table_of(rows[at : at + 7], full=False) for at in range(0, 300, 7)]
    made = list(
        protocol.produce_requests(
            pa.concat_tables(pieces), 9, codec="gzip", max_batch_bytes=150, producer_id=1, producer_epoch=0
        )
    )
    sequence = {0: 0, 1: 0}
    for packed in made:
        for part in packed.request.topic_data[0].partition_data:
            (batch,) = kc.scan(part.records)
            assert (batch.codec, batch.base_sequence) == ("none", sequence[part.index])
            sequence[part.index] += batch.count
        for _, partition, read, _ in read_back(packed, 9):
            assert [row["value"] for row in read] == [rows[n]["value"] for n in packed.rows["a", partition].tolist()]
    assert sequence == {0: 150, 1: 150}


def test_no_rows_no_requests() -> None:
    assert list(protocol.produce_requests(table_of([]), 9)) == []


ROW = {"topic": "a", "partition": 0, "value": b"v"}


@pytest.mark.parametrize(
    ("changed", "path", "reason"),
    [
        ({"topic": None}, "records[1].topic", "topic is null"),
        ({"partition": None}, "records[1].partition", "partition is null"),
        ({"partition": -2}, "records[1].partition", "a partition is negative"),
        ({"topic": ""}, "records[1].topic", "1 to 249 bytes"),
        ({"topic": "t" * 250}, "records[1].topic", "1 to 249 bytes"),
    ],
)
def test_rows_that_cannot_be_produced(changed: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(kc.EncodeError, match=reason) as caught:
        protocol.produce_requests(table_of([ROW, {**ROW, **changed}]), 9)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("columns", "path"),
    [
        ({"partition": [0], "value": [b"v"]}, "records.topic"),
        ({"topic": ["a"], "value": [b"v"]}, "records.partition"),
        ({"topic": ["a"], "partition": [0]}, "records"),
        ({"topic": [1], "partition": [0], "value": [b"v"]}, "records.topic"),
        ({"topic": ["a"], "partition": ["0"], "value": [b"v"]}, "records.partition"),
        ({"topic": ["a"], "partition": [1 << 40], "value": [b"v"]}, "records.partition"),
    ],
)
def test_tables_that_cannot_be_produced(columns: dict[str, Any], path: str) -> None:
    with pytest.raises(kc.EncodeError) as caught:
        protocol.produce_requests(pa.table(columns), 9)
    assert caught.value.path == path


def test_what_a_version_cannot_represent() -> None:
    """The error names the row of the table, not that of the partition."""
    rows = [{**ROW, "partition": n % 2, "headers": [{"key": "h", "value": b""}] * (n == 5)} for n in range(8)]
    with pytest.raises(kc.EncodeError, match="no headers") as caught:
        list(protocol.produce_requests(table_of(rows), 2))
    assert caught.value.path == "records[5]"
    (packed,) = protocol.produce_requests(table_of(rows), 2, drop_unsupported=True)
    assert sum(map(len, packed.rows.values())) == 8


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"version": 14}, "version must be from 0 to 13"),
        ({"version": 13}, "no id of topic 'a' in topic_ids"),
        ({"acks": 2}, "acks must be from -1 to 1"),
        ({"codec": "lz5"}, "codec must be"),
        ({"max_batch_bytes": 0}, "max_batch_bytes is 0"),
        ({"max_request_bytes": -1}, "max_request_bytes is -1"),
        ({"transactional_id": "t"}, "need a producer_id"),
        ({"producer_id": 1}, "producer_id needs a producer_epoch"),
        ({"producer_id": 1, "producer_epoch": 0, "acks": 1}, "an idempotent producer needs acks -1, not 1"),
        ({"producer_id": 1, "producer_epoch": 0, "version": 2}, "magic 1 have no producer_id"),
        ({"producer_id": 1, "producer_epoch": 0, "sequences": {("a", 0): -1}}, "must be from 0"),
        ({"version": 2, "transactional_id": "t", "producer_id": 1}, "transactional_id needs version 3"),
    ],
)
def test_wrong_options(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        protocol.produce_requests(table_of([ROW]), **{"version": 9, **options})


def test_wrong_types() -> None:
    with pytest.raises(TypeError, match="records must be an Arrow table, not list"):
        protocol.produce_requests([(b"k", b"v")], 9)
    with pytest.raises(TypeError, match="unknown option 'max_batch_byte'; did you mean 'max_batch_bytes'"):
        protocol.produce_requests(table_of([ROW]), 9, max_batch_byte=1)  # type: ignore[call-arg]
