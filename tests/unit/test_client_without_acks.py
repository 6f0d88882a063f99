"""Records without acknowledgements: what is known as sent is not dropped by a `close` that follows at once."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from kafkacodec import messages
from kafkacodec.client import aio
from tests.certificates import Authority
from tests.patience import SOON
from tests.unit.test_client_network import SmallBroker

PRODUCE = 0


class Leader(SmallBroker):
    """Leads a partition of each topic that it is asked for, over TLS if it has a certificate."""

    def __init__(self, issued, **options):
        super().__init__(**options)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(issued.both)

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.context)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    def answer(self, connection, event):
        found = super().answer(connection, event)
        if event.api_key == 3:
            kind = messages.MetadataResponse
            part = kind.MetadataResponsePartition(
                partition_index=0, leader_id=self.node, replica_nodes=[self.node], isr_nodes=[self.node]
            )
            names = [topic.name for topic in event.message.topics or []]
            found.topics = [kind.MetadataResponseTopic(name=name, partitions=[part]) for name in names]
        return found


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


def producer(broker, authority, **options):
    return aio.Producer(
        broker.address,
        acks=0,
        linger_ms=0,
        security_protocol="SSL",
        ssl_cafile=authority.certificate,
        max_request_size=2**26,
        **options,
    )


async def test_closing_at_once_over_tls(authority):
    reads = asyncio.Event()
    async with Leader(authority.issue("broker", "127.0.0.1"), silent={PRODUCE}, reads=reads) as broker:
        async with asyncio.timeout(60), producer(broker, authority) as client:
            await (await client.send("t", b"the broker reads nothing after this one"))
            await (await client.send("t", bytes(2**23)))  # most of it is in the TLS layer
            asyncio.get_running_loop().call_later(0.1, reads.set)
        assert [api for api, _ in broker.requests].count(PRODUCE) == 2


async def test_closing_does_not_wait_for_a_broker_that_hangs_or_is_gone(authority):
    reads = asyncio.Event()
    async with Leader(authority.issue("broker", "127.0.0.1"), silent={PRODUCE}, reads=reads) as broker:
        async with asyncio.timeout(SOON):
            client = producer(broker, authority)
            await (await client.send("t", b"the broker reads nothing after this one"))
            await client.close(0.05)
            client = producer(broker, authority, request_timeout_ms=200)
            await (await client.send("t", b"the broker reads nothing after this one"))
            await client.close()
            client = producer(broker, authority, reconnect_backoff_ms=1)
            await (await client.send("t", b"the broker reads nothing after this one"))
            await broker.__aexit__()
            await client.close()
