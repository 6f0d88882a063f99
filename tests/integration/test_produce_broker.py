"""A real broker takes the Produce requests made from a table, in every version it has, and returns the rows."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafkacodec import messages, protocol
from tests.integration.kafka_jars import RELEASES
from tests.integration.kafka_jvm import Broker
from tests.integration.test_protocol_broker import Client, create_topic, retried

pytestmark = [pytest.mark.java, pytest.mark.slow]

COLUMNS = ["topic", "partition", "timestamp", "key", "value", "headers"]


@pytest.fixture(scope="module", params=RELEASES)
def broker(request: Any, tmp_path_factory: Any) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("broker"), request.param)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    made = Client(broker.server)
    yield made
    made.socket.close()


def rows_of(name: str, count: int, seed: int, *, headers: bool = True) -> pa.Table:
    rnd = random.Random(seed)
    rows = [
        {
            "topic": name,
            "partition": rnd.randrange(2),
            "timestamp": 1_700_000_000_000 + n,
            "key": None if rnd.random() < 0.2 else b"k%d" % n,
            "value": rnd.randbytes(rnd.randrange(80)),
            "headers": [("h", b"%d" % n)] * (rnd.randrange(3) if headers else 0),
        }
        for n in range(count)
    ]
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    kinds = [pa.string(), pa.int32(), pa.timestamp("ms", "UTC"), pa.binary(), pa.binary(), pairs]
    columns = [pa.array([row[column] for row in rows], kind) for column, kind in zip(COLUMNS, kinds, strict=True)]
    return pa.table(columns, COLUMNS)


def send(client: Client, packed: protocol.PackedRequest, version: int, base: dict[tuple[str, int], int]) -> None:
    """Every partition without an error, at the offset after the rows that it had."""
    response = client.ask(packed.request, version)
    (topic,) = response.responses  # the broker lists its partitions in an order of its own
    parts = {part.index: part for part in topic.partition_responses}
    assert len(parts) == len(packed.rows)
    for place, numbers in packed.rows.items():
        part = parts[place[1]]
        assert part.error_code == 0
        assert part.base_offset == base.get(place, 0)
        base[place] = part.base_offset + len(numbers)


def everything(client: Client, name: str, topic_id: uuid.UUID, **options: Any) -> pa.Table:
    """All rows of both partitions, in pieces, each from the next offset of the last."""
    found = []
    version = client.connection.version_of(1)
    asked = messages.FetchRequest
    for number in (0, 1):
        offset = 0
        while True:
            part = asked.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=2000)
            topic = asked.FetchTopic(topic_id=topic_id, partitions=[part])
            isolation = int("isolation_level" in options)
            request = asked(max_wait_ms=10, min_bytes=0, isolation_level=isolation, topics=[topic])
            response = client.ask(request, version)
            table = protocol.fetch_to_columns(response, topic_names={topic_id: name}, start_offset=offset, **options)
            (read,) = table.partitions
            if read.next_offset is None:
                break
            offset = read.next_offset
            found.append(pa.table(table).select(COLUMNS))
    return pa.concat_tables(found)


def versions_of(client: Client) -> list[int]:
    """Kafka 4 lists versions 0 to 2 for clients that need them listed, and closes the connection (KAFKA-18659)."""
    listed = client.connection.peer_versions
    first = 0 if listed[1].start == 0 else 3
    return [version for version in messages.APIS[0].valid_versions if version in listed[0] and version >= first]


def test_every_version_that_the_broker_takes(client: Client) -> None:
    tried = versions_of(client)
    assert len(tried) > 5
    for version in tried:
        name = f"made-{version}-{uuid.uuid4().hex}"
        topic_id = create_topic(client, name)
        tables = []
        base: dict[tuple[str, int], int] = {}
        for codec in ["none", "gzip", "snappy", "lz4", *["zstd"] * (version >= 7)]:
            tables.append(rows_of(name, 100, len(tables), headers=version >= 3))
            sent = list(
                protocol.produce_requests(
                    tables[-1],
                    version,
                    codec=codec,
                    topic_ids={name: topic_id},
                    max_batch_bytes=1000,
                    drop_unsupported=version < 3,
                )
            )
            assert len(sent) > 2
            for packed in sent:
                send(client, packed, version, base)
        table = pa.concat_tables(tables)
        expected = table.drop_columns("timestamp") if version < 2 else table
        read = everything(client, name, topic_id).select(expected.column_names)
        order = np.argsort(table["partition"].to_numpy(), kind="stable")
        assert read.to_pylist() == expected.take(order).to_pylist()


def test_an_idempotent_producer(client: Client) -> None:
    """The broker checks the sequence numbers of several batches, and drops one that it has already."""
    name = f"once-{uuid.uuid4().hex}"
    topic_id = create_topic(client, name)
    producer = retried(
        lambda: client.ask(messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=30000), 4)
    )
    table = rows_of(name, 150, 1)
    base: dict[tuple[str, int], int] = {}
    sequences: dict[tuple[str, int], int] = {}
    for part in (table.slice(0, 100), table.slice(100)):
        for packed in protocol.produce_requests(
            part, 9, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch, sequences=sequences,
            max_batch_bytes=1500,
        ):  # fmt: skip
            send(client, packed, 9, base)
            again = client.ask(packed.request, 9)
            assert {part.error_code for part in again.responses[0].partition_responses} == {0}
        sequences = dict(base)
    assert sum(base.values()) == len(everything(client, name, topic_id)) == 150


def begun(client: Client, transactional_id: str, name: str) -> Any:
    """A producer with a new epoch, and a transaction of it with both partitions of the topic."""
    initial = messages.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=30000)
    producer = retried(lambda: client.ask(initial, 4))
    adding = messages.AddPartitionsToTxnRequest
    add = adding(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[adding.AddPartitionsToTxnTopic(name=name, partitions=[0, 1])],
    )
    retried(lambda: client.ask(add, 3).results_by_topic_v3_and_below[0].results_by_partition[0], "partition_error_code")
    return producer


def test_a_transactional_producer(client: Client) -> None:
    """A transaction of several requests is committed, one aborted; another id is refused."""
    name, writer = f"together-{uuid.uuid4().hex}", f"writer-{uuid.uuid4().hex}"
    topic_id = create_topic(client, name)
    coordinator = messages.FindCoordinatorRequest(key_type=1, coordinator_keys=[writer])
    retried(lambda: client.ask(coordinator).coordinators[0])
    table = rows_of(name, 150, 2)
    base: dict[tuple[str, int], int] = {}
    for part, committed in ((table.slice(0, 100), True), (table.slice(100), False)):
        producer = begun(client, writer, name)
        numbers: Any = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        requests = protocol.produce_requests(part, 9, transactional_id=writer, max_batch_bytes=1500, **numbers)
        for packed in requests:
            send(client, packed, 9, base)
        end = messages.EndTxnRequest(transactional_id=writer, committed=committed, **numbers)
        retried(lambda end=end: client.ask(end, 3))
        base = {place: offset + 1 for place, offset in base.items()}  # the marker
    assert len(everything(client, name, topic_id)) == 150
    read = everything(client, name, topic_id, isolation_level="read_committed")
    expected = table.slice(0, 100)
    order = np.argsort(expected["partition"].to_numpy(), kind="stable")
    assert read.to_pylist() == expected.take(order).to_pylist()

    (packed,) = protocol.produce_requests(table.slice(0, 1), 9, transactional_id="none", **numbers)
    assert client.ask(packed.request, 9).responses[0].partition_responses[0].error_code != 0


def test_a_batch_over_the_limit_of_the_broker(client: Client) -> None:
    """What the limits are for: without them, the broker answers with error 10."""
    name = f"large-{uuid.uuid4().hex}"
    create_topic(client, name)
    table = pa.table({"topic": [name], "partition": [0], "value": [b"x" * 1_100_000]})
    (packed,) = protocol.produce_requests(table, 9, max_batch_bytes=1 << 21, max_request_bytes=1 << 22)
    assert client.ask(packed.request, 9).responses[0].partition_responses[0].error_code == 10


def test_a_limit_that_is_too_small_for_a_batch(client: Client) -> None:
    """From version 3 on the batch comes whole. Before, Kafka 3.9 cannot convert a part of it, and sends nothing."""
    name = f"small-{uuid.uuid4().hex}"
    topic_id = create_topic(client, name)
    table = pa.table({"topic": [name], "partition": [1], "value": [b"x" * 5000]})
    (packed,) = protocol.produce_requests(table, 9)
    send(client, packed, 9, {})
    asked = messages.FetchRequest
    for version in (0, 2, 4, client.connection.version_of(1)):
        if version not in client.connection.peer_versions[1]:
            continue
        part = asked.FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1000)
        topic = asked.FetchTopic(partitions=[part])
        if version >= 13:
            topic.topic_id = topic_id
        else:
            topic.topic = name
        response = client.ask(asked(replica_id=-1, max_wait_ms=10, min_bytes=0, topics=[topic]), version)
        fetched = protocol.fetch_to_columns(response)
        (found,) = fetched.partitions
        assert not found.limit_too_small
        assert (len(fetched), found.next_offset) == ((0, None) if version < 3 else (1, 1))
