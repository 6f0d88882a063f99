"""Brokers of eight releases, 0.8.2 to the newest: what each of them takes."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.client.core.calls import Coordinator
from kafkacodec.client.driver.network import Network
from kafkacodec.client.options import ClientSettings
from kafkacodec.protocol import Connection, ResponseReceived
from kafkacodec.protocol.versions import highest_common
from tests.integration.kafka_jars import ALL_RELEASES, OLD_RELEASES, RELEASES
from tests.integration.kafka_jvm import Server
from tests.integration.old_kafka import broker_of

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module", params=ALL_RELEASES)
def release(request: Any) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(release: str, tmp_path_factory: Any) -> Iterator[Server]:
    made = broker_of(tmp_path_factory.mktemp("broker"), release)
    made.start()
    yield made
    made.kill()  # in good order, some take 4 seconds


class Plain:
    """Requests and responses of given versions over a blocking socket, without negotiation."""

    def __init__(self, server: str) -> None:
        host, port = server.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.connection = Connection("client", client_id="kafkacodec-test")

    def ask(self, message: Any, version: int) -> Any:
        correlation_id, data = self.connection.send_request(message, version)
        self.socket.sendall(data)
        while True:
            received = self.socket.recv(65536)
            assert received, "the broker closed the connection"
            for event in self.connection.receive(received):
                assert isinstance(event, ResponseReceived)
                assert event.correlation_id == correlation_id
                return event.message

    def lead(self, topic: str, version: int) -> None:
        """Wait until metadata has a leader of partition 0."""
        asked = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=topic)])
        for _ in range(300):
            (found,) = self.ask(asked, version).topics
            if not found.error_code and found.partitions and found.partitions[0].leader_id == 1:
                return
            time.sleep(0.05)
        raise AssertionError(found)


def test_the_first_versions(server: Server, release: str) -> None:
    """A topic comes up because metadata names it; a record goes in and comes out."""
    client = Plain(server.server)
    old = release in OLD_RELEASES  # Kafka 4 dropped the versions of old record formats
    client.lead("orders", 0 if old else 4)
    magic = 0 if old else 2
    data = messages.ProduceRequest.PartitionProduceData(index=0, records=kc.encode([(b"k", b"v")], magic=magic))
    topic = messages.ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
    for _ in range(300):  # metadata names a leader before the broker knows that it leads
        sent = client.ask(messages.ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic]), 0 if old else 3)
        (part,) = sent.responses[0].partition_responses
        if part.error_code == 0:
            break
        time.sleep(0.05)
    assert (part.error_code, part.base_offset) == (0, 0)
    place = messages.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    wanted = messages.FetchRequest.FetchTopic(topic="orders", partitions=[place])
    asked = messages.FetchRequest(replica_id=-1, max_wait_ms=1000, min_bytes=1, topics=[wanted])
    fetched = client.ask(asked, 0 if old else 4)
    (record,) = kc.iter_records(fetched.responses[0].partitions[0].records)
    assert (record.offset, record.key, record.value) == (0, b"k", b"v")
    client.socket.close()


def test_the_versions_that_it_lists(server: Server, release: str) -> None:
    """ApiVersions exists from 0.10 on; 0.8 closes the connection, 0.9 neither answers nor closes it."""
    client = Plain(server.server)
    asked = messages.ApiVersionsRequest()
    if release == "0.8.2":
        with pytest.raises(AssertionError, match="closed"):
            client.ask(asked, 0)
    elif release == "0.9.0":
        client.socket.settimeout(2)
        with pytest.raises(TimeoutError):
            client.ask(asked, 0)
    else:
        listed = protocol.ranges_in(client.ask(asked, 0))
        newest = {"0.10.2": (2, 3), "0.11.0": (3, 5), "2.1": (7, 10), "2.8": (9, 12), "jars": (11, 17)}
        if release in newest:  # of Produce and Fetch, by each release's own messages
            assert (listed[0].stop - 1, listed[1].stop - 1) == newest[release]
    client.socket.close()


async def asked(server: str, work: Any, **options: Any) -> Any:
    """Run some work with a network of its own."""
    network = Network(ClientSettings(bootstrap_servers=server, **options))
    try:
        return await work(network)
    finally:
        await network.close()


async def leader_of(network: Network, topic: str) -> int:
    """Where partition 0 is led, as soon as it is: brokers create topics that are asked for."""
    network.cluster.want([topic])
    network.wake()
    for _ in range(600):
        if (found := network.cluster.leader(topic, 0)) is not None:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(network.cluster.last_error)


async def part_of(network: Network, request: Any, read: Any) -> Any:
    """What one partition got, again while the error is one of those that pass."""
    for _ in range(200):
        part = read(await network.call(request, 1))
        if not part.error_code or not kc.errors.error(part.error_code).retriable:
            return part
        await asyncio.sleep(0.05)
    raise AssertionError(part)


def test_calls_over_the_network(server: Server, release: str) -> None:
    """Versions are agreed on or known; metadata, offsets, coordinator, Produce and Fetch of the right record format."""

    async def work(network: Network) -> None:
        assert await leader_of(network, "calls") == 1
        topic_id = network.cluster.topics["calls"].topic_id
        assert (topic_id is not None) == (release in ("2.8", *RELEASES))
        table = pa.table({"topic": ["calls"] * 3, "partition": [0] * 3, "value": [b"a", b"b", b"c"]})
        magics = []

        def produce(versions: Any) -> Any:
            version = highest_common(0, versions)
            magics.append(0 if version < 2 else 1 if version == 2 else 2)
            (packed,) = protocol.produce_requests(table, version, topic_ids={"calls": topic_id} if topic_id else None)
            return packed.request, version

        part = await part_of(network, produce, lambda r: r.responses[0].partition_responses[0])
        assert (part.error_code, part.base_offset) == (0, 0)
        assert magics[-1] == {"0.8.2": 0, "0.9.0": 0, "0.10.2": 1}.get(release, 2)

        listing = messages.ListOffsetsRequest
        place = listing.ListOffsetsPartition(partition_index=0, timestamp=-1)
        latest = protocol.client_request(listing, topics=[listing.ListOffsetsTopic(name="calls", partitions=[place])])
        part = await part_of(network, latest, lambda r: r.topics[0].partitions[0])
        assert (part.error_code, part.offset, part.old_style_offsets) in [(0, 3, []), (0, -1, [3])]

        def fetch(versions: Any) -> Any:
            version = highest_common(1, versions)
            asked = messages.FetchRequest
            part = asked.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
            topic = asked.FetchTopic(partitions=[part])
            if version >= 13:
                topic.topic_id = topic_id
            else:
                topic.topic = "calls"
            return asked(max_wait_ms=1000, min_bytes=1, topics=[topic]), version

        part = await part_of(network, fetch, lambda r: r.responses[0].partitions[0])
        assert [record.value for record in kc.iter_records(part.records)] == [b"a", b"b", b"c"]

        place = Coordinator("group", "readers")
        fetched = await network.call(
            lambda versions: (messages.OffsetFetchRequest(group_id="readers", topics=[]), 1), place
        )
        assert fetched.error_code == 0
        assert network.cluster.node_of(place) == 1

    asyncio.run(asked(server.server, work))


# Producers

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def has_zstd(release: str) -> bool:
    """Kafka 2.1 was the first."""
    return release not in ("0.8.2", "0.9.0", "0.10.2", "0.11.0")


async def everything(network: Network, topic: str, count: int) -> list[kc.Record]:
    """The records of partition 0, by fetches of small pieces."""
    await leader_of(network, topic)
    topic_id = network.cluster.topics[topic].topic_id
    found: list[kc.Record] = []

    def fetch(versions: Any) -> Any:
        version = highest_common(1, versions)
        asked = messages.FetchRequest
        part = asked.FetchPartition(partition=0, fetch_offset=len(found), partition_max_bytes=1 << 20)
        entry = asked.FetchTopic(partitions=[part], **{"topic_id": topic_id} if version >= 13 else {"topic": topic})
        return asked(max_wait_ms=2000, min_bytes=1, topics=[entry]), version

    while len(found) < count:
        part = await part_of(network, fetch, lambda r: r.responses[0].partitions[0])
        read = [record for record in kc.iter_records(part.records) if record.offset >= len(found)]
        assert read, "fewer records than were acknowledged"
        found += read
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_a_producer_of_each_codec(server: Server, release: str, codec: str) -> None:
    old = release in ("0.8.2", "0.9.0", "0.10.2")
    topic, count = f"made-{codec}", 300
    headers = [] if old else [("name", b"value")]

    async def main() -> None:
        async with kc.client.aio.Producer(server.server, compression_type=codec, batch_size=2000) as producer:
            deliveries = [
                await producer.send(
                    topic, b"value %d" % n, key=b"%d" % n, partition=0, headers=headers, timestamp=1_700_000_000_000 + n
                )
                for n in range(count)
            ]
            if codec == "zstd" and not has_zstd(release):
                with pytest.raises(kc.errors.UnsupportedVersion, match=r"zstd needs Kafka 2\.1"):
                    await deliveries[0]
                return
            assert [(await delivery).offset for delivery in deliveries] == list(range(count))
        network = Network(ClientSettings(bootstrap_servers=server.server))
        found = await everything(network, topic, count)
        await network.close()
        times = None if release in ("0.8.2", "0.9.0") else 1_700_000_000_000
        for n, record in enumerate(found):
            assert (record.offset, record.key, record.value) == (n, b"%d" % n, b"value %d" % n)
            assert record.timestamp == (None if times is None else times + n)
            assert list(record.headers) == headers

    asyncio.run(main())


def test_a_table(server: Server, release: str) -> None:
    table = pa.table({"key": [b"k%d" % n for n in range(5000)], "value": [b"v%d" % n for n in range(5000)]})

    async def main() -> None:
        async with kc.client.aio.Producer(server.server, compression_type="gzip") as producer:
            result = await (await producer.send_columns(table, topic="table"))
            assert result.rows == 5000
        network = Network(ClientSettings(bootstrap_servers=server.server))
        found = await everything(network, "table", 5000)
        await network.close()
        assert [(record.key, record.value) for record in found] == [(b"k%d" % n, b"v%d" % n) for n in range(5000)]

    asyncio.run(main())


# Consumers


async def fill(server: str, topic: str, count: int, *, first: int = 0) -> None:
    """Numbered records in partition 0."""
    async with kc.client.aio.Producer(server, batch_size=2000) as producer:
        for n in range(first, first + count):
            await producer.send(topic, b"%d" % n, key=b"k", partition=0)


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % n for n in range(first, end)]


def test_a_consumer_without_a_group(server: Server, release: str) -> None:
    """All records, from the middle on, from the end on."""

    async def main() -> None:
        await fill(server.server, "read", 500)
        async with kc.client.aio.Consumer(
            "read", bootstrap_servers=server.server, auto_offset_reset="earliest"
        ) as consumer:
            tables = [pa.table(table) async for table in consumer.columns(timeout=2)]
            found = pa.concat_tables(tables)
            assert found["value"].to_pylist() == numbers(0, 500)
            assert found["offset"].to_pylist() == list(range(500))
            assert await consumer.position("read", 0) == 500
            await consumer.seek("read", 0, 490)
            seen = []
            async for record in consumer:
                seen.append(record.value)
                if len(seen) == 10:
                    break
            assert seen == numbers(490, 500)
            assert await consumer.end_offsets([("read", 0)]) == {("read", 0): 500}
            assert await consumer.beginning_offsets([("read", 0)]) == {("read", 0): 0}

    asyncio.run(main())


def test_a_group_goes_on_where_it_committed(server: Server, release: str) -> None:
    """0.8.2 keeps offsets of groups whose members choose their partitions."""
    subscribes = release != "0.8.2"

    async def read(count: int) -> list[bytes]:
        options: Any = {"group_id": "readers", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = kc.client.aio.Consumer(*["counted"] * subscribes, bootstrap_servers=server.server, **options)
        async with consumer:
            if not subscribes:
                await consumer.assign([("counted", 0)])
            found: list[bytes] = []
            while len(found) < count:
                for records in (await consumer.getmany(20, count - len(found))).values():
                    found += [record.value or b"" for record in records]
                assert found, "no record within 20 s"
            await consumer.commit()
            assert await consumer.committed("counted", 0) == int(found[-1]) + 1
            return found

    async def main() -> None:
        await fill(server.server, "counted", 100)
        assert await read(60) == numbers(0, 60)
        assert await read(40) == numbers(60, 100)

    asyncio.run(main())


def test_a_broker_without_groups(server: Server, release: str) -> None:
    if release != "0.8.2":
        return

    async def main() -> None:
        await fill(server.server, "alone", 1)
        async with kc.client.aio.Consumer("alone", bootstrap_servers=server.server, group_id="g") as consumer:
            with pytest.raises(kc.errors.UnsupportedVersion, match="JoinGroup"):
                await asyncio.wait_for(consumer.getmany(20), 30)

    asyncio.run(main())
