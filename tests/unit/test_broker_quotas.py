"""Quotas of the embedded broker: how long clients wait is what Apache Kafka 4.4.0 answered to the same requests."""

from __future__ import annotations

import socket
import time
import uuid
from contextlib import suppress

import pytest

import kafkacodec as kc
from kafkacodec import client, messages, protocol
from kafkacodec.broker.kafka.request import Request
from kafkacodec.broker.kafka.security.peers import Peer
from kafkacodec.broker.kafka.security.quotas import Quotas
from kafkacodec.broker.state.catalog import Catalog
from kafkacodec.broker.state.rates import Rate, Tokens
from kafkacodec.errors import ItemErrors
from kafkacodec.messages import keys
from kafkacodec.net.frames import Frame
from tests.broker_wire import wire_to

BATCH = kc.encode([(None, b"x" * 30_000)])
FETCHED = [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 40_000}]}]


@pytest.fixture
def broker():
    with kc.broker.serve(topics=["orders"]) as running:
        yield running


def limit(broker, entity=None, **values):
    with client.Admin(broker.bootstrap_servers) as admin:
        admin.alter_client_quotas({tuple((entity or {"user": "ANONYMOUS"}).items()): values})


def producing(acks=-1, batch=BATCH):
    entry = {"name": "orders", "partition_data": [{"index": 0, "records": batch}]}
    return {"topic_data": [entry], "acks": acks, "timeout_ms": 9000}


def produce(wire, batch=BATCH):
    answer = wire.ask("Produce", 9, **producing(batch=batch))
    assert not answer.responses[0].partition_responses[0].error_code
    return answer.throttle_time_ms


def fetch(wire):
    answer = wire.ask("Fetch", 12, topics=FETCHED, session_epoch=-1, max_bytes=40_000)
    return answer.throttle_time_ms, sum(len(p.records or b"") for t in answer.responses for p in t.partitions)


def test_a_rate_is_over_its_quota_as_in_kafka():
    """At 10,000 bytes a second, four times 30,000 bytes at once, then each after its wait."""
    rate, now, waits = Rate(), 1e12, []
    for _ in range(6):
        waits.append(rate.throttle(30_000, 10_000, now))
        now += waits[-1]
    assert waits == [0, 0, 0, pytest.approx(2000, abs=60), pytest.approx(5000, abs=60), pytest.approx(8000, abs=60)]


def test_a_rate_forgets():
    rate = Rate()
    assert rate.throttle(1_000_000, 10, 0) > 0
    assert not rate.is_old(10_999)
    assert rate.is_old(11_000)
    assert rate.throttle(50, 10, 11_000) == 0


def test_tokens_are_those_of_eleven_seconds_and_may_run_out_once():
    """At 2 partitions a second: 22 at once, and more than there are if there are some (KIP-599)."""
    tokens, now = Tokens(), 1e12
    assert tokens.wait(2, now) == 0
    tokens.use(22)
    assert tokens.wait(2, now) == 0
    tokens.use(10)
    assert tokens.wait(2, now) == 5000
    assert tokens.wait(2, now + 4000) == 1000
    assert tokens.wait(2, now + 5000) == 0
    assert not tokens.is_old(now + 6000)


def test_a_client_that_makes_too_many_partitions_waits(broker):
    limit(broker, controller_mutation_rate=0.1)
    entry = {"num_partitions": 1, "replication_factor": 1}
    with wire_to(broker) as wire:
        for name, code, waits in (("one", 0, False), ("two", 0, False), ("three", 89, True)):
            answer = wire.ask("CreateTopics", 6, topics=[{"name": name, **entry}], timeout_ms=9000)
            assert answer.topics[0].error_code == code
            assert 0 < answer.throttle_time_ms <= 9000 if waits else not answer.throttle_time_ms
    with wire_to(broker) as wire:  # an old client waits after the answer
        answer = wire.ask("CreateTopics", 5, topics=[{"name": "four", **entry}], timeout_ms=9000)
        assert not answer.topics[0].error_code
        assert answer.throttle_time_ms > 9000
    assert len(broker.records("four")) == 0


