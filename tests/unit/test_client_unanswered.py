"""A consumer whose brokers vanish: it says what it waits for, and goes on when they are back."""

from __future__ import annotations

import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import kafkacodec as kc
from kafkacodec.client.consuming.positions import Positions
from kafkacodec.client.consuming.reset_policy import reset_policy
from kafkacodec.client.consuming.unanswered import Unanswered
from tests.patience import SOON, eventually


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("options", [{}, {"group_id": "g"}], ids=["assigned", "group"])
def test_a_wait_without_brokers_is_told_and_ends_when_they_are_back(tmp_path, caplog, options):
    with kc.broker.serve(tmp_path, topics={"t": 1}) as broker:
        server = broker.bootstrap_servers
        with kc.client.Producer(server) as producer:
            producer.send("t", b"before")
        consumer = kc.client.Consumer(
            "t",
            bootstrap_servers=server,
            auto_offset_reset="earliest",
            request_timeout_ms=1000,
            fetch_max_wait_ms=50,
            reconnect_backoff_max_ms=100,
            **options,
        )
        records = iter(consumer)
        assert next(records).value == b"before"
    with consumer, ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: next(record.value for record in records if record.value != b"before"))
        eventually(lambda: any("waited for" in text for text in warnings(caplog)))
        (told,) = [text for text in warnings(caplog) if "waited for" in text]
        with kc.broker.serve(tmp_path, listen=[f"kafka://{server}"]), kc.client.Producer(server) as producer:
            producer.send("t", b"after").result(SOON)
            assert found.result(SOON) == b"after"
    assert re.fullmatch(
        r"no broker has answered for \d s; records of t-0 are waited for, and the consumer keeps trying", told
    )


class Clock:
    """A machine with a clock of its own."""

    def __init__(self, *names, paused=()):
        self.positions = Positions(reset_policy("earliest"))
        self.positions.assign([(name, 0) for name in names], committed=False)
        for name in paused:
            self.positions.partitions[name, 0].paused = True
        self.reader = SimpleNamespace(waiting=True, asked_at=time.monotonic() - 1000)
        self.answered = 0.0
        self.machine = Unanswered(self.positions, self.reader, lambda: self.answered, 30_000)

    def told_at(self, *seconds):
        return [now for now in seconds if self._polled(now * 1000)]

    def _polled(self, now):
        before = self.machine._told_at
        assert self.machine.poll(now) == []
        return self.machine._told_at != before


def test_it_is_told_once_a_minute(caplog):
    clock = Clock("a", "b", "c", "d", "e")
    assert clock.told_at(29, 31, 32, 60, 90, 92) == [31, 92]
    assert warnings(caplog)[0].endswith(
        "records of a-0, b-0, c-0 and 2 more are waited for, and the consumer keeps trying"
    )
    clock.answered = 95_000
    assert clock.told_at(160) == [160]


def test_nothing_is_told_to_who_does_not_wait_or_reads_nothing():
    clock = Clock("a")
    clock.reader.waiting = False
    assert clock.told_at(100) == []
    assert clock.machine.next_deadline() is None
    clock.reader.waiting, clock.reader.asked_at = True, time.monotonic()
    assert clock.told_at(200) == []
    assert Clock("a", paused="a").told_at(100) == []
