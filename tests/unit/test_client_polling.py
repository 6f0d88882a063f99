"""A machine that alone has something new is polled alone; the others only where its requests concern them."""

from __future__ import annotations

import asyncio

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.client.core.calls import ANY, Watcher
from kafkacodec.client.core.relay import Relay
from kafkacodec.errors import DeadlineExceeded
from tests.patience import SOON, until
from tests.unit.test_client_network import SmallBroker, network


class Counting(Watcher):
    """A machine that counts how often it is polled, and does something then."""

    def __init__(self, does=lambda now: None, deadline=None):
        self.polls, self.does, self.deadline = 0, does, deadline

    def poll(self, now):
        self.polls += 1
        self.does(now)
        return []

    def next_deadline(self):
        return self.deadline


async def reply_of(relay):
    await until(lambda: relay.has_replies, SOON)
    return relay.take()[0]


async def connected(client):
    """A machine of a client that has a connection, and nothing to do."""
    relay = Relay()
    client.add(relay)
    relay.add(ANY, messages.ApiVersionsRequest())
    await reply_of(relay)
    await until(lambda: client.cluster.answers or client.cluster.last_error, SOON)
    while client._woken or client.cluster.asks:
        await asyncio.sleep(0)
    return relay


async def test_the_request_of_one_machine_is_written_at_once_and_no_other_is_polled():
    async with SmallBroker() as broker:
        client, other = network(broker.address), Counting()
        client.add(other)
        relay = await connected(client)
        polls = other.polls
        relay.add(ANY, messages.MetadataRequest(topics=[]))
        client.poll(relay)
        assert sum(len(node.in_flight) for node in client._traffic._nodes) == 1
        assert not client._woken
        assert other.polls == polls
        assert (await reply_of(relay)).message.brokers
        await until(lambda: other.polls > polls, SOON)  # after an answer, any machine may have something new
        await client.close()


async def test_without_a_connection_all_are_polled():
    async with SmallBroker() as broker:
        client, relay, other = network(broker.address), Relay(), Counting()
        client.add(relay)
        client.add(other)
        await until(lambda: other.polls and not client._woken, SOON)
        relay.add(ANY, messages.MetadataRequest(topics=[]))
        client.poll(relay)
        assert (await reply_of(relay)).message.brokers
        await client.close()


async def test_the_time_limit_of_such_a_request_holds():
    async with SmallBroker(silent=[3]) as broker:
        client = network(broker.address, request_timeout_ms=100, metadata_max_age_ms=3_600_000)
        relay = Relay()
        client.add(relay)
        relay.add(ANY, messages.ApiVersionsRequest())
        await reply_of(relay)
        client._timer.cancel()
        client._timer._handle = None  # no other deadline has it end the request by chance
        relay.add(ANY, messages.MetadataRequest(topics=[]))
        client.poll(relay)
        assert isinstance((await reply_of(relay)).error, DeadlineExceeded)
        await client.close()


async def test_a_machine_that_asks_for_metadata_gets_them():
    async with SmallBroker() as broker:
        client = network(broker.address)
        await connected(client)
        wants = Counting()
        client.add(wants)
        await until(lambda: wants.polls and not client._woken, SOON)
        asked = [key for key, _ in broker.requests].count(3)
        wants.does = lambda now: client.cluster.want(["missing"])
        client.poll(wants)
        wants.does = lambda now: None
        await until(lambda: [key for key, _ in broker.requests].count(3) > asked, SOON)
        await client.close()


async def test_its_deadline_is_kept():
    async with SmallBroker() as broker:
        client = network(broker.address)
        await connected(client)
        timed = Counting()
        client.add(timed)
        await until(lambda: timed.polls and not client._woken, SOON)
        timed.deadline = client.now() + 20
        client.poll(timed)
        polls = timed.polls
        await until(lambda: timed.polls > polls, SOON)
        await client.close()


async def test_a_machine_that_raises_is_removed():
    async with SmallBroker() as broker:
        client = network(broker.address)
        broken: list[Exception] = []
        faulty = Counting()
        client.add(faulty, broke=broken.append)
        await until(lambda: faulty.polls and not client._woken, SOON)
        faulty.does = lambda now: 1 / 0
        client.poll(faulty)
        assert isinstance(broken[0], ZeroDivisionError)
        client.poll(faulty)  # it runs no longer
        assert len(broken) == 1
        await client.close()


@pytest.mark.parametrize("closed", [False, True])
async def test_all_are_polled_soon_or_never(closed):
    async with SmallBroker() as broker:
        client, some = network(broker.address), Counting()
        client.add(some)
        if closed:
            client.abort()
        client.poll(some)
        assert some.polls == 0
        await client.close()


async def test_a_machine_that_has_another_one_polled_comes_to_its_end_first():
    async with SmallBroker() as broker:
        client = network(broker.address)
        relay, other = await connected(client), Counting()
        client.add(other)
        await until(lambda: other.polls and not client._woken, SOON)
        relay.add(ANY, messages.MetadataRequest(topics=[]))
        other.does = lambda now: (client.poll(relay), setattr(other, "does", lambda now: None))
        client.poll(other)
        assert client._woken
        assert (await reply_of(relay)).message.brokers
        await client.close()


async def test_the_request_of_a_call_is_written_at_once():
    async with SmallBroker() as broker:
        client, other = network(broker.address), Counting()
        client.add(other)
        await connected(client)
        with client.waiting():  # which adds a machine the first time
            pass
        await until(lambda: not client._woken, SOON)
        polls = other.polls
        call = client.call(messages.MetadataRequest(topics=[]))
        call.send(None)
        assert sum(len(node.in_flight) for node in client._traffic._nodes) == 1
        assert other.polls == polls
        call.close()
        await client.close()


async def test_records_of_several_tasks_go_into_one_request():
    with kc.broker.serve(topics={"t": 1}) as kafka:
        async with kc.client.aio.Producer(kafka.bootstrap_servers, linger_ms=0) as producer:
            await (await producer.send("t", b"first"))

            async def some():
                for _ in range(20):
                    await (await producer.send("t", b"v"))

            before = producer.metrics()["requests.Produce"]
            await asyncio.gather(*(some() for _ in range(20)))
            assert producer.metrics()["requests.Produce"] - before <= 100


async def test_a_producer_that_lingers_gathers_records():
    with kc.broker.serve(topics={"t": 1}) as kafka:
        async with kc.client.aio.Producer(kafka.bootstrap_servers, linger_ms=50) as producer:
            await (await producer.send("t", b"first"))
            before = producer.metrics()["requests.Produce"]
            deliveries = [await producer.send("t", b"v") for _ in range(10)]
            offsets = [(await delivery).offset for delivery in deliveries]
            assert offsets == list(range(1, 11))
            assert producer.metrics()["requests.Produce"] - before <= 2