def test_producers_wait_and_their_connection_rests(broker):
    limit(broker, producer_byte_rate=10_000)
    with wire_to(broker) as wire:
        waits = [produce(wire) for _ in range(4)]
        assert waits[:3] == [0, 0, 0]
        assert 1000 < waits[3] <= 2100
        began = time.monotonic()
        wire.ask("ApiVersions", 0)
        assert time.monotonic() - began > 0.5


def test_records_without_an_answer_count_and_their_connection_rests(broker):
    limit(broker, producer_byte_rate=11_500)
    with wire_to(broker) as wire:
        for _ in range(4):
            wire.send("Produce", 9, **producing(acks=0))
        began = time.monotonic()
        wire.ask("ApiVersions", 0)
        assert time.monotonic() - began > 0.3
        assert produce(wire) > 1000


def test_requests_count_for_their_bytes_and_not_for_the_memory_that_they_are_received_in(broker):
    limit(broker, producer_byte_rate=20_000)
    large = kc.encode([(None, b"y" * 70_000)])
    with wire_to(broker) as wire:
        assert [produce(wire, large) for _ in range(2)] == [0, 0]
        assert 400 < produce(wire, large) <= 520


def test_the_answers_of_fetches_count_whole(broker):
    """Eight without records are within 50 bytes a second, the ninth is not."""
    limit(broker, consumer_byte_rate=50)
    asked = [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 40_000}]}]
    with wire_to(broker) as wire:
        found = [wire.ask("Fetch", 12, topics=asked, session_epoch=-1).throttle_time_ms for _ in range(9)]
    assert found[:8] == [0] * 8
    assert found[8] > 0


def test_answers_within_the_quota_are_encoded_once():
    """Their size is that of the bytes that are sent, without the header."""
    catalog = Catalog(1, uuid.uuid4(), lambda record: None)
    catalog.quotas[(("user", "ANONYMOUS"),)] = {"consumer_byte_rate": 500}
    quotas, encoded = Quotas(catalog), []
    message = messages.FetchRequest(topics=[])
    request = Request(Frame(memoryview(protocol.encode_request(message, 12, 7, "c"))), {keys.FETCH: range(18)}, Peer())

    def encode(answer):
        encoded.append(answer.throttle_time_ms)
        return protocol.response_pieces(answer, 12, 7)

    part = messages.FetchResponse.PartitionData(records=b"x" * 2000)
    answer = messages.FetchResponse(responses=[messages.FetchResponse.FetchableTopicResponse(partitions=[part])])
    sent = b"".join(bytes(piece) for piece in quotas.account(request, answer, encode))
    assert (encoded, sent) == ([0], protocol.encode_response(answer, 12, 7))
    for _ in range(2):
        quotas.account(request, answer, encode)
    assert encoded[:2] == [0, 0]
    assert encoded[-1] > 0


def test_a_fetch_asks_for_no_more_than_its_quota_ever_allows(broker):
    """What follows is for the next fetch: more than ten seconds may have would be held back for ever."""
    for _ in range(4):
        broker.write("orders", [(None, b"x" * 30_000)])
    limit(broker, consumer_byte_rate=4000)
    asked = [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]}]
    with wire_to(broker) as wire:
        for _ in range(20):
            answer = wire.ask("Fetch", 12, topics=asked, session_epoch=-1, min_bytes=100_000, max_bytes=1 << 20)
            if answer.responses:
                break
            assert answer.throttle_time_ms < 1000
    assert len(answer.responses[0].partitions[0].records) == 40_000


def test_no_session_begins_with_an_answer_without_records(broker):
    broker.write("orders", [(None, b"x" * 30_000)])
    limit(broker, consumer_byte_rate=1000)
    with wire_to(broker) as wire:
        answer = wire.ask("Fetch", 12, topics=FETCHED, session_epoch=0, max_bytes=40_000)
        assert answer.throttle_time_ms > 1000
        assert (answer.session_id, answer.responses) == (0, [])


