"""The network against small brokers on the loopback interface, whose answers are made by the protocol's broker side."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from typing import cast

import pytest

from kafkacodec import messages
from kafkacodec.client.core.calls import CONTROLLER, Answer, Coordinator, Send
from kafkacodec.client.core.relay import Relay
from kafkacodec.client.driver.network import Network
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import ClientClosed, ConnectionFailed, DeadlineExceeded, RemoteProtocolError
from kafkacodec.protocol import Connection
from kafkacodec.protocol.versions import supported_ranges
from tests.patience import SOON, until


class SmallBroker:
    """Answers ApiVersions and Metadata; `silent` has API keys that it does not answer.

    After the first request of one of these it reads nothing until `reads` is set.
    """

    def __init__(self, node=1, silent=(), throttle_ms=0, reads=None, versions=None):
        self.node, self.silent, self.throttle_ms, self.reads = node, set(silent), throttle_ms, reads
        self.versions = versions
        self.connections = 0
        self.requests = []
        self.tasks = set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.sleep(0)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader, writer):
        self.connections += 1
        self.tasks.add(asyncio.current_task())
        connection = Connection("broker", versions=self.versions, max_pending=10_000)
        try:
            while data := await reader.read(65536):
                for event in connection.receive(data):
                    self.requests.append((event.api_key, event.correlation_id))
                    if event.api_key in self.silent:
                        await (self.reads.wait() if self.reads is not None else asyncio.sleep(0))
                    else:
                        writer.write(connection.send_response(event.correlation_id, self.answer(connection, event)))
        except (ConnectionError, RemoteProtocolError, asyncio.CancelledError):
            pass  # RemoteProtocolError: a version that no broker has
        finally:
            writer.close()

    def answer(self, connection, event):
        if event.api_key == 18:
            return connection.api_versions(event)
        kind = messages.MetadataResponse
        brokers = [kind.MetadataResponseBroker(node_id=self.node, host="127.0.0.1", port=self.port)]
        return kind(brokers=brokers, controller_id=self.node, throttle_time_ms=self.throttle_ms)


def network(servers, **options):
    return Network(ClientSettings(bootstrap_servers=servers, **options))


@pytest.mark.parametrize("to", [CONTROLLER, Coordinator("group", "g")])
async def test_a_broker_that_is_not_known_yet_is_waited_for_at_rest(monkeypatch, to):
    runs = []
    run = Network._run
    monkeypatch.setattr(Network, "_run", lambda self: runs.append(1) or run(self))
    client = network(["127.0.0.1:1"])
    with pytest.raises(DeadlineExceeded):
        await client.call(messages.MetadataRequest(topics=[]), to, timeout_ms=300)
    assert len(runs) < 100
    await client.close()


class WholeMilliseconds(asyncio.SelectorEventLoop):
    """Timers as uvloop's: in whole ms, rounded, some too early; none at all for less than half a one."""

    def time(self):
        return math.floor(super().time() * 1000) / 1000

    def call_at(self, when, callback, *args, context=None):  # type: ignore[override]
        ms = round(max(0, when - self.time()) * 1000)
        if ms == 0:
            return cast("asyncio.TimerHandle", self.call_soon(callback, *args, context=context))
        return super().call_at(self.time() + ms / 1000, callback, *args, context=context)


def test_a_loop_whose_timers_are_rounded():
    async def call():
        reports = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        for wait_ms in (10.3, 10.5, 10.7):
            client = network(["127.0.0.1:1"], reconnect_backoff_ms=3, retry_backoff_ms=3)
            with pytest.raises(DeadlineExceeded):
                await asyncio.wait_for(client.call(messages.MetadataRequest(topics=[]), timeout_ms=wait_ms), SOON)
            await client.close()
        assert not reports

    with asyncio.Runner(loop_factory=WholeMilliseconds) as runner:
        runner.run(call())


async def test_an_address_that_cannot_be_says_why():
    client = network(["kafka..svc:9092"])
    for _ in range(2):
        with pytest.raises(DeadlineExceeded, match="label"):
            await client.call(messages.MetadataRequest(topics=[]), timeout_ms=300)
    await client.close()


async def test_a_connection_that_others_cancel_is_made_again():
    async with SmallBroker() as broker:
        client = network(broker.address)
        waiting = asyncio.create_task(client.call(messages.MetadataRequest(topics=[]), timeout_ms=60_000))
        while not (found := [task for task in asyncio.all_tasks() if task.get_name().startswith("connect to")]):
            await asyncio.sleep(0)
        found[0].cancel()
        assert (await waiting).brokers
        await client.close()


async def test_a_broker_that_is_gone_is_passed_over():
    async with SmallBroker() as gone, SmallBroker() as broker:
        await gone.__aexit__()
        for _ in range(5):
            client = network([gone.address, broker.address])
            answer = await client.call(messages.MetadataRequest(topics=[]), timeout_ms=60_000)
            assert answer.brokers[0].port == broker.port
            await client.close()


