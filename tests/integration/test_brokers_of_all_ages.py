"""Brokers of eight releases, 0.8.2 to the newest: what each of them takes."""

from __future__ import annotations

import asyncio
import socket
import time
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
from tests.integration.kafka_jars import OLD_RELEASES, RELEASES
from tests.integration.kafka_jvm import Server

pytestmark = [pytest.mark.java, pytest.mark.slow]


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
    network = Network(ClientSettings(bootstrap_servers=server, allow_auto_create_topics=True, **options))
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