def test_a_session_tells_later_what_its_client_did_not_get_while_it_was_over(broker):
    broker.write("orders", [(None, b"x" * 30_000)])
    broker.create_topic("more")
    asked = [{"topic": name, "partitions": [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 40_000}]}
             for name, offset in (("orders", 1), ("more", 0))]  # fmt: skip
    with wire_to(broker) as wire:
        session = wire.ask("Fetch", 12, topics=asked, session_epoch=0, max_bytes=30_000).session_id
        broker.write("more", [(None, b"x" * 30_000)])
        limit(broker, consumer_byte_rate=1000)
        again = {"session_id": session, "max_bytes": 30_000}
        answer = wire.ask("Fetch", 12, topics=FETCHED, session_epoch=1, **again)
        assert answer.throttle_time_ms > 1000
        assert (answer.session_id, answer.responses) == (session, [])
    limit(broker, consumer_byte_rate=None)
    with wire_to(broker) as wire:
        answer = wire.ask("Fetch", 12, topics=[], session_epoch=2, **again)
    rows = [(topic.topic, row.high_watermark, bool(row.records)) for topic in answer.responses
            for row in topic.partitions]  # fmt: skip
    assert rows == [("orders", 1, True), ("more", 1, False)]


def test_consumers_get_nothing_while_they_are_over(broker):
    for _ in range(2):
        broker.write("orders", [(None, b"x" * 30_000)])
    limit(broker, consumer_byte_rate=19_000)
    with wire_to(broker) as wire:
        found = [fetch(wire) for _ in range(5)]
    first = found[0][1]
    assert first > 30_000
    assert found[:4] == [(0, first)] * 4
    assert 0 < found[4][0] <= 600
    assert found[4][1] == 0


def test_the_time_of_requests_is_counted(broker):
    limit(broker, request_percentage=0.000001)
    with wire_to(broker) as wire:
        assert 0 < wire.ask("Metadata", 9, topics=None).throttle_time_ms <= 1000


def test_consumers_get_nothing_while_their_requests_take_too_long(broker):
    broker.write("orders", [(None, b"x" * 30_000)])
    limit(broker, request_percentage=0.000001)
    with wire_to(broker) as wire:
        wait, size = fetch(wire)
        assert 0 < wait <= 1000
        assert size == 0


def test_share_groups_get_nothing_while_they_are_over_and_records_are_locked(broker):
    with client.Admin(broker.bootstrap_servers) as admin:
        group = client.ConfigResource("group", "g")
        admin.incremental_alter_configs({group: {"share.auto.offset.reset": "earliest"}})
    broker.write("orders", [(None, b"x" * 30_000)])
    limit(broker, consumer_byte_rate=1000)
    member = {"group_id": "g", "member_id": "m"}
    with wire_to(broker) as wire:
        joined = [wire.ask("ShareGroupHeartbeat", 1, subscribed_topic_names=["orders"], **member) for _ in range(2)]
        topic = joined[1].assignment.topic_partitions[0].topic_id
        asked = {"topics": [{"topic_id": topic, "partitions": [{"partition_index": 0}]}], "max_bytes": 1 << 20}
        asked |= member | {"max_records": 10, "batch_size": 10, "max_wait_ms": 20_000}
        answer = wire.ask("ShareFetch", 1, share_session_epoch=0, **asked)
        assert answer.throttle_time_ms > 1000
        assert (answer.error_code, answer.responses) == (0, [])
    limit(broker, consumer_byte_rate=None)
    with wire_to(broker) as wire:
        row = wire.ask("ShareFetch", 1, share_session_epoch=0, **asked).responses[0].partitions[0]
        assert (row.error_code, row.acquired_records) == (0, [])


