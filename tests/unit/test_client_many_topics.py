"""A client that meets many topics: what it asks a broker for, and how much work that is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.client.driver.network import Network
from kafkacodec.protocol import Connection
from tests.patience import SOON

pa = pytest.importorskip("pyarrow")


class Broker:
    """A broker on the loopback interface that has every topic, with one partition each, and takes all records.

    Attributes:
        asked: the names in each request for metadata.
        produced: the number of partitions in each Produce request.
    """

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.produced: list[int] = []
        self.tasks: set[Any] = set()

    async def __aenter__(self) -> Broker:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.add(asyncio.current_task())
        # Produce names topics, for records are looked at in no other way.
        connection = Connection("broker", versions={0: range(3, 10), 3: range(13), 18: range(5), 22: range(5)})
        try:
            while data := await reader.read(1 << 16):
                for event in connection.receive(data):
                    writer.write(connection.send_response(event.correlation_id, self.answer(connection, event)))
        finally:
            writer.close()

    def answer(self, connection: Connection, event: Any) -> Any:
        if event.api_key == 18:
            return connection.api_versions(event)
        if event.api_key == 22:
            return messages.InitProducerIdResponse(producer_id=5, producer_epoch=0)
        return self.metadata(event.message) if event.api_key == 3 else self.produce(event.message)

    def metadata(self, request: Any) -> Any:
        kind = messages.MetadataResponse
        if request.topics:  # else it is about brokers
            self.asked.append([topic.name for topic in request.topics])
        broker = kind.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        parts = [kind.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0)]
        topics = [kind.MetadataResponseTopic(name=topic.name, partitions=parts) for topic in request.topics]
        return kind(brokers=[broker], controller_id=1, topics=topics)

    def produce(self, request: Any) -> Any:
        kind = messages.ProduceResponse
        self.produced.append(sum(len(topic.partition_data) for topic in request.topic_data))
        return kind(
            responses=[
                kind.TopicProduceResponse(
                    name=topic.name,
                    partition_responses=[
                        kind.PartitionProduceResponse(index=part.index, base_offset=0) for part in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )


def names(count: int) -> list[str]:
    return [f"t{number:05d}" for number in range(count)]


async def test_a_topic_is_asked_for_when_it_is_met_and_alone() -> None:
    async with (
        Broker() as broker,
        kc.client.aio.Producer(f"127.0.0.1:{broker.port}", retry_backoff_ms=60_000) as producer,
    ):
        async with asyncio.timeout(30):  # without any wait of a minute
            for name in names(30):
                assert await producer.partitions_for(name) == [0]
        assert broker.asked == [[name] for name in names(30)]
        async with kc.client.aio.Consumer(bootstrap_servers=f"127.0.0.1:{broker.port}") as consumer:
            await asyncio.gather(*map(consumer.partitions_for, names(30)))
        assert broker.asked[30:] == [names(30)]


@pytest.mark.parametrize("blocking", [False, True])
async def test_the_topics_of_a_table_are_met_together_and_its_rows_go_out_in_few_requests(
    monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    passes = []
    run = Network._run
    monkeypatch.setattr(Network, "_run", lambda self: passes.append(1) or run(self))
    table = pa.table({"topic": names(3000) * 2, "value": [b"v"] * 6000})
    async with Broker() as broker:
        server = f"127.0.0.1:{broker.port}"
        if blocking:
            assert await asyncio.to_thread(send_in_thread, server, table) == 6000
        else:
            async with kc.client.aio.Producer(server) as producer:
                assert (await (await producer.send_columns(table))).rows == 6000
        assert broker.asked == [names(3000)]
        assert sum(broker.produced) == 3000
        assert len(broker.produced) < 50
        assert len(passes) < 300


def send_in_thread(server: str, table: Any) -> int:
    with kc.client.Producer(server) as producer:
        return int(producer.send_columns(table).result(SOON).rows)
