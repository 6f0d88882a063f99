"""Quotas of the embedded broker: how long clients wait is what Apache Kafka 4.4.0 answered to the same requests."""

from __future__ import annotations

import time

import pytest

import kafkacodec as kc
from kafkacodec import client
from kafkacodec.broker.state.rates import Rate, Tokens
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


def produce(wire):
    entry = {"name": "orders", "partition_data": [{"index": 0, "records": BATCH}]}
    answer = wire.ask("Produce", 9, topic_data=[entry], acks=-1, timeout_ms=9000)
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


def test_consumers_get_nothing_while_they_are_over(broker):
    for _ in range(2):
        broker.write("orders", [(None, b"x" * 30_000)])
    limit(broker, consumer_byte_rate=20_000)
    with wire_to(broker) as wire:
        found = [fetch(wire) for _ in range(6)]
    first = found[0][1]
    assert first > 30_000
    assert found[:5] == [(0, first)] * 5
    assert 0 < found[5][0] <= 2000
    assert found[5][1] == 0


def test_the_time_of_requests_is_counted(broker):
    limit(broker, request_percentage=0.000001)
    with wire_to(broker) as wire:
        assert 0 < wire.ask("Metadata", 9, topics=None).throttle_time_ms <= 1000


def test_the_strongest_quota_counts(broker):
    limit(broker, {"client-id": "me"}, producer_byte_rate=10.0)
    limit(broker, {"user": "ANONYMOUS", "client-id": "me"}, producer_byte_rate=1e9)
    with wire_to(broker) as wire:
        assert produce(wire) == 0
    limit(broker, {"user": "ANONYMOUS", "client-id": "me"}, producer_byte_rate=None)
    with wire_to(broker) as wire:
        assert produce(wire) > 1000