def test_a_client_waits_after_an_answer_that_cannot_say_so(broker):
    limit(broker, request_percentage=0.000001)
    with wire_to(broker) as wire:
        wire.ask("SaslHandshake", 1, mechanism="PLAIN")
        began = time.monotonic()
        wire.ask("ApiVersions", 0)
        assert time.monotonic() - began > 0.5


def test_the_strongest_quota_counts(broker):
    limit(broker, {"client-id": "me"}, producer_byte_rate=10.0)
    limit(broker, {"user": "ANONYMOUS", "client-id": "me"}, producer_byte_rate=1e9)
    with wire_to(broker) as wire:
        assert produce(wire) == 0
    limit(broker, {"user": "ANONYMOUS", "client-id": "me"}, producer_byte_rate=None)
    with wire_to(broker) as wire:
        assert produce(wire) > 1000


def connections(broker, count):
    """How connections that arrive together fare: True for one that is served, in how many seconds."""
    found = []
    for _ in range(count):
        begun, answer = time.monotonic(), b""
        with socket.create_connection(broker.bootstrap_servers.split(":")) as sock, suppress(ConnectionError):
            sock.sendall(protocol.encode_request(messages.ApiVersionsRequest(), 0, 1))
            answer = sock.recv(1)
        found.append((answer != b"", time.monotonic() - begun))
    return found


@pytest.mark.parametrize("ip", ["127.0.0.1", "::ffff:127.0.0.1", "localhost", None])
def test_connections_of_an_address_that_arrive_too_fast_are_closed_after_a_while(broker, ip, caplog):
    """Apache Kafka 4.4.0 serves 20 connections at once with a quota of 2 per second, then closes one after 507 ms."""
    limit(broker, {"ip": "192.0.2.1"}, connection_creation_rate=1)
    limit(broker, {"ip": ip}, connection_creation_rate=2)
    found = connections(broker, 21)
    assert [served for served, _ in found] == [True] * 20 + [False]
    assert found[-1][1] > 0.3
    assert "more arrive from its address than the quota allows" in caplog.text
    limit(broker, {"ip": ip}, connection_creation_rate=None)
    assert connections(broker, 1)[0][0]


def test_a_new_connection_does_not_look_through_all_quotas():
    """Nor do requests; a change is seen at the next connection."""

    class Counted(dict):
        walks = 0

        def items(self):
            self.walks += 1
            return super().items()

    catalog = Catalog(1, uuid.uuid4())
    catalog.quotas = Counted({(("client-id", str(n)),): {"consumer_byte_rate": 1.0} for n in range(100)})
    catalog.quotas[(("ip", "::1"),)] = {"connection_creation_rate": 3.0}
    catalog.quotas[(("ip", "0:0:0:0:0:0:0:2"),)] = {"connection_creation_rate": 4.0}
    quotas = Quotas(catalog)
    assert [quotas.arrivals(host) for host in ("::1", "::2", "::3", "127.0.0.1")] == [3.0, 4.0, None, None]
    assert catalog.quotas.walks == 1
    catalog.quotas[(("ip", None),)] = {"connection_creation_rate": 5.0}
    quotas.changed()
    assert [quotas.arrivals(host) for host in ("::1", "::3", "127.0.0.1")] == [3.0, 5.0, 5.0]
    assert catalog.quotas.walks == 2


def test_connections_that_arrive_too_fast_wait():
    """Apache Kafka 4.4.0 accepts 30 at once with 3 per second, then one after 320 ms."""
    with kc.broker.serve(config={"max.connection.creation.rate": 3}) as broker:
        found = connections(broker, 32)
        assert all(served for served, _ in found)
        assert sum(seconds for _, seconds in found[-2:]) > 0.5
        with client.Admin(broker.bootstrap_servers) as admin:
            resource = client.ConfigResource("broker", "1")
            with pytest.raises(ItemErrors):
                admin.incremental_alter_configs({resource: {"max.connection.creation.rate": "0"}})
            admin.incremental_alter_configs({resource: {"max.connection.creation.rate": "100"}})
        assert sum(seconds for _, seconds in connections(broker, 9)) < 0.5