async def test_an_answer_that_does_not_come():
    async with SmallBroker(silent=[3]) as broker:
        client = network(broker.address, request_timeout_ms=100)
        with pytest.raises(DeadlineExceeded, match="no answer from any broker in time") as caught:
            await client.call(messages.MetadataRequest(topics=[]), timeout_ms=2000)
        assert caught.value.sent
        assert isinstance(caught.value.__cause__, (DeadlineExceeded, ConnectionFailed))
        assert client.metrics.snapshot()["request_failures.DeadlineExceeded"] >= 2
        await client.close()


async def test_a_closed_client_answers_nobody():
    async with SmallBroker(silent=[3]) as broker:
        client = network(broker.address)
        waiting = asyncio.create_task(client.call(messages.MetadataRequest(topics=[])))
        await asyncio.sleep(0.05)
        await client.close()
        with pytest.raises(ClientClosed, match="was closed"):
            await waiting
        with pytest.raises(ClientClosed, match="is closed"):
            await client.call(messages.MetadataRequest(topics=[]))


async def test_who_waits_hears_of_a_close_that_is_cancelled():
    async with SmallBroker(silent=[18]) as broker:
        client = network(broker.address)
        waiting = asyncio.create_task(client.call(messages.MetadataRequest(topics=[])))
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(ClientClosed, match="was closed"):
            await asyncio.wait_for(waiting, SOON)
        with pytest.raises(asyncio.CancelledError):
            await closing
        await asyncio.sleep(0.01)


async def test_a_cancelled_call_is_not_sent_later():
    async with SmallBroker(silent=[20]) as broker:
        broker.server.close()
        client = network(broker.address)
        for place in (CONTROLLER, -1):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.call(messages.DeleteTopicsRequest(topic_names=["orders"]), place), 0.1)
        broker.server = await asyncio.start_server(broker.serve, "127.0.0.1", broker.port)
        await client.call(messages.MetadataRequest(topics=[]), CONTROLLER, timeout_ms=60_000)
        assert 20 not in [key for key, _ in broker.requests]
        await client.close()


class Cutting(SmallBroker):
    """Closes connections while they are opened: as many as `cuts`, each after so many answers."""

    def __init__(self, cuts):
        super().__init__()
        self.cuts = cuts

    async def serve(self, reader, writer):
        if not self.cuts:
            await super().serve(reader, writer)
            return
        connection, left = Connection("broker"), self.cuts.pop(0)
        with contextlib.suppress(RemoteProtocolError):  # of a version that no broker has
            while left and (data := await reader.read(65536)):
                for event in connection.receive(data):
                    answer = messages.ListGroupsResponse() if event.api_key == 16 else self.answer(connection, event)
                    writer.write(connection.send_response(event.correlation_id, answer))
                left -= 1
            await reader.read(65536)
        writer.close()


@pytest.mark.parametrize("cuts", [[0, 1], [0, 0, 0, 1], [0] * 7, [0, 0, 0, 0, 0, 0, 1, 0, 1]])
async def test_a_broker_that_closes_connections_while_they_are_opened_keeps_its_release(cuts):
    async with Cutting(list(cuts)) as broker:
        client = network(broker.address, reconnect_backoff_ms=1)
        for _ in range(2):  # before it has answered, and afterwards
            await client.call(messages.MetadataRequest(topics=[]), -1, timeout_ms=60_000)
            node = client._traffic._nodes.get(-1)
            assert node.link.versions == supported_ranges()
            broker.cuts = list(cuts)
            node.close_idle()
        await client.close()


async def test_requests_that_are_over_are_freed_before_the_time_limit_of_earlier_ones():
    async with SmallBroker(silent=[3]) as silent, SmallBroker() as broker:
        client = network([silent.address, broker.address])
        waiting = asyncio.create_task(client.call(messages.MetadataRequest(topics=[]), -1))
        await asyncio.sleep(0.05)
        for _ in range(300):
            await client.call(messages.MetadataRequest(topics=[]), -2)
        assert len(client._traffic._deadlines) < 100
        await client.close()
        with pytest.raises(ClientClosed):
            await waiting


async def test_a_call_that_waits_for_its_next_attempt_ends_with_the_client():
    client = network("127.0.0.1:1", retry_backoff_ms=10_000, retry_backoff_max_ms=10_000)
    waiting = asyncio.create_task(client.call(messages.MetadataRequest(topics=[])))
    await asyncio.sleep(0.1)
    await client.close()
    with pytest.raises(ClientClosed):
        await waiting


async def test_a_broker_before_2_0_has_throttled_when_it_answers():
    async with SmallBroker(throttle_ms=10_000, versions={0: range(6), 3: range(6), 18: range(2)}) as broker:
        client = network(broker.address)
        for _ in range(2):
            await client.call(messages.MetadataRequest(topics=[]), -1, timeout_ms=60_000)
        assert client.metrics.snapshot()["throttle_ms"] >= 20_000
        await client.close()


