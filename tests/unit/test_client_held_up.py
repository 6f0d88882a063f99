"""Consumers whose reads brokers refuse for a while say so, once a minute, with the error."""

from __future__ import annotations

import logging
import time

import pytest

import kafkacodec as kc
from kafkacodec.client.core import held_up
from kafkacodec.client.core.held_up import HeldUp, Hindrances
from kafkacodec.errors import COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR


def told(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING and "waited for" in r.getMessage()]


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve(topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(held_up, "RECENT_MS", 300.0)


CASES = [
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", "the coordinator of group 'g' is not found"),
    ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", "group 'g' cannot be joined"),
    ("SyncGroup", "NOT_COORDINATOR", "group 'g' cannot be joined"),
    ("ListOffsets", "LEADER_NOT_AVAILABLE", "the position in t-0 is not found"),
    ("Fetch", "KAFKA_STORAGE_ERROR", "t-0 cannot be fetched"),
]


@pytest.mark.parametrize(("api", "error", "what"), CASES, ids=[case[0] for case in CASES])
def test_a_consumer_says_what_holds_it_up(broker, caplog, api, error, what):
    options = {"group_id": "g", "auto_offset_reset": "earliest"}
    with (
        broker.inject(api, error, times=None),
        kc.client.Consumer("t", bootstrap_servers=broker.bootstrap_servers, **options) as consumer,
    ):
        end = time.monotonic() + 20
        while not told(caplog) and time.monotonic() < end:
            assert consumer.getmany(timeout=0.2) == {}
        (text,) = told(caplog)
    assert text.startswith("records are waited for; for ")
    assert text.endswith(f" s {what}: {error}; the consumer keeps trying")


SHARED = [
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", "the coordinator of group 's' is not found"),
    ("ShareGroupHeartbeat", "COORDINATOR_LOAD_IN_PROGRESS", "group 's' cannot be joined"),
    ("ShareFetch", "KAFKA_STORAGE_ERROR", "cannot be"),
]


@pytest.mark.parametrize(("api", "error", "what"), SHARED, ids=[case[0] for case in SHARED])
def test_a_share_consumer_does_so_too(broker, caplog, api, error, what):
    with (
        broker.inject(api, error, times=None),
        kc.client.ShareConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="s") as consumer,
    ):
        end = time.monotonic() + 20
        while not told(caplog) and time.monotonic() < end:
            assert consumer.getmany(timeout=0.2) == []
        (text,) = told(caplog)
        assert what in text
        assert text.endswith(f": {error}; the consumer keeps trying")


def test_a_request_to_an_unknown_coordinator_says_why_it_is_unknown(broker):
    options = {"group_id": "g", "default_api_timeout_ms": 500}
    with (
        broker.inject("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None),
        kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, **options) as consumer,
        pytest.raises(kc.errors.DeadlineExceeded, match=r"coordinator of group 'g' .*: COORDINATOR_NOT_AVAILABLE"),
    ):
        consumer.committed("t", 0)


def test_it_is_told_once_a_minute_while_it_lasts_and_somebody_waits(caplog):
    hindrances, asked = Hindrances(1000), [True]
    machine = HeldUp(hindrances, lambda: asked[0])

    def refused(seconds, code=COORDINATOR_NOT_AVAILABLE, what="a"):
        hindrances.refused(what, code, seconds * 1000)
        assert machine.poll(seconds * 1000) == []
        texts = told(caplog)
        caplog.clear()
        return texts

    assert refused(0) == refused(0.2) == []
    asked[0] = False
    assert refused(0.4) == []
    asked[0] = True
    assert refused(5) == ["records are waited for; for 5 s a: COORDINATOR_NOT_AVAILABLE; the consumer keeps trying"]
    for second in range(6, 65):
        assert refused(second, what=f"b{second % 2}") == []
        assert refused(second) == []
    assert refused(65, NOT_COORDINATOR) == [
        "records are waited for; for 65 s a: NOT_COORDINATOR, and 2 more; the consumer keeps trying"
    ]
    assert refused(200) == []  # after a pause it begins anew
    assert refused(201) == ["records are waited for; for 1 s a: COORDINATOR_NOT_AVAILABLE; the consumer keeps trying"]


def test_what_is_known_is_bounded(monkeypatch):
    monkeypatch.setattr(held_up, "_MOST", 10)
    hindrances = Hindrances(0)
    for number in range(100):
        hindrances.refused(str(number), COORDINATOR_NOT_AVAILABLE, number)
    assert len(hindrances._known) == 10
