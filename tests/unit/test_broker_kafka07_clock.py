"""Kafka 0.7 by the broker's clock: what time flushes and deletes when it is put forward."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkacodec as kc
from tests.kafka07_session import Client, fetch, message, offsets, produce

M = message(b"abc")
DAY = 86_400


@pytest.fixture(params=["manual", "running"])
def clock(request):
    return request.param


def serving(clock, **config):
    return kc.broker.serve(listen="kafka07://127.0.0.1:0", clock=clock, config=config)


def test_flushes_follow_it():
    config = {"log.flush.interval": 1000, "topic.flush.intervals.ms": "quick:1000"}
    with serving("manual", **config) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M), produce("quick", 0, M))
        assert (client.read("t"), client.read("quick")) == (b"", b"")
        broker.advance(2.5)  # no look yet
        assert (client.read("t"), client.read("quick")) == (b"", b"")
        broker.advance(0.5)
        assert (client.read("t"), client.read("quick")) == (M, M)
        broker.advance(1)
        client.send(produce("t", 0, M), produce("quick", 0, M))
        broker.advance(1.5)
        assert (client.read("t"), client.read("quick")) == (M, M)
        broker.advance(0.5)
        assert (client.read("t"), client.read("quick")) == (M + M, M + M)


def test_retention_follows_it(clock):
    config = {"topic.log.file.size": "t:5", "log.retention.hours": 48, "topic.log.retention.hours": "kept:999"}
    with serving(clock, **config) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M), produce("kept", 0, M), offsets("t", 0, -1, 9))
        client.frame()
        broker.advance(DAY)
        client.send(produce("t", 0, M))  # begins a segment, a day later
        assert client.offsets("t", 0, -1, 9) == [2 * len(M), len(M), 0]
        broker.advance(0.5 * DAY)
        assert client.read("t") == M
        broker.advance(0.6 * DAY)
        assert client.offsets("t", 0, -1, 9) == [2 * len(M), len(M)]
        assert client.code(fetch("t", 0, 0)) == 1
        assert client.read("t", 0, len(M)) == M
        assert client.read("kept") == M
        broker.advance(DAY)
        assert client.offsets("t", 0, -1, 9) == [2 * len(M)]
        broker.advance(100 * DAY)
        client.send(produce("t", 0, M))  # into what is there since then
        broker.advance(DAY)
        assert client.read("t", 0, 2 * len(M)) == M
        assert [path.name for path in Path(broker.data).glob("t-0/*")] == [f"{2 * len(M):020}.kafka"]


def test_offsets_by_time_follow_it():
    with serving("manual", **{"log.file.size": 5}) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M), offsets("t", 0, -1, 9))
        client.frame()
        first = (Path(broker.data) / "t-0" / f"{0:020}.kafka").stat().st_mtime_ns // 1_000_000
        broker.advance(DAY)
        client.send(produce("t", 0, M))
        assert client.offsets("t", 0, first + 1000 * DAY // 2, 9) == [0]
        assert client.offsets("t", 0, first + 1000 * DAY - 1, 9) == [0]
        assert client.offsets("t", 0, first + 1000 * DAY, 9) == [2 * len(M), len(M), 0]