async def test_as_many_requests_are_in_flight_as_the_option_allows():
    async with SmallBroker(silent=[16]) as broker:
        client = network(broker.address, max_in_flight_requests_per_connection=1500)
        relay = Relay()
        for _ in range(1600):
            relay.add(-1, messages.ListGroupsRequest())
        client.add(relay)
        async with asyncio.timeout(SOON):
            while len(broker.requests) < 1500:
                await asyncio.sleep(0.01)
        assert not relay.has_replies
        assert [key for key, _ in broker.requests].count(16) == 1500
        await client.close()


async def test_throttling_is_obeyed():
    async with SmallBroker(throttle_ms=300) as broker:
        client = network(broker.address)
        started = client.now()
        for _ in range(2):  # the second one waits since the answer to the first
            await client.call(messages.MetadataRequest(topics=[]), -1)
        assert client.now() - started >= 300
        assert client.metrics.snapshot()["throttle_ms"] >= 300
        await client.close()


class Unanswered:
    """Sends Produce requests with acks=0, five at a time."""

    def __init__(self, number):
        self.number, self.sent, self.landed = number, 0, 0

    def poll(self, now):
        if self.sent - self.landed == 5 or self.sent == self.number:
            return []
        self.sent += 1
        kind = messages.ProduceRequest
        data = kind.PartitionProduceData(index=0, records=bytes(500_000))
        request = kind(acks=0, topic_data=[kind.TopicProduceData(name="orders", partition_data=[data])])
        return [Send(-1, lambda versions: (request, 7))]

    def next_deadline(self):
        return None

    def answered(self, send, answer, now):
        self.landed += 1

    def failed(self, send, error, now):
        raise error


async def test_requests_without_answers_are_sent_when_they_have_left():
    """A broker that does not read takes no memory of the client, and `close` loses nothing."""
    reads = asyncio.Event()
    async with SmallBroker(silent=[0], reads=reads) as broker:
        client, machine = network(broker.address), Unanswered(60)
        client.add(machine)
        await asyncio.sleep(0.2)
        assert machine.landed < 30
        reads.set()
        async with asyncio.timeout(SOON):
            while machine.landed < 60:
                await asyncio.sleep(0)
        await client.close()
        await asyncio.wait(broker.tasks, timeout=SOON)
        assert [key for key, _ in broker.requests].count(0) == 60


async def test_unused_connections_are_closed_and_opened_again():
    async with SmallBroker() as broker:
        client = network(broker.address, connections_max_idle_ms=50)
        await client.call(messages.MetadataRequest(topics=[]))
        await until(lambda: client.metrics.snapshot()["connections"] == 0)
        before = broker.connections
        await asyncio.sleep(0.2)
        assert broker.connections == before
        await client.call(messages.MetadataRequest(topics=[]))
        await client.close()


async def test_another_loop_and_another_process():
    async with SmallBroker() as broker:
        client = network(broker.address)
        await client.call(messages.MetadataRequest(topics=[]))

        def elsewhere():
            async def use():
                await client.call(messages.MetadataRequest(topics=[]))

            with pytest.raises(ClientClosed, match="another event loop"):
                asyncio.run(use())

        await asyncio.to_thread(elsewhere)
        child = os.fork()
        if not child:
            try:
                client.check()
            except ClientClosed as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        await client.close()


class Curious:
    """A machine that asks once and raises what it is told to when the answer comes."""

    def __init__(self, fault):
        self.fault, self.asked, self.failures = fault, False, []

    def poll(self, now):
        if self.asked:
            return []
        self.asked = True
        return [Send(-1, messages.MetadataRequest(topics=[]))]

    def next_deadline(self):
        return None

    def answered(self, send: Send, answer: Answer, now):
        raise self.fault

    def failed(self, send, error, now):
        self.failures.append(error)


async def test_a_machine_that_raises():
    async with SmallBroker() as broker:
        client = network(broker.address)
        broken: asyncio.Future[Exception] = client.loop.create_future()
        client.add(Curious(KeyError("topic")), broke=broken.set_result)
        error = await asyncio.wait_for(broken, SOON)
        assert str(error) == "broker -1: this MetadataResponse cannot be right: KeyError('topic')"
        assert isinstance(error, RemoteProtocolError)
        assert isinstance(error.__cause__, KeyError)

        done = asyncio.Event()
        unexpected = Curious(RemoteProtocolError("a response without topics"))
        client.add(unexpected, changed=lambda: done.set() if unexpected.failures else None)
        await asyncio.wait_for(done.wait(), SOON)
        assert str(unexpected.failures[0]) == "a response without topics"
        await client.close()


async def test_a_request_that_cannot_be_made():
    """The call raises what making the request raised, and the connection is used further."""

    def broken(versions):
        raise TypeError("no such thing")

    async with SmallBroker() as broker:
        client = network(broker.address)
        with pytest.raises(TypeError, match="no such thing"):
            await asyncio.wait_for(client.call(broken), SOON)
        await client.call(messages.MetadataRequest(topics=[]))
        await client.close()
