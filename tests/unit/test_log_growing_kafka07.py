"""A growing log of Kafka 0.7 by itself: when it rolls, when what it has is due to be flushed, what it keeps."""

from __future__ import annotations

import os

import pytest

from kafkacodec.dialects.kafka07 import FetchRequest, OffsetsRequest, encode_messages
from kafkacodec.dialects.kafka07.settings import BrokerSettings, TopicSettings
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.kafka07 import GrowingLog07

M = encode_messages([b"abc"])
HOUR = 3_600_000


@pytest.fixture
def opened(tmp_path):
    def opened(now=1000.0, *, clean=False, **settings):
        return GrowingLog07(str(tmp_path / "t-0"), TopicSettings(**settings), clean=clean, now=now, disk=Disk())

    return opened


def put(log, data=M, messages=1, now=1000.0):
    log.append(memoryview(data), messages, now)


def flushed(log, now=1000.0):
    log.flushed(log.end, now)


def test_it_rolls_by_the_time_of_its_first_append_in_this_process(opened):
    log = opened(roll_ms=HOUR)
    put(log, now=1000)
    put(log, now=1000 + HOUR)
    assert log.starts == [0]
    put(log, now=1001 + HOUR)
    assert log.starts == [0, 2 * len(M)]
    log.close(keeps=True)
    log = opened(clean=True, roll_ms=HOUR)
    put(log, now=9 * HOUR)
    assert log.starts == [0, 2 * len(M)]


def test_when_it_is_due_to_be_flushed(opened):
    log = opened(now=1000.0, flush_messages=3, flush_ms=50)
    assert log.flush_due_at is None
    put(log, now=1010)
    assert (log.flush_due_to, log.flush_due_at) == (0, 1050)  # since it was opened
    put(log, M + M, 2, now=1020)
    assert log.flush_due_to == log.end
    flushed(log, now=1020)
    assert (log.flush_due_at, log.unflushed) == (None, 0)
    put(log, now=1030)
    assert log.flush_due_at == 1070


def test_what_is_being_flushed_is_seen_when_it_is_done(opened):
    log = opened()
    put(log)
    flushing = log.flushing()
    put(log, encode_messages([b"later"]))
    flushing.sync()
    log.flushed(flushing.end, 1000)
    assert log.visible == len(M)
    assert bytes(log.fetch(FetchRequest("t", 0, 0, 99)).message_set) == M
    assert log.offsets(OffsetsRequest("t", 0, -1, 9), 1000).offsets == (len(M), 0)
    assert log.unflushed == 2


def segments(log, *, ages, now=1000 * HOUR):
    for i in range(len(ages)):
        put(log)
        put(log, b"", 0, now=1e18 * (i + 1) if i + 1 < len(ages) else 0)  # rolls, as it is late enough
    flushed(log)
    starts = log.starts
    for start, age in zip(starts, ages, strict=True):
        seconds = now / 1000 - age * 3600
        os.utime(os.path.join(log.path, f"{start:020}.kafka"), (seconds, seconds))
    return starts


def names(log):
    return sorted(os.listdir(log.path))


def test_old_segments_go_up_to_the_first_young_one(opened):
    log = opened(retention_ms=10 * HOUR)
    starts = segments(log, ages=[20, 15, 5, 30])
    log.retain(1000 * HOUR)
    assert log.starts == starts[2:]
    assert names(log) == [f"{start:020}.kafka" for start in starts[2:]]


def test_a_log_of_old_segments_keeps_its_end(opened):
    log = opened(retention_ms=10 * HOUR)
    segments(log, ages=[20, 15])
    end = log.end
    log.retain(1000 * HOUR)
    assert (log.starts, log.end, log.visible) == ([end], end, end)
    assert names(log) == [f"{end:020}.kafka"]
    path = os.path.join(log.path, names(log)[0])
    os.utime(path, (1, 1))
    log.retain(1000 * HOUR)  # an empty one stays, and is young again
    assert log.starts == [end]
    assert os.path.getmtime(path) > 1_000_000


def test_the_oldest_go_while_enough_bytes_stay(opened):
    log = opened(retention_bytes=2 * len(M) + 1, retention_ms=-1)
    starts = segments(log, ages=[0, 0, 0, 0])
    log.retain(1000 * HOUR)
    assert log.starts == starts[1:]


def test_limits_of_topics():
    settings = BrokerSettings.parse(
        {
            "log.flush.interval": "7",
            "log.default.flush.scheduler.interval.ms": "40",
            "topic.flush.intervals.ms": "t:50,no number,u:",
            "topic.log.file.size": "t:60",
            "topic.log.roll.hours": "t:2",
            "topic.log.retention.hours": "t:3",
            "topic.log.retention.size": "t:70",
        }
    )
    assert settings.of_topic("t", 99) == TopicSettings(
        file_size=60, roll_ms=2 * HOUR, flush_messages=7, flush_ms=50, retention_ms=3 * HOUR, retention_bytes=70
    )
    other = settings.of_topic("u", 99)
    assert (other.flush_ms, other.file_size, other.retention_ms) == (40, 1 << 30, 99)
