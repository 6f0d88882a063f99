"""Clients of the line protocol, for threads and for asyncio, against a server over a socket."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

import kafkacodec as kc
from kafkacodec.dialects import line
from kafkacodec.dialects.line.exchange import Exchange
from kafkacodec.errors import ClientClosed, ConnectionFailed, EncodeError, RemoteProtocolError
from tests.patience import SOON


@pytest.fixture
def broker():
    with kc.broker.serve(listen="line://127.0.0.1:0", topics={"orders": 4}, clock="manual") as found:
        yield found


@pytest.fixture
def server(broker):
    return broker.listeners[0].partition("://")[2]


def everything(consumer, count):
    """Values by partition, until there are as many."""
    found: dict[int, list[str]] = {}
    while sum(map(len, found.values())) < count:
        for message in consumer.poll(timeout=10):
            found.setdefault(message.partition, []).append(message.value)
    return found


def test_what_is_sent_is_read_once_in_the_order_of_its_partition(server):
    with line.Producer(server, acks="all") as producer:
        sent = [producer.send("orders", f"k{i % 7}", f"v{i}") for i in range(300)]
        placed = [delivery.result(SOON) for delivery in sent]
    expected: dict[int, list[str]] = {}
    for i, place in enumerate(placed):
        assert place.offset == len(expected.setdefault(place.partition, []))
        expected[place.partition].append(f"v{i}")
    with line.Consumer(server, "g", "orders") as consumer:
        assert everything(consumer, 300) == expected
        assert sorted(consumer.assignment) == [("orders", number) for number in range(4)]


def test_a_member_reads_on_where_the_one_before_it_ended(server):
    with line.Producer(server) as producer:
        for i in range(10):
            producer.send("orders", "k", f"v{i}")
    with line.Consumer(server, "g", "orders") as consumer:
        assert [*everything(consumer, 10).values()] == [[f"v{i}" for i in range(10)]]
    with line.Consumer(server, "g", "orders") as consumer, line.Producer(server) as producer:
        producer.send("orders", "k", "last")
        assert [*everything(consumer, 1).values()] == [["last"]]


def test_what_is_not_committed_is_read_again(server):
    with line.Producer(server) as producer:
        producer.send("orders", "k", "v")
    for _ in range(2):
        with line.Consumer(server, "g", "orders", auto_commit=False) as consumer:
            assert [*everything(consumer, 1).values()] == [["v"]]
    with line.Consumer(server, "g", "orders", auto_commit=False) as consumer:
        everything(consumer, 1)
        consumer.commit()
    with line.Consumer(server, "g", "orders") as consumer:
        assert consumer.poll() == []


def test_a_new_member_takes_its_part(server):
    with line.Consumer(server, "g", "orders", consumer_id="a", heartbeat_interval_ms=10) as first:
        first.poll()
        every = [("orders", number) for number in range(4)]
        assert first.assignment == every
        with line.Consumer(server, "g", "orders", consumer_id="b") as second:
            second.poll()
            while len(first.assignment) == 4:
                first.poll()
            assert sorted(first.assignment + second.assignment) == every
            assert first.generations == second.generations
        while len(first.assignment) < 4:
            first.poll()


def test_a_consumer_reads_several_topics(server):
    with line.Producer(server) as producer:
        for topic in ("orders", "payments"):
            producer.send(topic, "k", f"of {topic}".replace(" ", "-")).result(SOON)
    with line.Consumer(server, "g", ["orders", "payments"]) as consumer:
        found = {message.topic: message.value for _ in range(2) for message in consumer.poll(30)}
        assert found == {"orders": "of-orders", "payments": "of-payments"}
        assert {topic for topic, _ in consumer.assignment} == {"orders", "payments"}
        consumer.seek(*next(place for place in consumer.assignment if place[0] == "orders"), 0)
        with pytest.raises(ValueError, match="is not among the consumer's"):
            consumer.seek("orders", 9, 0)
    with pytest.raises(ValueError, match="topics is empty"):
        line.Consumer(server, "g", [])


def test_a_refusal_has_its_code(server):
    with line.Producer(server) as producer:
        with pytest.raises(line.RequestRefused) as refused:
            producer.send("not/a/topic", "k", "v").result(SOON)
        assert refused.value.code == line.ErrorCode.BAD_REQUEST
        with pytest.raises(EncodeError):
            producer.send("orders", "k", "two words").result(SOON)
        assert producer.send("orders", "k", "v").result(SOON).topic == "orders"


def test_an_absent_server_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{taken.getsockname()[1]}"
        with line.Producer(server) as producer, pytest.raises(ConnectionFailed, match="refused") as failed:
            producer.send("orders", "k", "v").result(SOON)
        assert not failed.value.sent


def test_a_connection_that_ends_fails_what_waits_and_the_next_request_makes_another():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_the_second():
            listener.accept()[0].close()
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb") as file:
                correlation_id = file.readline().split(b"|")[1]
                file.write(b"V1|" + correlation_id + b"|OK|partition=0 offset=7 hw=8\n")

        thread = threading.Thread(target=answer_the_second)
        thread.start()
        with line.Producer(f"127.0.0.1:{listener.getsockname()[1]}") as producer:
            with pytest.raises(ConnectionFailed) as failed:
                producer.send("orders", "k", "v").result(SOON)
            assert failed.value.sent
            assert producer.send("orders", "k", "v").result(SOON).offset == 7
        thread.join()


async def test_a_connection_that_is_made_while_the_client_closes_is_closed(server):
    consumer = line.aio.Consumer(server, "g", "orders")
    polling = asyncio.ensure_future(consumer.poll())
    await asyncio.sleep(0)  # it is connecting
    await consumer.close()
    with pytest.raises(ClientClosed):
        await polling
    assert not consumer._servers._dialers[0]._connection.is_open
    for _ in range(5):  # the loop has closed it, too, before it ends itself
        await asyncio.sleep(0)


def test_a_closed_client_says_so(server):
    producer, consumer = line.Producer(server), line.Consumer(server, "g", "orders")
    for client in (producer, consumer):
        client.close()
        client.close()
    with pytest.raises(ClientClosed):
        producer.send("orders", "k", "v")
    with pytest.raises(ClientClosed):
        consumer.poll()


def test_a_dropped_client_warns_and_ends(server):
    consumer = line.Consumer(server, "g", "orders", heartbeat_interval_ms=10)
    consumer.poll()
    thread, clients = consumer._thread, [consumer]
    del consumer
    with pytest.warns(ResourceWarning, match=r"line\.Consumer: .* was not closed; .* at .*test_line_clients"):
        clients.clear()
    thread._thread.join(30)
    assert not thread._thread.is_alive()


async def test_a_dropped_client_of_asyncio_warns_and_ends(server):
    consumer = line.aio.Consumer(server, "g", "orders", heartbeat_interval_ms=1)
    await consumer.poll()
    heart, clients = consumer._heart, [consumer]
    del consumer
    with pytest.warns(ResourceWarning, match="was not closed"):
        clients.clear()
    await heart


@pytest.mark.parametrize("options", [{"acks": "2"}, {"max_in_flight": 0}, {"request_timeout_ms": 0}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        line.Producer("127.0.0.1:1", **options)


async def test_asyncio_reads_what_asyncio_wrote(server):
    async with line.aio.Producer(server) as producer, line.aio.Consumer(server, "g", "orders") as consumer:
        deliveries = [await producer.send("orders", "k", f"v{i}") for i in range(50)]
        assert [(await delivery).offset for delivery in deliveries] == [*range(50)]
        found = []
        while len(found) < 50:
            found += [message.value for message in await consumer.poll(10)]
        assert found == [f"v{i}" for i in range(50)]


def test_responses_come_in_any_order():
    exchange = Exchange()
    first = exchange.request("PRODUCE", {"topic": "t", "key": "k", "value": "v", "acks": "all"}, waiter="first")
    assert first == b"V1|1|PRODUCE|t k:v acks=all\n"
    assert exchange.request("PING", {}, waiter="second") == b"V1|2|PING|\n"
    found = exchange.received(b"V1|2|OK\nV1|1|OK|partition=0 off")
    assert [(waiter, response.ok) for waiter, response in found] == [("second", True)]
    ((waiter, response),) = exchange.received(b"set=4 hw=5\n")
    assert (waiter, response.fields) == ("first", {"partition": 0, "offset": 4, "hw": 5})
    assert exchange.pending == 0


@pytest.mark.parametrize(
    "wrong", [b"nonsense\n", b"V1|7|OK\n", b"V1|0|ERR|BAD_REQUEST|what\n", b"V1|1|OK|hw=x\n", b"\xff\n"]
)
def test_what_is_no_response_ends_the_connection_after_those_before_it(wrong):
    exchange = Exchange()
    exchange.request("PING", {}, waiter="first")
    exchange.request("CONSUME", {"topic": "t", "partition": 0, "offset": 0}, waiter="second")
    with pytest.raises(RemoteProtocolError) as error:
        exchange.received(b"V1|1|OK\n" + wrong.replace(b"|1|", b"|2|"))
    assert [waiter for waiter, _ in error.value.events] == ["first"]
    assert exchange.give_up() == ["second"]
